//! # What it does
//! Turns dataflow blocks into plain binding blocks and their variables into plain variables, and joins neighbouring
//! blocks. Later passes add calls with effects, which dataflow blocks may not hold.
//!
//! # Before
//! ```python
//! with R.dataflow():
//!     lv: R.Tensor((n,), dtype="float32") = R.add(x, x)
//!     gv: R.Tensor((n,), dtype="float32") = R.exp(lv)
//!     R.output(gv)
//! ```
//!
//! # After
//! ```python
//! lv: R.Tensor((n,), dtype="float32") = R.add(x, x)
//! gv: R.Tensor((n,), dtype="float32") = R.exp(lv)
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! Every binding, its order, name and type.
//!
//! # Never
//! Removes a binding, even an unused one.

use pliant_ir::relax::Function;
use pliant_pass::rewrite::{reachable_seqs, set_flat_bindings, take_flat_bindings};
use pliant_pass::{FunctionPass, PassContext, PassError};

use crate::lower::purity::force_pure;

/// See the module's documentation.
pub struct ToNonDataflow;

impl FunctionPass for ToNonDataflow {
    fn name(&self) -> &str {
        "ToNonDataflow"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        flatten(func);
        Ok(())
    }
}

/// Makes room for calls with effects that nobody outside sees: every sequence one plain block, and the function as pure
/// as it was. The lowering passes that add such calls do this themselves, so that each runs alone.
pub(crate) fn admit_effects(func: &mut Function) {
    flatten(func);
    force_pure(func);
}

/// Makes every sequence one plain block.
pub(crate) fn flatten(func: &mut Function) {
    for seq in reachable_seqs(func) {
        let bindings = take_flat_bindings(func, seq);
        for binding in &bindings {
            func.var_mut(binding.var).dataflow = false;
        }
        set_flat_bindings(func, seq, bindings);
    }
}
