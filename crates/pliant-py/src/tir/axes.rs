//! `Range` and `IterVar`: ranges of integers and axes of stages and blocks.

use pliant_ops::te::{self, IterKind};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::tir::prim_expr::{PrimExpr, prim, variable};
use crate::tir::scalar_expr_classes::wrap;

/// An axis: a variable and its range.
#[pyclass(extends = PrimExpr, frozen, module = "pliant.tir")]
pub struct IterVar {
    /// The axis in the representation of `pliant_ops::te`.
    pub iter: te::IterVar,
}

#[pymethods]
impl IterVar {
    /// The kind of a block axis with independent iterations.
    #[classattr]
    #[pyo3(name = "DataPar")]
    const DATA_PAR: u8 = 0;
    /// The kind of a block axis over which the block reduces.
    #[classattr]
    #[pyo3(name = "CommReduce")]
    const COMM_REDUCE: u8 = 2;
    /// The kind of a block axis whose iterations are executed in order.
    #[classattr]
    #[pyo3(name = "Ordered")]
    const ORDERED: u8 = 3;
    /// The kind of a block axis about whose iterations nothing is known.
    #[classattr]
    #[pyo3(name = "Opaque")]
    const OPAQUE: u8 = 4;

    /// Creates an axis over a range. `var` may be the name of a new variable.
    #[new]
    #[pyo3(signature = (dom, var, iter_type=0, thread_tag="", span=None))]
    fn new(
        dom: &Bound<'_, PyAny>,
        var: &Bound<'_, PyAny>,
        iter_type: i64,
        thread_tag: &str,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        if !thread_tag.is_empty() {
            let text = format!(
                "the thread_tag {thread_tag:?} of an IterVar is not supported: a CPU has no thread axes"
            );
            return Err(Error::Unsupported(text));
        }
        let (min, extent) = range(dom)?;
        let var = match var.extract::<String>() {
            Ok(name) => te::Var::new(name, extent.ty()),
            Err(_) => variable(var)?,
        };
        let kind = match iter_type {
            0 => IterKind::Spatial,
            2 => IterKind::Reduce,
            3 | 4 => IterKind::Opaque,
            other => {
                return Err(Error::Value(format!(
                    "the iter_type of an IterVar must be tir.IterVar.DataPar, CommReduce, Ordered or Opaque, not {other}"
                )));
            }
        };
        Ok(iter_var_init(te::IterVar { var, min, extent, kind }))
    }

    /// Returns the kind of the axis: `DataPar`, `CommReduce` or `Opaque`.
    #[getter]
    fn iter_type(&self) -> u8 {
        match self.iter.kind {
            IterKind::Spatial => Self::DATA_PAR,
            IterKind::Reduce => Self::COMM_REDUCE,
            IterKind::Opaque => Self::OPAQUE,
        }
    }

    /// The thread tag. Always empty, because axes are not bound to threads.
    #[getter]
    fn thread_tag(&self) -> &'static str {
        ""
    }

    /// Returns the variable of the axis.
    #[getter]
    fn var<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, self.iter.var.expr())
    }

    /// Returns the range of the axis.
    #[getter]
    fn dom(&self) -> Range {
        Range { min: self.iter.min.clone(), extent: self.iter.extent.clone() }
    }

    /// Returns the kind of the axis as a letter: `"S"` (spatial), `"R"` (reduced) or `"O"` (opaque).
    #[getter]
    fn kind(&self) -> &'static str {
        match self.iter.kind {
            IterKind::Spatial => "S",
            IterKind::Reduce => "R",
            IterKind::Opaque => "O",
        }
    }

    fn __repr__(&self) -> String {
        let i = &self.iter;
        format!(
            "IterVar({}, Range({}, {}), \"{}\")",
            i.var,
            i.min,
            end(&i.min, &i.extent),
            self.kind()
        )
    }
}

fn end(min: &te::Expr, extent: &te::Expr) -> te::Expr {
    te::simplify(&(min + extent))
}

/// A range of integers: `extent` values, starting at `min`. `Range(end)` and `Range(begin, end)`
/// contain the same integers as Python's `range`.
#[pyclass(frozen, module = "pliant.ir")]
pub struct Range {
    /// The first value of the range.
    pub min: te::Expr,
    /// The number of values in the range.
    pub extent: te::Expr,
}

#[pymethods]
impl Range {
    #[new]
    #[pyo3(signature = (begin, end=None))]
    fn new(begin: &Bound<'_, PyAny>, end: Option<&Bound<'_, PyAny>>) -> Result<Range> {
        let begin = prim(begin)?;
        match end {
            None => Ok(Range { min: te::int(0), extent: begin }),
            Some(end) => {
                let extent = te::simplify(&(&prim(end)? - &begin));
                Ok(Range { min: begin, extent })
            }
        }
    }

    /// Creates the range with this start and length.
    #[staticmethod]
    fn from_min_extent(min_value: &Bound<'_, PyAny>, extent: &Bound<'_, PyAny>) -> Result<Range> {
        Ok(Range { min: prim(min_value)?, extent: prim(extent)? })
    }

    /// Returns the first value of the range.
    #[getter]
    fn min<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, self.min.clone())
    }

    /// Returns the number of values of the range.
    #[getter]
    fn extent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, self.extent.clone())
    }

    fn __repr__(&self) -> String {
        format!("Range({}, {})", self.min, end(&self.min, &self.extent))
    }
}

/// Converts a range argument: a `Range` or a pair `(begin, end)`. Returns the start and the extent.
///
/// # Errors
/// `TypeError` for any other object.
pub fn range(obj: &Bound<'_, PyAny>) -> Result<(te::Expr, te::Expr)> {
    if let Ok(r) = obj.cast::<Range>() {
        return Ok((r.get().min.clone(), r.get().extent.clone()));
    }
    match obj.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        Ok((begin, end)) => {
            let begin = prim(&begin)?;
            let extent = te::simplify(&(&prim(&end)? - &begin));
            Ok((begin, extent))
        }
        Err(_) => Err(Error::Type(format!(
            "the range of an axis must be a Range or a pair (begin, end), not {}",
            obj.get_type().name()?
        ))),
    }
}

/// Initializes the Python object of an axis, which behaves like the axis's variable wherever an expression is
/// expected.
pub fn iter_var_init(iter: te::IterVar) -> PyClassInitializer<IterVar> {
    let expr = iter.var.expr();
    PyClassInitializer::from(PrimExpr { expr }).add_subclass(IterVar { iter })
}
