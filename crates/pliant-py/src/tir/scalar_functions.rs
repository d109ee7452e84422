//! Functions over scalar expressions, by name. `pliant.tir` wraps each with a documented function.

use pliant_ops::te::{self, BinOp, ExprKind, Intrin};
use pliant_tensor::DType;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{Error, Result};
use crate::runtime::array_import::parse_dtype;
use crate::te::tensor::Tensor;
use crate::tir::prim_expr::{int_const, prim, reject_zero_divisor, zero_division_error};
use crate::tir::scalar_expr_classes::wrap;

/// Creates a binary operation, given by the name of its operator (`add`, `floordiv`, `min`, `eq`, ...).
#[pyfunction]
pub fn tir_binary<'py>(
    name: &str,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let op = match name {
        "add" => BinOp::Add,
        "sub" => BinOp::Sub,
        "mul" => BinOp::Mul,
        "div" | "truncdiv" => BinOp::Div,
        "truncmod" => BinOp::Mod,
        "floordiv" => BinOp::FloorDiv,
        "floormod" => BinOp::FloorMod,
        "min" => BinOp::Min,
        "max" => BinOp::Max,
        "eq" => BinOp::Eq,
        "ne" => BinOp::Ne,
        "lt" => BinOp::Lt,
        "le" => BinOp::Le,
        "gt" => BinOp::Gt,
        "ge" => BinOp::Ge,
        "and" => BinOp::And,
        "or" => BinOp::Or,
        _ => return Err(Error::Value(format!("there is no tir operator '{name}'"))),
    };
    let (x, y) = (prim(a)?, prim(b)?);
    reject_zero_divisor(op, &y)?;
    Ok(wrap(a.py(), te::binary(op, &x, &y))?)
}

/// Creates a call of an intrinsic, given by its name (`exp`, `sqrt`, `if_then_else`, ...).
#[pyfunction]
#[pyo3(signature = (name, *args))]
pub fn tir_call<'py>(
    py: Python<'py>,
    name: &str,
    args: &Bound<'py, PyTuple>,
) -> Result<Bound<'py, PyAny>> {
    let Some(intrin) = Intrin::from_name(name) else {
        return Err(Error::Value(format!("there is no tir intrinsic '{name}'")));
    };
    let args: Vec<te::Expr> = args.iter().map(|a| prim(&a)).collect::<Result<_>>()?;
    check_arity(intrin, args.len())?;
    let expr = match (intrin, args.as_slice()) {
        (Intrin::IfThenElse, [c, a, b]) => te::if_then_else(c, a, b),
        (Intrin::Pow, [a, b]) => te::power(a, b),
        (_, [a, b]) => {
            let (a, b) = te::match_types(a, b);
            te::call(intrin, vec![a, b])
        }
        _ => te::call(intrin, args),
    };
    Ok(wrap(py, expr)?)
}

/// Rejects a call with a wrong number of arguments.
///
/// # Errors
/// `TypeError` if the number of arguments is wrong.
pub fn check_arity(intrin: Intrin, count: usize) -> Result<()> {
    match intrin.arity() {
        Some(arity) if arity != count => {
            let name = intrin.name();
            Err(Error::Type(format!(
                "the intrinsic {name} takes {arity} arguments, but {count} are passed"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the buffer that an argument represents, if it is a `tir.Buffer` or a tensor.
pub fn buffer_of(obj: &Bound<'_, PyAny>) -> Result<Option<te::Tensor>> {
    if let Ok(tensor) = obj.cast::<Tensor>() {
        return Ok(Some(tensor.get().tensor.clone()));
    }
    let Some(tensor) = obj.getattr_opt("tensor")? else { return Ok(None) };
    Ok(tensor.cast::<Tensor>().ok().map(|t| t.get().tensor.clone()))
}

/// Returns the address of a buffer, which is the address of its first element.
fn address(buffer: &te::Tensor) -> te::Expr {
    let first = buffer.at(&vec![te::int(0); buffer.ndim()]);
    te::call_typed(Intrin::AddressOf, vec![first], te::Ty::I64)
}

/// Creates a call of a linked symbol, or of a registered packed function if `packed` is set. A
/// buffer is passed as its address.
#[pyfunction]
#[pyo3(signature = (packed, dtype, name, *args))]
pub fn tir_call_extern<'py>(
    py: Python<'py>,
    packed: bool,
    dtype: &Bound<'py, PyAny>,
    name: &str,
    args: &Bound<'py, PyTuple>,
) -> Result<Bound<'py, PyAny>> {
    let mut list = vec![te::string(name)];
    for arg in args {
        list.push(match arg.extract::<String>() {
            Ok(text) => te::string(text),
            Err(_) => match buffer_of(&arg)? {
                Some(buffer) => address(&buffer),
                None => prim(&arg)?,
            },
        });
    }
    let intrin = if packed { Intrin::CallPacked } else { Intrin::CallExtern };
    Ok(wrap(py, te::call_typed(intrin, list, parse_dtype(dtype)?.into()))?)
}

/// Creates a call of an intrinsic, given by its name, with an explicit result type.
#[pyfunction]
pub fn tir_call_typed<'py>(
    name: &str,
    dtype: &Bound<'py, PyAny>,
    arg: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let Some(intrin) = Intrin::from_name(name) else {
        return Err(Error::Value(format!("there is no tir intrinsic '{name}'")));
    };
    let ty = parse_dtype(dtype)?.into();
    Ok(wrap(arg.py(), te::call_typed(intrin, vec![prim(arg)?], ty))?)
}

/// Creates the expression `ceil(a / b)`. `b` must be constant or positive.
#[pyfunction]
pub fn tir_ceildiv<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let divisor = prim(b)?;
    if divisor.is_const(0) {
        return Err(zero_division_error());
    }
    Ok(wrap(a.py(), te::ceildiv(&prim(a)?, &divisor))?)
}

/// Creates the logical negation of a condition.
#[pyfunction]
pub fn tir_not<'py>(a: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    Ok(wrap(a.py(), te::not(&prim(a)?))?)
}

/// Creates a choice between two values, both of which are evaluated.
#[pyfunction]
pub fn tir_select<'py>(
    cond: &Bound<'py, PyAny>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    Ok(wrap(a.py(), te::select(&prim(cond)?, &prim(a)?, &prim(b)?))?)
}

