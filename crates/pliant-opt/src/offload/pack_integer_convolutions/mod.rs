//! # What it does
//! Makes calls of the library's convolution of 8-bit integers of convolutions of int32 whose input was int8 or uint8 before, with
//! a zero point or without, and whose weights are a constant of which each filter fits 8 bits but for a number of its own. The
//! constant takes the form that the kernel reads ([`pliant_tensor::pack_quads`]), with the sums of its filters. What follows in
//! a dataflow block and nobody else reads is done where it is summed: a term of int32 for each filter, the cast to float32, one
//! factor of all, factors of filters, a bias, an activation, and the way back to 8 bits (divided by one number, rounded,
//! shifted by one, kept between two limits), in this order. Results are the same to the bit, but that an activation may
//! give a zero the other sign.
//!
//! # Before
//! With a constant of `[20, 3, 3, 3]`.
//! ```python
//! lv: R.Tensor((n, h, w, 3), dtype="int32") = R.astype(x, dtype="int32")
//! lv1: R.Tensor((n, h, w, 3), dtype="int32") = R.subtract(lv, R.const(7, "int32"))
//! lv2: R.Tensor((n, h, w, 20), dtype="int32") = R.nn.conv2d(lv1, metadata["relax.expr.Constant"][0], padding=[1, 1], data_layout="NHWC")
//! ```
//!
//! # After
//! With quads of `[1, 7, 32, 4]` and sums of `[20]`.
//! ```python
//! lv2 = R.call_tir(cls.conv2d_int8, (x, R.const(7, "int32"), metadata["relax.expr.Constant"][0], metadata["relax.expr.Constant"][1]), out_sinfo=R.Tensor((n, h, w, 20), dtype="int32"))
//! ```
//!
//! # Requires
//! That the weights are a constant already ([`FoldConstant`](crate::canonicalize::fold_constant)) and channels come last
//! ([`ChannelsLast`](crate::offload::channels_last)). It is of use before [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! Convolutions of other types, transposed ones, those whose channels come first, filters that span more than 8 bits, and with
//! margins those whose zero point may be no byte; all of them where kernels are switched off.
//!
//! # Never
//! Moves a read behind a call that may write into what it reads.

pub(crate) mod found;
mod kernel;
mod weights;

use pliant_ir::IRModule;
use pliant_ir::relax::{Expr, Function, Var};
use pliant_pass::{ModulePass, PassContext, PassError, Writers};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::kernels::{Kernels, bind_calls, each_found};
use found::Finished;

/// See the module's documentation.
pub struct PackIntegerConvolutions;

impl ModulePass for PackIntegerConvolutions {
    fn name(&self) -> &str {
        "PackIntegerConvolutions"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let writers = Writers::of(&module);
        let find = |func: &Function| found::all(func, ctx.ops, &writers);
        each_found(&mut module, ctx, find, |kernels, func, found| {
            let (mut calls, mut gone): (FxHashMap<Var, Expr>, FxHashSet<Var>) = Default::default();
            for convolution in &found {
                ctx.check_cancelled()?;
                if let Some(call) = call(kernels, func, convolution)? {
                    calls.insert(convolution.result(), call);
                    gone.extend(convolution.finish.iter().flat_map(|f| &f.inside));
                }
            }
            bind_calls(func, &calls, &gone)
        })?;
        Ok(module)
    }
}

/// The call of the loop function; `None` where its result would be of another type.
fn call(
    kernels: &mut Kernels,
    func: &mut Function,
    found: &Finished,
) -> Result<Option<Expr>, PassError> {
    let failed = |e: &dyn std::fmt::Display| {
        PassError::internal(format!("a convolution of integers has no loop function: {e}"))
    };
    let Some(weights) = weights::packed(&found.convolution).map_err(|e| failed(&e))? else {
        return Ok(None);
    };
    let ty = func.var(found.result()).ty;
    let call = kernel::call(func, found, &weights).map_err(|e| failed(&e))?;
    Ok((call.out_tys == [ty]).then(|| kernels.call(func, call)))
}
