//! `PrimExpr`: a scalar expression in Python, which is a handle to a tensor expression.
//!
//! The subclasses in [`crate::tir::scalar_expr_classes`] only distinguish kinds of expressions (`isinstance(e, tir.Var)`). The base
//! class defines all methods.

use std::hash::{Hash, Hasher};

use pliant_ops::te::{self, BinOp, ExprKind, Intrin};
use pliant_tensor::DType;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::error::{Error, Result};
use crate::te::tensor::Tensor;
use crate::tir::scalar_expr_classes::wrap;

/// A scalar expression: a size, an index or an element.
#[pyclass(subclass, frozen, module = "pliant.tir", weakref)]
pub struct PrimExpr {
    /// The expression in the representation of `pliant_ops::te`.
    pub expr: te::Expr,
}

/// Creates a constant of the given type.
///
/// # Errors
/// `ValueError` if the type cannot hold the value.
pub fn int_const(value: i64, dtype: DType) -> Result<te::Expr> {
    if !dtype.is_float() && !dtype.has_int(value) || dtype == DType::UInt64 && value < 0 {
        return Err(Error::Value(format!(
            "the data type {dtype} cannot represent the value {value}"
        )));
    }
    Ok(te::int_of(value, dtype))
}

/// The error for a division by zero.
pub fn zero_division_error() -> Error {
    pyo3::exceptions::PyZeroDivisionError::new_err(
        "division by zero: the divisor is the constant 0",
    )
    .into()
}

/// Rejects a division by the integer constant zero.
///
/// # Errors
/// `ZeroDivisionError` if `b` is the integer constant zero and `op` divides.
pub fn reject_zero_divisor(op: BinOp, b: &te::Expr) -> Result<()> {
    let divides = matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod);
    if divides && !b.ty().dtype.is_float() && b.is_const(0) {
        return Err(zero_division_error());
    }
    Ok(())
}

/// Converts an argument that must be a variable.
///
/// # Errors
/// `TypeError` for any other object.
pub fn variable(obj: &Bound<'_, PyAny>) -> Result<te::Var> {
    match prim(obj)?.as_var() {
        Some(var) => Ok(var.clone()),
        None => Err(Error::Type(format!("a variable must be a tir.Var, not {}", obj.repr()?))),
    }
}

/// Converts an argument to a scalar expression: a `PrimExpr`, an axis, a number or a bool.
///
/// # Errors
/// `TypeError` for any other object.
pub fn prim(obj: &Bound<'_, PyAny>) -> Result<te::Expr> {
    match try_prim(obj)? {
        Some(expr) => Ok(expr),
        None => Err(Error::Type(format!(
            "a scalar expression or a number is required here, not {}",
            obj.get_type().name()?
        ))),
    }
}

/// Converts an argument to a scalar expression, or returns `None` if it cannot be converted.
pub fn try_prim(obj: &Bound<'_, PyAny>) -> Result<Option<te::Expr>> {
    if let Ok(e) = obj.cast::<PrimExpr>() {
        return Ok(Some(e.get().expr.clone()));
    }
    if obj.is_instance_of::<PyBool>() {
        return Ok(Some(te::bool_const(obj.is_truthy()?)));
    }
    if obj.is_instance_of::<PyInt>() {
        let value = obj.extract::<i64>();
        let value =
            value.map_err(|_| Error::Value(format!("the integer {obj} does not fit 64 bits")))?;
        return Ok(Some(te::int(value)));
    }
    if obj.is_instance_of::<PyFloat>() {
        return Ok(Some(te::float(obj.extract()?)));
    }
    if obj.is_instance_of::<PyString>() {
        return Ok(None);
    }
    if let Ok(tensor) = obj.cast::<Tensor>() {
        let tensor = &tensor.get().tensor;
        return Ok((tensor.ndim() == 0).then(|| tensor.at(&[])));
    }
    // NumPy scalars.
    if let Ok(value) = obj.call_method0("__index__") {
        return Ok(Some(te::int(value.extract()?)));
    }
    match obj.hasattr("dtype")? && obj.hasattr("__float__")? {
        true => Ok(Some(te::float(obj.extract()?))),
        false => Ok(None),
    }
}

/// Converts a sequence of expressions, or a single one, to a list.
///
/// # Errors
/// `TypeError` if an item is not an expression.
pub fn prim_list(obj: &Bound<'_, PyAny>) -> Result<Vec<te::Expr>> {
    if let Some(e) = try_prim(obj)? {
        return Ok(vec![e]);
    }
    if let Ok(shape) = obj.cast::<crate::runtime::shape_tuple::ShapeTuple>() {
        return Ok(shape.get().0.iter().map(|&d| te::int(d)).collect());
    }
    let items = obj.try_iter().map_err(|_| {
        let name = obj.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        Error::Type(format!("a sequence of scalar expressions is required here, not {name}"))
    })?;
    items.map(|item| prim(&item?)).collect()
}