/// Creates a constant of a data type.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
pub fn tir_const<'py>(
    value: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let expr = prim(value)?;
    let expr = match (dtype.map(parse_dtype).transpose()?, expr.as_int()) {
        (Some(dtype), Some(value)) if !dtype.is_bool() => int_const(value, dtype)?,
        (Some(dtype), _) => te::cast(&expr, dtype),
        (None, _) => expr,
    };
    Ok(wrap(value.py(), expr)?)
}

/// Returns the largest value of a data type if `max` is set, otherwise the smallest one. For
/// floats, the value is finite.
#[pyfunction]
pub fn tir_limit<'py>(
    py: Python<'py>,
    dtype: &Bound<'py, PyAny>,
    max: bool,
) -> Result<Bound<'py, PyAny>> {
    let dtype: DType = parse_dtype(dtype)?;
    Ok(wrap(py, te::finite_limit(dtype, max))?)
}

/// Returns the expression with variables replaced. `pairs` are pairs of a variable and its
/// replacement.
#[pyfunction]
pub fn tir_substitute<'py>(
    expr: &Bound<'py, PyAny>,
    pairs: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> Result<Bound<'py, PyAny>> {
    let mut map = rustc_hash::FxHashMap::default();
    for (var, value) in &pairs {
        let var = prim(var)?;
        let Some(var) = var.as_var() else {
            return Err(Error::Type("each key of a substitution must be a tir.Var".into()));
        };
        map.insert(var.clone(), prim(value)?);
    }
    Ok(wrap(expr.py(), te::substitute(&prim(expr)?, &map))?)
}

/// Returns the variables of an expression, in order of appearance.
#[pyfunction]
pub fn tir_free_vars<'py>(expr: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
    let py = expr.py();
    let vars = te::free_vars(&prim(expr)?);
    Ok(vars.iter().map(|v| wrap(py, v.expr())).collect::<PyResult<_>>()?)
}

/// Returns the body of a `Let` with the variable replaced by its value.
///
/// # Errors
/// If the value calls a packed or extern function, because each use of the variable would repeat
/// the call.
#[pyfunction]
pub fn tir_let<'py>(
    var: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    body: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let mut calls = false;
    te::post_order(&prim(value)?, |e| {
        calls |= matches!(e.kind(), ExprKind::Call(Intrin::CallPacked | Intrin::CallExtern, _));
    });
    if calls {
        return Err(Error::Unsupported(format!(
            "tir.Let of {var}: its value calls a function, and each use of {var} would repeat the call (help: \
             bind it with tir.LetStmt around the statement)"
        )));
    }
    tir_substitute(body, vec![(var.clone(), value.clone())])
}

/// Whether a loop function only reshapes its input, that is, copies all elements in row-major
/// order.
#[pyfunction]
pub fn has_reshape_pattern(func: &Bound<'_, crate::te::prim_func::PrimFunc>) -> bool {
    pliant_opt::analysis::has_reshape_pattern::has_reshape_pattern(&func.get().func)
}
