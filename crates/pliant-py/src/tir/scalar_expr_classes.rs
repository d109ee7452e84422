//! The classes of scalar expressions and their constructors, which do not fold constants.

use pliant_ops::te::{self, BinOp, ExprKind, Intrin};
use pliant_tensor::DType;
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::runtime::array_import::parse_dtype;
use crate::te::tensor::Tensor;
use crate::tir::prim_expr::{PrimExpr, int_const, prim, prim_list, reject_zero_divisor};
use crate::tir::scalar_functions::{buffer_of, check_arity};
use crate::tir::vector_exprs::{Broadcast, Ramp};

/// Defines Python classes without a constructor. Python code creates their instances only through functions such as `te.sum`.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[pyclass(extends = PrimExpr, frozen, subclass, module = "pliant.tir")]
        pub struct $name;)*
    };
}

kinds! {
    /// A reduction. `te.sum`, `te.max` and `te.comm_reducer` create reductions.
    Reduce;
}

/// Defines the classes of binary operators, and the mapping from operators to classes.
macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {
        $($(#[$doc])*
        #[pyclass(extends = PrimExpr, frozen, subclass, module = "pliant.tir")]
        pub struct $name;

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (a, b, span=None))]
            fn new(
                a: &Bound<'_, PyAny>,
                b: &Bound<'_, PyAny>,
                span: Option<&Bound<'_, PyAny>>,
            ) -> Result<PyClassInitializer<Self>> {
                let _ = span;
                let (a, b) = (prim(a)?, prim(b)?);
                reject_zero_divisor(BinOp::$op, &b)?;
                Ok(of(te::binary_as_written(BinOp::$op, &a, &b)).add_subclass($name))
            }
        })*

        fn wrap_binary(py: Python<'_>, op: BinOp, expr: te::Expr) -> PyResult<Bound<'_, PyAny>> {
            Ok(match op {
                $(BinOp::$op => Bound::new(py, of(expr).add_subclass($name))?.into_any(),)*
            })
        }
    };
}

operators! {
    /// The sum of two values.
    Add = Add;
    /// The difference of two values.
    Sub = Sub;
    /// The product of two values.
    Mul = Mul;
    /// The quotient of two values, rounded towards zero for integers.
    Div = Div;
    /// The remainder of an integer `Div`.
    Mod = Mod;
    /// The quotient of two values, rounded towards minus infinity.
    FloorDiv = FloorDiv;
    /// The remainder of a `FloorDiv`.
    FloorMod = FloorMod;
    /// The minimum of two values.
    Min = Min;
    /// The maximum of two values.
    Max = Max;
    /// Whether two values are equal.
    EQ = Eq;
    /// Whether two values differ.
    NE = Ne;
    /// Whether the first value is less than the second.
    LT = Lt;
    /// Whether the first value is less than or equal to the second.
    LE = Le;
    /// Whether the first value is greater than the second.
    GT = Gt;
    /// Whether the first value is greater than or equal to the second.
    GE = Ge;
    /// The logical and of two conditions.
    And = And;
    /// The logical or of two conditions.
    Or = Or;
}

/// Creates the base-class initializer of an expression object.
fn of(expr: te::Expr) -> PyClassInitializer<PrimExpr> {
    PyClassInitializer::from(PrimExpr { expr })
}

/// Creates a new variable. Its type is a data type, an address (`"handle"`, `ir.PointerType`), or
/// the default.
fn new_var(
    name: &str,
    dtype: Option<&Bound<'_, PyAny>>,
    plain: fn(&str, DType) -> te::Var,
) -> Result<te::Expr> {
    let Some(dtype) = dtype else { return Ok(plain(name, DType::Int64).expr()) };
    // `ir.PrimType` and `ir.PointerType` have this attribute.
    let dtype = dtype.getattr_opt("var_dtype")?.unwrap_or_else(|| dtype.clone());
    let is_handle = dtype.extract::<String>().is_ok_and(|text| text == "handle");
    Ok(if is_handle { te::Var::handle(name) } else { plain(name, parse_dtype(&dtype)?) }.expr())
}