/// Creates `a op other`, or `other op a` if `reflected`. The result is `NotImplemented` if `other` is not an
/// expression.
fn binary_op<'py>(
    py: Python<'py>,
    op: BinOp,
    a: &te::Expr,
    other: &Bound<'py, PyAny>,
    reflected: bool,
) -> Result<Bound<'py, PyAny>> {
    let Some(b) = try_prim(other)? else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let (a, b) = if reflected { (&b, a) } else { (a, &b) };
    let float = a.ty().dtype.is_float() || b.ty().dtype.is_float();
    if op == BinOp::Div && !float {
        return Err(Error::Type(
            "the operator '/' on integers is ambiguous: write '//' (floordiv) or tir.truncdiv"
                .into(),
        ));
    }
    reject_zero_divisor(op, b)?;
    Ok(wrap(py, te::binary(op, a, b))?)
}

/// Creates a bitwise operation on integer operands.
fn bitwise<'py>(
    intrin: Intrin,
    a: &te::Expr,
    other: &Bound<'py, PyAny>,
    reflected: bool,
) -> Result<Bound<'py, PyAny>> {
    let py = other.py();
    let Some(b) = try_prim(other)? else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let (a, b) = if reflected { te::match_types(&b, a) } else { te::match_types(a, &b) };
    if a.ty().dtype.is_float() {
        let text = format!(
            "the operands of {} must be integers, but have types {} and {}",
            intrin.name(),
            a.ty(),
            b.ty()
        );
        return Err(Error::Type(text));
    }
    Ok(wrap(py, te::call(intrin, vec![a, b]))?)
}

