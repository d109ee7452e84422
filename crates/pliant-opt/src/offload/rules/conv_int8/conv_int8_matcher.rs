//! Recognizes int32 convolutions of cast 8-bit integers with constant weights.

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, DType};
use pliant_pass::pattern::Defs;
use pliant_tensor::Tensor;

use super::pack_int8_weights::filters_fit_8_bits;
use crate::common::matmul_and_conv_operands::{CONVOLUTIONS, call_operands};
use crate::offload::dequantized::{has_one_element, to_i32_integers};
use crate::offload::int8_epilogue::{CAST, IntegerEpilogue, SUBTRACT};
use crate::offload::rules::conv::conv_matcher::{data_layout, padding_attr, per_dim_attr};

/// An int32 convolution of 8-bit integers with constant weights.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    /// The number of spatial dims of the convolution.
    pub dims: usize,
    /// The int8 or uint8 input.
    pub x: Expr,
    /// The int32 per-tensor zero point of the input.
    pub zero: Option<Expr>,
    pub weights: Tensor,
    /// The axes of the weights tensor in this order: filters, channels of a group, spatial dims.
    pub weight_axes: Vec<usize>,
    pub groups: i64,
    pub channels: i64,
    pub filters: i64,
    /// The size of the filters in each spatial dim.
    pub filter_size: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilation: Vec<i64>,
    /// The padding before and after each spatial dim.
    pub pads: Vec<(i64, i64)>,
    /// Whether the input and the results have the channels-last layout.
    pub channels_last: bool,
    /// The variable that is bound to the int32 results.
    pub result: Var,
}

/// An int32 convolution, and the epilogue that the kernel applies to its results.
#[derive(Clone, Debug)]
pub(super) struct ConvolutionWithEpilogue {
    pub convolution: Convolution,
    pub epilogue: Option<IntegerEpilogue>,
}

impl ConvolutionWithEpilogue {
    /// The variable of the epilogue's result.
    pub fn result(&self) -> Var {
        self.epilogue.as_ref().map_or(self.convolution.result, |f| f.result)
    }
}

fn is_byte(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::Int8 | DType::UInt8))
}

/// Whether a value is an int32 convolution with constant weights.
pub(crate) fn is_candidate(func: &Function, value: Expr) -> bool {
    let args = CONVOLUTIONS[..3].iter().find_map(|&op| call_operands(func, value, op));
    func.ty(value).dtype() == Some(DType::Int32)
        && args.is_some_and(|(args, _)| matches!(func.expr(args[1]), ExprData::Constant(_)))
}

/// Recognizes an int32 convolution. The kernel reads the 8-bit input itself instead of its cast, at the position of the
/// convolution. Therefore no call between the cast and the convolution may write to the input.
pub(crate) fn match_convolution(
    func: &Function,
    defs: &Defs,
    binding: Binding,
) -> Option<Convolution> {
    if !is_candidate(func, binding.value) {
        return None;
    }
    let candidates = CONVOLUTIONS[..3].iter().enumerate();
    let (dims, (args, attrs)) = candidates
        .filter_map(|(d, &op)| Some((d + 1, call_operands(func, binding.value, op)?)))
        .next()?;
    let ExprData::Constant(weights) = func.expr(args[1]) else { return None };
    let weights = func.const_tensor(*weights);
    let (x, zero) = dequantized_input(func, defs, args[0], binding.var)?;
    let channels_last = data_layout(attrs, dims)?;
    let layout = attrs.get("kernel_layout")?.as_str()?;
    let letters = std::iter::once('O').chain(['I']).chain("DHW"[3 - dims..].chars());
    let weight_axes: Vec<usize> =
        letters.map(|letter| layout.find(letter)).collect::<Option<_>>()?;
    if layout.len() != dims + 2 || weights.ndim() != dims + 2 {
        return None;
    }
    let size = |index: usize| weights.shape()[weight_axes[index]];
    let groups = attrs.get("groups").and_then(AttrValue::as_int).unwrap_or(1);
    let shape = func.ty(x).dims()?;
    let input_channels = if channels_last { shape.last() } else { shape.get(1) };
    let c = Convolution {
        dims,
        x,
        zero,
        groups,
        channels: size(1).checked_mul(groups)?,
        filters: size(0),
        filter_size: (2..dims + 2).map(size).collect(),
        strides: per_dim_attr(attrs, "strides", dims, 1)?,
        dilation: per_dim_attr(attrs, "dilation", dims, 1)?,
        pads: padding_attr(attrs, dims)?,
        channels_last,
        result: binding.var,
        weights: weights.clone(),
        weight_axes,
    };
    let has_known_channels =
        shape.len() == dims + 2 && func.syms.as_int(*input_channels?) == Some(c.channels);
    let is_valid = groups > 0 && c.filters > 0 && c.channels > 0 && c.filters % groups == 0;
    let is_valid =
        is_valid && c.filter_size.iter().chain(&c.strides).chain(&c.dilation).all(|&k| k > 0);
    let is_unpadded = c.pads.iter().all(|&p| p == (0, 0));
    let padding_fits =
        is_unpadded || zero.is_none_or(|z| zero_point_fits(func, defs, (z, x), binding.var));
    (has_known_channels && is_valid && padding_fits && filters_fit_8_bits(&c)).then_some(c)
}

/// If an int32 input is a cast of an 8-bit tensor, optionally minus a zero point, returns (8-bit tensor, zero point).
fn dequantized_input(
    func: &Function,
    defs: &Defs,
    e: Expr,
    var: Var,
) -> Option<(Expr, Option<Expr>)> {
    let value = |e: Expr| defs.value_in_epoch(func, e, var);
    let (mut x, mut zero) = (e, None);
    if let Some((&[left, right], _)) = call_operands(func, value(x), SUBTRACT)
        && func.ty(right).dtype() == Some(DType::Int32)
        && has_one_element(func, right)
        && func.ty(left).dims() == func.ty(x).dims()
    {
        (x, zero) = (left, Some(right));
    }
    if func.ty(x).dtype() == Some(DType::Int32) {
        x = call_operands(func, value(x), CAST)?.0[0];
    }
    is_byte(func.ty(x).dtype()).then_some((x, zero))
}

/// Whether a zero point is known to be in the range of the input's 8-bit type.
fn zero_point_fits(func: &Function, defs: &Defs, (zero, x): (Expr, Expr), var: Var) -> bool {
    let range = match func.ty(x).dtype() {
        Some(DType::Int8) => -128..=127,
        _ => 0..=255,
    };
    let value = defs.value_in_epoch(func, zero, var);
    if let ExprData::Constant(c) = func.expr(value) {
        let numbers = to_i32_integers(func.const_tensor(*c)).ok().flatten();
        return numbers.is_some_and(|all| all.iter().all(|n| range.contains(n)));
    }
    call_operands(func, value, CAST)
        .is_some_and(|(args, _)| func.ty(args[0]).dtype() == func.ty(x).dtype())
}
