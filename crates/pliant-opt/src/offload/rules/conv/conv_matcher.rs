//! Recognizes convolutions that the kernel `conv` supports, and their epilogues. Decides whether a convolution uses Winograd's
//! algorithm, for which the compiler transforms the filters. The kernel chooses among its other implementations at run time
//! (`pliant-kernels/src/algorithm_selection/convolution.rs`).
//!
//! `extend_epilogue` attaches the operators that follow a convolution in its dataflow block, one after the other:
//! - a bias: an added tensor with one element for each channel, if there is no bias, residual or activation yet;
//! - a residual: any other added tensor that has the type of the result, if there is no residual or activation yet, the layout is
//!   channels last, and the convolution is not transposed. So the sum of two convolutions becomes the residual of one of them;
//! - an activation. `match_activation` (`offload/composed_activations.rs`) recognizes SiLU, hard swish, leaky ReLU and others,
//!   which may consist of several operators. `Activation::compose` (`offload/epilogue_activations.rs`) recognizes ReLU and
//!   clipping.
//!
//! Nothing else may read the result to which an operator is applied, the operator must not change the type of the result, and no
//! call with side effects may lie between the convolution and the operator.

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_machine::Machine;
use pliant_pass::pattern::Defs;
use pliant_tensor::{Tensor, Winograd, may_share_panels};
use rustc_hash::FxHashSet;

use super::pack_non_constant_weights::NonConstantWeights;
use super::transposed_conv_phases;
use crate::common::matmul_and_conv_operands::CONVOLUTIONS;
use crate::offload::composed_activations::match_activation;
use crate::offload::epilogue_activations::{Activation, Readers, op_call, scalar_constant};
use crate::offload::offload_rule::KeepReason;

const ADD: Op = Op::new("relax.add");

/// The constant or non-constant weights of a convolution.
#[derive(Clone, Debug)]
pub(super) enum Weights {
    /// Constant weights, which are packed at compile time.
    Constant(Tensor),
    /// Non-constant weights, which are packed at run time.
    NonConstant(NonConstantWeights),
}

impl Weights {
    /// Interprets an operand as weights: a constant, or a tensor of constant sizes. `None` for other operands. `transposed`
    /// states whether the convolution is transposed.
    fn of(func: &Function, e: Expr, transposed: bool) -> Option<Weights> {
        if func.ty(e).dtype() != Some(DType::Float32) {
            return None;
        }
        if let Some(tensor) = constant_tensor(func, e) {
            return Some(Weights::Constant(tensor.clone()));
        }
        let shape = func.ty(e).dims()?.iter().map(|&d| func.syms.as_int(d));
        let shape: Vec<i64> = shape.collect::<Option<_>>()?;
        // The number of packed elements must not overflow. A panel with one filter has as many elements as one with 16.
        shape.iter().try_fold(128i64, |count, &d| count.checked_mul(d.max(1)))?;
        let taps = vec![(0, 1); shape.len().saturating_sub(2)];
        Some(Weights::NonConstant(NonConstantWeights { weights: e, shape, taps, transposed }))
    }

    fn shape(&self) -> &[i64] {
        match self {
            Weights::Constant(tensor) => tensor.shape(),
            Weights::NonConstant(weights) => &weights.shape,
        }
    }
}

/// The per-channel bias of a convolution.
#[derive(Clone, Debug)]
pub(super) enum Bias {
    /// A bias that is a constant.
    Constant(Tensor),
    /// A bias that is a non-constant tensor.
    NonConstant(Expr),
}

/// A recognized convolution with its epilogue.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    /// The number of spatial dims of the convolution.
    pub dims: usize,
    pub x: Expr,
    pub weights: Weights,
    /// The layout of the weights, such as `OIHW`.
    pub weight_layout: String,
    pub groups: i64,
    /// The number of channels of the input.
    pub channels: i64,
    /// The number of filters of all groups: the number of channels of the result.
    pub filters: i64,
    /// The size of the filters in each spatial dim.
    pub filter_size: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilation: Vec<i64>,
    /// The padding before and after each spatial dim. For a transposed convolution, the number of results that are cropped.
    pub pads: Vec<(i64, i64)>,
    /// The output padding of a transposed convolution; `None` for an ordinary convolution.
    pub transposed: Option<Vec<i64>>,
    /// Whether the input and the results have the channels-last layout.
    pub channels_last: bool,
    /// The per-channel bias; `None` if there is none.
    pub bias: Option<Bias>,
    /// The residual tensor that is added to the results; `None` if there is none.
    pub residual: Option<Expr>,
    pub activation: Activation,
    /// The size of the output tile of Winograd's algorithm that the setting `winograd` selects.
    /// [`active_winograd`](Self::active_winograd) decides whether the algorithm is used.
    pub winograd: Option<Winograd>,
    /// The variable of the epilogue's result.
    pub result: Var,
    /// The variables of the convolution and of operators of its epilogue, except for the result. Nothing reads them after the
    /// replacement.
    pub removed: Vec<Var>,
}