#[pymethods]
impl PrimExpr {
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Expressions are immutable, so the copy is the expression itself.
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Add, &self.expr, other, false)
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Add, &self.expr, other, true)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Sub, &self.expr, other, false)
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Sub, &self.expr, other, true)
    }

    fn __mul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Mul, &self.expr, other, false)
    }

    fn __rmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Mul, &self.expr, other, true)
    }

    fn __truediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Div, &self.expr, other, false)
    }

    fn __rtruediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Div, &self.expr, other, true)
    }

    fn __floordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::FloorDiv, &self.expr, other, false)
    }

    fn __rfloordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::FloorDiv, &self.expr, other, true)
    }

    fn __mod__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::FloorMod, &self.expr, other, false)
    }

    fn __rmod__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::FloorMod, &self.expr, other, true)
    }

    fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::BitwiseAnd, &self.expr, other, false)
    }

    fn __rand__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::BitwiseAnd, &self.expr, other, true)
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::BitwiseOr, &self.expr, other, false)
    }

    fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::BitwiseOr, &self.expr, other, true)
    }

    fn __xor__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::BitwiseXor, &self.expr, other, false)
    }

    fn __rxor__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::BitwiseXor, &self.expr, other, true)
    }

    fn __lshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::ShiftLeft, &self.expr, other, false)
    }

    fn __rlshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::ShiftLeft, &self.expr, other, true)
    }

    fn __rshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::ShiftRight, &self.expr, other, false)
    }

    fn __rrshift__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        bitwise(Intrin::ShiftRight, &self.expr, other, true)
    }

    fn __invert__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        if self.expr.ty().dtype.is_float() {
            return Err(Error::Type(format!(
                "the operand of '~' must be an integer, but '{}' has type {}",
                self.expr,
                self.expr.ty()
            )));
        }
        Ok(wrap(py, te::bitwise_not(&self.expr))?)
    }

    fn __neg__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, -&self.expr)
    }

    fn __pos__(slf: &Bound<'_, Self>) -> Py<Self> {
        slf.clone().unbind()
    }

    fn __abs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, te::abs(&self.expr))
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> Result<Bound<'py, PyAny>> {
        let op = match op {
            CompareOp::Eq => BinOp::Eq,
            CompareOp::Ne => BinOp::Ne,
            CompareOp::Lt => BinOp::Lt,
            CompareOp::Le => BinOp::Le,
            CompareOp::Gt => BinOp::Gt,
            CompareOp::Ge => BinOp::Ge,
        };
        binary_op(other.py(), op, &self.expr, other, false)
    }

    fn __hash__(&self) -> u64 {
        structural_hash(&self.expr)
    }

    fn __bool__(&self) -> Result<bool> {
        truth_value(&self.expr)
    }

    fn __int__(&self) -> Result<i64> {
        match *self.expr.kind() {
            ExprKind::Int(v) => Ok(v),
            ExprKind::Float(v) => Ok(v as i64),
            _ => Err(Error::Type(format!(
                "the expression '{}' is not a constant, so it has no Python value",
                self.expr
            ))),
        }
    }

    fn __index__(&self) -> Result<i64> {
        self.expr.as_int().ok_or_else(|| {
            Error::Type(format!(
                "the expression '{}' is not an integer constant, so it has no Python value",
                self.expr
            ))
        })
    }

    fn __float__(&self) -> Result<f64> {
        match *self.expr.kind() {
            ExprKind::Int(v) => Ok(v as f64),
            ExprKind::Float(v) => Ok(v),
            _ => Err(Error::Type(format!(
                "the expression '{}' is not a constant, so it has no Python value",
                self.expr
            ))),
        }
    }

    fn __repr__(&self) -> String {
        self.expr.to_string()
    }

    fn __str__(&self) -> String {
        self.expr.to_string()
    }

    /// Returns the data type as a string. It is `"handle"` for an address.
    #[getter]
    fn dtype(&self) -> String {
        match self.expr.as_var() {
            Some(var) if var.is_handle() => "handle".into(),
            _ => self.expr.ty().to_string(),
        }
    }

    /// Returns the expression converted to another data type.
    #[pyo3(signature = (dtype, span=None))]
    fn astype<'py>(
        &self,
        dtype: &Bound<'py, PyAny>,
        span: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let _ = span;
        let to = crate::runtime::array_import::parse_dtype(dtype)?;
        Ok(wrap(dtype.py(), te::cast(&self.expr, to))?)
    }

    /// Creates the expression `self == other`.
    fn equal<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary_op(other.py(), BinOp::Eq, &self.expr, other, false)
    }

    /// Whether both Python objects represent the same expression object or the same variable.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PrimExpr>().is_ok_and(|o| same_node(&self.expr, &o.get().expr))
    }

    /// Returns the name of a variable.
    #[getter]
    fn name(&self) -> Result<String> {
        match self.expr.as_var() {
            Some(v) => Ok(v.name().to_string()),
            None => Err(no_attribute(self, "name")),
        }
    }

    /// Returns the name of a variable.
    #[getter]
    fn name_hint(&self) -> Result<String> {
        self.name()
    }

    /// Returns the value of a constant, or the operand of a conversion or broadcast.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(match self.expr.kind() {
            ExprKind::Int(v) if self.expr.ty().dtype.is_bool() => {
                PyBool::new(py, *v != 0).to_owned().into_any()
            }
            ExprKind::Int(v) => v.into_pyobject(py).map_err(PyErr::from)?.into_any(),
            ExprKind::Float(v) => PyFloat::new(py, *v).into_any(),
            ExprKind::Str(s) => PyString::new(py, s).into_any(),
            ExprKind::Cast(a) | ExprKind::Broadcast(a) => wrap(py, a.clone())?,
            _ => return Err(no_attribute(self, "value")),
        })
    }

    /// Returns the first operand of a binary operation.
    #[getter]
    fn a<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match self.expr.kind() {
            ExprKind::Binary(_, a, _) | ExprKind::Not(a) => Ok(wrap(py, a.clone())?),
            _ => Err(no_attribute(self, "a")),
        }
    }

    /// Returns the second operand of a binary operation.
    #[getter]
    fn b<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match self.expr.kind() {
            ExprKind::Binary(_, _, b) => Ok(wrap(py, b.clone())?),
            _ => Err(no_attribute(self, "b")),
        }
    }

    /// Returns the condition of a selection (`tir.Select`).
    #[getter]
    fn condition<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match self.expr.kind() {
            ExprKind::Select(c, ..) => Ok(wrap(py, c.clone())?),
            _ => Err(no_attribute(self, "condition")),
        }
    }

    /// Returns the operands of a call.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        match self.expr.kind() {
            ExprKind::Call(_, args) => tuple_of(py, args),
            _ => Err(no_attribute(self, "args")),
        }
    }

    /// Returns a number that identifies the expression while it lives. Python objects that represent the same variable return the
    /// same number.
    #[getter]
    fn _node_id(&self) -> usize {
        match self.expr.kind() {
            ExprKind::Var(v) => v.address(),
            _ => self.expr.id(),
        }
    }

    /// Returns the buffer from which an element is loaded.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match self.expr.kind() {
            ExprKind::Load(tensor, _) => {
                let tensor = Bound::new(py, Tensor { tensor: tensor.clone() })?;
                Ok(crate::error::import(py, "pliant.tir.stmt", "Buffer")?.call1((tensor,))?)
            }
            _ => Err(no_attribute(self, "buffer")),
        }
    }

    /// Returns the indices at which an element is loaded.
    #[getter]
    fn indices<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        match self.expr.kind() {
            ExprKind::Load(_, args) => tuple_of(py, args),
            _ => Err(no_attribute(self, "indices")),
        }
    }

    /// Returns the intrinsic that is called.
    #[getter]
    fn op<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match self.expr.kind() {
            ExprKind::Call(i, _) => {
                let class = crate::error::import(py, "pliant.tir.op", "Op")?;
                Ok(class.call1((format!("tir.{}", i.name()),))?)
            }
            _ => Err(no_attribute(self, "op")),
        }
    }
}

