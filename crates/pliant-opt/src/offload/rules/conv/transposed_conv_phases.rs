//! Decomposes transposed convolutions into ordinary convolutions (phases). With a stride of `s`, results at a distance of `s` use
//! the same taps. Each of the `s` phases of a dim is therefore a convolution with a stride of 1, whose filter consists of every
//! `s`-th tap in reverse order. No zeros are inserted between the inputs, and each result is written once.

use pliant_kernel_api::kernels::conv::MAX_ATTR_VALUE;
use pliant_tensor::{Tensor, TensorError};

use super::conv_matcher::{Convolution, Weights};
use super::pack_non_constant_weights::NonConstantWeights;

/// Maximum number of phases of a transposed convolution. Each phase is a kernel call.
const MAX_PHASES: i64 = 64;

/// Maximum number of taps and maximum dilation of a dim. They are limited because each phase stores a list of its taps.
const MAX_FILTER_SIZE: i64 = 1 << 16;

/// The results of a transposed convolution that one kernel call computes.
pub(super) struct Phase {
    /// The ordinary convolution that computes the results of the phase. The number of results is not part of it.
    pub convolution: Convolution,
    /// For each dim, the index of the first result of the phase in the transposed convolution.
    pub first: Vec<i64>,
    /// For each dim, the distance between adjacent results of the phase, in results of the transposed convolution.
    pub step: Vec<i64>,
}

/// One dim of a phase: its taps and its padding.
struct PhaseDim {
    /// The taps of the weights that the phase uses along this dim, as indices, in the order of the inputs that they are multiplied
    /// with.
    taps: Vec<i64>,
    /// The padding before the inputs of the phase along this dim. If negative, the first inputs are cropped.
    before: i64,
}

impl PhaseDim {
    /// Returns (first tap of the weights that the phase reads, distance between its taps).
    fn first_and_step(&self) -> (i64, i64) {
        let first = self.taps.first().copied().unwrap_or(0);
        (first, self.taps.get(1).map_or(0, |next| next - first))
    }
}

/// Checks that the kernel supports all phases of a convolution: each phase has taps, reads the first input and has valid padding,
/// and no dim has both strides and dilation. Other phases could be extended by taps of weight 0, but would then give wrong results
/// for infinite inputs.
///
/// # Errors
/// The reason why the kernel does not support the convolution.
pub(super) fn check_supported(c: &Convolution) -> Result<(), String> {
    if c.transposed.is_none() {
        return Ok(());
    }
    for (what, sizes) in [("filter size", &c.filter_size), ("dilation", &c.dilation)] {
        if let Some(n) = sizes.iter().find(|&&n| n > MAX_FILTER_SIZE) {
            return Err(format!(
                "the {what} of the transposed convolution must be at most {MAX_FILTER_SIZE} in each dim, but is {n} in one"
            ));
        }
    }
    let phases = c.strides.iter().try_fold(1i64, |all, &s| all.checked_mul(s));
    if phases.is_none_or(|count| count > MAX_PHASES) {
        return Err(format!(
            "the product of the strides {:?} of the transposed convolution must be at most {MAX_PHASES}",
            c.strides
        ));
    }
    (0..c.dims).try_for_each(|k| {
        if c.dilation[k] != 1 && c.strides[k] != 1 {
            return Err(format!(
                "the transposed convolution has stride {} and dilation {} in the same dim, but the kernel requires that one of \
                 the two is 1",
                c.strides[k], c.dilation[k]
            ));
        }
        (0..c.strides[k]).try_for_each(|first| check_phase_dim(c, k, first))
    })
}

/// Checks that the kernel supports dim `k` of the phase whose first result has the index `first` in this dim.
fn check_phase_dim(c: &Convolution, k: usize, first: i64) -> Result<(), String> {
    let phase_dim = phase_dim(c, k, first);
    if phase_dim.taps.is_empty() {
        return Err(format!(
            "the transposed convolution has stride {}, which is larger than the filter, of size {}; the kernel does not support \
             results that depend on no input",
            c.strides[k], c.filter_size[k]
        ));
    }
    if phase_dim.before < 0 {
        return Err(format!(
            "the transposed convolution has padding {}, which is too large for its filter, of size {}; the kernel requires that \
             the first inputs contribute to the result",
            c.pads[k].0, c.filter_size[k]
        ));
    }
    if phase_dim.before > MAX_ATTR_VALUE {
        return Err(format!(
            "the filter of the transposed convolution, with its dilation, spans more than {MAX_ATTR_VALUE} inputs, the maximum \
             that the kernel supports"
        ));
    }
    Ok(())
}

