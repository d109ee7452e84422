//! Parsing of expressions in loop functions. Untyped literals get the type of the other operand. If two types differ, the operand
//! of the narrower type is converted.

use pliant_ir::tir::bind_calls::contains_calls;
use pliant_ir::tir::{BinOp, Buffer, Expr as IrExpr, ExprData, Intrin, Ty};
use pliant_tensor::{DType, DTypeKind};

use super::fold_floats::fold_floats;
use super::{Local, PrimParser};
use crate::host_environment::{HostSym, HostSymOp, HostValue};
use crate::python::ast::{self, CmpOp, Expr, ExprKind, Range, UnaryOp};
use crate::script_errors::{ErrorKind, Reported, Res};

/// The value of an expression before the context determines its type.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// An expression whose type is known.
    Typed(IrExpr),
    /// An integer literal without a type. In an operation, it gets the type of the operand with which it is combined.
    Int(i64),
    /// A float literal without a type. In an operation, it gets the type of the operand with which it is combined.
    Float(f64),
    /// A string, which can only be an argument of a call.
    Str(String),
    /// A buffer as a whole, without indices.
    Buffer(Buffer),
    /// A handle parameter (a parameter that stands for a tensor) to which `T.match_buffer` has not bound a buffer.
    Handle(pliant_ir::tir::Var),
    /// A data type, which is not a value of a loop function.
    DType,
    /// A tuple or list of other values.
    Seq(Vec<Val>),
}

impl Val {
    fn describe(&self) -> &'static str {
        match self {
            Val::Typed(_) | Val::Int(_) | Val::Float(_) => "a scalar",
            Val::Str(_) => "a string",
            Val::Buffer(_) => "a buffer",
            Val::Handle(_) => "a handle",
            Val::DType => "a data type",
            Val::Seq(_) => "a tuple",
        }
    }
}

/// The default type of float literals in loop functions.
const FLOAT: Ty = Ty::scalar(DType::Float32);