impl Convolution {
    /// Whether this is a depthwise convolution, in which each channel has its own filter.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }

    /// Whether panels (blocks of adjacent filters in the packed weights) contain filters of several groups. This requires few
    /// filters per group and the channels-last layout.
    pub fn shares_panels(&self) -> bool {
        let [groups, channels, filters] =
            [self.groups, self.channels / self.groups, self.filters / self.groups]
                .map(|n| n as usize);
        self.channels_last && may_share_panels(groups, channels, filters)
    }

    /// Whether sizes and attributes are in range: the number of groups divides the numbers of filters and channels, and all are at
    /// least 1.
    fn has_valid_numbers(&self) -> bool {
        let (groups, filters, channels) = (self.groups, self.filters, self.channels);
        let some = groups > 0 && filters > 0 && channels > 0;
        let mut numbers = self.filter_size.iter().chain(&self.strides).chain(&self.dilation);
        some && filters % groups == 0 && channels % groups == 0 && numbers.all(|&n| n > 0)
    }

    /// Returns the convolution if the kernel supports it and is faster than generated loops. The error is the reason why no kernel
    /// call replaces the convolution.
    fn if_profitable(self) -> Result<Convolution, KeepReason> {
        // Sums over groups of few channels are short. The other kernel paths for such groups require that channels come last.
        if !self.channels_last && self.groups > 1 && self.channels / self.groups < 4 {
            return Err(
                "the convolution has fewer than 4 channels per group, for which the kernel is faster than generated loops only if \
                 the channels are the last dim"
                    .into(),
            );
        }
        match transposed_conv_phases::check_supported(&self) {
            Ok(()) => Ok(self),
            Err(reason) => Err(KeepReason::Because(reason.into())),
        }
    }

    /// Returns the output tile of Winograd's algorithm if the convolution uses this algorithm: for 3 x 3 filters with strides of
    /// 1 in channels-last layout, if it is faster. `None` otherwise.
    pub fn active_winograd(&self) -> Option<Winograd> {
        let ones = self.strides == [1, 1] && self.dilation == [1, 1] && self.groups == 1;
        let is_profitable = ones
            && self.transposed.is_none()
            && self.channels_last
            && self.filter_size == [3, 3]
            && Machine::host().winograd_is_faster(self.channels, self.filters);
        self.winograd.filter(|_| is_profitable)
    }
}

fn constant_tensor(func: &Function, e: Expr) -> Option<&Tensor> {
    match func.expr(e) {
        ExprData::Constant(c) => Some(func.const_tensor(*c)),
        _ => None,
    }
}

