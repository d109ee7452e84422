//! Parsing of expressions in graph functions.

use pliant_ir::relax::{Expr as IrExpr, ExprData, TypeData};
use pliant_ir::{DType, Sym};
use pliant_sym::CmpOp as SymCmp;
use pliant_tensor::Tensor;

use super::unresolved_values::Val;
use super::{FuncParser, Local};
use crate::dialect_spellings::{Namespace, python_op};
use crate::host_environment::HostValue;
use crate::python::ast::{BinOp, CmpOp, Expr, ExprKind, Range, UnaryOp};
use crate::script_errors::{ErrorKind, Res};

impl<'s> FuncParser<'_, 's> {
    /// Evaluates an expression. Operands are evaluated from left to right as in Python, which preserves the order of side effects.
    pub(super) fn value(&mut self, e: &Expr<'s>) -> Res<Val> {
        self.nesting += 1;
        let val = self.value_of(e);
        self.nesting -= 1;
        match val {
            Ok(Val::Expr(x)) if self.nesting > 0 => Ok(Val::Expr(self.computed(x))),
            val => val,
        }
    }

    /// Binds an expression to a variable if it is a call. Returns any other expression unchanged.
    fn computed(&mut self, x: IrExpr) -> IrExpr {
        match self.b.func().expr(x) {
            ExprData::Call { .. } => self.b.operand(x),
            _ => x,
        }
    }

    /// Evaluates an expression of a graph function. If the expression is a call, the call itself is not bound to a variable, even
    /// if it is nested in another expression.
    pub(super) fn value_of(&mut self, e: &Expr<'s>) -> Res<Val> {
        match &e.kind {
            ExprKind::Name(name) => self.name(name, e),
            ExprKind::Int(v) => Ok(Val::Sym(self.int(*v), None)),
            // Only uint64 can represent it.
            ExprKind::BigInt(v) => match Tensor::scalar(*v) {
                Ok(tensor) => Ok(Val::Expr(self.b.func_mut().constant(tensor))),
                Err(err) => Err(self.error(ErrorKind::Value, e.range, err.to_string())),
            },
            ExprKind::Float(v) => Ok(Val::Float(*v, None)),
            ExprKind::Str(s) => Ok(Val::Str(s.to_string())),
            ExprKind::Bool(v) => Ok(Val::Bool(*v)),
            ExprKind::None => Ok(Val::None),
            ExprKind::Tuple(items) | ExprKind::List(items) => self.sequence(items),
            ExprKind::Dict(items) => self.dict(items),
            ExprKind::Attribute(value, name, range) => self.attribute(e, value, name, *range),
            ExprKind::Subscript(value, index) => self.subscript(e, value, index),
            ExprKind::Call(call) => self.call(e, call),
            ExprKind::Unary(op, value) => self.unary(*op, value, e.range),
            ExprKind::Binary(op, a, b) => {
                // The result may fit 64 bits even if an intermediate result does not.
                if let Some(v) = crate::literals::integer_of(e) {
                    return Ok(Val::Sym(self.int(v), None));
                }
                let (x, y) = (self.value(a)?, self.value(b)?);
                self.binary(*op, x, y, e.range)
            }
            ExprKind::Compare(first, rest) => self.compare(first, rest, e.range),
            ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                let and = matches!(e.kind, ExprKind::And(..));
                let (x, y) = (self.value(a)?, self.value(b)?);
                self.connective(and, x, y, e.range)
            }
            ExprKind::IfExp(parts) => {
                let [cond, then, otherwise] = &**parts;
                match self.value(cond)? {
                    Val::Bool(true) => self.value(then),
                    Val::Bool(false) => self.value(otherwise),
                    cond => {
                        let (a, b) = (self.value(then)?, self.value(otherwise)?);
                        match (self.as_sym(&cond), self.as_sym(&a), self.as_sym(&b)) {
                            (Some(c), Some(a), Some(b)) => {
                                Ok(Val::Sym(self.b.func_mut().syms.select(c, a, b), None))
                            }
                            _ => Err(self.error_help(
                                ErrorKind::Unsupported,
                                e.range,
                                "both alternatives of a conditional expression (a if c else b) must be integers in a graph function",
                                "write an if statement, or R.where",
                            )),
                        }
                    }
                }
            }
            ExprKind::Starred(_) | ExprKind::Slice(..) => Err(self.error(
                ErrorKind::Unsupported,
                e.range,
                "in a graph function, * is only allowed in calls, tuples and lists, and slices only in subscripts",
            )),
            // A lambda is an index function. Operators take it as text.
            ExprKind::Lambda(_) => Ok(Val::Lambda(self.cx.slice(self.range(e.range)).to_string())),
            ExprKind::Host => self.host(e.range),
        }
    }

    fn host(&mut self, range: Range) -> Res<Val> {
        let range = self.range(range);
        let value = self.cx.eval(range)?;
        Ok(self.host_value(value))
    }

    pub(super) fn sequence(&mut self, items: &[Expr<'s>]) -> Res<Val> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            let ExprKind::Starred(value) = &item.kind else {
                out.push(self.value(item)?);
                continue;
            };
            let val = self.value(value)?;
            match (self.as_dims(&val), val) {
                (_, Val::Seq(items)) => out.extend(items),
                (Some(dims), _) => out.extend(dims.into_iter().map(|d| Val::Sym(d, None))),
                (None, other) => {
                    let message = format!(
                        "the operator * can only unpack tuples and shapes, not {}",
                        other.describe()
                    );
                    return Err(self.error(ErrorKind::Value, item.range, message));
                }
            }
        }
        Ok(Val::Seq(out))
    }

    fn dict(&mut self, items: &[(Expr<'s>, Expr<'s>)]) -> Res<Val> {
        let mut out = Vec::with_capacity(items.len());
        for (key, value) in items {
            let Some(name) = key.as_str() else {
                return Err(self.error(
                    ErrorKind::Value,
                    key.range,
                    "the keys of a dict must be strings",
                ));
            };
            out.push((name.to_string(), self.value(value)?));
        }
        Ok(Val::Map(out))
    }

    fn name(&mut self, name: &'s str, e: &Expr<'s>) -> Res<Val> {
        match self.scope.get(name) {
            Some(Local::Var(v)) => {
                let v = *v;
                if self.in_dim {
                    self.scalar_as_symbol(name, v);
                }
                return Ok(Val::Expr(v));
            }
            Some(Local::Sym(s)) => return Ok(Val::Sym(*s, None)),
            Some(Local::Module) => return Ok(Val::Module),
            Some(Local::Value(val)) => return Ok(val.clone()),
            Some(Local::Broken) => return Err(crate::script_errors::Reported),
            Some(local) => return Err(self.unusable(name, local, e.range)),
            None => {}
        }
        // In signatures, names define symbols even if a function has the same name, because a dim is never a function.
        if !self.implicit {
            if self.callees.contains(name) {
                return self.global(name, e.range).map(Val::Expr);
            }
            if self.cx.class_name == Some(name) {
                return Ok(Val::Module);
            }
        }
        if let Some(value) = self.lookup(name) {
            return Ok(self.host_value(value));
        }
        if let Some(path) = self.cx.path(e) {
            return Ok(Val::Path(path));
        }
        if self.implicit {
            return Ok(Val::Sym(self.symbol(name), None));
        }
        Err(self.unknown_name(name, e.range))
    }

    /// The value that the surrounding Python program has for a name; `None` inside quoted dims, which cannot refer to that program.
    pub(super) fn lookup(&self, name: &'s str) -> Option<HostValue> {
        if self.at.is_some() { None } else { self.cx.lookup(name) }
    }

    /// Reports why a defined name cannot be used at this point.
    fn unusable(&self, name: &str, local: &Local, range: Range) -> crate::script_errors::Reported {
        let (kind, message, help) = match local {
            Local::Hidden => (
                ErrorKind::Dataflow,
                format!("'{name}' is local to its dataflow block"),
                format!("make it an output of the block: R.output({name})"),
            ),
            Local::OneBranch => (
                ErrorKind::Structure,
                format!("'{name}' is not defined in both branches of the preceding 'if'"),
                format!("assign '{name}' in both branches"),
            ),
            Local::NoResultType => (
                ErrorKind::Structure,
                format!("'{name}' calls itself, so its result type must be declared"),
                "annotate the result: def f(...) -> R.Tensor(...):".to_string(),
            ),
            _ => (
                ErrorKind::Structure,
                format!("'{name}' is defined in the body of a loop, which may run zero iterations"),
                format!("give '{name}' a value before the loop"),
            ),
        };
        self.error_help(kind, range, message, help)
    }

    /// Whether an expression depends on an object of the surrounding Python program. If so, Python must evaluate the whole
    /// expression.
    pub(super) fn depends_on_host(&self, e: &Expr<'s>) -> bool {
        let mut at = e;
        loop {
            at = match &at.kind {
                ExprKind::Attribute(value, ..) | ExprKind::Subscript(value, _) => value,
                ExprKind::Call(call) => &call.func,
                ExprKind::Name(name) => {
                    return !self.scope.contains_key(name)
                        && !self.callees.contains(name)
                        && matches!(self.cx.lookup(name), Some(v) if !matches!(v, HostValue::Path(_)));
                }
                ExprKind::Lambda(_) | ExprKind::Host => return true,
                _ => return false,
            }
        }
    }

    fn attribute(
        &mut self,
        e: &Expr<'s>,
        value: &Expr<'s>,
        name: &'s str,
        range: Range,
    ) -> Res<Val> {
        if !self.is_local(e) {
            if let Some(path) = self.cx.path(e) {
                return Ok(match crate::parser_context::parse_dtype(&path.name) {
                    Some(d) if path.ns == Namespace::Tir => Val::DType(d),
                    _ => Val::Path(path),
                });
            }
            if self.depends_on_host(e) {
                return self.host(e.range);
            }
        }
        let base = self.value(value)?;
        match (&base, name) {
            (Val::Module, _) => self.global(name, range).map(Val::Expr),
            (Val::Expr(x), "shape") => {
                if let Some(dims) = self.ty_of(*x).dims() {
                    let dims = dims.to_vec();
                    return Ok(Val::Expr(self.b.func_mut().shape(&dims)));
                }
                let base = self.operand(base, None, value.range)?;
                self.op_by_name("relax.shape_of", &[base], e.range).map(Val::Expr)
            }
            (Val::Expr(x), "dtype") => match self.ty_of(*x).dtype() {
                Some(d) => Ok(Val::DType(d)),
                None => Err(self.error(
                    ErrorKind::Type,
                    e.range,
                    "the data type of this value is not known at parse time",
                )),
            },
            (Val::Expr(x), "ndim") => {
                let ty = self.b.func().expr_ty(*x);
                match self.b.func().rank_of(ty) {
                    Some(n) => Ok(Val::Sym(self.int(i64::from(n)), None)),
                    None => Err(self.error(
                        ErrorKind::Type,
                        e.range,
                        "the rank of this value is not known at parse time",
                    )),
                }
            }
            _ => {
                let value = base.describe();
                let message = format!("{value} has no attribute '{name}' in a graph function");
                Err(self.error(ErrorKind::UnknownName, range, message))
            }
        }
    }

    fn subscript(&mut self, e: &Expr<'s>, value: &Expr<'s>, index: &Expr<'s>) -> Res<Val> {
        if let ExprKind::Subscript(table, key) = &value.kind
            && table.as_name() == Some("metadata")
            && !self.scope.contains_key("metadata")
        {
            return self.metadata(e, key, index);
        }
        if self.depends_on_host(e) {
            return self.host(e.range);
        }
        let base = self.value(value)?;
        let at = self.value(index)?;
        let at = self.as_sym(&at).and_then(|s| self.b.func().syms.as_int(s));
        let Some(at) = at else {
            return Err(self.error_help(
                ErrorKind::Unsupported,
                e.range,
                "the index in a subscript of a tuple or shape must be an integer constant",
                "only tuples and shapes can be indexed: use R.strided_slice to slice tensors, R.take to select elements",
            ));
        };
        let len = match (&base, self.as_dims(&base)) {
            (Val::Seq(items), _) => Some(items.len()),
            (_, Some(dims)) => Some(dims.len()),
            (Val::Expr(x), None) => match self.ty_of(*x) {
                TypeData::Tuple(fields) => Some(fields.len()),
                TypeData::Any => None,
                _ => {
                    let ty = self.b.func().expr_ty(*x);
                    let message = format!("a value of type {} cannot be indexed", self.ty_text(ty));
                    let help = "use R.strided_slice to slice tensors, R.take to select elements";
                    return Err(self.error_help(ErrorKind::Type, e.range, message, help));
                }
            },
            (other, None) => {
                let message =
                    format!("only tuples and shapes can be indexed, not {}", other.describe());
                return Err(self.error(ErrorKind::Type, e.range, message));
            }
        };
        let real = if at < 0 { len.map_or(at, |n| at + n as i64) } else { at };
        if real < 0 || real > i64::from(u32::MAX) || len.is_some_and(|n| real >= n as i64) {
            let message = match len {
                Some(n) => format!("index {at} is out of range: the tuple or shape has {n} fields"),
                None => format!("index {at} of a tuple is out of range: it must not be negative"),
            };
            return Err(self.error(ErrorKind::Value, index.range, message));
        }
        let real = real as usize;
        if let Val::Seq(mut items) = base {
            return Ok(items.swap_remove(real));
        }
        if let Some(dims) = self.as_dims(&base) {
            return Ok(Val::Sym(dims[real], None));
        }
        let base = self.operand(base, None, value.range)?;
        Ok(Val::Expr(self.b.func_mut().tuple_get_item(base, real as u32)))
    }

    fn metadata(&mut self, e: &Expr<'s>, key: &Expr<'s>, index: &Expr<'s>) -> Res<Val> {
        let constant = key.as_str() == Some("relax.expr.Constant");
        let at = match index.kind {
            ExprKind::Int(v) if constant => usize::try_from(v).ok(),
            _ => None,
        };
        match at.and_then(|i| self.cx.metadata.get(i)) {
            Some(tensor) => {
                let tensor = tensor.clone();
                Ok(Val::Expr(self.b.func_mut().constant(tensor)))
            }
            None => Err(self.error_help(
                ErrorKind::UnknownName,
                e.range,
                "the script refers to a constant that its `metadata` does not contain",
                "print the module with show_meta=True to keep its constants",
            )),
        }
    }

    // ---- operators ----

    fn unary(&mut self, op: UnaryOp, value: &Expr<'s>, range: Range) -> Res<Val> {
        let val = self.value(value)?;
        let sym = self.as_sym(&val);
        match (op, &val, sym) {
            (UnaryOp::Pos, ..) => Ok(val),
            (UnaryOp::Neg, Val::Float(v, d), _) => Ok(Val::Float(-v, *d)),
            (UnaryOp::Neg, _, Some(s)) => Ok(Val::Sym(self.b.func_mut().syms.neg(s), None)),
            (UnaryOp::Not, Val::Bool(b), _) => Ok(Val::Bool(!b)),
            (UnaryOp::Not, _, Some(s)) => {
                Ok(Val::Sym(self.b.func_mut().syms.not(s), Some(DType::Bool)))
            }
            (_, Val::Expr(_), _) => {
                let name = match op {
                    UnaryOp::Neg => "relax.negative",
                    UnaryOp::Not => "relax.logical_not",
                    _ => "relax.bitwise_not",
                };
                let x = self.operand(val, None, value.range)?;
                self.op_by_name(name, &[x], range).map(Val::Expr)
            }
            _ => {
                let symbol = match op {
                    UnaryOp::Pos => "+",
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "not",
                    UnaryOp::Invert => "~",
                };
                let message = format!("operator '{symbol}' is not defined on {}", val.describe());
                Err(self.error(ErrorKind::Value, range, message))
            }
        }
    }

    fn binary(&mut self, op: BinOp, a: Val, b: Val, range: Range) -> Res<Val> {
        let (a, b) = self.scalars_as_symbols(a, b);
        if let (Some(x), Some(y)) = (self.as_sym(&a), self.as_sym(&b)) {
            return self.sym_binary(op, x, y, range);
        }
        if let (Some(x), Some(y)) = (self.as_f64(&a), self.as_f64(&b)) {
            let dtype = match (&a, &b) {
                (Val::Float(_, Some(d)), _) | (_, Val::Float(_, Some(d))) => Some(*d),
                _ => None,
            };
            let value = match op {
                BinOp::Add => x + y,
                BinOp::Sub => x - y,
                BinOp::Mul => x * y,
                BinOp::Div => x / y,
                BinOp::FloorDiv => (x / y).floor(),
                BinOp::Mod => x - (x / y).floor() * y,
                BinOp::Pow => x.powf(y),
                _ => {
                    return Err(self.error(
                        ErrorKind::Value,
                        range,
                        format!(
                            "operator '{}' is defined for integers, but not for floats",
                            op.symbol()
                        ),
                    ));
                }
            };
            return Ok(Val::Float(value, dtype));
        }
        if let (BinOp::Add, Val::Seq(x), Val::Seq(y)) = (op, &a, &b) {
            return Ok(Val::Seq(x.iter().chain(y).cloned().collect()));
        }
        self.tensor_binary(op.symbol(), a, b, range)
    }

    /// Replaces run-time integer scalars by symbols if both operands can be symbolic integers.
    fn scalars_as_symbols(&mut self, a: Val, b: Val) -> (Val, Val) {
        let unnamed = [&a, &b].map(|val| self.unnamed_scalar(val));
        let fits = [&a, &b].map(|val| self.as_sym(val).is_some());
        if (unnamed[0].is_none() && !fits[0]) || (unnamed[1].is_none() && !fits[1]) {
            return (a, b);
        }
        let mut named = [a, b];
        for (val, e) in named.iter_mut().zip(unnamed) {
            let Some(e) = e else { continue };
            let ExprData::Var(var) = *self.b.func().expr(e) else { continue };
            let name = self.b.func().var(var).name.clone();
            if self.is_param(var) {
                self.scalar_as_symbol(&name, e);
                continue;
            }
            let func = self.b.func_mut();
            let sym = func.fresh_sym(&name);
            let value = Some(func.syms.var(sym));
            let ty = func.intern(TypeData::Prim { dtype: DType::Int64, value });
            let cast = self.b.match_cast(e, ty, &name);
            *val = Val::Expr(self.b.func_mut().var_expr(cast));
        }
        let [a, b] = named;
        (a, b)
    }

    /// The value as an expression, if it is a variable of type `R.Prim("int64")` to which no symbol is bound yet.
    fn unnamed_scalar(&self, val: &Val) -> Option<IrExpr> {
        let Val::Expr(e) = *val else { return None };
        let unnamed = matches!(self.ty_of(e), TypeData::Prim { dtype: DType::Int64, value: None });
        (unnamed && matches!(self.b.func().expr(e), ExprData::Var(_))).then_some(e)
    }

    fn as_f64(&self, val: &Val) -> Option<f64> {
        match val {
            Val::Float(v, _) => Some(*v),
            Val::Sym(s, _) => self.b.func().syms.as_int(*s).map(|v| v as f64),
            _ => None,
        }
    }

    fn sym_binary(&mut self, op: BinOp, a: Sym, b: Sym, range: Range) -> Res<Val> {
        let syms = &mut self.b.func_mut().syms;
        let (x, y) = (syms.as_int(a), syms.as_int(b));
        if matches!(op, BinOp::FloorDiv | BinOp::Mod | BinOp::Div) && y == Some(0) {
            return Err(self.error(
                ErrorKind::Value,
                range,
                format!(
                    "division by zero: the right operand of '{}' is the constant 0",
                    op.symbol()
                ),
            ));
        }
        let sym = match op {
            BinOp::Add => syms.add(a, b),
            BinOp::Sub => syms.sub(a, b),
            BinOp::Mul => syms.mul(a, b),
            BinOp::FloorDiv => syms.floordiv(a, b),
            BinOp::Mod => syms.floormod(a, b),
            BinOp::Div | BinOp::Pow | BinOp::Shl | BinOp::Shr => {
                return match (op, x, y) {
                    (BinOp::Div, Some(x), Some(y)) => Ok(Val::Float(x as f64 / y as f64, None)),
                    (BinOp::Pow, Some(x), Some(y)) if y < 0 => {
                        Ok(Val::Float((x as f64).powf(y as f64), None))
                    }
                    (BinOp::Pow, Some(x), Some(y)) => {
                        self.small_int(x.checked_pow(y.min(64) as u32), range)
                    }
                    (BinOp::Shl, Some(x), Some(y)) if (0..63).contains(&y) => {
                        self.small_int(x.checked_mul(1 << y), range)
                    }
                    (BinOp::Shr, Some(x), Some(y)) if y >= 0 => {
                        self.small_int(Some(x >> y.min(63)), range)
                    }
                    _ => Err(self.error_help(
                        ErrorKind::Value,
                        range,
                        format!("operator '{}' is not defined on symbolic integers", op.symbol()),
                        "use // for division; sizes are integers",
                    )),
                };
            }
            _ => {
                let message =
                    format!("operator '{}' is not defined on symbolic integers", op.symbol());
                return Err(self.error(ErrorKind::Value, range, message));
            }
        };
        Ok(Val::Sym(sym, None))
    }

    fn small_int(&mut self, value: Option<i64>, range: Range) -> Res<Val> {
        match value {
            Some(v) => Ok(Val::Sym(self.int(v), None)),
            None => Err(self.error(
                ErrorKind::Value,
                range,
                "the result of an operator on integer constants does not fit 64 bits",
            )),
        }
    }

    fn tensor_binary(&mut self, symbol: &str, a: Val, b: Val, range: Range) -> Res<Val> {
        let ((Val::Expr(_), _) | (_, Val::Expr(_))) = (&a, &b) else {
            let message = format!(
                "the operator '{symbol}' is not defined on {} and {}",
                a.describe(),
                b.describe()
            );
            return Err(self.error(ErrorKind::Value, range, message));
        };
        let dtype = |p: &Self, v: &Val| match v {
            Val::Expr(e) => p.tensor_dtype(*e),
            _ => None,
        };
        let like = dtype(self, &a).or_else(|| dtype(self, &b));
        let x = self.operand(a, like, range)?;
        let y = self.operand(b, like, range)?;
        let name = format!("relax.{}", python_op(symbol).unwrap_or(symbol));
        self.op_by_name(&name, &[x, y], range).map(Val::Expr)
    }

    fn compare(&mut self, first: &Expr<'s>, rest: &[(CmpOp, Expr<'s>)], range: Range) -> Res<Val> {
        let mut left = self.value(first)?;
        let mut out: Option<Val> = None;
        for (op, right) in rest {
            let right = self.value(right)?;
            let one = self.compare_two(*op, left, right.clone(), range)?;
            left = right;
            out = Some(match out {
                None => one,
                Some(before) => self.connective(true, before, one, range)?,
            });
        }
        Ok(out.unwrap_or(left))
    }

    fn compare_two(&mut self, op: CmpOp, a: Val, b: Val, range: Range) -> Res<Val> {
        let (a, b) = self.scalars_as_symbols(a, b);
        if let (Some(x), Some(y)) = (self.as_sym(&a), self.as_sym(&b)) {
            let syms = &mut self.b.func_mut().syms;
            let sym = match op {
                CmpOp::Eq => syms.cmp(SymCmp::Eq, x, y),
                CmpOp::Ne => syms.cmp(SymCmp::Ne, x, y),
                CmpOp::Lt => syms.lt(x, y),
                CmpOp::Le => syms.le(x, y),
                CmpOp::Gt => syms.gt(x, y),
                _ => syms.ge(x, y),
            };
            return Ok(Val::Sym(sym, Some(DType::Bool)));
        }
        let symbol = match op {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            _ => ">=",
        };
        self.tensor_binary(symbol, a, b, range)
    }

    fn connective(&mut self, and: bool, a: Val, b: Val, range: Range) -> Res<Val> {
        if let (Val::Bool(x), Val::Bool(y)) = (&a, &b) {
            return Ok(Val::Bool(if and { *x && *y } else { *x || *y }));
        }
        if let (Some(x), Some(y)) = (self.as_sym(&a), self.as_sym(&b)) {
            let syms = &mut self.b.func_mut().syms;
            let sym = if and { syms.and(x, y) } else { syms.or(x, y) };
            return Ok(Val::Sym(sym, Some(DType::Bool)));
        }
        if let (Val::Expr(_), Val::Expr(_)) = (&a, &b) {
            let x = self.operand(a, None, range)?;
            let y = self.operand(b, None, range)?;
            let name = if and { "relax.logical_and" } else { "relax.logical_or" };
            return self.op_by_name(name, &[x, y], range).map(Val::Expr);
        }
        let word = if and { "and" } else { "or" };
        let message = format!(
            "the operator '{word}' is not defined on {} and {}",
            a.describe(),
            b.describe()
        );
        Err(self.error(ErrorKind::Value, range, message))
    }

    /// Whether an expression is a tuple or has a tuple type.
    pub(super) fn is_tuple_value(&self, e: pliant_ir::relax::Expr) -> bool {
        matches!(self.b.func().expr(e), ExprData::Tuple(_))
            || matches!(self.ty_of(e), TypeData::Tuple(_))
    }
}
