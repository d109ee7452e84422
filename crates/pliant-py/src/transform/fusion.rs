//! Passes that are told what to leave alone: how far to fuse, which operators to skip.

use pliant_opt::fuse::fuse_ops;
use pliant_opt::lower::legalize_ops;
use pyo3::prelude::*;

use super::core_pass::CorePass;
use crate::error::{Error, Result};

/// Groups calls of loop functions that are better done together; at level 0 none, -1 stands for the context's
/// level.
#[pyfunction]
#[pyo3(name = "FuseOps", signature = (fuse_opt_level = -1))]
pub fn fuse_ops_pass(fuse_opt_level: i32) -> CorePass {
    CorePass::of(fuse_ops::FuseOps { fuse_opt_level })
}

/// Turns operators into calls of loop functions, but for those to be skipped (by their full names).
/// `enable_warning` is taken as TVM takes it; an operator that stays is an error of the build, never silent.
#[pyfunction]
#[pyo3(name = "LegalizeOps", signature = (*, skip_ops = None, enable_warning = false))]
pub fn legalize_ops_pass(skip_ops: Option<Vec<String>>, enable_warning: bool) -> Result<CorePass> {
    let _ = enable_warning;
    let skip: Vec<String> = skip_ops.unwrap_or_default();
    let ops = pliant_ops::registry();
    if let Some(name) = skip.iter().find(|n| pliant_ir::OpRegistry::lookup(ops, n).is_none()) {
        return Err(Error::Value(format!(
            "no operator is called '{name}' (help: full names, such as 'relax.add')"
        )));
    }
    let skip = skip.into_iter().collect();
    Ok(CorePass::of(legalize_ops::LegalizeOps { skip, ..Default::default() }))
}
