//! `te.Tensor`: placeholders, stages and their operations.

use pliant_ops::te::{self, ExprKind};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{Error, Result};
use crate::tir::axes::iter_var_init;
use crate::tir::prim_expr::{prim_list, tuple_of};
use crate::tir::scalar_expr_classes::wrap;

/// A tensor of the loop level: a placeholder or a stage.
#[pyclass(frozen, subclass, module = "pliant.te", weakref)]
pub struct Tensor {
    /// The tensor in the representation of `pliant_ops::te`.
    pub tensor: te::Tensor,
}

#[pymethods]
impl Tensor {
    /// Returns the dims of the tensor.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        tuple_of(py, self.tensor.shape())
    }

    /// Returns the element type as a string.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.tensor.dtype().name()
    }

    /// Returns the rank.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor.ndim()
    }

    /// Returns the name of the tensor.
    #[getter]
    fn name(&self) -> String {
        self.tensor.name().to_string()
    }

    /// Returns the operation that produces the tensor.
    #[getter]
    fn op<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        operation(py, &self.tensor)
    }

    /// Returns the index of this tensor among the outputs of its operation.
    #[getter]
    fn value_index(&self) -> usize {
        match self.tensor.op() {
            te::TensorOp::Extern(_, index) => *index,
            _ => 0,
        }
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        self.element(index.py(), index)
    }

    #[pyo3(signature = (*indices))]
    fn __call__<'py>(&self, indices: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyAny>> {
        self.element(indices.py(), indices.as_any())
    }

    /// The truth value in Python: a tensor is true, regardless of its sizes.
    fn __bool__(&self) -> bool {
        true
    }

    fn __len__(&self) -> Result<usize> {
        match self.tensor.shape().first() {
            Some(dim) => dim.as_int().and_then(|d| usize::try_from(d).ok()).ok_or_else(|| {
                Error::Type(format!(
                    "len() of a tensor needs a constant first dim, but the first dim is {dim}"
                ))
            }),
            None => Err(Error::Type("a tensor of rank 0 has no len()".into())),
        }
    }

    fn __add__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("add", slf.as_any(), other)
    }

    fn __radd__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("add", other, slf.as_any())
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(crate::error::import(slf.py(), "pliant.topi", "negative")?.call1((slf,))?)
    }

    fn __sub__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("subtract", slf.as_any(), other)
    }

    fn __rsub__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("subtract", other, slf.as_any())
    }

    fn __mul__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("multiply", slf.as_any(), other)
    }

    fn __rmul__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("multiply", other, slf.as_any())
    }

    fn __truediv__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("divide", slf.as_any(), other)
    }

    fn __rtruediv__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        broadcast("divide", other, slf.as_any())
    }

    /// Always raises an exception. Without this method, Python would index the tensor with 0, 1, 2 and so on until an index fails,
    /// which never happens, because tensors may be symbolic.
    fn __iter__(&self) -> Result<Py<PyAny>> {
        Err(Error::Type(format!(
            "tensor {} cannot be iterated over, because its first dim may be symbolic: index it instead",
            self.tensor.name()
        )))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Tensor>().is_ok_and(|o| o.get().tensor == self.tensor)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        self.tensor.hash(&mut h);
        h.finish()
    }

    fn __repr__(&self) -> String {
        let dims: Vec<String> = self.tensor.shape().iter().map(te::Expr::to_string).collect();
        let comma = if dims.len() == 1 { "," } else { "" };
        let (name, dtype) = (self.tensor.name(), self.tensor.dtype());
        format!("Tensor(shape=({}{comma}), dtype=\"{dtype}\", name=\"{name}\")", dims.join(", "))
    }
}

/// Applies an elementwise operator to tensors and scalars.
fn broadcast<'py>(
    name: &str,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    Ok(crate::error::import(a.py(), "pliant.topi", name)?.call1((a, b))?)
}

impl Tensor {
    fn element<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        Ok(wrap(py, self.load(&prim_list(index)?)?)?)
    }

    /// Returns the element at these indices as an expression.
    ///
    /// # Errors
    /// `IndexError` if the number of indices is not the rank.
    pub fn load(&self, indices: &[te::Expr]) -> Result<te::Expr> {
        self.tensor.try_at(indices).map_err(|e| Error::Index(e.to_string()))
    }
}

