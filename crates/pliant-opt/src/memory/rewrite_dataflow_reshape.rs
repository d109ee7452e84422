//! # What it does
//! Replaces calls of loop functions that only change the shape of their input by `R.reshape`, which does not copy. The pass
//! derives from the indices in a loop function that it is a reshape.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def flatten(a: T.handle, b: T.handle):
//!         n = T.int64()
//!         A = T.match_buffer(a, (n, 4), "float32")
//!         B = T.match_buffer(b, (n * 4,), "float32")
//!         for i in range(n * 4):
//!             with T.block("flatten"):
//!                 vi = T.axis.spatial(n * 4, i)
//!                 B[vi] = A[vi // 4, vi % 4]
//!
//!     @R.function
//!     def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             lv = R.call_tir(cls.flatten, (x,), out_sinfo=R.Tensor((n * 4,), "float32"))
//!             gv = R.exp(lv)
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def flatten(a: T.handle, b: T.handle):
//!         n = T.int64()
//!         A = T.match_buffer(a, (n, 4), "float32")
//!         B = T.match_buffer(b, (n * 4,), "float32")
//!         for i in range(n * 4):
//!             with T.block("flatten"):
//!                 vi = T.axis.spatial(n * 4, i)
//!                 B[vi] = A[vi // 4, vi % 4]
//!
//!     @R.function
//!     def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             lv: R.Tensor((n * 4,), "float32") = R.reshape(x, R.shape([n * 4]))
//!             gv = R.exp(lv)
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The outputs of a dataflow block, which stay separate tensors.
//!
//! # Never
//! Changes a call outside of dataflow blocks, because calls there may write to tensors.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::attr_names::PRIMITIVE;
use pliant_ir::relax::{Binding, ExprData, Function, TypeData};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::pass::for_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashSet;

use crate::analysis::has_reshape_pattern::has_reshape_pattern;
use crate::analysis::loop_function_calls::TirCall;
use crate::common::operators_after_lowering::{RESHAPE, op_call};

/// The pass that replaces calls of loop functions that only reshape by views. See the module documentation.
pub struct RewriteDataflowReshape;

impl ModulePass for RewriteDataflowReshape {
    fn name(&self) -> &str {
        "RewriteDataflowReshape"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let reshapes: FxHashSet<Arc<str>> = module
            .prim_funcs()
            .filter(|(_, f)| has_reshape_pattern(f))
            .map(|(name, _)| name.clone())
            .collect();
        if !reshapes.is_empty() {
            for_each_relax(&mut module, ctx, |_, func| {
                rewrite_function(func, &reshapes);
                Ok(())
            })?;
        }
        Ok(module)
    }
}

fn rewrite_function(func: &mut Function, reshapes: &FxHashSet<Arc<str>>) {
    if func.attrs.contains_key(PRIMITIVE) {
        return;
    }
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            if !func.block(block).dataflow {
                continue;
            }
            for at in 0..func.block(block).bindings.len() {
                let binding = func.block(block).bindings[at];
                if let Some(new) = as_reshape(func, &binding, reshapes) {
                    func.block_mut(block).bindings[at] = new;
                }
            }
        }
    }
}

/// Rewrites a binding to `R.reshape` if it calls a loop function that only reshapes; `None` for other bindings.
fn as_reshape(
    func: &mut Function,
    binding: &Binding,
    reshapes: &FxHashSet<Arc<str>>,
) -> Option<Binding> {
    if !func.var(binding.var).dataflow || binding.cast.is_some() {
        return None;
    }
    let call = TirCall::of(func, binding.value).filter(|c| reshapes.contains(&c.callee))?;
    let (&[input], &[ty], false) = (&call.inputs[..], &call.out_tys[..], call.tuple) else {
        return None;
    };
    let TypeData::Tensor { .. } = func.ty(input) else { return None };
    // The VM reshapes the actual tensor without a check. A call whose tensor may not fit keeps its own check.
    let is_supported = func.ty(input).dims().is_some()
        && func.ty(input).dtype() == func.types.get(ty).dtype()
        && matches!(func.expr(input), ExprData::Var(_) | ExprData::Constant(_));
    let dims = func.types.get(ty).dims().filter(|_| is_supported)?.to_vec();
    let shape = func.shape(&dims);
    Some(Binding::bind(binding.var, op_call(func, RESHAPE, &[input, shape], ty)))
}
