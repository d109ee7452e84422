//! Rewrites convolutions of dequantized inputs with dequantized constant weights.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_pass::PassError;
use pliant_pass::pattern::RewriteCx;
use pliant_tensor::{Tensor, TensorError};

use super::filters::IntegerFilters;
use super::left::{QuantizedLeft, ZeroPoint};
use super::{MULTIPLY, cast, subtract_zero_point};
use crate::common::products::{CONVOLUTIONS, call_operands};
use crate::offload::dequantized::{OperandMatcher, has_one_element, to_i32_integers};
use crate::offload::rules::conv::matcher::data_layout;

/// A convolution of a dequantized input with dequantized constant weights.
pub(super) struct QuantizedConvolution {
    op: Op,
    attrs: Attrs,
    x: QuantizedLeft,
    filters: IntegerFilters,
    /// The channel dim of the results.
    channel_dim: usize,
}

impl QuantizedConvolution {
    /// Matches a convolution whose integer sums are known to fit 32 bits and which the kernel supports.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn of(
        matcher: &OperandMatcher<'_>,
        value: Expr,
    ) -> Result<Option<QuantizedConvolution>, TensorError> {
        let func = matcher.func;
        let candidates = CONVOLUTIONS[..3].iter().enumerate();
        let mut candidates =
            candidates.filter_map(|(d, &op)| Some((d + 1, op, call_operands(func, value, op)?)));
        let Some((dims, op, (args, attrs))) = candidates.next() else { return Ok(None) };
        let float = func.ty(value).dtype() == Some(DType::Float32);
        let layout = attrs.get("kernel_layout").and_then(AttrValue::as_str);
        let filter_dim = layout.and_then(|layout| layout.find('O'));
        let channel_dim_of_weights = layout.and_then(|layout| layout.find('I'));
        let (Some(channels_last), Some(filter_dim), Some(channel_dim_of_weights), true) =
            (data_layout(attrs, dims), filter_dim, channel_dim_of_weights, float)
        else {
            return Ok(None);
        };
        let x = QuantizedLeft::of(matcher, args[0])
            .filter(|x| has_one_element(func, x.scale) && zero_point_fits_input(matcher, x));
        let sizes = matcher.constant_sizes(args[1]).filter(|s| s.len() == dims + 2);
        let (Some(x), Some(sizes)) = (x, sizes) else { return Ok(None) };
        let groups = attrs.get("groups").and_then(AttrValue::as_int).unwrap_or(1);
        let is_depthwise =
            sizes[channel_dim_of_weights] == 1 && i64::try_from(sizes[filter_dim]) == Ok(groups);
        if groups != 1 && !is_depthwise {
            return Ok(None);
        }
        let filters = IntegerFilters::of(matcher, args[1], filter_dim, x.max_magnitude)?;
        let channel_dim = if channels_last { dims + 1 } else { 1 };
        Ok(filters.map(|filters| QuantizedConvolution {
            op,
            attrs: attrs.clone(),
            x,
            filters,
            channel_dim,
        }))
    }

    /// Emits the convolution of the integers, multiplied by both scales.
    ///
    /// # Errors
    /// If an operator rejects the types of its operands.
    pub fn emit(&self, cx: &mut RewriteCx<'_>) -> Result<Expr, PassError> {
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
            PassError::internal(format!("the filter scales cannot become a constant: {e}"))
        })?;
        let scales = cx.func.constant(scales);
        cx.call(MULTIPLY, &[scaled, scales], Attrs::default())
    }
}

/// Whether the zero point has one element that is known to fit the 8-bit type of the input. It becomes the padding.
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
