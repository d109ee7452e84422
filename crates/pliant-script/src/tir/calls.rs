//! Parsing of calls in loop functions: typed literals, conversions, intrinsics.

use pliant_ir::tir::intrin::IntrinResult;
use pliant_ir::tir::{BinOp, Expr as IrExpr, ExprData, Intrin, Ty};
use pliant_tensor::{DType, DTypeKind};

use super::PrimParser;
use super::expressions::{Val, fits};
use crate::python::ast::{Call, Expr, ExprKind, Range};
use crate::script_errors::{ErrorKind, Res};

/// The functions that are equivalent to a binary operator, such as `T.floordiv`, each with its operator.
const BINARY: &[(&str, BinOp)] = &[
    ("min", BinOp::Min),
    ("max", BinOp::Max),
    ("Min", BinOp::Min),
    ("Max", BinOp::Max),
    ("floordiv", BinOp::FloorDiv),
    ("floormod", BinOp::FloorMod),
    ("FloorDiv", BinOp::FloorDiv),
    ("FloorMod", BinOp::FloorMod),
    ("indexdiv", BinOp::FloorDiv),
    ("indexmod", BinOp::FloorMod),
    ("truncdiv", BinOp::Div),
    ("truncmod", BinOp::Mod),
    ("Div", BinOp::Div),
    ("Mod", BinOp::Mod),
    ("div", BinOp::Div),
    ("Add", BinOp::Add),
    ("Sub", BinOp::Sub),
    ("Mul", BinOp::Mul),
    ("EQ", BinOp::Eq),
    ("NE", BinOp::Ne),
    ("LT", BinOp::Lt),
    ("LE", BinOp::Le),
    ("GT", BinOp::Gt),
    ("GE", BinOp::Ge),
    ("And", BinOp::And),
    ("Or", BinOp::Or),
];

/// Names of functions that scripts printed by TVM also use without a module prefix.
const BARE_NAMES: &[&str] =
    &["min", "max", "floordiv", "floormod", "truncdiv", "truncmod", "indexdiv", "indexmod"];

/// Alternative spellings of intrinsics, each with the intrinsic.
const INTRINSICS: &[(&str, Intrin)] = &[
    ("fabs", Intrin::Abs),
    ("power", Intrin::Pow),
    ("ieee754_nearbyint", Intrin::Nearbyint),
    ("call_pure_extern", Intrin::CallExtern),
    ("call_cpacked", Intrin::CallPacked),
    ("tvm_call_packed", Intrin::CallPacked),
];

