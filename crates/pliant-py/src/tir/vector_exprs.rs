//! Vectors in lowered loop functions: `Ramp` and `Broadcast`.

use pliant_ops::te::{self, ExprKind};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::tir::prim_expr::{PrimExpr, prim};
use crate::tir::scalar_expr_classes::wrap;

/// The vector `base, base + stride, ...`.
#[pyclass(extends = PrimExpr, frozen, module = "pliant.tir")]
pub struct Ramp;

/// A vector with the same scalar in every lane.
#[pyclass(extends = PrimExpr, frozen, module = "pliant.tir")]
pub struct Broadcast;

fn vector(kind: ExprKind, scalar: &te::Expr, lanes: u16) -> Result<PyClassInitializer<PrimExpr>> {
    if lanes < 2 || scalar.ty().lanes != 1 {
        return Err(Error::Value(format!(
            "a vector must have two or more lanes of a scalar type, not {lanes} lanes of {}",
            scalar.ty()
        )));
    }
    let expr = te::Expr::new(kind, scalar.ty().with_lanes(lanes));
    Ok(PyClassInitializer::from(PrimExpr { expr }))
}

fn operand<'py>(py: Python<'py>, vector: &te::Expr, i: usize) -> PyResult<Bound<'py, PyAny>> {
    wrap(py, vector.children()[i].clone())
}

#[pymethods]
impl Ramp {
    #[new]
    fn new(
        base: &Bound<'_, PyAny>,
        stride: &Bound<'_, PyAny>,
        lanes: u16,
    ) -> Result<PyClassInitializer<Self>> {
        let base = prim(base)?;
        let stride = te::cast(&prim(stride)?, base.ty());
        let init = vector(ExprKind::Ramp(base.clone(), stride), &base, lanes)?;
        Ok(init.add_subclass(Ramp))
    }

    /// Returns the value of the first lane.
    #[getter]
    fn base(slf: PyRef<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        operand(slf.py(), &slf.as_super().expr, 0)
    }

    /// Returns the difference between neighbouring lanes.
    #[getter]
    fn stride(slf: PyRef<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        operand(slf.py(), &slf.as_super().expr, 1)
    }

    /// Returns the number of lanes.
    #[getter]
    fn lanes(slf: PyRef<'_, Self>) -> u16 {
        slf.as_super().expr.ty().lanes
    }
}

#[pymethods]
impl Broadcast {
    #[new]
    fn new(value: &Bound<'_, PyAny>, lanes: u16) -> Result<PyClassInitializer<Self>> {
        let value = prim(value)?;
        let init = vector(ExprKind::Broadcast(value.clone()), &value, lanes)?;
        Ok(init.add_subclass(Broadcast))
    }

    /// Returns the number of lanes.
    #[getter]
    fn lanes(slf: PyRef<'_, Self>) -> u16 {
        slf.as_super().expr.ty().lanes
    }
}