/// Computes the phases of a convolution. An ordinary convolution has one phase, itself.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn phases(c: &Convolution) -> Result<Vec<Phase>, TensorError> {
    if c.transposed.is_none() {
        let (first, step) = (vec![0; c.dims], vec![1; c.dims]);
        return Ok(vec![Phase { convolution: c.clone(), first, step }]);
    }
    (0..c.strides.iter().product()).map(|index| phase(c, index)).collect()
}

/// Computes the phase with this index. Phases are numbered in row-major order of the dims.
fn phase(c: &Convolution, index: i64) -> Result<Phase, TensorError> {
    let mut first = vec![0; c.dims];
    let mut rest = index;
    for k in (0..c.dims).rev() {
        first[k] = rest % c.strides[k];
        rest /= c.strides[k];
    }
    let phase_dims: Vec<PhaseDim> = (0..c.dims).map(|k| phase_dim(c, k, first[k])).collect();
    let (weights, weight_layout) = match &c.weights {
        Weights::Constant(tensor) => {
            let phase_weights = Weights::Constant(weights(c, tensor, &phase_dims)?);
            (phase_weights, format!("OI{}", &"DHW"[3 - c.dims..]))
        }
        Weights::NonConstant(weights_operand) => {
            let phase_weights = NonConstantWeights {
                taps: phase_dims.iter().map(PhaseDim::first_and_step).collect(),
                ..weights_operand.clone()
            };
            (Weights::NonConstant(phase_weights), c.weight_layout.clone())
        }
    };
    let convolution = Convolution {
        weights,
        weight_layout,
        filter_size: phase_dims.iter().map(|l| l.taps.len() as i64).collect(),
        strides: vec![1; c.dims],
        pads: phase_dims.iter().map(|l| (l.before, 0)).collect(),
        transposed: None,
        ..c.clone()
    };
    Ok(Phase { convolution, first, step: c.strides.clone() })
}

/// Computes dim `k` of the phase that starts at result `first`. With the stride `s`, result `first + s * m` reads input `m +
/// input_offset - j` with tap `rest + s * j`. Here `input_offset` and `rest` are the quotient and the remainder of `first` plus
/// the number of cropped results, divided by `s`.
fn phase_dim(c: &Convolution, k: usize, first: i64) -> PhaseDim {
    let (size, step, dilation) = (c.filter_size[k], c.strides[k], c.dilation[k]);
    let at = first.saturating_add(c.pads[k].0);
    let (input_offset, rest) = (at / step, at % step);
    let tap_count = (size - rest + step - 1).max(0) / step;
    let taps = (0..tap_count).rev().map(|j| rest + step * j).collect();
    PhaseDim { taps, before: (tap_count - 1) * dilation - input_offset }
}

/// Extracts the weights of a phase. Their dims are the filters of all groups, the channels of a group, and the taps.
fn weights(
    c: &Convolution,
    all_weights: &Tensor,
    phase_dims: &[PhaseDim],
) -> Result<Tensor, TensorError> {
    let data = all_weights.to_vec::<f32>()?;
    let stride = |letter: char| -> i64 {
        let at = c.weight_layout.find(letter).unwrap_or(0);
        all_weights.shape()[at + 1..].iter().product()
    };
    let (filters_per_group, channels_per_group) = (c.filters / c.groups, c.channels / c.groups);
    let (by_filter, by_channel) = (stride('O'), stride('I'));
    let dim_strides: Vec<i64> = "DHW"[3 - c.dims..].chars().map(stride).collect();
    let shape: Vec<i64> = [c.filters, channels_per_group]
        .into_iter()
        .chain(phase_dims.iter().map(|l| l.taps.len() as i64))
        .collect();
    let taps: i64 = shape[2..].iter().product();
    let mut out = Vec::with_capacity((c.filters * channels_per_group * taps) as usize);
    for filter in 0..c.filters {
        for channel in 0..channels_per_group {
            let input_channel = filter / filters_per_group * channels_per_group + channel;
            let start = filter % filters_per_group * by_filter + input_channel * by_channel;
            out.extend((0..taps).map(|tap| {
                let mut rest = tap;
                let position = phase_dims.iter().zip(&dim_strides).rev().fold(
                    start,
                    |at, (phase_dim, stride)| {
                        let count = phase_dim.taps.len();
                        let tap = phase_dim.taps[rest as usize % count];
                        rest /= count as i64;
                        at + tap * stride
                    },
                );
                data[position as usize]
            }));
        }
    }
    Tensor::from_slice(&shape, &out)
}