/// A scalar variable (`tir.Var`).
#[pyclass(extends = PrimExpr, frozen, subclass, module = "pliant.tir")]
pub struct Var;

#[pymethods]
impl Var {
    #[new]
    #[pyo3(signature = (name="tindex", dtype=None, span=None))]
    fn new(
        name: &str,
        dtype: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(of(new_var(name, dtype, |name, dtype| te::Var::new(name, dtype))?).add_subclass(Var))
    }
}

/// A size: a non-negative variable.
#[pyclass(extends = Var, frozen, module = "pliant.tir")]
pub struct SizeVar;

#[pymethods]
impl SizeVar {
    #[new]
    #[pyo3(signature = (name="size", dtype=None, span=None))]
    fn new(
        name: &str,
        dtype: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let expr = new_var(name, dtype, |name, dtype| te::Var::nonneg(name, dtype))?;
        Ok(of(expr).add_subclass(Var).add_subclass(SizeVar))
    }
}

/// An integer constant.
#[pyclass(extends = PrimExpr, frozen, module = "pliant.tir")]
pub struct IntImm;

#[pymethods]
impl IntImm {
    #[new]
    #[pyo3(signature = (dtype, value, span=None))]
    fn new(
        dtype: &Bound<'_, PyAny>,
        value: i64,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(of(int_const(value, parse_dtype(dtype)?)?).add_subclass(IntImm))
    }
}

/// A float constant.
#[pyclass(extends = PrimExpr, frozen, module = "pliant.tir")]
pub struct FloatImm;

#[pymethods]
impl FloatImm {
    #[new]
    #[pyo3(signature = (dtype, value, span=None))]
    fn new(
        dtype: &Bound<'_, PyAny>,
        value: f64,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(of(te::const_of(value, parse_dtype(dtype)?)).add_subclass(FloatImm))
    }
}

/// A string constant (`tir.StringImm`), which can only be an argument of a call.
#[pyclass(extends = PrimExpr, frozen, module = "pliant.tir")]
pub struct StringImm;

#[pymethods]
impl StringImm {
    #[new]
    #[pyo3(signature = (value, span=None))]
    fn new(value: &str, span: Option<&Bound<'_, PyAny>>) -> PyClassInitializer<Self> {
        let _ = span;
        of(te::string(value)).add_subclass(StringImm)
    }
}

/// A conversion to another data type.
#[pyclass(extends = PrimExpr, frozen, subclass, module = "pliant.tir")]
pub struct Cast;

#[pymethods]
impl Cast {
    #[new]
    #[pyo3(signature = (dtype, value, span=None))]
    fn new(
        dtype: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let value = prim(value)?;
        let ty = te::Ty::from(parse_dtype(dtype)?).with_lanes(value.ty().lanes);
        Ok(of(te::Expr::new(ExprKind::Cast(value), ty)).add_subclass(Cast))
    }
}

/// The logical negation of a condition.
#[pyclass(extends = PrimExpr, frozen, subclass, module = "pliant.tir")]
pub struct Not;

#[pymethods]
impl Not {
    #[new]
    #[pyo3(signature = (a, span=None))]
    fn new(
        a: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let a = prim(a)?;
        let a = te::cast(&a, te::Ty::BOOL.with_lanes(a.ty().lanes));
        let ty = a.ty();
        Ok(of(te::Expr::new(ExprKind::Not(a), ty)).add_subclass(Not))
    }
}

/// A choice between two values (`tir.Select`), both of which are evaluated.
#[pyclass(extends = PrimExpr, frozen, module = "pliant.tir")]
pub struct Select;

#[pymethods]
impl Select {
    #[new]
    #[pyo3(signature = (condition, true_value, false_value, span=None))]
    fn new(
        condition: &Bound<'_, PyAny>,
        true_value: &Bound<'_, PyAny>,
        false_value: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let (a, b) = te::match_types(&prim(true_value)?, &prim(false_value)?);
        let ty = a.ty();
        let expr = te::Expr::new(ExprKind::Select(prim(condition)?, a, b), ty);
        Ok(of(expr).add_subclass(Select))
    }
}