/// Converts expressions to a tuple of Python objects.
pub fn tuple_of<'py>(py: Python<'py>, exprs: &[te::Expr]) -> Result<Bound<'py, PyTuple>> {
    let items: PyResult<Vec<_>> = exprs.iter().map(|e| wrap(py, e.clone())).collect();
    Ok(PyTuple::new(py, items?)?)
}

fn no_attribute(e: &PrimExpr, name: &str) -> Error {
    let text = format!("the expression '{}' has no attribute '{name}'", e.expr);
    Error::Python(pyo3::exceptions::PyAttributeError::new_err(text))
}

/// Returns the truth value of an expression in Python: the value of a constant, or for `==` and `!=`, whether the operands have
/// the same structure. Other expressions are an error.
fn truth_value(e: &te::Expr) -> Result<bool> {
    match e.kind() {
        ExprKind::Int(v) => Ok(*v != 0),
        ExprKind::Float(v) => Ok(*v != 0.0),
        ExprKind::Binary(BinOp::Eq, a, b) => Ok(structural_equal(a, b)),
        ExprKind::Binary(BinOp::Ne, a, b) => Ok(!structural_equal(a, b)),
        _ => Err(Error::Value(format!(
            "the truth value of '{e}' is known only at run time; use tir.all, tir.any, tir.if_then_else or \
             Analyzer().can_prove"
        ))),
    }
}

fn same_node(a: &te::Expr, b: &te::Expr) -> bool {
    a.same_as(b) || (a.as_var().is_some() && a.as_var() == b.as_var())
}

/// Whether both expressions have the same structure over the same variables and tensors.
pub fn structural_equal(a: &te::Expr, b: &te::Expr) -> bool {
    let mut stack = vec![(a.clone(), b.clone())];
    // Each pair of shared subexpressions is compared once, because there can be exponentially many paths to them.
    let mut seen = FxHashSet::default();
    while let Some((a, b)) = stack.pop() {
        if a.same_as(&b) || !seen.insert((a.id(), b.id())) {
            continue;
        }
        if a.ty() != b.ty() || !same_operator(a.kind(), b.kind()) {
            return false;
        }
        let (left, right) = (a.children(), b.children());
        if left.len() != right.len() {
            return false;
        }
        stack.extend(left.iter().zip(&right).map(|(&x, &y)| (x.clone(), y.clone())));
    }
    true
}

fn same_operator(a: &ExprKind, b: &ExprKind) -> bool {
    use ExprKind::*;
    match (a, b) {
        (Int(x), Int(y)) => x == y,
        (Float(x), Float(y)) => x.to_bits() == y.to_bits(),
        (Str(x), Str(y)) => x == y,
        (Var(x), Var(y)) => x == y,
        (Binary(x, ..), Binary(y, ..)) => x == y,
        (Call(x, _), Call(y, _)) => x == y,
        (Load(x, _), Load(y, _)) => x == y,
        (Cast(_), Cast(_)) | (Not(_), Not(_)) | (Select(..), Select(..)) => true,
        (Ramp(..), Ramp(..)) | (Broadcast(_), Broadcast(_)) => true,
        _ => false,
    }
}

/// Returns a hash that is consistent with [`structural_equal`].
fn structural_hash(e: &te::Expr) -> u64 {
    let mut memo = FxHashMap::default();
    let hashed: std::result::Result<u64, std::convert::Infallible> =
        te::fold(e, &mut memo, |e, children: &[u64]| {
            let mut h = FxHasher::default();
            std::mem::discriminant(e.kind()).hash(&mut h);
            match e.kind() {
                ExprKind::Int(v) => v.hash(&mut h),
                ExprKind::Float(v) => v.to_bits().hash(&mut h),
                ExprKind::Str(s) => s.hash(&mut h),
                ExprKind::Var(v) => v.hash(&mut h),
                ExprKind::Binary(op, ..) => op.hash(&mut h),
                ExprKind::Call(i, _) => i.hash(&mut h),
                ExprKind::Load(t, _) => t.hash(&mut h),
                _ => {}
            }
            children.hash(&mut h);
            Ok(h.finish())
        });
    match hashed {
        Ok(h) => h,
    }
}