impl<'s> PrimParser<'_, 's> {
    // ---- conversions ----

    /// Evaluates a scalar. An untyped literal gets the type `like` if this type can represent it.
    pub(super) fn scalar(&mut self, e: &Expr<'s>, like: Option<Ty>) -> Res<IrExpr> {
        let val = self.val(e)?;
        self.typed(val, like, e.range)
    }

    pub(super) fn typed(&mut self, val: Val, like: Option<Ty>, range: Range) -> Res<IrExpr> {
        match val {
            Val::Typed(e) => match (self.f.expr(e), like) {
                (ExprData::Call(intrin, operands, _), Some(ty))
                    if self.untyped_calls.contains(&e) =>
                {
                    let (intrin, operands) = (*intrin, operands.clone());
                    let call = ExprData::Call(intrin, operands, Ty::scalar(ty.dtype));
                    Ok(self.f.add_expr(call))
                }
                _ => Ok(e),
            },
            Val::Int(v) => self.int_const(v, like.unwrap_or(Ty::I64), range),
            Val::Float(v) => {
                let ty = like.filter(|t| t.dtype.is_float()).unwrap_or(FLOAT);
                Ok(self.lanes(ExprData::Float(v.to_bits(), Ty::scalar(ty.dtype)), ty.lanes))
            }
            other => {
                let message =
                    format!("a scalar is required here, but the value is {}", other.describe());
                let help = match &other {
                    Val::Buffer(b) => {
                        let data = self.f.buffer(*b);
                        let dims = vec!["i"; data.shape.len()].join(", ");
                        Some(format!("read an element: {}[{dims}]", data.name))
                    }
                    _ => None,
                };
                Err(self.cx.error_maybe(ErrorKind::Value, range, message, help))
            }
        }
    }

    fn lanes(&mut self, data: ExprData, lanes: u16) -> IrExpr {
        let e = self.f.add_expr(data);
        if lanes == 1 { e } else { self.f.add_expr(ExprData::Broadcast(e, lanes)) }
    }

    /// Creates an integer constant of the given type. Reports an error if the type cannot represent the value.
    pub(super) fn int_const(&mut self, v: i64, ty: Ty, range: Range) -> Res<IrExpr> {
        let scalar = Ty::scalar(ty.dtype);
        if ty.dtype.is_float() {
            return Ok(self.lanes(ExprData::Float((v as f64).to_bits(), scalar), ty.lanes));
        }
        if !fits(v, ty.dtype) {
            return Err(self.error(
                ErrorKind::Value,
                range,
                format!("the integer {v} does not fit the data type {}", ty.dtype),
            ));
        }
        Ok(self.lanes(ExprData::Int(v, scalar), ty.lanes))
    }

    /// Evaluates an index or a size, converted to int64.
    pub(super) fn index(&mut self, e: &Expr<'s>) -> Res<IrExpr> {
        let val = self.val(e)?;
        self.index_of(val, e.range)
    }

    pub(super) fn index_of(&mut self, val: Val, range: Range) -> Res<IrExpr> {
        if let Val::Float(_) = val {
            return Err(self.error(
                ErrorKind::Type,
                range,
                "an index or a size must be an integer, not a float",
            ));
        }
        let e = self.typed(val, Some(Ty::I64), range)?;
        let ty = self.f.expr_ty(e);
        if !ty.dtype.is_integer() {
            let message = format!("an index or a size must be an integer, but has type {ty}");
            return Err(self.error_help(
                ErrorKind::Type,
                range,
                message,
                "convert the value: T.Cast(\"int64\", x)",
            ));
        }
        Ok(self.f.cast(e, Ty::I64.with_lanes(ty.lanes)))
    }

    /// Evaluates a condition, converted to bool.
    pub(super) fn cond(&mut self, e: &Expr<'s>) -> Res<IrExpr> {
        let x = self.scalar(e, Some(Ty::BOOL))?;
        self.bool_condition(x, e.range)
    }

    fn bool_condition(&mut self, e: IrExpr, range: Range) -> Res<IrExpr> {
        let ty = self.f.expr_ty(e);
        match ty.dtype.kind() {
            DTypeKind::Bool => Ok(e),
            DTypeKind::Int | DTypeKind::UInt => {
                let zero = self.int_const(0, ty, range)?;
                Ok(self.f.binary(BinOp::Ne, e, zero))
            }
            DTypeKind::Float => {
                let message =
                    format!("a condition must be a bool or an integer, but has type {ty}");
                Err(self.error_help(ErrorKind::Type, range, message, "compare it: x != 0.0"))
            }
        }
    }

    /// Converts a value to a type. Only lossless conversions are implicit. Scripts must write all
    /// other conversions explicitly. `what` names the value in errors.
    pub(super) fn convert(&mut self, val: Val, to: Ty, what: &str, range: Range) -> Res<IrExpr> {
        if let (Val::Float(v), false) = (&val, to.dtype.is_float()) {
            let message = format!("{v:?} is a float, but {what} has type {}", to.dtype);
            let help = format!("convert the value: T.Cast(\"{}\", ...)", to.dtype);
            return Err(self.error_help(ErrorKind::Type, range, message, help));
        }
        let e = self.typed(val, Some(to), range)?;
        let from = self.f.expr_ty(e);
        if from.lanes != to.lanes && from.lanes != 1 {
            let message = format!(
                "the value is a vector of {} lanes, but {what} has {} lanes",
                from.lanes, to.lanes
            );
            return Err(self.error(ErrorKind::Type, range, message));
        }
        if from.dtype != to.dtype && from.dtype.promote(to.dtype) != to.dtype {
            let message =
                format!("the value has type {}, but {what} has type {}", from.dtype, to.dtype);
            let help = format!("convert the value: T.Cast(\"{}\", ...)", to.dtype);
            return Err(self.error_help(ErrorKind::Type, range, message, help));
        }
        let e = self.f.cast(e, Ty::scalar(to.dtype).with_lanes(from.lanes));
        Ok(self.broadcast(e, to.lanes))
    }

    fn broadcast(&mut self, e: IrExpr, lanes: u16) -> IrExpr {
        if self.f.expr_ty(e).lanes == lanes {
            e
        } else {
            self.f.add_expr(ExprData::Broadcast(e, lanes))
        }
    }

    /// Converts two operands to a common type.
    pub(super) fn unify(&mut self, a: Val, b: Val, range: Range) -> Res<(IrExpr, IrExpr)> {
        let ty = |p: &Self, v: &Val| match v {
            Val::Typed(e) => Some(p.f.expr_ty(*e)),
            _ => None,
        };
        let (s, t) = (ty(self, &a), ty(self, &b));
        let float = matches!((&a, &b), (Val::Float(_), _) | (_, Val::Float(_)));
        let like = match s.or(t) {
            Some(t) if float && !t.dtype.is_float() => Some(FLOAT.with_lanes(t.lanes)),
            Some(t)
                if t.dtype.is_bool()
                    && !matches!((&a, &b), (Val::Int(0 | 1), _) | (_, Val::Int(0 | 1))) =>
            {
                Some(Ty::I64.with_lanes(t.lanes))
            }
            other => other,
        };
        let (x, y) = (self.typed(a, like, range)?, self.typed(b, like, range)?);
        let (s, t) = (self.f.expr_ty(x), self.f.expr_ty(y));
        if s == t {
            return Ok((x, y));
        }
        if s.lanes != t.lanes && s.lanes != 1 && t.lanes != 1 {
            let message = format!(
                "the two operands of an operator are vectors of different numbers of lanes: {} and {}",
                s.lanes, t.lanes
            );
            return Err(self.error(ErrorKind::Type, range, message));
        }
        let (dtype, lanes) = (s.dtype.promote(t.dtype), s.lanes.max(t.lanes));
        let x = self.f.cast(x, Ty::scalar(dtype).with_lanes(s.lanes));
        let y = self.f.cast(y, Ty::scalar(dtype).with_lanes(t.lanes));
        Ok((self.broadcast(x, lanes), self.broadcast(y, lanes)))
    }

    // ---- expressions ----

    /// Evaluates an expression of a loop function.
    pub(super) fn val(&mut self, e: &Expr<'s>) -> Res<Val> {
        match &e.kind {
            ExprKind::Name(name) => self.name(name, e),
            ExprKind::Int(v) => Ok(Val::Int(*v)),
            ExprKind::BigInt(_) => {
                let text = self.cx.slice(e.range);
 let message = format!("the integer {text} does not fit 64 bits");
Err(self.error(ErrorKind::Value, e.range, message))
            }
            ExprKind::Float(v) => Ok(Val::Float(*v)),
            ExprKind::Bool(v) => {
                let data = ExprData::Int(i64::from(*v), Ty::BOOL);
                Ok(Val::Typed(self.f.add_expr(data)))
            }
            ExprKind::Str(s) => Ok(Val::Str(s.to_string())),
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                let items: Res<Vec<Val>> = items.iter().map(|e| self.val(e)).collect();
                Ok(Val::Seq(items?))
            }
            ExprKind::Attribute(value, name, range) => self.attribute(e, value, name, *range),
            ExprKind::Subscript(value, index) => self.subscript(e, value, index),
            ExprKind::Call(call) => self.call(e, call),
            ExprKind::Unary(op, value) => self.unary(*op, value, e.range),
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.val(a)?, self.val(b)?);
                self.binary(*op, x, y, e.range)
            }
            ExprKind::Compare(first, rest) => self.compare(first, rest, e.range),
            ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                let op = if matches!(e.kind, ExprKind::And(..)) { BinOp::And } else { BinOp::Or };
                let (x, y) = (self.cond(a)?, self.cond(b)?);
                let (x, y) = self.unify(Val::Typed(x), Val::Typed(y), e.range)?;
                Ok(Val::Typed(self.f.binary(op, x, y)))
            }
            ExprKind::IfExp(parts) => {
                let [cond, then, otherwise] = &**parts;
                let c = self.cond(cond)?;
                let (a, b) = (self.val(then)?, self.val(otherwise)?);
                let (a, b) = self.unify(a, b, e.range)?;
                Ok(Val::Typed(self.f.call(Intrin::IfThenElse, &[c, a, b])))
            }
            ExprKind::Lambda(_) | ExprKind::Host => {
                let value = self.cx.eval(e.range)?;
                self.host_val(value, e.range)
            }
            ExprKind::None | ExprKind::Dict(_) | ExprKind::Slice(..) | ExprKind::Starred(_) => {
                Err(self.error(
                    ErrorKind::Value,
                    e.range,
                    "None, a dict, a slice or a starred expression cannot be an operand in a loop function",
                ))
            }
        }
    }

    fn name(&mut self, name: &'s str, e: &Expr<'s>) -> Res<Val> {
        match self.scope.get(name) {
            Some(Local::Var(v)) => {
                let v = *v;
                return Ok(Val::Typed(self.f.var_expr(v)));
            }
            Some(Local::Buffer(b)) => return Ok(Val::Buffer(*b)),
            Some(Local::Handle(v)) => return Ok(Val::Handle(*v)),
            Some(Local::Const(v)) => return Ok(v.clone()),
            Some(Local::Broken) => return Err(Reported),
            None => {}
        }
        if let Some(value) = self.cx.lookup(name) {
            return self.host_val(value, e.range);
        }
        if self.implicit {
            let v = self.f.size_var(name);
            self.define(name, Local::Var(v));
            return Ok(Val::Typed(self.f.var_expr(v)));
        }
        Err(self.unknown_name(name, e.range))
    }

    pub(super) fn host_val(&mut self, value: HostValue, range: Range) -> Res<Val> {
        Ok(match value {
            HostValue::Int(v) => Val::Int(v),
            HostValue::Float(v) => Val::Float(v),
            HostValue::Bool(v) => {
                Val::Typed(self.f.add_expr(ExprData::Int(i64::from(v), Ty::BOOL)))
            }
            HostValue::Str(s) => Val::Str(s),
            HostValue::DType(_) => Val::DType,
            HostValue::List(items) | HostValue::Tuple(items) => {
                let items: Res<Vec<Val>> =
                    items.into_iter().map(|v| self.host_val(v, range)).collect();
                Val::Seq(items?)
            }
            HostValue::Sym(s) => Val::Typed(self.host_sym(&s)),
            other => {
                let text = crate::parser_context::first_line(self.cx.slice(range));
                let what = match other {
                    HostValue::Other(name) => format!("a Python object of type '{name}'"),
                    HostValue::None => "None".into(),
                    _ => "not a number".into(),
                };
                let message = format!("a loop function cannot use `{text}`, which is {what}");
                return Err(self.error(ErrorKind::Value, range, message));
            }
        })
    }

    fn host_sym(&mut self, sym: &HostSym) -> IrExpr {
        match sym {
            HostSym::Int(v) => self.f.int(*v),
            HostSym::Var(id, name) => {
                let v = match self.host_vars.get(id) {
                    Some(v) => *v,
                    None => self.f.size_var(name.as_str()),
                };
                self.host_vars.insert(*id, v);
                self.f.var_expr(v)
            }
            HostSym::Binary(op, a, b) => {
                let (a, b) = (self.host_sym(a), self.host_sym(b));
                let op = match op {
                    HostSymOp::Add => BinOp::Add,
                    HostSymOp::Sub => BinOp::Sub,
                    HostSymOp::Mul => BinOp::Mul,
                    HostSymOp::FloorDiv => BinOp::FloorDiv,
                    HostSymOp::FloorMod => BinOp::FloorMod,
                    HostSymOp::Min => BinOp::Min,
                    HostSymOp::Max => BinOp::Max,
                };
                self.f.binary(op, a, b)
            }
        }
    }

    fn attribute(&mut self, e: &Expr<'s>, value: &Expr<'s>, name: &str, range: Range) -> Res<Val> {
        if let Some(path) = self.tir_name(e) {
            return match crate::parser_context::parse_dtype(&path) {
                Some(_) => Ok(Val::DType),
                None => Err(self.unknown_construct(&path, range)),
            };
        }
        let base_local = value.as_name().and_then(|n| self.scope.get(n));
        let Some(Local::Buffer(b)) = base_local else {
            if let Some(Local::Broken) = base_local {
                return Err(Reported);
            }
            if !self.is_local(e) {
                let value = self.cx.eval(e.range)?;
                return self.host_val(value, e.range);
            }
            return Err(self.error(
                ErrorKind::UnknownName,
                range,
                format!("only buffers have attributes in a loop function, so '.{name}' is not allowed after another value"),
            ));
        };
        let b = *b;
        match name {
            "shape" => {
                Ok(Val::Seq(self.f.buffer(b).shape.iter().map(|&d| Val::Typed(d)).collect()))
            }
            "strides" => {
                Ok(Val::Seq(self.f.buffer(b).strides.iter().map(|&d| Val::Typed(d)).collect()))
            }
            "dtype" => Ok(Val::DType),
            "data" => Ok(Val::Typed(self.f.address_of_start(b))),
            _ => {
                let message = format!("a buffer has no attribute '{name}'");
                let help = "the attributes of a buffer are shape, strides, dtype and data";
                Err(self.error_help(ErrorKind::UnknownName, range, message, help))
            }
        }
    }

    fn subscript(&mut self, e: &Expr<'s>, value: &Expr<'s>, index: &Expr<'s>) -> Res<Val> {
        if !self.is_local(value) && value.dotted().is_some_and(|p| self.cx.lookup(p[0]).is_some()) {
            let value = self.cx.eval(e.range)?;
            return self.host_val(value, e.range);
        }
        match self.val(value)? {
            Val::Buffer(b) => {
                let indices = self.indices(b, index, e.range)?;
                Ok(Val::Typed(self.f.load(b, &indices)))
            }
            Val::Seq(mut items) => {
                let count = items.len();
                let at = match index.kind {
                    ExprKind::Int(v) if v < 0 => usize::try_from(v + items.len() as i64).ok(),
                    ExprKind::Int(v) => usize::try_from(v).ok(),
                    _ => None,
                };
                match at {
                    Some(i) if i < items.len() => Ok(items.swap_remove(i)),
                    _ => {
                        let text = self.cx.slice(index.range);
                        let message = format!(
                            "index `{text}` must be an integer constant within the {count} fields of the tuple or shape"
                        );
                        Err(self.error(ErrorKind::Value, index.range, message))
                    }
                }
            }
            other => {
                let message =
                    format!("only buffers and tuples can be indexed, not {}", other.describe());
                let help = "create a buffer from a handle with T.match_buffer";
                let help = matches!(other, Val::Handle(_)).then(|| help.to_string());
                Err(self.cx.error_maybe(ErrorKind::Type, value.range, message, help))
            }
        }
    }

    /// Evaluates the indices of a buffer access: one per dim, or a single linear index in functions with linear accesses. A slice
    /// of constant extent becomes a vector.
    pub(super) fn indices(
        &mut self,
        b: Buffer,
        index: &Expr<'s>,
        range: Range,
    ) -> Res<Vec<IrExpr>> {
        let items = match &index.kind {
            ExprKind::Tuple(items) => items.as_slice(),
            _ => std::slice::from_ref(index),
        };
        if !self.f.is_flat() {
            self.check_rank(b, items.len(), range)?;
        } else if items.len() != 1 {
            let message = format!(
                "buffer '{}' is accessed with {} indices, but this function uses one linear index per access",
                self.f.buffer(b).name,
                items.len()
            );
            return Err(self.error(ErrorKind::Type, range, message));
        }
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            let ExprKind::Slice(..) = item.kind else {
                out.push(self.index(item)?);
                continue;
            };
            let (start, extent) = self.slice(item, b, out.len())?;
            let lanes =
                self.f.as_int(extent).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
            let Some(lanes) = lanes else {
                let message = "a slice of a buffer is a vector, so its extent must be a constant from 1 to 65535";
                return Err(self.error(ErrorKind::Value, item.range, message));
            };
            let one = self.f.int(1);
            out.push(self.f.add_expr(ExprData::Ramp(start, one, lanes)));
        }
        Ok(out)
    }

    pub(super) fn check_rank(&self, b: Buffer, given: usize, range: Range) -> Res<()> {
        let data = self.f.buffer(b);
        if data.shape.len() == given {
            return Ok(());
        }
        let message = format!(
            "buffer '{}' has {} dims, but is accessed with {given} indices",
            data.name,
            data.shape.len()
        );
        Err(self.error(ErrorKind::Type, range, message))
    }

    // ---- operators ----

    fn unary(&mut self, op: UnaryOp, value: &Expr<'s>, range: Range) -> Res<Val> {
        if op == UnaryOp::Not {
            let c = self.cond(value)?;
            return Ok(Val::Typed(self.f.add_expr(ExprData::Not(c))));
        }
        let val = self.val(value)?;
        match (op, val) {
            (UnaryOp::Pos, val) => Ok(val),
            (UnaryOp::Neg, Val::Int(v)) => match v.checked_neg() {
                Some(v) => Ok(Val::Int(v)),
                None => {
                    let message =
                        "the result of an operator on integer constants does not fit 64 bits";
                    Err(self.error(ErrorKind::Value, range, message))
                }
            },
            (UnaryOp::Neg, Val::Float(v)) => Ok(Val::Float(-v)),
            (UnaryOp::Neg, val) => {
                let x = self.typed(val, None, range)?;
                // Negate a literal directly; subtract any other value from zero.
                let data = self.f.expr(x).clone();
                match data {
                    ExprData::Float(bits, ty) => {
                        let v = -f64::from_bits(bits);
                        Ok(Val::Typed(self.f.add_expr(ExprData::Float(v.to_bits(), ty))))
                    }
                    ExprData::Int(v, ty)
                        if ty.dtype.is_int() && v != i64::MIN && fits(-v, ty.dtype) =>
                    {
                        Ok(Val::Typed(self.f.add_expr(ExprData::Int(-v, ty))))
                    }
                    _ => {
                        let ty = self.f.expr_ty(x);
                        let zero = self.typed(Val::Int(0), Some(ty), range)?;
                        Ok(Val::Typed(self.f.binary(BinOp::Sub, zero, x)))
                    }
                }
            }
            (_, val) => {
                let x = self.typed(val, None, range)?;
                Ok(Val::Typed(self.f.call(Intrin::BitwiseNot, &[x])))
            }
        }
    }

    pub(super) fn binary(&mut self, op: ast::BinOp, a: Val, b: Val, range: Range) -> Res<Val> {
        use ast::BinOp as Py;
        if let (Some(x), Some(y)) = (literal(&a), literal(&b))
            && (matches!(a, Val::Float(_)) || matches!(b, Val::Float(_)) || op == Py::Div)
        {
            return match fold_floats(op, x, y) {
                Some(folded) => Ok(Val::Float(folded)),
                None => {
                    let message = format!(
                        "operator '{}' is defined for integers, but not for floats",
                        op.symbol()
                    );
                    Err(self.error(ErrorKind::Value, range, message))
                }
            };
        }
        if let (Val::Int(x), Val::Int(y), Py::Pow) = (&a, &b, op) {
            return match u32::try_from(*y).ok().and_then(|y| x.checked_pow(y)) {
                Some(v) => Ok(Val::Int(v)),
                None => {
                    let message =
                        "the result of an operator on integer constants does not fit 64 bits";
                    Err(self.error(ErrorKind::Value, range, message))
                }
            };
        }
        let zero = matches!(b, Val::Int(0));
        let (x, y) = self.unify(a, b, range)?;
        let ty = self.f.expr_ty(x);
        let (float, boolean) = (ty.dtype.is_float(), ty.dtype.is_bool());
        if zero && !float && matches!(op, Py::Div | Py::FloorDiv | Py::Mod) {
            return Err(self.error(
                ErrorKind::Value,
                range,
                "division by zero: the right operand is the constant 0",
            ));
        }
        let op = match op {
            Py::Add => BinOp::Add,
            Py::Sub => BinOp::Sub,
            Py::Mul => BinOp::Mul,
            Py::FloorDiv => BinOp::FloorDiv,
            Py::Mod => BinOp::FloorMod,
            Py::Div if float => BinOp::Div,
            Py::Div => {
                return Err(self.error_help(
                    ErrorKind::Type,
                    range,
                    "the operator '/' is only defined for floats, but the operands are integers",
                    "divide integers with // (rounds down) or T.truncdiv (rounds towards zero)",
                ));
            }
            Py::BitAnd if boolean => BinOp::And,
            Py::BitOr if boolean => BinOp::Or,
            _ => {
                let intrin = match op {
                    Py::Pow => Intrin::Pow,
                    Py::Shl => Intrin::ShiftLeft,
                    Py::Shr => Intrin::ShiftRight,
                    Py::BitAnd => Intrin::BitwiseAnd,
                    Py::BitOr => Intrin::BitwiseOr,
                    Py::BitXor => Intrin::BitwiseXor,
                    _ => {
                        let message = format!(
                            "the operator '{}' is not supported in loop functions",
                            op.symbol()
                        );
                        return Err(self.error(ErrorKind::Unsupported, range, message));
                    }
                };
                return Ok(Val::Typed(self.f.call(intrin, &[x, y])));
            }
        };
        Ok(Val::Typed(self.f.binary(op, x, y)))
    }

    fn compare(&mut self, first: &Expr<'s>, rest: &[(CmpOp, Expr<'s>)], range: Range) -> Res<Val> {
        let mut left = self.val(first)?;
        let mut out = None;
        for (k, (op, operand)) in rest.iter().enumerate() {
            let right = self.val(operand)?;
            let again = k + 1 < rest.len();
            if again && matches!(right, Val::Typed(e) if contains_calls(&self.f, e)) {
                return Err(self.error_help(
                    ErrorKind::Unsupported,
                    operand.range,
                    "a call in the middle of a chain of comparisons would be evaluated twice",
                    "bind it to a variable first",
                ));
            }
            let (x, y) = self.unify(left, right.clone(), range)?;
            let op = match op {
                CmpOp::Eq => BinOp::Eq,
                CmpOp::Ne => BinOp::Ne,
                CmpOp::Lt => BinOp::Lt,
                CmpOp::Le => BinOp::Le,
                CmpOp::Gt => BinOp::Gt,
                CmpOp::Ge => BinOp::Ge,
                CmpOp::Host => {
                    return Err(self.error(
                        ErrorKind::Unsupported,
                        range,
                        "the comparison operators 'is' and 'in' are not supported in loop functions: only numbers can be compared",
                    ));
                }
            };
            let one = self.f.binary(op, x, y);
            out = Some(match out {
                None => one,
                Some(before) => self.f.binary(BinOp::And, before, one),
            });
            left = right;
        }
        match out {
            Some(e) => Ok(Val::Typed(e)),
            None => Ok(left),
        }
    }
}

/// The numeric value of an untyped literal; `None` for other values.
fn literal(val: &Val) -> Option<f64> {
    match val {
        Val::Int(v) => Some(*v as f64),
        Val::Float(v) => Some(*v),
        _ => None,
    }
}

/// Whether an integer is representable in the given data type.
pub(super) fn fits(v: i64, dtype: DType) -> bool {
    let bits = u32::from(dtype.bits());
    match dtype.kind() {
        DTypeKind::Bool => v == 0 || v == 1,
        DTypeKind::Int if bits == 64 => true,
        DTypeKind::Int => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&v),
        DTypeKind::UInt if bits == 64 => v >= 0,
        DTypeKind::UInt => (0..1i64 << bits).contains(&v),
        DTypeKind::Float => true,
    }
}