/// A call of an intrinsic.
#[pyclass(extends = PrimExpr, frozen, subclass, module = "pliant.tir")]
pub struct Call;

#[pymethods]
impl Call {
    /// Creates a call of an intrinsic, given by its name with or without the prefix `tir.`. `dtype`
    /// is the type of the result.
    #[new]
    #[pyo3(signature = (dtype, op, args, span=None))]
    fn new(
        dtype: &Bound<'_, PyAny>,
        op: &str,
        args: Vec<Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let name = op.strip_prefix("tir.").unwrap_or(op);
        let Some(intrin) = Intrin::from_name(name) else {
            return Err(Error::Value(format!("there is no tir intrinsic '{name}'")));
        };
        let args: Vec<te::Expr> = args.iter().map(argument).collect::<Result<_>>()?;
        check_arity(intrin, args.len())?;
        let dtype = parse_dtype(dtype)?;
        let expr = match intrin.result() {
            te::IntrinResult::Explicit => te::call_typed(intrin, args, dtype.into()),
            _ => te::call(intrin, args),
        };
        if expr.ty().dtype != dtype {
            let text = format!(
                "the call '{expr}' has type {}, but the argument dtype is {dtype}",
                expr.ty()
            );
            return Err(Error::Type(text));
        }
        Ok(of(expr).add_subclass(Call))
    }
}

/// Converts an argument of a call, which may be a string.
fn argument(obj: &Bound<'_, PyAny>) -> Result<te::Expr> {
    match obj.extract::<String>() {
        Ok(text) => Ok(te::string(text)),
        Err(_) => prim(obj),
    }
}

/// A read of one element of a tensor (`tir.ProducerLoad`).
#[pyclass(extends = PrimExpr, frozen, subclass, module = "pliant.tir")]
pub struct ProducerLoad;

#[pymethods]
impl ProducerLoad {
    #[new]
    #[pyo3(signature = (buffer, indices, predicate=None, span=None))]
    fn new(
        buffer: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        predicate: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        if predicate.is_some() {
            let text = "the argument predicate of a load is not supported: put the load into tir.if_then_else";
            return Err(Error::Unsupported(text.into()));
        }
        let Some(tensor) = buffer_of(buffer)? else {
            return Err(Error::Type(format!(
                "the buffer of a load must be a tir.Buffer, not {}",
                buffer.repr()?
            )));
        };
        Ok(of(Tensor { tensor }.load(&prim_list(indices)?)?).add_subclass(ProducerLoad))
    }
}

/// Wraps an expression as an object of the matching Python class.
pub fn wrap(py: Python<'_>, expr: te::Expr) -> PyResult<Bound<'_, PyAny>> {
    macro_rules! make {
        ($class:ident) => {
            Bound::new(py, of(expr).add_subclass($class))?.into_any()
        };
    }
    Ok(match expr.kind() {
        ExprKind::Int(_) => make!(IntImm),
        ExprKind::Float(_) => make!(FloatImm),
        ExprKind::Str(_) => make!(StringImm),
        ExprKind::Var(v) if v.is_nonneg() => {
            Bound::new(py, of(expr).add_subclass(Var).add_subclass(SizeVar))?.into_any()
        }
        ExprKind::Var(_) => make!(Var),
        ExprKind::Cast(_) => make!(Cast),
        ExprKind::Not(_) => make!(Not),
        ExprKind::Select(..) => make!(Select),
        ExprKind::Call(..) => make!(Call),
        ExprKind::Load(..) => make!(ProducerLoad),
        ExprKind::Reduce(_) => make!(Reduce),
        ExprKind::Ramp(..) => make!(Ramp),
        ExprKind::Broadcast(_) => make!(Broadcast),
        ExprKind::Binary(op, ..) => {
            let op = *op;
            wrap_binary(py, op, expr)?
        }
    })
}
