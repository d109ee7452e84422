//! Decomposes transposed convolutions into ordinary ones. With a stride of `s`, results at a distance of `s` read the same taps.
//! Each of the `s` phases of a dim is therefore a convolution with a stride of 1, whose filter is every `s`-th tap in reverse
//! order. No zeros are inserted between the inputs, and each result is written once.

use pliant_tensor::{Tensor, TensorError};

use super::matcher::{Convolution, Weights};
use super::non_constant::Given;

/// Maximum number of phases, since each is a kernel call.
const MOST: i64 = 64;

/// Maximum number of taps and maximum dilation of a dim, since each tap of a phase is listed.
const LARGEST: i64 = 1 << 16;

/// The results of a convolution that one kernel call computes.
pub(super) struct Phase {
    /// The ordinary convolution that computes them. The size of its results is not stored.
    pub convolution: Convolution,
    /// The first result, in each dim.
    pub first: Vec<i64>,
    /// The distance between results, in each dim.
    pub step: Vec<i64>,
}

/// One dim of a phase.
struct Line {
    /// For each tap of the phase, in the order of the inputs, the tap of the weights.
    taps: Vec<i64>,
    /// The padding before the inputs; negative if the first input is cropped.
    before: i64,
}

impl Line {
    /// The first tap, and the distance between taps.
    fn even(&self) -> (i64, i64) {
        let first = self.taps.first().copied().unwrap_or(0);
        (first, self.taps.get(1).map_or(0, |next| next - first))
    }
}

/// Whether the kernel supports all phases of a convolution: each phase has taps, reads the first input and has valid padding, and
/// no dim has both strides and dilation. Zero taps would make the other phases possible, but give wrong results for infinite
/// inputs.
pub(super) fn apply(c: &Convolution) -> bool {
    if c.transposed.is_none() {
        return true;
    }
    let small = |sizes: &[i64]| sizes.iter().all(|&n| n <= LARGEST);
    if !small(&c.kernel) || !small(&c.dilation) {
        return false;
    }
    let phases = c.strides.iter().try_fold(1i64, |all, &s| all.checked_mul(s));
    let whole = |line: Line| {
        !line.taps.is_empty() && (0..=pliant_kernel_api::kernels::conv::MOST).contains(&line.before)
    };
    phases.is_some_and(|count| count <= MOST)
        && (0..c.dims).all(|k| {
            let near = c.dilation[k] == 1 || c.strides[k] == 1;
            near && (0..c.strides[k]).all(|first| whole(line(c, k, first)))
        })
}

/// The phases of a convolution. An ordinary convolution is its only phase.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn of(c: &Convolution) -> Result<Vec<Phase>, TensorError> {
    if c.transposed.is_none() {
        let (first, step) = (vec![0; c.dims], vec![1; c.dims]);
        return Ok(vec![Phase { convolution: c.clone(), first, step }]);
    }
    (0..c.strides.iter().product()).map(|index| phase(c, index)).collect()
}

/// Phase `index`, counted in row-major order.
fn phase(c: &Convolution, index: i64) -> Result<Phase, TensorError> {
    let mut first = vec![0; c.dims];
    let mut rest = index;
    for k in (0..c.dims).rev() {
        first[k] = rest % c.strides[k];
        rest /= c.strides[k];
    }
    let lines: Vec<Line> = (0..c.dims).map(|k| line(c, k, first[k])).collect();
    let (weights, weight_layout) = match &c.weights {
        Weights::Constant(tensor) => {
            let own = Weights::Constant(weights(c, tensor, &lines)?);
            (own, format!("OI{}", &"DHW"[3 - c.dims..]))
        }
        Weights::Given(given) => {
            let own = Given { taps: lines.iter().map(Line::even).collect(), ..given.clone() };
            (Weights::Given(own), c.weight_layout.clone())
        }
    };
    let convolution = Convolution {
        weights,
        weight_layout,
        kernel: lines.iter().map(|l| l.taps.len() as i64).collect(),
        strides: vec![1; c.dims],
        pads: lines.iter().map(|l| (l.before, 0)).collect(),
        transposed: None,
        ..c.clone()
    };
    Ok(Phase { convolution, first, step: c.strides.clone() })
}

/// Dim `k` of the phase that starts at result `first`. Result `first + s * m` reads input `m + place - j` with tap `rest + s * j`,
/// where `place` and `rest` are the quotient and the remainder of `first` plus what is cropped, divided by `s`.
fn line(c: &Convolution, k: usize, first: i64) -> Line {
    let (size, step, dilation) = (c.kernel[k], c.strides[k], c.dilation[k]);
    let at = first.saturating_add(c.pads[k].0);
    let (place, rest) = (at / step, at % step);
    let own = (size - rest + step - 1).max(0) / step;
    let taps = (0..own).rev().map(|j| rest + step * j).collect();
    Line { taps, before: (own - 1) * dilation - place }
}

/// The weights of a phase. Filters of all groups come first, then the channels of a group, then taps.
fn weights(c: &Convolution, whole: &Tensor, lines: &[Line]) -> Result<Tensor, TensorError> {
    let data = whole.to_vec::<f32>()?;
    let stride = |letter: char| -> i64 {
        let at = c.weight_layout.find(letter).unwrap_or(0);
        whole.shape()[at + 1..].iter().product()
    };
    let (outs, ins) = (c.filters / c.groups, c.channels / c.groups);
    let (by_filter, by_channel) = (stride('O'), stride('I'));
    let along: Vec<i64> = "DHW"[3 - c.dims..].chars().map(stride).collect();
    let shape: Vec<i64> =
        [c.filters, ins].into_iter().chain(lines.iter().map(|l| l.taps.len() as i64)).collect();
    let taps: i64 = shape[2..].iter().product();
    let mut out = Vec::with_capacity((c.filters * ins * taps) as usize);
    for filter in 0..c.filters {
        for channel in 0..ins {
            let own = filter / outs * ins + channel;
            let start = filter % outs * by_filter + own * by_channel;
            out.extend((0..taps).map(|tap| {
                let mut rest = tap;
                let place = lines.iter().zip(&along).rev().fold(start, |at, (line, stride)| {
                    let count = line.taps.len();
                    let tap = line.taps[rest as usize % count];
                    rest /= count as i64;
                    at + tap * stride
                });
                data[place as usize]
            }));
        }
    }
    Tensor::from_slice(&shape, &out)
}