/// Recognizes a convolution that the kernel supports.
///
/// # Errors
/// The reason why the kernel does not support the convolution.
pub(super) fn convolution(
    func: &Function,
    binding: Binding,
    winograd: Option<Winograd>,
) -> Result<Convolution, KeepReason> {
    let (op, args, attrs) = op_call(func, binding.value).ok_or(KeepReason::NotApplicable)?;
    let op_index = CONVOLUTIONS.iter().position(|&o| o == op).ok_or(KeepReason::NotApplicable)?;
    let (dims, transposed) = (op_index % 3 + 1, op_index >= 3);
    let float = |e: Expr| func.ty(e).dtype() == Some(DType::Float32);
    if func.ty(binding.value).dtype() == Some(DType::Int32) {
        return Err(KeepReason::NotApplicable);
    }
    if ![args[0], args[1], binding.value].into_iter().all(float) {
        return Err("the operands and the result of the convolution must be float32".into());
    }
    let x = args[0];
    let weights = Weights::of(func, args[1], transposed)
        .ok_or("the sizes of the convolution's weights are not constants")?;
    let channels_last = data_layout(attrs, dims)
        .ok_or("the convolution's layout is neither channels first nor channels last")?;
    let layout = attrs.get("kernel_layout").and_then(AttrValue::as_str);
    let weight_layout = layout.ok_or("the convolution's kernel layout is unknown")?.to_string();
    let letters = &"DHW"[3 - dims..];
    let size = |letter: char| weights.shape().get(weight_layout.find(letter)?).copied();
    let mut required = letters.chars().chain(['I', 'O']);
    let layout_rank = weight_layout.len().max(weights.shape().len());
    if layout_rank != dims + 2 || !required.all(|letter| size(letter).is_some()) {
        return Err("the attribute 'kernel_layout' must name all dims of the weights".into());
    }
    let invalid = "the convolution's sizes or attributes are out of range";
    let filter_size: Vec<i64> = letters.chars().map(size).collect::<Option<_>>().ok_or(invalid)?;
    let groups = attrs.get("groups").and_then(AttrValue::as_int).unwrap_or(1);
    // The weights of an ordinary convolution have all filters and the channels of one group. The weights of a transposed
    // convolution have the filters of one group and all channels.
    let (filters, channels) = if transposed {
        (size('O').and_then(|n| n.checked_mul(groups)), size('I'))
    } else {
        (size('O'), size('I').and_then(|n| n.checked_mul(groups)))
    };
    let (filters, channels) = filters.zip(channels).ok_or(invalid)?;
    let shape = func.ty(x).dims().ok_or("the rank of the convolution's input is unknown")?;
    let input_channels = if channels_last { shape.last() } else { shape.get(1) };
    // Transforming non-constant filters in each run takes longer than it saves.
    let winograd = winograd.filter(|_| matches!(weights, Weights::Constant(_)));
    let c = Convolution {
        dims,
        x,
        weights,
        weight_layout,
        groups,
        channels,
        filters,
        filter_size,
        strides: per_dim_attr(attrs, "strides", dims, 1).ok_or(invalid)?,
        dilation: per_dim_attr(attrs, "dilation", dims, 1).ok_or(invalid)?,
        pads: padding_attr(attrs, dims).ok_or("the convolution's padding is negative")?,
        transposed: match transposed {
            true => Some(per_dim_attr(attrs, "output_padding", dims, 0).ok_or(invalid)?),
            false => None,
        },
        channels_last,
        bias: None,
        residual: None,
        activation: Activation::None,
        winograd,
        result: binding.var,
        removed: Vec::new(),
    };
    let input_channels = input_channels.and_then(|&d| func.syms.as_int(d));
    if shape.len() != dims + 2 || input_channels != Some(channels) {
        let reason =
            "the channels of the convolution's input are not known to be those of its weights";
        return Err(reason.into());
    }
    match c.has_valid_numbers() {
        true => c.if_profitable(),
        false => Err(invalid.into()),
    }
}

/// Returns whether the layout attributes of a convolution state channels last (such as `NHWC`) instead of channels first (`NCHW`).
/// `None` for other layouts, and if the layouts of input and results differ.
pub(crate) fn data_layout(attrs: &Attrs, dims: usize) -> Option<bool> {
    let letters = &"DHW"[3 - dims..];
    let layout = attrs.get("data_layout")?.as_str()?;
    let same = match attrs.get("out_layout") {
        Some(v) if !v.is_none() => v.as_str() == Some(layout) || v.as_str() == Some(""),
        _ => true,
    };
    let (first, channels_last) = (format!("NC{letters}"), format!("N{letters}C"));
    match layout {
        _ if !same => None,
        _ if layout == first => Some(false),
        _ if layout == channels_last => Some(true),
        _ => None,
    }
}

/// Returns the numbers of an attribute for all spatial dims. The attribute has one number for each dim or one number for all
/// dims; `default` is used if it is absent.
pub(crate) fn per_dim_attr(
    attrs: &Attrs,
    name: &str,
    dims: usize,
    default: i64,
) -> Option<Vec<i64>> {
    let Some(value) = attrs.get(name) else { return Some(vec![default; dims]) };
    let list = value.as_int().map(|v| vec![v]).or_else(|| value.as_ints())?;
    match list.len() {
        1 => Some(vec![list[0]; dims]),
        n if n == dims => Some(list),
        _ => None,
    }
}

