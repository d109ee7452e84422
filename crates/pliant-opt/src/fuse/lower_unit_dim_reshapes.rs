//! # What it does
//! Lowers reshapes that only insert or remove dims of size 1 to loop functions, if a call of a loop function is next to them.
//! [`FuseOps`](crate::fuse::fuse_ops) can then fuse the calls on both sides, which a view would separate. If such a loop function
//! is not fused, [`RewriteDataflowReshape`](crate::memory::rewrite_dataflow_reshape) makes it a view again.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def exp(a: T.handle, b: T.handle):
//!         n = T.int64()
//!         A = T.match_buffer(a, (n,), "float32")
//!         B = T.match_buffer(b, (n,), "float32")
//!         for i in range(n):
//!             with T.block("exp"):
//!                 vi = T.axis.spatial(n, i)
//!                 B[vi] = T.exp(A[vi])
//!
//!     @R.function
//!     def main(x: R.Tensor((1, "n"), "float32")) -> R.Tensor(("n",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             row = R.reshape(x, R.shape([n]))
//!             gv = R.call_tir(cls.exp, (row,), out_sinfo=R.Tensor((n,), "float32"))
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def exp(a: T.handle, b: T.handle):
//!         n = T.int64()
//!         A = T.match_buffer(a, (n,), "float32")
//!         B = T.match_buffer(b, (n,), "float32")
//!         for i in range(n):
//!             with T.block("exp"):
//!                 vi = T.axis.spatial(n, i)
//!                 B[vi] = T.exp(A[vi])
//!
//!     @R.function
//!     def main(x: R.Tensor((1, "n"), "float32")) -> R.Tensor(("n",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             row = R.call_tir(cls.reshape, (x,), out_sinfo=R.Tensor((n,), "float32"))
//!             gv = R.call_tir(cls.exp, (row,), out_sinfo=R.Tensor((n,), "float32"))
//!             R.output(gv)
//!         return gv
//!
//!     @T.prim_func(private=True)
//!     def reshape(var_A: T.handle, var_T_reshape: T.handle):
//!         T.func_attr({"tir.noalias": True})
//!         n = T.int64()
//!         A = T.match_buffer(var_A, (1, n), "float32")
//!         T_reshape = T.match_buffer(var_T_reshape, (n,), "float32")
//!         for ax0 in range(n):
//!             with T.block("T_reshape"):
//!                 v_ax0 = T.axis.spatial(n, ax0)
//!                 T.reads(A[0, v_ax0])
//!                 T.writes(T_reshape[v_ax0])
//!                 T_reshape[v_ax0] = A[0, v_ax0]
//! ```
//!
//! # Requires
//! Tensors of known shape and data type.
//!
//! # Keeps
//! Reshapes that change other dims, whose loop functions would need divisions, and the outputs of dataflow blocks.
//!
//! # Never
//! Changes a call outside of dataflow blocks, because calls there may write to tensors.

use std::sync::Arc;

use pliant_ir::relax::{Binding, Block, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, BaseFunc, IRModule};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashSet;

use crate::analysis::loop_function_calls::TirCall;
use crate::common::operators_after_lowering::RESHAPE;
use crate::common::shared_loop_functions::LoopFunctions;

/// The pass that lowers reshapes of dims of size 1 to loop functions. See the module documentation.
pub struct LowerUnitDimReshapes;

impl ModulePass for LowerUnitDimReshapes {
    fn name(&self) -> &str {
        "LowerUnitDimReshapes"
    }

    fn opt_level(&self) -> u8 {
        1
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let mut loop_functions = LoopFunctions::new(&module);
        for func in module.functions.values_mut() {
            let BaseFunc::Relax(func) = func else { continue };
            ctx.check_cancelled()?;
            for seq in reachable_seqs(func) {
                for block in func.seq(seq).blocks.clone() {
                    let reshapes = fusible_reshapes(func, block);
                    if !reshapes.is_empty() {
                        lower(Arc::make_mut(func), block, &reshapes, &mut loop_functions);
                    }
                }
            }
        }
        loop_functions.insert_into(&mut module);
        Ok(module)
    }
}

/// Returns the positions of the bindings of a dataflow block that only insert or remove dims of size 1 and are next to a call of
/// a loop function.
fn fusible_reshapes(func: &Function, block: Block) -> Vec<usize> {
    let data = func.block(block);
    if !data.dataflow {
        return Vec::new();
    }
    let neighbors = results_and_operands_of_loop_functions(func, &data.bindings);
    let is_fusible = |b: &Binding| {
        reshaped_variable(func, b)
            .is_some_and(|x| neighbors.contains(&x) || neighbors.contains(&b.var))
    };
    (0..data.bindings.len()).filter(|&at| is_fusible(&data.bindings[at])).collect()
}

/// Lowers the reshapes at the given positions of a block to calls of loop functions.
fn lower(
    func: &mut Function,
    block: Block,
    reshapes: &[usize],
    loop_functions: &mut LoopFunctions,
) {
    for &at in reshapes {
        let binding = func.block(block).bindings[at];
        let ExprData::Call { args, .. } = *func.expr(binding.value) else { continue };
        let (args, ty) = (func.list(args).to_vec(), func.expr_ty(binding.value));
        let lowered = pliant_ops::legalize_to_tir(func, RESHAPE, &args, &Attrs::default(), ty);
        if let Ok(Some(call)) = lowered {
            let value = loop_functions.call(func, call);
            func.block_mut(block).bindings[at] = Binding::bind(binding.var, value);
        }
    }
}

/// Returns the variables that calls of loop functions bind or read.
fn results_and_operands_of_loop_functions(func: &Function, bindings: &[Binding]) -> FxHashSet<Var> {
    let mut vars = FxHashSet::default();
    for binding in bindings {
        let Some(call) = TirCall::of(func, binding.value) else { continue };
        vars.insert(binding.var);
        vars.extend(call.inputs.iter().filter_map(|&e| variable(func, e)));
    }
    vars
}

/// Returns the variable that a binding reshapes, if the binding only inserts or removes dims of size 1 and is not an output of its
/// block.
fn reshaped_variable(func: &Function, binding: &Binding) -> Option<Var> {
    let ExprData::Call { callee: Callee::Op(RESHAPE), args, .. } = func.expr(binding.value) else {
        return None;
    };
    let (args, ty) = (func.list(*args), func.expr_ty(binding.value));
    let lowers = func.var(binding.var).dataflow
        && binding.cast.is_none()
        && pliant_ops::changes_only_unit_dims(func, RESHAPE, args, ty);
    variable(func, *args.first()?).filter(|_| lowers)
}

fn variable(func: &Function, e: Expr) -> Option<Var> {
    match *func.expr(e) {
        ExprData::Var(v) => Some(v),
        _ => None,
    }
}
