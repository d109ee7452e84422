//! # What it does
//! Marks every function, local ones included, as one whose calls may have effects, and turns `R.call_pure_packed(f,
//! args...)` into the plain call of the packed function. From here on purity is no longer tracked.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
//!     gv: R.Object = R.call_pure_packed("f", x, sinfo_args=(R.Object,))
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function(pure=False)
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
//!     gv: R.Object = R.call_packed("f", x, sinfo_args=(R.Object,))
//!     return gv
//! ```
//!
//! # Requires
//! [`ToNonDataflow`](crate::to_non_dataflow): dataflow blocks hold no calls with effects.
//!
//! # Keeps
//! The order of the bindings.
//!
//! # Never
//! Moves a call.

use pliant_ir::Attrs;
use pliant_ir::op::CALL_PURE_PACKED;
use pliant_ir::relax::{Callee, ExprData, Function};
use pliant_pass::rewrite::{reachable_funcs, rewrite_bindings};
use pliant_pass::{FunctionPass, PassContext, PassError};

/// See the module's documentation.
pub struct RemovePurityChecking;

impl FunctionPass for RemovePurityChecking {
    fn name(&self) -> &str {
        "RemovePurityChecking"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        for id in reachable_funcs(func) {
            func.func_mut(id).pure = false;
        }
        rewrite_bindings(func, |func, mut binding, out| {
            let ExprData::Call { callee: Callee::Op(CALL_PURE_PACKED), args, ty_args, .. } =
                func.expr(binding.value).clone()
            else {
                out.push(binding);
                return Ok(());
            };
            let (args, ty_args) = (func.list(args).to_vec(), func.type_list(ty_args).to_vec());
            let Some((&callee, rest)) = args.split_first() else {
                return Err(PassError::internal("call_pure_packed without a function"));
            };
            let ty = func.expr_ty(binding.value);
            binding.value = func.call(Callee::Expr(callee), rest, Attrs::default(), &ty_args, ty);
            out.push(binding);
            Ok(())
        })
    }
}
