//! `tir.PrimFunc`: a loop function in Python, and its making from tensors.

use std::sync::Arc;

use pliant_ir::tir;
use pliant_ops::te;
use pyo3::prelude::*;

use crate::enter::guard;
use crate::error::{Error, Result};
use crate::te::tensor::Tensor;
use crate::tir::expr::prim;

/// A loop function.
#[pyclass(frozen, module = "pliant.tir", weakref)]
pub struct PrimFunc {
    /// The function.
    pub func: Arc<tir::PrimFunc>,
}

/// The loop function that computes the stages among `args` from the placeholders among them.
#[pyfunction]
pub fn te_create_prim_func(args: Vec<Bound<'_, PyAny>>) -> Result<PrimFunc> {
    let args: Vec<te::Arg> = args.iter().map(argument).collect::<Result<_>>()?;
    let func = guard(|| te::create_prim_func(&args).map_err(|e| Error::Compile(e.to_string())))?;
    Ok(PrimFunc { func: Arc::new(func) })
}

fn argument(obj: &Bound<'_, PyAny>) -> Result<te::Arg> {
    if let Ok(tensor) = obj.cast::<Tensor>() {
        return Ok(te::Arg::Tensor(tensor.get().tensor.clone()));
    }
    match prim(obj)?.as_var() {
        Some(var) => Ok(te::Arg::Var(var.clone())),
        None => {
            Err(Error::Type(format!("an argument is a tensor or a variable, not {}", obj.repr()?)))
        }
    }
}