/// The operation that produces a tensor: a placeholder or a stage.
#[pyclass(frozen, subclass, module = "pliant.te")]
pub struct Operation {
    tensor: te::Tensor,
}

/// A placeholder: the caller passes the tensor.
#[pyclass(extends = Operation, frozen, module = "pliant.te")]
pub struct PlaceholderOp;

/// A stage that computes each element by a formula.
#[pyclass(extends = Operation, frozen, module = "pliant.te")]
pub struct ComputeOp;

/// A stage that consists of statements or of a call.
#[pyclass(extends = Operation, frozen, subclass, module = "pliant.te")]
pub struct ExternOp;

/// A scan: statements that compute each row of the state tensors from earlier rows.
#[pyclass(extends = ExternOp, frozen, module = "pliant.te")]
pub struct ScanOp;

fn operation<'py>(py: Python<'py>, tensor: &te::Tensor) -> Result<Bound<'py, PyAny>> {
    let base = PyClassInitializer::from(Operation { tensor: tensor.clone() });
    Ok(match tensor.op() {
        te::TensorOp::Placeholder => Bound::new(py, base.add_subclass(PlaceholderOp))?.into_any(),
        te::TensorOp::Compute(_) => Bound::new(py, base.add_subclass(ComputeOp))?.into_any(),
        te::TensorOp::Extern(stage, _) if stage.scan => {
            Bound::new(py, base.add_subclass(ExternOp).add_subclass(ScanOp))?.into_any()
        }
        te::TensorOp::Extern(..) => Bound::new(py, base.add_subclass(ExternOp))?.into_any(),
    })
}

#[pymethods]
impl Operation {
    /// Returns the name of the operation.
    #[getter]
    fn name(&self) -> String {
        self.tensor.name().to_string()
    }

    /// Returns the axes of the operation's output.
    #[getter]
    fn axis<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        let axes = self.tensor.as_compute().map_or(&[][..], |c| &c.axes);
        wrap_axes(py, axes)
    }

    /// Returns the axes over which the operation reduces.
    #[getter]
    fn reduce_axis<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        match self.tensor.as_compute().map(|c| c.body.kind()) {
            Some(ExprKind::Reduce(r)) => wrap_axes(py, &r.axes),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the formulas of a stage.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        match self.tensor.as_compute() {
            Some(c) => Ok(vec![wrap(py, c.body.clone())?]),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the tensors that a stage reads.
    #[getter]
    fn input_tensors(&self) -> Vec<Tensor> {
        self.tensor.inputs().into_iter().map(|tensor| Tensor { tensor }).collect()
    }

    /// Returns the output with this index.
    fn output(&self, index: usize) -> Result<Tensor> {
        let outputs = te::outputs_of(&self.tensor);
        match outputs.get(index) {
            Some(tensor) => Ok(Tensor { tensor: tensor.clone() }),
            None => {
                let (name, count) = (self.tensor.name(), outputs.len());
                let s = if count == 1 { "" } else { "s" };
                Err(Error::Index(format!(
                    "operation {name} has {count} output{s}, so the output index {index} is out of range"
                )))
            }
        }
    }

    #[getter]
    fn num_outputs(&self) -> usize {
        te::outputs_of(&self.tensor).len()
    }

    fn __repr__(&self) -> String {
        match self.tensor.op() {
            te::TensorOp::Compute(c) => format!("compute({}, body={})", self.tensor.name(), c.body),
            te::TensorOp::Placeholder => format!("placeholder({})", self.tensor.name()),
            te::TensorOp::Extern(..) => format!("extern({})", self.tensor.name()),
        }
    }
}

fn wrap_axes<'py>(py: Python<'py>, axes: &[te::IterVar]) -> Result<Vec<Bound<'py, PyAny>>> {
    let wrapped: PyResult<Vec<_>> =
        axes.iter().map(|a| Ok(Bound::new(py, iter_var_init(a.clone()))?.into_any())).collect();
    Ok(wrapped?)
}
