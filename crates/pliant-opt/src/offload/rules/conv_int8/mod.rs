//! # What it does
//! Offloads int32 convolutions to int8 library kernels if the input is a cast int8 or uint8 tensor, with or without a zero
//! point, and each filter of the constant weights fits 8 bits up to an offset. The constant is packed for the kernel
//! ([`pliant_tensor::pack_quads`]), together with the sums of its filters. Operators that alone read a result in its dataflow
//! block become the epilogue, in this order: a per-filter int32 term, the cast to float32, a per-tensor factor, per-filter
//! factors, a bias, an activation, and requantization (division by one number, rounding, shift, clipping). Results are
//! bit-exact, except that an activation may change the sign of a zero.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "h", "w", 2), "uint8")) -> R.Tensor(("n", "h", "w", 2), "int32"):
//!     n = T.int64()
//!     h = T.int64()
//!     w = T.int64()
//!     with R.dataflow():
//!         lv = R.astype(x, dtype="int32")
//!         lv1 = R.subtract(lv, R.const(7, "int32"))
//!         gv = R.nn.conv2d(lv1, R.const([[[[5]], [[-1]]], [[[2]], [[1]]]], "int32"), data_layout="NHWC")
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "h", "w", 2), dtype="uint8")) -> R.Tensor(("n", "h", "w", 2), dtype="int32"):
//!     n = T.int64()
//!     h = T.int64()
//!     w = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         lv: R.Tensor((n, h, w, 2), dtype="int32") = R.astype(x, dtype="int32")
//!         lv1: R.Tensor((n, h, w, 2), dtype="int32") = R.subtract(lv, R.const(7, "int32"))
//!         gv: R.Tensor((n, h, w, 2), dtype="int32") = R.call_tir(cls.conv2d_int8, (x, R.const(7, "int32"), metadata["relax.expr.Constant"][0], R.const([4, 3], "int32")), out_sinfo=R.Tensor((n, h, w, 2), dtype="int32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def conv2d_int8(var_A: T.handle, B: T.Buffer((), "int32"), C: T.Buffer((1, 1, 16, 4), "int8"), D: T.Buffer((2,), "int32"), var_conv2d_int8: T.handle):
//!     ...
//!         T.evaluate(T.call_kernel("conv_int8", ...))
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

mod kernel;
pub(crate) mod matcher;
mod weights;

use pliant_pass::PassError;

use crate::common::products::CONVOLUTIONS;
use crate::offload::integer_sums::{Sums, finish_of};
use crate::offload::rule::{Kept, Rule, RuleInfo, Site, Stage, Verdict};
use matcher::Finished;

/// The row of the table.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "conv_int8",
        "conv_int8",
        "int32 convolutions of int8 or uint8 by constants, with scales, a bias, an activation and requantization",
        Stage::Kernel,
        &CONVOLUTIONS,
        |_| Ok(Box::new(ConvInt8)),
    )
}

struct ConvInt8;

impl Rule for ConvInt8 {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Verdict, PassError> {
        if !matcher::may_be(site.func, site.root.value) {
            return Ok(Err(Kept::NotApplicable));
        }
        let uses = site.uses();
        let Some(convolution) = matcher::convolution(site.func, &uses.1, site.root) else {
            return Ok(Err("its operands are not 8-bit integers of known sizes".into()));
        };
        if !convolution.last {
            return Ok(Err("its channels do not come last".into()));
        }
        let (result, columns) = (convolution.result, convolution.filters);
        let sums = Sums { result, columns, rows: None, whole: true };
        let finish = site.dataflow.then(|| finish_of(site.func, uses, &sums, site.taken)).flatten();
        let found = Finished { convolution, finish };
        let failed = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("a convolution of integers has no loop function: {e}"))
        };
        let weights = weights::packed(&found.convolution).map_err(|e| failed(&e))?;
        let Some(weights) = weights else {
            return Ok(Err("its weights do not fit 8 bits".into()));
        };
        let call = kernel::call(site.func, &found, &weights).map_err(|e| failed(&e))?;
        let inside = found.finish.iter().flat_map(|f| &f.inside).copied().collect();
        Ok(site.offload(call, found.result(), inside))
    }
}