impl<'s> PrimParser<'_, 's> {
    /// Evaluates a call expression in a loop function.
    pub(super) fn call(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        let Some(name) = self.tir_name(&call.func) else { return self.other_call(e, call) };
        if let Some(ty) = parse_ty(&name) {
            return self.typed_literal(ty, e, call);
        }
        if let Some((_, op)) = BINARY.iter().find(|row| row.0 == name) {
            let [a, b] = self.args::<2>(&name, e, call)?;
            return self.binary_call(*op, a, b, e.range);
        }
        let intrin = Intrin::from_name(&name)
            .or_else(|| INTRINSICS.iter().find(|row| row.0 == name).map(|row| row.1));
        if let Some(intrin) = intrin {
            return self.intrinsic(intrin, e, call).map(Val::Typed);
        }
        match name.as_str() {
            "ceildiv" => {
                let [a, b] = self.args::<2>(&name, e, call)?;
                let (a, b) = (self.val(a)?, self.val(b)?);
                self.ceildiv(a, b, e.range)
            }
            "Cast" => self.cast_call(e, call, false),
            "const" => {
                let [value, dtype] = self.args::<2>("const", e, call)?;
                self.cast_to(value, dtype)
            }
            "cast" => self.cast_call(e, call, true),
            "Not" => {
                let [a] = self.args::<1>(&name, e, call)?;
                let c = self.cond(a)?;
                Ok(Val::Typed(self.f.add_expr(ExprData::Not(c))))
            }
            "Select" => {
                let [c, a, b] = self.args::<3>(&name, e, call)?;
                let c = self.cond(c)?;
                let (a, b) = (self.val(a)?, self.val(b)?);
                let (a, b) = self.unify(a, b, e.range)?;
                Ok(Val::Typed(self.f.add_expr(ExprData::Select(c, a, b))))
            }
            "Ramp" | "ramp" => {
                let [base, stride, lanes] = self.args::<3>(&name, e, call)?;
                let (base, stride) = (self.val(base)?, self.val(stride)?);
                let (base, stride) = self.unify(base, stride, e.range)?;
                let lanes = self.lane_count(lanes)?;
                Ok(Val::Typed(self.f.add_expr(ExprData::Ramp(base, stride, lanes))))
            }
            "Broadcast" | "broadcast" => {
                let [value, lanes] = self.args::<2>(&name, e, call)?;
                let value = self.scalar(value, None)?;
                let lanes = self.lane_count(lanes)?;
                Ok(Val::Typed(self.f.add_expr(ExprData::Broadcast(value, lanes))))
            }
            "min_value" | "max_value" | "infinity" => self.limit(&name, e, call),
            "var" | "Var" | "SizeVar" | "size_var" => Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                "a size must be declared in a separate statement",
                "write: n = T.int64()",
            )),
            _ => {
                let range = match call.func.kind {
                    ExprKind::Attribute(_, _, range) => range,
                    _ => call.func.range,
                };
                Err(self.unknown_construct(&name, range))
            }
        }
    }

    /// Evaluates calls that are not constructs of the namespace `T`: calls of Python builtins, and calls of functions of the
    /// surrounding Python program, which are evaluated while the script is parsed.
    fn other_call(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        if let (ExprKind::Attribute(value, "astype", _), [dtype]) =
            (&call.func.kind, call.args.as_slice())
        {
            return self.cast_to(value, dtype);
        }
        if let Some(name) = call.func.as_name()
            && self.cx.lookup(name).is_none()
        {
            match (name, call.args.as_slice()) {
                ("float", [_]) => {
                    if let Some(n) = crate::literals::number(e) {
                        return Ok(Val::Float(n.float));
                    }
                }
                (name, [a, b]) if BARE_NAMES.contains(&name) => {
                    let row = BINARY.iter().find(|row| row.0 == name);
                    let (_, op) = row.expect("the bare names are among the operators");
                    return self.binary_call(*op, a, b, e.range);
                }
                ("abs", [a]) => {
                    let x = self.scalar(a, None)?;
                    return Ok(Val::Typed(self.f.call(Intrin::Abs, &[x])));
                }
                _ => {
                    if self.cx.lookup(name).is_none() && !self.is_local(&call.func) {
                        return Err(self.unknown_name(name, call.func.range));
                    }
                }
            }
        }
        let path = if self.is_local(&call.func) { None } else { self.cx.path(&call.func) };
        if path.is_some() {
            let text = crate::parser_context::first_line(self.cx.slice(call.func.range));
            let message = format!("`{text}` cannot be called in a loop function");
            return Err(self.error(ErrorKind::Unsupported, call.func.range, message));
        }
        let value = self.cx.eval(e.range)?;
        self.host_val(value, e.range)
    }

    fn args<'e, const N: usize>(
        &self,
        name: &str,
        e: &Expr<'s>,
        call: &'e Call<'s>,
    ) -> Res<[&'e Expr<'s>; N]> {
        let all: Vec<&Expr<'s>> = call
            .args
            .iter()
            .chain(call.keywords.iter().filter(|k| k.name != "span").map(|k| &k.value))
            .collect();
        let given = all.len();
        all.try_into().map_err(|_| {
            let message = format!("T.{name} takes {N} arguments, but {given} are given");
            self.error(ErrorKind::Arguments, e.range, message)
        })
    }

    fn lane_count(&mut self, e: &Expr<'s>) -> Res<u16> {
        match self.val(e)? {
            Val::Int(v) if (1..=4096).contains(&v) => Ok(v as u16),
            _ => Err(self.error(
                ErrorKind::Value,
                e.range,
                "the number of lanes of a vector must be an integer constant from 1 to 4096",
            )),
        }
    }

    fn binary_call(&mut self, op: BinOp, a: &Expr<'s>, b: &Expr<'s>, range: Range) -> Res<Val> {
        if matches!(op, BinOp::And | BinOp::Or) {
            let (x, y) = (self.cond(a)?, self.cond(b)?);
            return Ok(Val::Typed(self.f.binary(op, x, y)));
        }
        let (x, y) = (self.val(a)?, self.val(b)?);
        let divides = matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod);
        if divides && matches!(y, Val::Int(0)) {
            return Err(self.error(
                ErrorKind::Value,
                range,
                "division by zero: the divisor is the constant 0",
            ));
        }
        let (x, y) = self.unify(x, y, range)?;
        Ok(Val::Typed(self.f.binary(op, x, y)))
    }

    // ---- literals and conversions ----

    /// Parses `T.float32(0.5)`, `T.int32(x)`, `T.bool(True)`: a literal of the given type, or a conversion to it.
    fn typed_literal(&mut self, ty: Ty, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        let [arg] = call.args.as_slice() else {
            let help = format!("declare a size by a separate statement: n = T.{ty}()");
            return Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                format!("in an expression, T.{ty} takes one argument: the number to convert"),
                help,
            ));
        };
        if let (ExprKind::BigInt(v), DType::UInt64) = (&arg.kind, ty.dtype) {
            return Ok(Val::Typed(self.f.add_expr(ExprData::Int(*v as i64, ty))));
        }
        let val = match self.val(arg)? {
            Val::Str(s) => match crate::literals::named_float(&s) {
                Some(v) => Val::Float(v),
                None => {
                    return Err(self.error(
                        ErrorKind::Value,
                        arg.range,
                        format!(
"the string \"{s}\" does not name a number (only \"inf\", \"-inf\" and \"nan\" do)"
),
                    ));
                }
            },
            val => val,
        };
        match val {
            Val::Int(v) => self.int_const(v, ty, arg.range).map(Val::Typed),
            Val::Float(v) if ty.dtype.is_float() => {
                self.typed(Val::Float(v), Some(ty), arg.range).map(Val::Typed)
            }
            Val::Float(v) if v == v.trunc() && v.abs() < 9e18 && fits(v as i64, ty.dtype) => {
                self.int_const(v as i64, ty, arg.range).map(Val::Typed)
            }
            Val::Float(v) => Err(self.error(
                ErrorKind::Value,
                arg.range,
                format!("the number {v:?} does not fit the data type {ty}"),
            )),
            Val::Typed(x) => Ok(Val::Typed(self.f.cast(x, ty))),
            other => {
                self.typed(other, None, arg.range)?;
                Err(self.error(
                    ErrorKind::Value,
                    arg.range,
                    format!("the argument of T.{ty} must be a number"),
                ))
            }
        }
    }

    /// Creates the division of `a` by `b` rounded towards plus infinity, for a constant or positive `b`.
    fn ceildiv(&mut self, a: Val, b: Val, range: Range) -> Res<Val> {
        let (a, b) = self.unify(a, b, range)?;
        let ty = self.f.expr_ty(a);
        let by = self.f.as_int(b);
        if by == Some(0) {
            return Err(self.error(
                ErrorKind::Value,
                range,
                "division by zero: the divisor is the constant 0",
            ));
        }
        if by.is_some_and(|v| v < 0) {
            let zero = self.int_const(0, ty, range)?;
            let negated = self.f.binary(BinOp::Sub, zero, a);
            let quotient = self.f.binary(BinOp::FloorDiv, negated, b);
            return Ok(Val::Typed(self.f.binary(BinOp::Sub, zero, quotient)));
        }
        let less = match by.and_then(|v| v.checked_sub(1)) {
            Some(v) => self.int_const(v, ty, range)?,
            None => {
                let one = self.int_const(1, ty, range)?;
                self.f.binary(BinOp::Sub, b, one)
            }
        };
        let sum = self.f.binary(BinOp::Add, a, less);
        Ok(Val::Typed(self.f.binary(BinOp::FloorDiv, sum, b)))
    }

    /// Parses `T.Cast(dtype, value)` and `T.cast(value, dtype)`. If the two arguments are
    /// exchanged, the data type is recognized because it is a type literal.
    fn cast_call(&mut self, e: &Expr<'s>, call: &Call<'s>, value_first: bool) -> Res<Val> {
        let [a, b] = self.args::<2>("Cast", e, call)?;
        let value_first = match (a.as_str(), b.as_str()) {
            (Some(_), None) => false,
            (None, Some(_)) => true,
            _ => value_first,
        };
        let (ty, value) = if value_first { (b, a) } else { (a, b) };
        self.cast_to(value, ty)
    }

    fn cast_to(&mut self, value: &Expr<'s>, ty: &Expr<'s>) -> Res<Val> {
        let ty = self.ty(ty)?;
        match self.val(value)? {
            Val::Typed(x) => Ok(Val::Typed(self.f.add_expr(ExprData::Cast(ty, x)))),
            val => {
                let x = self.typed(val, None, value.range)?;
                Ok(Val::Typed(self.f.cast(x, ty)))
            }
        }
    }

    /// Evaluates an expression that denotes a type: `"float32x4"`, `T.int64`.
    pub(super) fn ty(&mut self, e: &Expr<'s>) -> Res<Ty> {
        if let Some(name) = e.as_str()
            && let Some(ty) = parse_ty(name)
        {
            return Ok(ty);
        }
        if let Some(name) = self.tir_name(e)
            && let Some(ty) = parse_ty(&name)
        {
            return Ok(ty);
        }
        if let Some(ty) = self.ty_of_local(e)? {
            return Ok(ty);
        }
        match self.cx.dtype(e)? {
            Some(d) => Ok(Ty::scalar(d)),
            None => Err(self.error(
                ErrorKind::Value,
                e.range,
                "a data type such as \"float32\" is required here, but None is given",
            )),
        }
    }

    /// Evaluates `A.dtype`, `A[i].dtype` or `v.dtype`, where the name is local to the function, to the type that it denotes; `None`
    /// for other expressions.
    pub(super) fn ty_of_local(&mut self, e: &Expr<'s>) -> Res<Option<Ty>> {
        let ExprKind::Attribute(base, "dtype", _) = &e.kind else { return Ok(None) };
        let root = match &base.kind {
            ExprKind::Subscript(value, _) => value,
            _ => base,
        };
        if !self.is_local(root) {
            return Ok(None);
        }
        let val = self.val(base)?;
        match val {
            Val::Buffer(b) => Ok(Some(Ty::scalar(self.f.buffer(b).dtype))),
            val => {
                let value = self.typed(val, None, base.range)?;
                Ok(Some(self.f.expr_ty(value)))
            }
        }
    }

    fn limit(&mut self, name: &str, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        let [arg] = self.args::<1>(name, e, call)?;
        let ty = self.ty(arg)?;
        let d = ty.dtype;
        let low = name == "min_value";
        let data = match d.kind() {
            DTypeKind::Float => {
                let v = if name == "infinity" { None } else { d.largest_float() };
                let v = v.unwrap_or(f64::INFINITY);
                ExprData::Float((if low { -v } else { v }).to_bits(), ty)
            }
            _ if name == "infinity" => {
                return Err(self.error(
                    ErrorKind::Value,
                    e.range,
                    format!("T.infinity needs a float type: {d} has no infinity"),
                ));
            }
            DTypeKind::Bool => ExprData::Int(i64::from(!low), ty),
            DTypeKind::Int if low => ExprData::Int(i64::MIN >> (64 - u32::from(d.bits())), ty),
            DTypeKind::Int => ExprData::Int(i64::MAX >> (64 - u32::from(d.bits())), ty),
            DTypeKind::UInt if low => ExprData::Int(0, ty),
            DTypeKind::UInt => ExprData::Int((u64::MAX >> (64 - u32::from(d.bits()))) as i64, ty),
        };
        Ok(Val::Typed(self.f.add_expr(data)))
    }

    // ---- intrinsics ----

    fn intrinsic(&mut self, intrin: Intrin, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let name = intrin.name();
        if matches!(intrin, Intrin::CallExtern | Intrin::CallPacked) {
            return self.named_call(intrin, e, call);
        }
        if intrin == Intrin::CallKernel {
            return self.kernel_call(e, call);
        }
        let mut args = call.args.as_slice();
        let mut ty = Ty::I64;
        if intrin.result() == IntrinResult::Explicit && intrin != Intrin::AddressOf {
            let Some((first, rest)) = args.split_first() else {
                return Err(self.error(
                    ErrorKind::Arguments,
                    e.range,
                    format!("T.{name} needs the type of its result as its first argument"),
                ));
            };
            (ty, args) = (self.ty(first)?, rest);
        }
        if let Some(arity) = intrin.arity()
            && args.len() != arity
        {
            let s = if arity == 1 { "" } else { "s" };
            let message =
                format!("T.{name} takes {arity} argument{s}, but {} are given", args.len());
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        }
        let operands = match (intrin, args) {
            (Intrin::IfThenElse, [c, a, b]) => {
                let c = self.cond(c)?;
                let (a, b) = (self.val(a)?, self.val(b)?);
                let (a, b) = self.unify(a, b, e.range)?;
                vec![c, a, b]
            }
            (Intrin::Likely, [c]) => vec![self.cond(c)?],
            (Intrin::Explain, [c, values @ ..]) => {
                let mut out = vec![self.cond(c)?];
                for v in values {
                    out.push(self.scalar(v, Some(Ty::I64))?);
                }
                out
            }
            (Intrin::AddressOf, [a]) => {
                let x = self.scalar(a, None)?;
                if !matches!(self.f.expr(x), ExprData::Load(..)) {
                    let message = "T.address_of takes an element of a buffer: T.address_of(A[i])";
                    return Err(self.error(ErrorKind::Value, a.range, message));
                }
                vec![x]
            }
            (_, [a]) => {
                let val = self.val(a)?;
                let val = match val {
                    // Floating-point functions convert an integer literal to a float.
                    Val::Int(v) if !is_integral(intrin) => Val::Float(v as f64),
                    val => val,
                };
                vec![self.typed(val, None, a.range)?]
            }
            (_, [a, b]) => {
                let (a, b) = (self.val(a)?, self.val(b)?);
                let (a, b) = self.unify(a, b, e.range)?;
                vec![a, b]
            }
            _ => {
                let mut out = Vec::with_capacity(args.len());
                for a in args {
                    let like = out.first().map(|&x| self.f.expr_ty(x));
                    out.push(self.scalar(a, like)?);
                }
                out
            }
        };
        Ok(self.f.add_expr(ExprData::Call(intrin, operands.into(), ty)))
    }

    /// Parses `T.call_extern("float32", "name", args...)` and `T.call_packed("name", args..., dtype="float32")`.
    fn named_call(&mut self, intrin: Intrin, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let mut ty = Ty::I64;
        for k in &call.keywords {
            match k.name {
                "dtype" => ty = self.ty(&k.value)?,
                _ => {
                    let message = format!("T.{} has no parameter '{}'", intrin.name(), k.name);
                    return Err(self.error(ErrorKind::Arguments, k.range, message));
                }
            }
        }
        let mut args = call.args.as_slice();
        let typed =
            intrin == Intrin::CallExtern && !call.keywords.iter().any(|k| k.name == "dtype");
        if typed && let Some((first, rest)) = args.split_first() {
            (ty, args) = (self.ty(first)?, rest);
        }
        if args.first().is_none_or(|a| a.as_str().is_none()) {
            let message = format!(
                "T.{} needs the name of a function, in quotes, as its first argument",
                intrin.name()
            );
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        }
        let mut operands = Vec::with_capacity(args.len());
        for a in args {
            let x = match self.val(a)? {
                Val::Str(s) => self.f.add_expr(ExprData::Str(s.into())),
                Val::Handle(v) => self.f.var_expr(v),
                Val::Buffer(b) => self.f.address_of_start(b),
                val => self.typed(val, None, a.range)?,
            };
            operands.push(x);
        }
        let e = self.f.add_expr(ExprData::Call(intrin, operands.into(), ty));
        if intrin == Intrin::CallPacked && call.keywords.is_empty() {
            self.untyped_calls.insert(e);
        }
        Ok(e)
    }
}

/// Whether an intrinsic operates on integers.
fn is_integral(intrin: Intrin) -> bool {
    matches!(
        intrin,
        Intrin::Abs
            | Intrin::Popcount
            | Intrin::Clz
            | Intrin::BitwiseNot
            | Intrin::Reinterpret
            | Intrin::VectorSum
            | Intrin::VectorMax
            | Intrin::VectorMin
    )
}

/// Parses the name of a scalar or vector type, such as `float32` or `float32x4`.
pub(super) fn parse_ty(name: &str) -> Option<Ty> {
    if let Ok(d) = name.parse::<DType>() {
        return Some(Ty::scalar(d));
    }
    let (base, lanes) = name.rsplit_once('x')?;
    let lanes: u16 = lanes.parse().ok().filter(|n| (1..=4096).contains(n))?;
    Some(Ty::scalar(base.parse().ok()?).with_lanes(lanes))
}
