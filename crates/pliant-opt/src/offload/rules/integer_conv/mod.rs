//! # What it does
//! Rewrites a float32 convolution of a dequantized input with dequantized constant weights to an int8 convolution, whose results
//! are multiplied by both scales. The scale and zero point of the input are per tensor, those of the weights per filter. The rule
//! `conv_int8` replaces the rewritten convolution by one kernel call. Quantized ONNX models in QDQ form (`DequantizeLinear`, float
//! operator, `QuantizeLinear`) contain such convolutions.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 1, 2, 2), "uint8")) -> R.Tensor(("n", 2, 2, 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.dequantize(x, R.const(0.5, "float32"), R.const(2, "uint8"))
//!         lv1 = R.dequantize(R.const([[[[1]]], [[[-2]]]], "int8"), R.const([0.25, 2.0], "float32"), R.const([0, 0], "int8"), axis=0)
//!         gv = R.nn.conv2d(lv, lv1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 1, 2, 2), "uint8")) -> R.Tensor(("n", 2, 2, 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.dequantize(x, R.const(0.5, "float32"), R.const(2, "uint8"))
//!         lv1 = R.dequantize(R.const([[[[1]]], [[[-2]]]], "int8"), R.const([0.25, 2.0], "float32"), R.const([0, 0], "int8"), axis=0)
//!         lv2: R.Tensor((n, 1, 2, 2), "int32") = R.astype(x, dtype="int32")
//!         lv3: R.Tensor((n, 1, 2, 2), "int32") = R.subtract(lv2, R.const(2, "int32"))
//!         lv4: R.Tensor((n, 2, 2, 2), "int32") = R.nn.conv2d(lv3, R.const([[[[1]]], [[[-2]]]], "int32"), out_dtype="int32")
//!         lv5: R.Tensor((n, 2, 2, 2), "float32") = R.astype(lv4, dtype="float32")
//!         lv6: R.Tensor((n, 2, 2, 2), "float32") = R.multiply(lv5, R.const(0.5, "float32"))
//!         gv: R.Tensor((n, 2, 2, 2), "float32") = R.multiply(lv6, R.const([[[[0.25]], [[2.0]]]], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Weights that are not folded yet: the rule must run before [`FoldConstant`](crate::canonicalize::fold_constant).
//!
//! # Keeps
//! - Convolutions of other types, and convolutions whose sums may overflow 32 bits.
//! - Convolutions whose weights have a scale or zero point that varies within a filter, a zero point that is not integral, or a
//!   filter that spans more than 8 bits.
//! - Transposed convolutions, and grouped convolutions other than those with one filter for each channel.
//! - All convolutions if kernels are disabled.
//!
//! # Never
//! Guarantees bit-identical results: the rewritten integer sums are exact, while the original float32 sums are rounded. The
//! limits on scales are those of the rule `integer_matmul`.

mod dequantized_filters;

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_pass::PassError;
use pliant_pass::pattern::RewriteCx;
use pliant_tensor::{Tensor, TensorError};

use super::conv::conv_matcher::data_layout;
use super::integer_matmul::dequantized_left_operand::{QuantizedLeft, ZeroPoint};
use super::integer_matmul::{
    MULTIPLY, NO_EXACT_SUMS, cast, may_dequantize, subtract_zero_point, to_pass_error,
};
use crate::common::matmul_and_conv_operands::{CONVOLUTIONS, call_operands};
use crate::offload::dequantized::{OperandMatcher, has_one_element, to_i32_integers};
use crate::offload::offload_rule::{Decision, KeepReason, Offloaded, Rule, RuleInfo, Site, Stage};
use dequantized_filters::IntegerFilters;

/// The entry of the rule `integer_conv` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::rewriting(
        "integer_conv",
        "float32 convolutions of dequantized inputs and weights, as int8 convolutions",
        Stage::Dequantized,
        CONVOLUTIONS
            .first_chunk::<3>()
            .expect("the list starts with the three operators of ordinary convolutions"),
        |_| Ok(Box::new(IntegerConv::default())),
    )
}

#[derive(Default)]
struct IntegerConv {
    /// Whether the function may contain dequantized operands.
    may_dequantize: bool,
}

impl Rule for IntegerConv {
    fn begin(&mut self, func: &Function) {
        self.may_dequantize = may_dequantize(func);
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        if !self.may_dequantize {
            return Ok(Err(KeepReason::NotApplicable));
        }
        let (root, defs) = (site.root, &site.uses().1);
        let matcher = OperandMatcher { func: site.func, defs, root_var: root.var };
        let convolution =
            match QuantizedConvolution::of(&matcher, root.value).map_err(to_pass_error)? {
                Ok(convolution) => convolution,
                Err(reason) => return Ok(Err(reason)),
            };
        let mut cx = RewriteCx::new(site.func, site.ctx.ops, defs, root.var, site.namer);
        let value = convolution.emit(&mut cx)?;
        site.bindings = cx.into_bindings();
        Ok(Ok(Offloaded { result: root.var, removed: Vec::new(), value }))
    }
}