/// Returns the padding (before, after) of each spatial dim. `None` if it is negative or has a wrong number of entries.
pub(crate) fn padding_attr(attrs: &Attrs, dims: usize) -> Option<Vec<(i64, i64)>> {
    let Some(value) = attrs.get("padding") else { return Some(vec![(0, 0); dims]) };
    let list = value.as_int().map(|v| vec![v]).or_else(|| value.as_ints())?;
    let pads: Vec<(i64, i64)> = match list.len() {
        1 => vec![(list[0], list[0]); dims],
        n if n == dims => list.iter().map(|&p| (p, p)).collect(),
        n if n == 2 * dims => (0..dims).map(|k| (list[k], list[dims + k])).collect(),
        _ => return None,
    };
    pads.iter().all(|p| p.0 >= 0 && p.1 >= 0).then_some(pads)
}

/// Extends the epilogue of a convolution by the operators that follow it. Returns whether the epilogue was extended. The kernel
/// call replaces the last of these operators, so no call between the convolution and this operator may write to the operands of
/// the convolution.
pub(super) fn extend_epilogue(
    func: &Function,
    (readers, defs): &(Readers, Defs),
    c: &mut Convolution,
    replaced_vars: &FxHashSet<Var>,
) -> bool {
    if c.activation == Activation::None
        && let Some(matched) = match_activation(func, readers, c.result)
    {
        let all = || matched.intermediates.iter().chain([&matched.result]);
        let epoch = defs.epoch(c.result);
        if all().all(|&v| !replaced_vars.contains(&v) && defs.epoch(v) == epoch) {
            c.activation = matched.activation;
            c.removed.push(c.result);
            c.removed.extend(matched.intermediates);
            c.result = matched.result;
            return true;
        }
    }
    let Some(next) = readers.only_reader(func, c.result) else { return false };
    if replaced_vars.contains(&next.var) || defs.epoch(next.var) != defs.epoch(c.result) {
        return false;
    }
    let Some((op, args, _)) = op_call(func, next.value) else { return false };
    if func.expr_ty(next.value) != func.var(c.result).ty {
        return false;
    }
    let is_result = |e: Expr| matches!(func.expr(e), ExprData::Var(v) if *v == c.result);
    let other = match args {
        [a] if is_result(*a) => None,
        [a, b] if is_result(*a) => Some(*b),
        [a, b] if is_result(*b) => Some(*a),
        _ => return false,
    };
    let number = other.map(|e| scalar_constant(func, e));
    if let Some(activation) = c.activation.compose(op, number) {
        c.activation = activation;
        c.removed.push(c.result);
        c.result = next.var;
        return true;
    }
    match (op, other) {
        (ADD, Some(e)) if c.activation == Activation::None => {
            let bias = per_channel_bias(func, e, c);
            match bias {
                Some(bias) if c.bias.is_none() && c.residual.is_none() => c.bias = Some(bias),
                Some(_) => return false,
                None if c.channels_last
                    && c.transposed.is_none()
                    && c.residual.is_none()
                    && func.expr_ty(e) == func.expr_ty(next.value) =>
                {
                    c.residual = Some(e);
                }
                None => return false,
            }
        }
        _ => return false,
    }
    c.removed.push(c.result);
    c.result = next.var;
    true
}

/// Interprets operand `e` as the bias of a convolution. `None` unless it has one element for each channel.
fn per_channel_bias(func: &Function, e: Expr, c: &Convolution) -> Option<Bias> {
    let rank = c.dims + 2;
    let channel = if c.channels_last { rank - 1 } else { 1 };
    let ty = func.ty(e);
    let shape: Vec<i64> = ty.dims()?.iter().map(|&d| func.syms.as_int(d)).collect::<Option<_>>()?;
    if ty.dtype() != Some(DType::Float32) || shape.len() > rank {
        return None;
    }
    let missing = rank - shape.len();
    let fits = shape.iter().enumerate().all(|(k, &d)| {
        let is_channel = k + missing == channel;
        if is_channel { d == c.filters } else { d == 1 }
    });
    if !fits || channel < missing {
        return None;
    }
    match constant_tensor(func, e) {
        Some(t) => {
            let flat = Tensor::from_slice(&[c.filters], &t.to_vec::<f32>().ok()?).ok()?;
            Some(Bias::Constant(flat))
        }
        None => Some(Bias::NonConstant(e)),
    }
}
