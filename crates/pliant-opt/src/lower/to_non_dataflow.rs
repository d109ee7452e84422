//! # What it does
//! Turns dataflow blocks into plain binding blocks and their variables into plain variables, and merges adjacent blocks. Later
//! passes add calls with effects, which dataflow blocks may not hold.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.add(x, x)
//!         gv = R.exp(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     lv: R.Tensor((n,), "float32") = R.add(x, x)
//!     gv: R.Tensor((n,), "float32") = R.exp(lv)
//!     return gv
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