/// A convolution of a dequantized input with dequantized constant weights.
struct QuantizedConvolution {
    op: Op,
    attrs: Attrs,
    x: QuantizedLeft,
    filters: IntegerFilters,
    /// The index of the channel dim of the results.
    channel_dim: usize,
}

impl QuantizedConvolution {
    /// Recognizes a convolution of dequantized operands that the kernel supports and whose integer sums are known to fit 32 bits.
    /// Otherwise, returns the reason why the convolution is not rewritten to integers.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    fn of(
        matcher: &OperandMatcher<'_>,
        value: Expr,
    ) -> Result<Result<QuantizedConvolution, KeepReason>, TensorError> {
        let func = matcher.func;
        let candidates = CONVOLUTIONS[..3].iter().enumerate();
        let mut candidates =
            candidates.filter_map(|(d, &op)| Some((d + 1, op, call_operands(func, value, op)?)));
        let Some((dims, op, (args, attrs))) = candidates.next() else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let float = func.ty(value).dtype() == Some(DType::Float32);
        let layout = attrs.get("kernel_layout").and_then(AttrValue::as_str);
        let filter_dim = layout.and_then(|layout| layout.find('O'));
        let channel_dim_of_weights = layout.and_then(|layout| layout.find('I'));
        let (Some(channels_last), Some(filter_dim), Some(channel_dim_of_weights), true) =
            (data_layout(attrs, dims), filter_dim, channel_dim_of_weights, float)
        else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let Some(x) = QuantizedLeft::of(matcher, args[0]) else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        if !has_one_element(func, x.scale) || !zero_point_fits_input(matcher, &x) {
            let reason =
                "the convolution's input has several scales, or a zero point outside of its type";
            return Ok(Err(reason.into()));
        }
        let sizes = matcher.constant_sizes(args[1]).filter(|s| s.len() == dims + 2);
        let Some(sizes) = sizes else { return Ok(Err(KeepReason::NotApplicable)) };
        let groups = attrs.get("groups").and_then(AttrValue::as_int).unwrap_or(1);
        let is_depthwise =
            sizes[channel_dim_of_weights] == 1 && i64::try_from(sizes[filter_dim]) == Ok(groups);
        if groups != 1 && !is_depthwise {
            return Ok(Err(
                "integer convolution kernels support several groups only if each group has one channel and one filter".into(),
            ));
        }
        let filters = IntegerFilters::of(matcher, args[1], filter_dim, x.max_magnitude)?;
        let channel_dim = if channels_last { dims + 1 } else { 1 };
        Ok(filters
            .map(|filters| QuantizedConvolution {
                op,
                attrs: attrs.clone(),
                x,
                filters,
                channel_dim,
            })
            .ok_or_else(|| NO_EXACT_SUMS.into()))
    }

    /// Emits the int8 convolution, and the multiplication of its results by both scales.
    ///
    /// # Errors
    /// If an operator rejects the types of its operands.
    fn emit(&self, cx: &mut RewriteCx<'_>) -> Result<Expr, PassError> {
        let x = subtract_zero_point(cx, &self.x)?;
        let weights = cx.func.constant(self.filters.integers.clone());
        let mut attrs = self.attrs.clone();
        attrs.set("out_dtype", AttrValue::DType(DType::Int32));
        let sum = cx.call(self.op, &[x, weights], attrs)?;
        let sum = cast(cx, sum, DType::Float32)?;
        let scaled = cx.call(MULTIPLY, &[sum, self.x.scale], Attrs::default())?;
        let scales = &self.filters.scales;
        let mut shape = vec![1; self.filters.integers.ndim()];
        shape[self.channel_dim] = scales.len() as i64;
        let scales = Tensor::from_slice(&shape, scales).map_err(|e| {
            PassError::internal(format!("the scales of the filters of a quantized convolution cannot be stored as a constant: {e}"))
        })?;
        let scales = cx.func.constant(scales);
        cx.call(MULTIPLY, &[scaled, scales], Attrs::default())
    }
}

/// Whether the zero point has one element that is known to be in the range of the input's 8-bit type. Padding elements have the
/// value of the zero point.
fn zero_point_fits_input(matcher: &OperandMatcher<'_>, x: &QuantizedLeft) -> bool {
    let dtype = matcher.func.ty(x.x).dtype();
    match &x.zero {
        None => true,
        Some(ZeroPoint::NonConstant(e)) => {
            has_one_element(matcher.func, *e) && matcher.func.ty(*e).dtype() == dtype
        }
        Some(ZeroPoint::Constant(tensor)) => {
            let range = if dtype == Some(DType::Int8) { -128..=127 } else { 0..=255 };
            let zero_points = to_i32_integers(tensor).ok().flatten();
            zero_points.is_some_and(|all| matches!(all[..], [one] if range.contains(&one)))
        }
    }
}
