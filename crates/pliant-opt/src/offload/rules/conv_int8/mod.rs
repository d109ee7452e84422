//! # What it does
//! Offloads int32 convolutions to int8 library kernels if the input is a cast int8 or uint8 tensor, with or without a zero point,
//! and each filter of the constant weights fits 8 bits up to an offset. The constant is packed for the kernel
//! ([`pliant_tensor::pack_vnni`]), together with the sums of its filters. Operators that are the only readers of a result in its
//! dataflow block become the epilogue, in this order: a per-filter int32 term, the cast to float32, a per-tensor factor, per-filter
//! factors, a bias, an activation, and requantization (division by one number, rounding, shift, clipping). Results are bit-exact,
//! except that an activation may change the sign of a zero.
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
//!     with R.dataflow():
//!         lv: R.Tensor((n, h, w, 2), dtype="int32") = R.astype(x, dtype="int32")
//!         lv1: R.Tensor((n, h, w, 2), dtype="int32") = R.subtract(lv, R.const(7, "int32"))
//!         gv: R.Tensor((n, h, w, 2), dtype="int32") = R.call_kernel("conv_int8", x=x, x_zero=R.const(7, "int32"), weight=..., filter_sums=R.const([4, 3], "int32"), axes={"x": [0, -1, 1, 2, 3], "out": [0, -1, 1, 2, 3]}, kernel_shape=[1, 1, 1], panel_width=16, out_sinfo=R.Tensor((n, h, w, 2), dtype="int32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Constant weights ([`FoldConstant`](crate::canonicalize::fold_constant)) and the channels-last layout
//! ([`ChannelsLast`](crate::offload::channels_last)). It should run before [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! - Convolutions of other types, and transposed convolutions.
//! - Convolutions in channels-first layout.
//! - Convolutions with filters that span more than 8 bits.
//! - Padded convolutions whose zero point is not known to fit 8 bits.
//! - All convolutions if kernels are disabled.
//!
//! # Never
//! Moves a read past a call that may write to the tensor.

mod conv_int8_kernel_call;
pub(crate) mod conv_int8_matcher;
mod pack_int8_weights;

use pliant_pass::PassError;

use crate::common::matmul_and_conv_operands::CONVOLUTIONS;
use crate::offload::int8_epilogue::{IntegerSums, match_epilogue};
use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};
use conv_int8_matcher::ConvolutionWithEpilogue;

/// The entry of the rule `conv_int8` in the table of offload rules.
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
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        if !conv_int8_matcher::is_candidate(site.func, site.root.value) {
            return Ok(Err(KeepReason::NotApplicable));
        }
        let uses = site.uses();
        let Some(convolution) = conv_int8_matcher::match_convolution(site.func, &uses.1, site.root)
        else {
            return Ok(Err(
                "the operands of the convolution must be tensors of 8-bit integers with known sizes".into()
            ));
        };
        if !convolution.channels_last {
            return Ok(Err(
                "the int8 convolution kernel requires that the channels are the last dim".into(),
            ));
        }
        let (result, columns) = (convolution.result, convolution.filters);
        let sums = IntegerSums { result, columns, rows: None };
        let epilogue = site
            .dataflow
            .then(|| match_epilogue(site.func, uses, &sums, site.replaced_vars))
            .flatten();
        let matched = ConvolutionWithEpilogue { convolution, epilogue };
        let weights = pack_int8_weights::pack_weights(&matched.convolution).map_err(|e| {
            PassError::internal(format!("the weights of a convolution cannot be packed: {e}"))
        })?;
        let Some(weights) = weights else {
            return Ok(Err(
                "the largest and the smallest weight of a filter differ by more than 255, so no zero point makes the weights \
                 8-bit integers, which the kernel requires"
                    .into(),
            ));
        };
        let call = conv_int8_kernel_call::kernel_call(site.func, &matched, &weights);
        let removed = matched.epilogue.iter().flat_map(|f| &f.removed).copied().collect();
        Ok(site.call_kernel(call, matched.result(), removed))
    }
}
