//! The passes FuseOps and LegalizeOps, whose parameters limit how far operators are fused and which operators are
//! lowered.

use pliant_opt::fuse::fuse_ops;
use pliant_opt::lower::legalize_ops;
use pyo3::prelude::*;

use super::rust_pass::CorePass;
use crate::error::{Error, Result};

/// Creates the pass `FuseOps`, which groups calls of loop functions that are more efficient as one
/// loop function. Level 0 disables fusion, and -1 selects the level of the context.
#[pyfunction]
#[pyo3(name = "FuseOps", signature = (fuse_opt_level = -1))]
pub fn fuse_ops_pass(fuse_opt_level: i32) -> CorePass {
    CorePass::of(fuse_ops::FuseOps { fuse_opt_level })
}

/// Creates the pass `LegalizeOps`, which lowers operators to calls of loop functions, except for
/// those in `skip_ops` (full names). `enable_warning` is accepted for compatibility with TVM and
/// ignored: an operator that is not lowered causes a build error.
#[pyfunction]
#[pyo3(name = "LegalizeOps", signature = (*, skip_ops = None, enable_warning = false))]
pub fn legalize_ops_pass(skip_ops: Option<Vec<String>>, enable_warning: bool) -> Result<CorePass> {
    let _ = enable_warning;
    let skip: Vec<String> = skip_ops.unwrap_or_default();
    let ops = pliant_ops::registry();
    if let Some(name) = skip.iter().find(|n| pliant_ir::OpRegistry::lookup(ops, n).is_none()) {
        return Err(Error::Value(format!(
            "there is no operator '{name}' (help: write the full name, such as 'relax.add')"
        )));
    }
    let skip = skip.into_iter().collect();
    Ok(CorePass::of(legalize_ops::LegalizeOps { skip, ..Default::default() }))
}
