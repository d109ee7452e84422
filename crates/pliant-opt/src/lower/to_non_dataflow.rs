//! # What it does
//! Turns dataflow blocks into plain binding blocks, turns their variables into plain variables, and merges adjacent blocks. Later
//! passes add calls with side effects, which dataflow blocks must not contain.
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
use pliant_pass::{FunctionPass, PassContext, PassError};

use crate::common::purity_after_lowering::flatten_blocks;

/// The pass that turns dataflow blocks into plain binding blocks. See the module documentation.
pub struct ToNonDataflow;

impl FunctionPass for ToNonDataflow {
    fn name(&self) -> &str {
        "ToNonDataflow"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        flatten_blocks(func);
        Ok(())
    }
}
