//! Parsing of calls of operators and functions in graph functions.

use pliant_ir::attr_values::is_forced_pure;
use pliant_ir::op::ArgumentForm;
use pliant_ir::relax::while_loop::op_call_is_pure;
use pliant_ir::relax::{Callee, Expr as IrExpr, ExprData, Type, TypeData, type_lattice};
use pliant_ir::{AttrValue, Attrs, BaseFunc, DType, Op, OpSignature, Sym, SymVar};

use super::unresolved_values::Val;
use super::{FuncParser, Local};
use crate::dialect_spellings::{self, IGNORED_KEYWORDS, Namespace, TYPE_KEYWORDS};
use crate::parser_context::Path;
use crate::python::ast::{Call, Expr, ExprKind, Range};
use crate::script_errors::{ErrorKind, Res};

impl<'s> FuncParser<'_, 's> {
    /// Evaluates a call expression in a graph function.
    pub(super) fn call(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        let func = &call.func;
        if let Some(used) = self.used_macro(call) {
            return self.expand(used, e, call);
        }
        if !self.is_local(func) {
            if let Some(path) = self.cx.path(func) {
                return match path.ns {
                    Namespace::Relax => self.relax_call(&path.name, e, call),
                    Namespace::Tir | Namespace::Te => self.scalar_call(&path, e, call),
                    Namespace::Ir | Namespace::Root => self.unknown_construct(&path, func.range),
                };
            }
            if let Some(name) = func.as_name()
                && !self.callees.contains(name)
            {
                if let Some(val) = self.builtin_call(name, e, call)? {
                    return Ok(val);
                }
                if self.cx.lookup(name).is_none()
                    && (self.find_op(name).is_some()
                        || dialect_spellings::relax_name(name).is_some())
                {
                    return self.relax_call(name, e, call);
                }
            }
            if func.as_name() != Some("metadata") && self.depends_on_host(func) {
                let captured = func.as_name().and_then(|n| self.cx.lookup(n));
                if !matches!(captured, Some(crate::host_environment::HostValue::Func(..))) {
                    let range = self.range(e.range);
                    let value = self.cx.eval(range)?;
                    return Ok(self.host_value(value));
                }
            }
            if let Some(parts) = func.dotted()
                && parts.len() > 1
                && !self.callees.contains(parts[0])
                && self.cx.class_name != Some(parts[0])
            {
                let name = parts.join(".");
                if self.find_op(&name).is_some() {
                    return self.relax_call(&name, e, call);
                }
            }
        }
        let callee = match self.value(func)? {
            Val::Expr(callee) => callee,
            Val::Path(path) => return self.unknown_construct(&path, func.range),
            other => {
                let message =
                    format!("{} is not a function, so it cannot be called", other.describe());
                return Err(self.error(ErrorKind::Value, func.range, message));
            }
        };
        self.func_call(callee, e, call).map(Val::Expr)
    }

    /// Evaluates calls of Python builtins that return a number.
    fn builtin_call(&mut self, name: &'s str, e: &Expr<'s>, call: &Call<'s>) -> Res<Option<Val>> {
        if self.cx.lookup(name).is_some() {
            return Ok(None);
        }
        if name == "float"
            && let Some(n) = crate::literals::number(e)
        {
            return Ok(Some(Val::Float(n.float, None)));
        }
        if matches!(name, "min" | "max") && call.args.len() >= 2 && call.keywords.is_empty() {
            let mut out = None;
            for arg in &call.args {
                let d = self.dim(arg)?;
                let syms = &mut self.b.func_mut().syms;
                out = Some(match out {
                    None => d,
                    Some(before) if name == "min" => syms.min(before, d),
                    Some(before) => syms.max(before, d),
                });
            }
            return Ok(out.map(|s| Val::Sym(s, None)));
        }
        Ok(None)
    }

    pub(super) fn unknown_construct<T>(&self, path: &Path, range: Range) -> Res<T> {
        let (module, help) = match path.ns {
            Namespace::Relax => {
                let ops = self.cx.ops.names();
                let ops = ops.iter().map(|n| n.strip_prefix("relax.").unwrap_or(n));
                (
                    "R",
                    crate::script_errors::did_you_mean(
                        &path.name,
                        dialect_spellings::relax_spellings().chain(ops),
                    ),
                )
            }
            Namespace::Tir => {
                ("T", crate::script_errors::did_you_mean(&path.name, crate::tir::spellings()))
            }
            Namespace::Ir => {
                ("I", crate::script_errors::did_you_mean(&path.name, ["ir_module", "module_attrs"]))
            }
            Namespace::Te => ("te", None),
            Namespace::Root => ("tvm", None),
        };
        let message = match path.name.as_str() {
            "" => format!("'{module}' is a module, not a value"),
            name => format!("the module {module} has no member '{name}'"),
        };
        Err(self.cx.error_maybe(ErrorKind::UnknownConstruct, self.range(range), message, help))
    }

    // ---- operators ----

    /// The operator with the given spelling, which omits the prefix `relax.`.
    pub(super) fn find_op(&self, name: &str) -> Option<Op> {
        let ops = self.cx.ops;
        let full = format!("relax.{name}");
        ops.lookup(&full)
            .or_else(|| {
                dialect_spellings::op_alias(name).and_then(|a| ops.lookup(&format!("relax.{a}")))
            })
            .or_else(|| ops.lookup(&format!("relax.nn.{name}")))
    }

    fn relax_call(&mut self, name: &str, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        if let Some(construct) = dialect_spellings::relax_name(name) {
            return self.construct_call(construct, e, call);
        }
        match self.find_op(name) {
            Some(op) => self.op_call(op, name, e, call).map(Val::Expr),
            None => {
                let path = Path { ns: Namespace::Relax, name: name.to_string() };
                let range = match call.func.kind {
                    ExprKind::Attribute(_, _, range) => range,
                    _ => call.func.range,
                };
                self.unknown_construct(&path, range)
            }
        }
    }

    fn op_call(&mut self, op: Op, name: &str, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let default = OpSignature::default();
        let signature = self.cx.ops.signature(op).unwrap_or(&default);
        let bound = self.sort_args(op, name, signature, e, call)?;
        let mut ty_args = Vec::new();
        for k in &call.keywords {
            if TYPE_KEYWORDS.contains(&k.name) {
                ty_args = self.type_list(&k.value)?;
            }
        }
        let written: Vec<ArgumentForm> =
            bound.operands.iter().map(|(v, _)| self.written(v)).collect();
        let types = signature.number_dtypes(&written, attr_dtype(&bound.attrs));
        let mut args = Vec::with_capacity(bound.operands.len());
        for (i, (val, range)) in bound.operands.into_iter().enumerate() {
            let name = signature.operands.get(i).map_or("", |o| o.name);
            let val = match val {
                Val::Str(s) if name.contains("dtype") => Val::DType(self.cx.dtype_name(&s, range)?),
                Val::None => {
                    args.push(self.op_by_name("relax.null_value", &[], range)?);
                    continue;
                }
                val => val,
            };
            args.push(self.operand(val, types[i], range)?);
        }
        self.emit_op(op, &args, bound.attrs, &ty_args, e.range)
    }

    /// Classifies an argument of an operator call as a tensor, a number literal or another value. The data types of tensor
    /// arguments determine the data types of number literals among the other arguments.
    fn written(&self, val: &Val) -> ArgumentForm {
        match val {
            Val::Expr(x) => match self.ty_of(*x) {
                TypeData::Tensor { dtype, .. } => ArgumentForm::Tensor(*dtype),
                TypeData::Any => ArgumentForm::Tensor(None),
                _ => ArgumentForm::Other,
            },
            Val::Tensor(t) => ArgumentForm::Tensor(Some(t.dtype())),
            Val::Sym(s, None) if self.b.func().syms.as_int(*s).is_some() => ArgumentForm::Int,
            Val::Float(_, None) => ArgumentForm::Float,
            Val::Bool(_) => ArgumentForm::Bool,
            _ => ArgumentForm::Other,
        }
    }

    /// Whether a value consists of integers, and at least one of them is unknown at parse time.
    fn is_symbolic(&self, val: &Val) -> bool {
        let open = |s: &Sym| self.b.func().syms.as_int(*s).is_none();
        match val {
            Val::Sym(s, _) => open(s),
            Val::Seq(items) => items.iter().any(|v| self.is_symbolic(v)),
            Val::Expr(e) => match self.ty_of(*e) {
                TypeData::Prim { value, dtype } => {
                    dtype.is_integer() && value.as_ref().is_none_or(open)
                }
                TypeData::Shape { dims, .. } => dims.as_ref().is_none_or(|d| d.iter().any(open)),
                _ => false,
            },
            _ => false,
        }
    }

    /// Sorts the arguments of an operator call into operands and attributes.
    fn sort_args(
        &mut self,
        op: Op,
        name: &str,
        sig: &OpSignature,
        e: &Expr<'s>,
        call: &Call<'s>,
    ) -> Res<SortedArgs> {
        let variadic = sig.operands.iter().position(|o| o.variadic);
        let mut operands: Vec<Option<(Val, Range)>> = Vec::new();
        let mut attrs: Vec<Option<AttrValue>> = vec![None; sig.attrs.len()];
        let mut by_symbols = None;
        for (i, arg) in call.args.iter().enumerate() {
            let val = self.value(arg)?;
            if i < sig.operands.len() || variadic.is_some() {
                let some = (!matches!(val, Val::None)).then_some((val, arg.range));
                operands.push(some);
                continue;
            }
            let attr_index = i - sig.operands.len();
            if attr_index >= attrs.len() {
                let most = sig.operands.len() + sig.attrs.len();
                let message = format!(
                    "R.{} takes at most {most} arguments, but {} are given",
                    op.short_name(),
                    call.args.len()
                );
                return Err(self.error(ErrorKind::Arguments, arg.range, message));
            }
            self.no_tensor(op, sig, (i, attr_index), (&val, arg.range))?;
            attrs[attr_index] =
                Some(self.attr_or_symbols(sig, attr_index, (val, arg.range), &mut by_symbols)?);
        }
        if let Some((a, b)) = dialect_spellings::swapped_operands(name)
            && operands.len() > a
        {
            operands.resize_with(operands.len().max(b + 1), || None);
            operands.swap(a, b);
        }
        for k in &call.keywords {
            if TYPE_KEYWORDS.contains(&k.name) || IGNORED_KEYWORDS.contains(&k.name) {
                continue;
            }
            if let Some(i) = sig.operands.iter().position(|o| o.name == k.name) {
                let val = self.value(&k.value)?;
                while operands.len() <= i {
                    operands.push(None);
                }
                if operands[i].is_some() {
                    return Err(self.given_twice(k.name, k.range));
                }
                operands[i] = (!matches!(val, Val::None)).then_some((val, k.value.range));
            } else if let Some(i) = sig.attrs.iter().position(|a| same_keyword(a.0, k.name)) {
                if attrs[i].is_some() {
                    return Err(self.given_twice(k.name, k.range));
                }
                let val = self.value(&k.value)?;
                let val = (val, k.value.range);
                attrs[i] = Some(self.attr_or_symbols(sig, i, val, &mut by_symbols)?);
            } else {
                let known =
                    sig.operands.iter().map(|o| o.name).chain(sig.attrs.iter().map(|a| a.0));
                let help = crate::script_errors::did_you_mean(k.name, known);
                let message = format!("R.{} has no parameter '{}'", op.short_name(), k.name);
                return Err(self.cx.error_maybe(ErrorKind::Arguments, k.range, message, help));
            }
        }
        let mut operands = self.check_operands(op, sig, operands, e.range)?;
        operands.extend(by_symbols);
        let mut out = Attrs::default();
        for (value, (name, default)) in attrs.into_iter().zip(&sig.attrs) {
            let Some(value) = value.or_else(|| default.clone()) else {
                let message = format!("R.{} needs the argument '{name}'", op.short_name());
                return Err(self.error(ErrorKind::Arguments, e.range, message));
            };
            out.0.push(((*name).into(), typed_attr(name, value, default.as_ref())));
        }
        Ok(SortedArgs { operands, attrs: out })
    }

    /// Reports an error if the argument at index `i` is a tensor although this position belongs to
    /// an attribute.
    fn no_tensor(
        &self,
        op: Op,
        sig: &OpSignature,
        (i, attr_index): (usize, usize),
        (val, range): (&Val, Range),
    ) -> Res<()> {
        match val {
            Val::Expr(x) if self.ty_of(*x).is_tensor() => {}
            _ => return Ok(()),
        }
        let names: Vec<&str> = sig.operands.iter().map(|o| o.name).collect();
        let message = format!(
            "R.{} takes {} operands ({}); argument {} is the attribute '{}', but a tensor is given",
            op.short_name(),
            names.len(),
            names.join(", "),
            i + 1,
            sig.attrs[attr_index].0
        );
        Err(self.error(ErrorKind::Arguments, range, message))
    }

    /// Evaluates the attribute at index `i`. If the attribute accepts symbols and the value contains some, returns the attribute
    /// value `None` and stores the value in `by_symbols`, to be passed as an operand.
    fn attr_or_symbols(
        &self,
        sig: &OpSignature,
        i: usize,
        (val, range): (Val, Range),
        by_symbols: &mut Option<(Val, Range)>,
    ) -> Res<AttrValue> {
        if sig.symbolic == Some(sig.attrs[i].0) && self.is_symbolic(&val) {
            *by_symbols = Some((val, range));
            return Ok(AttrValue::None);
        }
        self.attr(&val, range)
    }

    fn given_twice(&self, name: &str, range: Range) -> crate::script_errors::Reported {
        self.error(
            ErrorKind::Arguments,
            range,
            format!("argument '{name}' of an operator is passed twice"),
        )
    }

    fn check_operands(
        &mut self,
        op: Op,
        sig: &OpSignature,
        mut given: Vec<Option<(Val, Range)>>,
        range: Range,
    ) -> Res<Vec<(Val, Range)>> {
        while matches!(given.last(), Some(None)) {
            given.pop();
        }
        for (i, operand) in sig.operands.iter().enumerate().filter(|(_, o)| !o.optional) {
            let Some(value) = dialect_spellings::operand_default(op.name(), operand.name) else {
                continue;
            };
            if given.len() <= i {
                given.resize_with(i + 1, || None);
            }
            if given[i].is_none() {
                let val = match value {
                    dialect_spellings::OperandDefault::Int(v) => Val::Sym(self.int(v), None),
                    dialect_spellings::OperandDefault::Str(s) => Val::Str(s.into()),
                    dialect_spellings::OperandDefault::DType(d) => Val::DType(d),
                };
                given[i] = Some((val, range));
            }
        }
        let missing =
            sig.operands.iter().enumerate().find(|(i, o)| {
                !o.optional && !o.variadic && given.get(*i).is_none_or(Option::is_none)
            });
        if let Some((_, operand)) = missing {
            let message = format!("R.{} needs the argument '{}'", op.short_name(), operand.name);
            return Err(self.error(ErrorKind::Arguments, range, message));
        }
        Ok(given.into_iter().map(|g| g.unwrap_or((Val::None, range))).collect())
    }

    /// Emits a call of the operator with the given full name. The parser uses it for implicit calls, for example
    /// to convert `x + y`.
    pub(super) fn op_by_name(&mut self, name: &str, args: &[IrExpr], range: Range) -> Res<IrExpr> {
        let Some(op) = self.find_op(name.strip_prefix("relax.").unwrap_or(name)) else {
            let message = format!("no operator is called '{name}'");
            return Err(self.error(ErrorKind::UnknownConstruct, range, message));
        };
        let mut attrs = Attrs::default();
        if let Some(sig) = self.cx.ops.signature(op) {
            for (name, default) in &sig.attrs {
                if let Some(value) = default {
                    attrs.0.push(((*name).into(), value.clone()));
                }
            }
        }
        self.emit_op(op, args, attrs, &[], range)
    }

    /// Emits a call of an operator with its inferred type. Checks that the call is allowed at this point, because dataflow blocks
    /// and pure functions allow no side effects.
    pub(super) fn emit_op(
        &mut self,
        op: Op,
        args: &[IrExpr],
        attrs: Attrs,
        ty_args: &[Type],
        range: Range,
    ) -> Res<IrExpr> {
        self.b.set_span(self.cx.span(range));
        if !op_call_is_pure(self.b.func(), self.cx.ops, op, args) {
            self.effect(&format!("R.{}", op.short_name()), range)?;
        }
        self.b.call_op(op, args, attrs, ty_args).map_err(|error| {
            self.cx.error_maybe(ErrorKind::Infer, self.range(range), error.message, error.help)
        })
    }

    /// Records a call with side effects. Reports an error if it is inside a dataflow block or a function that is declared pure.
    pub(super) fn effect(&mut self, what: &str, range: Range) -> Res<()> {
        if self.b.in_dataflow() {
            return Err(self.error_help(
                ErrorKind::Purity,
                range,
                format!("{what} has side effects, so it cannot be called in a dataflow block"),
                "move the call out of the block, or use R.call_pure_packed if it has none",
            ));
        }
        if self.stated_pure == Some(true) && !self.forced_pure() {
            return Err(self.error_help(
                ErrorKind::Purity,
                range,
                format!("{what} has side effects, but the function is declared pure"),
                "declare it with @R.function(pure=False)",
            ));
        }
        self.impure.get_or_insert(range);
        Ok(())
    }

    /// Whether the function contains `R.func_attr({"relax.force_pure": True})`, so side effects in it are ignored.
    pub(super) fn forced_pure(&self) -> bool {
        is_forced_pure(&self.b.func().attrs)
    }

    // ---- functions ----

    /// Creates a reference to the module's function `name`.
    pub(super) fn global(&mut self, name: &'s str, range: Range) -> Res<IrExpr> {
        if !self.callees.contains(name) {
            let help = crate::script_errors::did_you_mean(name, self.callees.names());
            let message = format!("the module has no function '{name}'");
            return Err(self.cx.error_maybe(
                ErrorKind::UnknownName,
                self.range(range),
                message,
                help,
            ));
        }
        let ty = self.callee_type(name, range)?;
        Ok(self.b.func_mut().global(name, ty))
    }

    /// Adds a function that the surrounding Python program defines to the module. Returns a reference to it.
    pub(super) fn captured_func(&mut self, name: &str, func: BaseFunc) -> IrExpr {
        let ty = self.base_func_type(&func);
        let name = self.callees.add_captured(name, func);
        self.b.func_mut().global(&name, ty)
    }

    /// Creates a call of a global function, a packed function, or a variable that contains a function.
    fn func_call(&mut self, callee: IrExpr, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let (mut args, mut ty_args) = (Vec::with_capacity(call.args.len()), Vec::new());
        for arg in &call.args {
            let val = self.value(arg)?;
            args.push(self.operand(val, None, arg.range)?);
        }
        for k in &call.keywords {
            if !TYPE_KEYWORDS.contains(&k.name) {
                let message =
                    format!("a function is called with the unknown keyword argument '{}'", k.name);
                return Err(self.error(ErrorKind::Arguments, k.range, message));
            }
            ty_args = self.type_list(&k.value)?;
        }
        let pure = match self.ty_of(callee) {
            TypeData::Callable { pure, .. } => *pure,
            TypeData::Any => false,
            _ => {
                let ty = self.b.func().expr_ty(callee);
                let message = format!("a value of type {} cannot be called", self.ty_text(ty));
                return Err(self.error(ErrorKind::Type, call.func.range, message));
            }
        };
        if !pure {
            let what = format!("'{}'", self.cx.slice(call.func.range));
            self.effect(&what, e.range)?;
        }
        let ty = self.call_type(callee, &args, &ty_args, e.range)?;
        self.b.set_span(self.cx.span(e.range));
        Ok(self.b.call_func(callee, &args, &ty_args, ty))
    }

    /// The result type of a call, derived from the type of the called function value.
    pub(super) fn call_type(
        &mut self,
        callee: IrExpr,
        args: &[IrExpr],
        ty_args: &[Type],
        range: Range,
    ) -> Res<Type> {
        if let Some(ty) = self.stated_type(ty_args) {
            return Ok(ty);
        }
        let callee_ty = self.b.func().expr_ty(callee);
        let arg_tys: Vec<Type> = args.iter().map(|&a| self.b.func().expr_ty(a)).collect();
        let parsed = self.parsed_callee(callee);
        let local = match self.b.func().expr(callee) {
            ExprData::Var(v) => self.outer_syms.get(v).copied().unwrap_or(0),
            _ => 0,
        };
        let (name, params) = self.callee_names(callee);
        let func = self.b.func_mut();
        let ty = match parsed {
            Some(f) => type_lattice::derive_call_ty(func, &f, &arg_tys),
            None => {
                let outer = |v: SymVar| (v.as_u32() as usize) < local;
                type_lattice::derive_callable_ty_within(func, callee_ty, &arg_tys, &params, &outer)
            }
        };
        ty.map_err(|error| {
            let message = format!("{name}{}", error.message);
            self.cx.error_maybe(ErrorKind::Type, self.range(range), message, error.help)
        })
    }

    /// The name of a function value and the names of its parameters for error messages, as far as they are known.
    fn callee_names(&self, callee: IrExpr) -> (String, Vec<String>) {
        let func = self.b.func();
        let ExprData::Var(v) = *func.expr(callee) else { return (String::new(), Vec::new()) };
        let params = match self.b.value_of(v).map(|value| func.expr(value)) {
            Some(&ExprData::Func(id)) => func.func(id).params.clone(),
            _ => Vec::new(),
        };
        let params = params.iter().map(|&p| func.var(p).name.to_string()).collect();
        (format!("the call of '{}': ", func.var(v).name), params)
    }

    /// Combines the stated result types of a call: one type, or several as a tuple; `None` if no type is stated.
    pub(super) fn stated_type(&mut self, ty_args: &[Type]) -> Option<Type> {
        match ty_args {
            [] => None,
            [one] => Some(*one),
            many => Some(self.intern(TypeData::Tuple(many.into()))),
        }
    }

    /// Parses a list of types: `(T1, T2)`, `[T1]` or a single type.
    pub(super) fn type_list(&mut self, e: &Expr<'s>) -> Res<Vec<Type>> {
        match e.as_sequence() {
            Some(items) => items.iter().map(|e| self.annotation(e)).collect(),
            None => Ok(vec![self.annotation(e)?]),
        }
    }

    /// Whether an expression is a call of an operator or a function.
    pub(super) fn is_call(&self, e: IrExpr) -> bool {
        matches!(
            self.b.func().expr(e),
            ExprData::Call { callee: Callee::Op(_) | Callee::Expr(_), .. }
        )
    }

    /// Whether a name refers to a variable of the graph.
    pub(super) fn is_var(&self, name: &str) -> bool {
        matches!(self.scope.get(name), Some(Local::Var(_)))
    }
}

/// The arguments of an operator, sorted into operands and attributes.
struct SortedArgs {
    operands: Vec<(Val, Range)>,
    attrs: Attrs,
}

/// Whether a declared and a written keyword mean the same parameter: `axis` and `axes` are interchangeable.
fn same_keyword(declared: &str, written: &str) -> bool {
    declared == written || matches!((declared, written), ("axis", "axes") | ("axes", "axis"))
}

/// Converts a string to a data type if the declaration of the attribute expects a data type.
fn typed_attr(name: &str, value: AttrValue, default: Option<&AttrValue>) -> AttrValue {
    let wants = name.ends_with("dtype") || matches!(default, Some(AttrValue::DType(_)));
    match (&value, wants) {
        (AttrValue::Str(s), true) if s.is_empty() || &**s == "void" => AttrValue::None,
        (AttrValue::Str(s), true) => match crate::parser_context::parse_dtype(s) {
            Some(d) => AttrValue::DType(d),
            None => value,
        },
        _ => value,
    }
}

fn attr_dtype(attrs: &Attrs) -> Option<DType> {
    attrs.get("dtype").and_then(AttrValue::as_dtype)
}
