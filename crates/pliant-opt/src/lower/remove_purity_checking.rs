//! # What it does
//! Replaces `R.call_pure_packed(f, args...)` and `R.call_inplace_packed(f, args...)` by plain calls of the packed function. After
//! this pass, purity is no longer tracked: every pure function gets the attribute `relax.force_pure`. If a function of the module
//! has in-place calls, all functions become impure instead, and the types of function values change accordingly.
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
//! @R.function
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
//!     R.func_attr({"relax.force_pure": True})
//!     gv: R.Object = R.call_packed("f", x, sinfo_args=(R.Object,))
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. Functions with such calls get plain blocks, because plain calls of packed functions have side effects.
//!
//! # Keeps
//! The order of the bindings.
//!
//! # Never
//! Moves a call.

use pliant_ir::op::{CALL_INPLACE_PACKED, CALL_PURE_PACKED};
use pliant_ir::relax::{Callee, ExprData, Function};
use pliant_ir::{Attrs, IRModule};
use pliant_pass::binding_rewrites::rewrite_bindings;
use pliant_pass::pass::for_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};

use crate::common::purity_after_lowering::{flatten_blocks, force_pure, make_all_impure};
use crate::memory::copy_written_views::CopyWrittenViews;

/// The pass that replaces pure calls of packed functions by plain calls, after which purity is no longer tracked. See the module
/// documentation.
pub struct RemovePurityChecking;

impl ModulePass for RemovePurityChecking {
    fn name(&self) -> &str {
        "RemovePurityChecking"
    }

    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        // After this pass, in-place packed calls can no longer be recognized.
        let in_place = module.has_inplace_calls();
        let mut module = CopyWrittenViews.run(module, ctx)?;
        for_each_relax(&mut module, ctx, |_, func| {
            if unwrap_calls(func)? {
                flatten_blocks(func);
            }
            if !in_place {
                force_pure(func);
            }
            Ok(())
        })?;
        if in_place {
            make_all_impure(&mut module);
        }
        Ok(module)
    }
}

/// Replaces `R.call_pure_packed` and `R.call_inplace_packed` by ordinary calls of the packed functions. Returns whether there were
/// any.
fn unwrap_calls(func: &mut Function) -> Result<bool, PassError> {
    let mut changed = false;
    rewrite_bindings(func, |func, mut binding, out| {
        if let ExprData::Call {
            callee: Callee::Op(CALL_PURE_PACKED | CALL_INPLACE_PACKED),
            args,
            ty_args,
            ..
        } = func.expr(binding.value)
        {
            let (args, ty_args) = (func.list(*args).to_vec(), func.type_list(*ty_args).to_vec());
            let Some((&callee, rest)) = args.split_first() else {
                return Err(PassError::internal(
                    "a call of R.call_pure_packed or R.call_inplace_packed has no operands, but the first one must be the packed function",
                ));
            };
            let ty = func.expr_ty(binding.value);
            binding.value = func.call(Callee::Expr(callee), rest, Attrs::default(), &ty_args, ty);
            changed = true;
        }
        out.push(binding);
        Ok(())
    })?;
    Ok(changed)
}
