//! Parses the calls that are expressions of their own instead of operators: mainly calls of loop
//! functions, packed functions and builtins (`call_tir`, `call_packed` and similar), in all dialects.

use pliant_ir::op::{CALL_BUILTIN_WITH_CTX, CALL_DPS_PACKED, CALL_PURE_PACKED, CALL_TIR};
use pliant_ir::relax::{Expr as IrExpr, ExprData, TensorShape, Type, TypeData};
use pliant_ir::{Attrs, BaseFunc, DType, Op, Sym};

use super::FuncParser;
use super::unresolved_values::Val;
use crate::dialect_spellings::{RelaxName, TYPE_KEYWORDS};
use crate::python::ast::{Call, Expr, ExprKind, Keyword, Range};
use crate::script_errors::{ErrorKind, Res};

impl<'s> FuncParser<'_, 's> {
    /// Evaluates a call of a construct that is an expression, such as `R.call_tir(...)`.
    pub(super) fn construct_call(
        &mut self,
        name: RelaxName,
        e: &Expr<'s>,
        call: &Call<'s>,
    ) -> Res<Val> {
        use RelaxName::*;
        match name {
            CallTir => self.call_tir(e, call).map(Val::Expr),
            CallDpsPacked => self.call_dps_packed(e, call).map(Val::Expr),
            CallPacked => self.call_packed(e, call).map(Val::Expr),
            CallPurePacked => self.call_pure_packed(e, call).map(Val::Expr),
            CallPyFunc => self.call_py_func(e, call).map(Val::Expr),
            CallBuiltinWithCtx => self.call_builtin(e, call).map(Val::Expr),
            CallInplacePacked => self.call_inplace(e, call).map(Val::Expr),
            CallTirInplace => self.call_tir_inplace(e, call).map(Val::Expr),
            CallTirWithGrad => self.call_tir_with_grad(e, call).map(Val::Expr),
            CallKernel => self.kernel_call(e, call).map(Val::Expr),
            WhileLoop => self.while_loop(e, call).map(Val::Expr),
            Const => self.constant(e, call).map(Val::Expr),
            PrimValue => self.prim_value(e, call),
            ShapeValue => self.shape_value(e, call).map(Val::Expr),
            StrValue => {
                let text = self.one_string("R.str", e, call)?;
                Ok(Val::Expr(self.b.func_mut().str_value(&text)))
            }
            DTypeValue => {
                let arg = self.one_arg("R.dtype", e, call)?;
                match self.dtype(arg)? {
                    Some(d) => Ok(Val::Expr(self.b.func_mut().dtype_value(d))),
                    None => Err(self.error(
                        ErrorKind::Value,
                        e.range,
                        "the argument of R.dtype must be a data type such as \"float32\", not None",
                    )),
                }
            }
            TupleValue => {
                let mut fields = Vec::with_capacity(call.args.len());
                for arg in &call.args {
                    let val = self.value(arg)?;
                    fields.push(self.operand(val, None, arg.range)?);
                }
                Ok(Val::Expr(self.b.func_mut().tuple(&fields)))
            }
            TupleGetItem => self.tuple_get_item(e, call),
            ExternFunc => {
                let name = self.one_string("R.ExternFunc", e, call)?;
                Ok(Val::Expr(self.b.func_mut().extern_func(&name)))
            }
            MatchCast | MatchShape => Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                "a match_cast must be bound to a variable: it cannot be an operand",
                "write it as a separate statement: y = R.match_cast(x, R.Tensor((n, m)))",
            )),
            TensorTy | ShapeTy | TupleTy | ObjectTy | PrimTy | CallableTy => Err(self.error_help(
                ErrorKind::Value,
                e.range,
                "a type cannot be used as a value",
                "write a shape as R.shape([n, 4]) and a tuple as (x, y)",
            )),
            Function | Dataflow | Output | FuncAttr => Err(self.error(
                ErrorKind::Structure,
                e.range,
                format!("`{}` is not an expression", self.cx.slice(call.func.range)),
            )),
        }
    }

    /// Evaluates the argument `tir_vars` to a list of integers; empty if the argument is absent.
    pub(super) fn tir_vars(&mut self, arg: Option<&Expr<'s>>) -> Res<Vec<Sym>> {
        let Some(e) = arg else { return Ok(Vec::new()) };
        let val = self.value(e)?;
        let text = "tir_vars must be a tuple of integers or symbolic sizes";
        self.as_dims(&val).ok_or_else(|| self.error(ErrorKind::Value, e.range, text))
    }

    /// Parses `R.TupleGetItem(tuple, index)`.
    fn tuple_get_item(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        let [tuple, index] = call.args.as_slice() else {
            let text = "R.TupleGetItem takes a tuple and an index";
            return Err(self.error(ErrorKind::Arguments, e.range, text));
        };
        let (tuple, index) = (self.value(tuple)?, self.value(index)?);
        let at = self.as_sym(&index).and_then(|s| self.b.func().syms.as_int(s));
        let Some(at) = at.and_then(|i| u32::try_from(i).ok()) else {
            return Err(self.error(
                ErrorKind::Value,
                e.range,
                "the index of R.TupleGetItem must be a non-negative integer constant",
            ));
        };
        let tuple = self.operand(tuple, None, e.range)?;
        Ok(Val::Expr(self.b.func_mut().tuple_get_item(tuple, at)))
    }

    // ---- arguments ----

    pub(super) fn one_arg<'e>(
        &self,
        what: &str,
        e: &Expr<'s>,
        call: &'e Call<'s>,
    ) -> Res<&'e Expr<'s>> {
        match (call.args.as_slice(), call.keywords.as_slice()) {
            ([arg], _) => Ok(arg),
            ([], [k]) => Ok(&k.value),
            _ => {
                Err(self.error(ErrorKind::Arguments, e.range, format!("{what} takes one argument")))
            }
        }
    }

    fn one_string(&mut self, what: &str, e: &Expr<'s>, call: &Call<'s>) -> Res<String> {
        let arg = self.one_arg(what, e, call)?;
        match self.value(arg)? {
            Val::Str(s) => Ok(s),
            _ => Err(self.error(
                ErrorKind::Value,
                arg.range,
                format!("the argument of {what} must be a string"),
            )),
        }
    }

    pub(super) fn keyword<'e>(&self, call: &'e Call<'s>, names: &[&str]) -> Option<&'e Expr<'s>> {
        call.keywords.iter().find(|k| names.contains(&k.name)).map(|k| &k.value)
    }

    pub(super) fn check_keywords(&self, what: &str, call: &Call<'s>, known: &[&str]) -> Res<()> {
        let bad = |k: &&Keyword<'s>| !known.contains(&k.name);
        match call.keywords.iter().find(bad) {
            None => Ok(()),
            Some(k) => {
                let help = crate::script_errors::did_you_mean(k.name, known.iter().copied());
                let message = format!("{what} has no parameter '{}'", k.name);
                Err(self.cx.error_maybe(ErrorKind::Arguments, k.range, message, help))
            }
        }
    }

    // ---- destination-passing calls ----

    fn call_tir(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        const WHAT: &str = "R.call_tir";
        let known = [
            TYPE_KEYWORDS,
            &["gvar", "func", "args", "tir_vars", "dtype", "shape", "output_shape", "output_dtype"],
        ];
        self.check_keywords(WHAT, call, &known.concat())?;
        let mut positional: Vec<&Expr<'s>> = call.args.iter().collect();
        // In the dialect of 2022 the shape comes first: (shape, f, args).
        if positional.len() >= 3 && !self.is_callee(positional[0]) {
            positional[..3].rotate_left(1);
            let shape = positional.remove(2);
            positional.insert(2, shape);
        }
        let mut next = positional.into_iter();
        let func = next.next().or_else(|| self.keyword(call, &["gvar", "func"]));
        let args = next.next().or_else(|| self.keyword(call, &["args"]));
        let (Some(func), Some(args)) = (func, args) else {
            return Err(self.error(
                ErrorKind::Arguments,
                e.range,
                "R.call_tir needs two arguments: a loop function and the tuple of its inputs",
            ));
        };
        let callee = self.callee(func)?;
        let (mut fields, mut vars) = self.call_args(args, Some(callee))?;
        let out = next.next();
        let tir_vars = next.next().or_else(|| self.keyword(call, &["tir_vars"]));
        vars.extend(self.tir_vars(tir_vars)?);
        let packed = matches!(self.b.func().expr(callee), ExprData::Extern(_));
        let out_ty = self.out_type(WHAT, e, call, out, &fields)?;
        if packed {
            // A string names a packed function, whose scalars are ordinary arguments.
            for &s in &vars {
                let v = self.b.func_mut().int_value(s, DType::Int64);
                fields.push(v);
            }
            vars.clear();
        }
        let tuple = self.b.func_mut().tuple(&fields);
        let mut operands = vec![callee, tuple];
        if !vars.is_empty() {
            operands.push(self.b.func_mut().shape(&vars));
        }
        self.special(if packed { CALL_DPS_PACKED } else { CALL_TIR }, &operands, &[out_ty], e.range)
    }

    fn call_dps_packed(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        const WHAT: &str = "R.call_dps_packed";
        let known =
            [TYPE_KEYWORDS, &["func", "args", "dtype", "shape", "output_shape", "output_dtype"]];
        self.check_keywords(WHAT, call, &known.concat())?;
        let func = call.args.first().or_else(|| self.keyword(call, &["func"]));
        let args = call.args.get(1).or_else(|| self.keyword(call, &["args"]));
        let (Some(func), Some(args)) = (func, args) else {
            let message = "R.call_dps_packed needs two arguments: the name of a packed function and the tuple of its inputs";
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        };
        let callee = self.callee(func)?;
        let (mut fields, vars) = self.call_args(args, None)?;
        for &s in &vars {
            let v = self.b.func_mut().int_value(s, DType::Int64);
            fields.push(v);
        }
        let out_ty = self.out_type(WHAT, e, call, call.args.get(2), &fields)?;
        let tuple = self.b.func_mut().tuple(&fields);
        self.special(CALL_DPS_PACKED, &[callee, tuple], &[out_ty], e.range)
    }

    /// Whether an argument of `call_tir` can be the called function; otherwise it is a shape.
    fn is_callee(&mut self, e: &Expr<'s>) -> bool {
        match &e.kind {
            ExprKind::Str(_) => true,
            ExprKind::Name(name) => {
                self.callees.contains(name) && !self.is_var(name) || !self.scope.contains_key(name)
            }
            ExprKind::Attribute(_, name, _) => self.callees.contains(name) && *name != "shape",
            ExprKind::Call(_) => !self.is_shape_call(e),
            _ => false,
        }
    }

    fn is_shape_call(&self, e: &Expr<'s>) -> bool {
        let path = e.as_call().and_then(|c| self.cx.path(&c.func));
        path.is_some_and(|p| matches!(p.name.as_str(), "shape" | "ShapeExpr" | "shape_of"))
    }

    /// The callee of a destination-passing or packed call: a function of the module, or the name of a packed function.
    pub(super) fn callee(&mut self, e: &Expr<'s>) -> Res<IrExpr> {
        match self.value(e)? {
            Val::Str(name) => Ok(self.b.func_mut().extern_func(&name)),
            Val::Expr(x) => match self.b.func().expr(x) {
                ExprData::Global(_) | ExprData::Extern(_) | ExprData::Var(_) => Ok(x),
                _ => Err(self.error(
                    ErrorKind::Value,
                    e.range,
                    "the callee must be a function of the module or the name of a packed function, not a computed value",
                )),
            },
            other => {
                let message = format!(
                    "the callee must be a function of the module or the name of a packed function, not {}",
                    other.describe()
                );
                Err(self.error(ErrorKind::Value, e.range, message))
            }
        }
    }

    /// Evaluates the arguments of a destination-passing call: tensors, followed by scalars. The TVM
    /// 0.26 dialect writes scalars at the end of the tuple, although the call passes them after the
    /// outputs. A scalar stays in its position if the loop function has a scalar parameter there.
    pub(super) fn call_args(
        &mut self,
        e: &Expr<'s>,
        callee: Option<IrExpr>,
    ) -> Res<(Vec<IrExpr>, Vec<Sym>)> {
        let mut vals = match (e.as_sequence(), e) {
            (Some(items), _) => {
                let mut vals = Vec::with_capacity(items.len());
                for item in items {
                    if let ExprKind::Starred(_) = item.kind {
                        match self.sequence(std::slice::from_ref(item))? {
                            Val::Seq(more) => vals.extend(more),
                            other => vals.push(other),
                        }
                    } else {
                        vals.push(self.value(item)?);
                    }
                }
                vals
            }
            (None, _) => match self.value(e)? {
                Val::Seq(items) => items,
                Val::Expr(x) if self.is_tuple_value(x) => {
                    return Ok((self.tuple_operands(x), Vec::new()));
                }
                one => vec![one],
            },
        };
        let mut vars = Vec::new();
        while let Some(s) = vals.last().and_then(|v| self.scalar(v))
            && !self.takes_scalar(callee, vals.len() - 1)
        {
            vars.push(s);
            vals.pop();
        }
        vars.reverse();
        let mut fields = Vec::with_capacity(vals.len());
        for val in vals {
            fields.push(self.operand(val, None, e.range)?);
        }
        Ok((fields, vars))
    }

    /// Whether the loop function `callee` has a scalar parameter at position `index`.
    fn takes_scalar(&self, callee: Option<IrExpr>, index: usize) -> bool {
        let Some(ExprData::Global(name)) = callee.map(|e| self.b.func().expr(e)) else {
            return false;
        };
        match self.callees.result(self.b.func().str(*name)) {
            Some(BaseFunc::Prim(f)) => f
                .params
                .get(index)
                .is_some_and(|&p| matches!(f.var(p).ty, pliant_ir::tir::VarTy::Value(_))),
            _ => false,
        }
    }

    fn scalar(&self, val: &Val) -> Option<Sym> {
        let tensor = match val {
            Val::Expr(x) => !matches!(self.ty_of(*x), TypeData::Prim { .. }),
            Val::Sym(..) => false,
            _ => true,
        };
        if tensor { None } else { self.as_sym(val) }
    }

    /// Splits a tuple into its fields, which become operands of a call.
    fn tuple_operands(&mut self, tuple: IrExpr) -> Vec<IrExpr> {
        let tuple = self.b.operand(tuple);
        if let Some(fields) = self.b.func().tuple_fields(tuple) {
            return fields.to_vec();
        }
        let count = match self.ty_of(tuple) {
            TypeData::Tuple(fields) => fields.len(),
            _ => 0,
        };
        (0..count)
            .map(|i| {
                let field = self.b.func_mut().tuple_get_item(tuple, i as u32);
                self.b.operand(field)
            })
            .collect()
    }

    /// The stated result type of a destination-passing call, written as types or as a shape and a data type.
    pub(super) fn out_type(
        &mut self,
        what: &str,
        e: &Expr<'s>,
        call: &Call<'s>,
        positional: Option<&Expr<'s>>,
        args: &[IrExpr],
    ) -> Res<Type> {
        let given = self.keyword(call, TYPE_KEYWORDS).or(positional);
        let shape = self.keyword(call, &["output_shape", "shape"]).or(positional);
        let is_types = |p: &Self, e: &Expr<'s>| match e.as_sequence() {
            Some(items) => !items.is_empty() && items.iter().all(|e| p.is_type(e)),
            None => p.is_type(e),
        };
        if let Some(given) = given
            && (is_types(self, given) || self.keyword(call, TYPE_KEYWORDS).is_some())
        {
            let types = self.type_list(given)?;
            return self.stated_type(&types).ok_or_else(|| {
                self.error(ErrorKind::Arguments, given.range, format!("the result type of {what} must be one type or a list of types, but the list is empty"))
            });
        }
        let Some(shape) = shape else {
            return Err(self.error_help(
                ErrorKind::Arguments,
                e.range,
                format!("{what} needs the type of its result"),
                "add out_sinfo=R.Tensor((n, m), dtype=\"float32\")",
            ));
        };
        let dtype = self.keyword(call, &["dtype", "output_dtype"]);
        if let Some(dtypes) = dtype.and_then(Expr::as_sequence)
            && let Some(shapes) = shape.as_sequence()
        {
            if dtypes.len() != shapes.len() {
                let message = format!(
                    "{what} has {} result shapes, but {} result data types",
                    shapes.len(),
                    dtypes.len()
                );
                return Err(self.error(ErrorKind::Arguments, e.range, message));
            }
            let mut types = Vec::with_capacity(dtypes.len());
            for (s, d) in shapes.iter().zip(dtypes) {
                let dtype = self.dtype(d)?;
                types.push(self.tensor_of(s, dtype)?);
            }
            return Ok(self.intern(TypeData::Tuple(types.into())));
        }
        let dtype = match dtype {
            Some(d) => self.dtype(d)?,
            None => args.iter().find_map(|&a| self.tensor_dtype(a)),
        };
        if dtype.is_none() {
            return Err(self.error_help(
                ErrorKind::Arguments,
                e.range,
                format!("{what} needs the data type of its result"),
                "add dtype=\"float32\"",
            ));
        }
        self.tensor_of(shape, dtype)
    }

    fn tensor_of(&mut self, shape: &Expr<'s>, dtype: Option<DType>) -> Res<Type> {
        let val = self.value(shape)?;
        let shape: TensorShape = self.shape_of_value(val, shape.range)?;
        Ok(self.intern(TypeData::Tensor { shape, dtype }))
    }

    /// Creates a call of an operator that the IR itself defines, such as `call_tir`.
    fn special(&mut self, op: Op, args: &[IrExpr], ty_args: &[Type], range: Range) -> Res<IrExpr> {
        if self.cx.ops.lookup(op.name()).is_some() {
            let mut attrs = Attrs::default();
            if let Some(sig) = self.cx.ops.signature(op) {
                for (name, default) in &sig.attrs {
                    attrs.0.extend(default.clone().map(|v| ((*name).into(), v)));
                }
            }
            return self.emit_op(op, args, attrs, ty_args, range);
        }
        // Built-in operators need no registry, so programs that consist of calls can be parsed with an incomplete one.
        self.b.set_span(self.cx.span(range));
        let args: Vec<IrExpr> = args.iter().map(|&a| self.b.operand(a)).collect();
        let ty = match self.stated_type(ty_args) {
            Some(ty) => ty,
            None => self.intern(TypeData::Any),
        };
        let callee = pliant_ir::relax::Callee::Op(op);
        Ok(self.b.func_mut().call(callee, &args, Attrs::default(), ty_args, ty))
    }

    // ---- packed calls ----

    pub(super) fn packed_parts(
        &mut self,
        what: &str,
        e: &Expr<'s>,
        call: &Call<'s>,
    ) -> Res<(IrExpr, Vec<IrExpr>)> {
        let Some((func, rest)) = call.args.split_first() else {
            return Err(self.error(
                ErrorKind::Arguments,
                e.range,
                format!("{what} needs the name of the packed function as its first argument"),
            ));
        };
        let callee = self.callee(func)?;
        let mut args = Vec::with_capacity(rest.len());
        for arg in rest {
            let val = self.value(arg)?;
            args.push(self.operand(val, None, arg.range)?);
        }
        Ok((callee, args))
    }

    fn is_vm_builtin(&self, callee: IrExpr) -> bool {
        let func = self.b.func();
        match func.expr(callee) {
            ExprData::Extern(name) => func.str(*name).starts_with("vm.builtin."),
            _ => false,
        }
    }

    pub(super) fn packed_types(&mut self, call: &Call<'s>) -> Res<Vec<Type>> {
        match self.keyword(call, TYPE_KEYWORDS) {
            Some(e) => self.type_list(e),
            None => Ok(Vec::new()),
        }
    }

    fn call_packed(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let (callee, mut args) = self.packed_parts("R.call_packed", e, call)?;
        let ty_args = self.packed_types(call)?;
        // Keywords of VM builtins are names of operands, because the operands are positional only.
        let builtin = self.is_vm_builtin(callee);
        if !builtin {
            self.check_keywords("R.call_packed", call, TYPE_KEYWORDS)?;
        }
        // Programs of 2022 call packed functions in dataflow blocks, which promises that these functions are pure.
        if self.b.in_dataflow() && ty_args.is_empty() && !self.discarded {
            let any = self.intern(TypeData::Any);
            let mut operands = vec![callee];
            operands.extend(args);
            return self.special(CALL_PURE_PACKED, &operands, &[any], e.range);
        }
        self.effect("R.call_packed", e.range)?;
        for k in call.keywords.iter().filter(|k| !TYPE_KEYWORDS.contains(&k.name)) {
            let val = self.value(&k.value)?;
            args.push(self.operand(val, None, k.value.range)?);
        }
        let ty = match self.stated_type(&ty_args) {
            Some(ty) => ty,
            None => self.intern(TypeData::Any),
        };
        self.b.set_span(self.cx.span(e.range));
        let args: Vec<IrExpr> = args.iter().map(|&a| self.b.operand(a)).collect();
        let callee = pliant_ir::relax::Callee::Expr(callee);
        Ok(self.b.func_mut().call(callee, &args, Attrs::default(), &ty_args, ty))
    }

    fn call_pure_packed(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        self.check_keywords("R.call_pure_packed", call, TYPE_KEYWORDS)?;
        let (callee, args) = self.packed_parts("R.call_pure_packed", e, call)?;
        let mut ty_args = self.packed_types(call)?;
        if ty_args.is_empty() {
            ty_args.push(self.intern(TypeData::Any));
        }
        let mut operands = vec![callee];
        operands.extend(args);
        self.special(CALL_PURE_PACKED, &operands, &ty_args, e.range)
    }

    /// Parses `R.call_py_func("name", (args...), out_sinfo)`, which calls a packed function that
    /// returns its result.
    fn call_py_func(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        const WHAT: &str = "R.call_py_func";
        self.check_keywords(WHAT, call, &[TYPE_KEYWORDS, &["func_name", "args"]].concat())?;
        let func = call.args.first().or_else(|| self.keyword(call, &["func_name"]));
        let args = call.args.get(1).or_else(|| self.keyword(call, &["args"]));
        let (Some(func), Some(args)) = (func, args) else {
            let message = format!("{WHAT} needs the name of a function and its arguments");
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        };
        let callee = self.callee(func)?;
        let (fields, _) = self.call_args(args, None)?;
        let out = self.out_type(WHAT, e, call, call.args.get(2), &fields)?;
        let operands: Vec<IrExpr> = [callee].into_iter().chain(fields).collect();
        self.special(CALL_PURE_PACKED, &operands, &[out], e.range)
    }

    fn call_builtin(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        const WHAT: &str = "R.call_builtin_with_ctx";
        self.check_keywords(WHAT, call, &[TYPE_KEYWORDS, &["args"]].concat())?;
        let args = call.args.get(1).or_else(|| self.keyword(call, &["args"]));
        let (Some(func), Some(args)) = (call.args.first(), args) else {
            return Err(self.error(
                ErrorKind::Arguments,
                e.range,
                format!("{WHAT} needs a function and its arguments"),
            ));
        };
        let callee = self.callee(func)?;
        let fields = match args.as_sequence() {
            Some(items) => {
                let mut fields = Vec::with_capacity(items.len());
                for item in items {
                    let val = self.value(item)?;
                    fields.push(self.operand(val, None, item.range)?);
                }
                fields
            }
            None => match self.value(args)? {
                Val::Expr(x) if self.is_tuple_value(x) => self.tuple_operands(x),
                val => vec![self.operand(val, None, args.range)?],
            },
        };
        let tuple = self.b.func_mut().tuple(&fields);
        let ty_args = self.packed_types(call)?;
        if self.cx.ops.lookup(CALL_BUILTIN_WITH_CTX.name()).is_none() {
            self.effect(WHAT, e.range)?;
        }
        self.special(CALL_BUILTIN_WITH_CTX, &[callee, tuple], &ty_args, e.range)
    }
}
