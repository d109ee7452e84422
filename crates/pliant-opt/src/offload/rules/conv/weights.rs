//! Packs constant weights for the kernel.

use pliant_tensor::{Tensor, TensorError, Winograd, pack_panels, shared_panel_offset};

use super::matcher::Convolution;

/// Packs weights in the form that the convolution needs:
/// - `[taps, channels]` if each channel has its own filter.
/// - Panels of transformed filters for Winograd's algorithm.
/// - Panels of 16 filters of several groups if groups share panels.
/// - Otherwise the panels of `[taps * channels of a group, filters of a group]` for each group, one after the other.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn packed(c: &Convolution, weights: &Tensor) -> Result<Tensor, TensorError> {
    let data = weights.to_vec::<f32>()?;
    let strides = strides(c, weights);
    let taps: i64 = c.kernel.iter().product();
    let own = c.channels / c.groups;
    let at = |filter: i64, channel: i64, tap: i64| {
        let mut rest = tap;
        let mut place = filter * strides[0] + channel * strides[1];
        for (k, &size) in c.kernel.iter().enumerate().rev() {
            place += rest % size * strides[2 + k];
            rest /= size;
        }
        data[place as usize]
    };
    if c.is_depthwise() {
        let all = (0..taps).flat_map(|tap| (0..c.channels).map(move |f| (tap, f)));
        let all: Vec<f32> = all.map(|(tap, filter)| at(filter, 0, tap)).collect();
        return Tensor::from_slice(&[taps, c.channels], &all);
    }
    if let Some(form) = c.turned() {
        return turned(c, form, at);
    }
    let filters = c.filters / c.groups;
    if c.shares_panels() {
        return shared(c, taps, at);
    }
    let (mut all, mut shape) = (Vec::new(), [0; 3]);
    for group in 0..c.groups {
        let mut matrix = Vec::with_capacity((taps * own * filters) as usize);
        for tap in 0..taps {
            for channel in 0..own {
                matrix.extend((0..filters).map(|f| at(group * filters + f, channel, tap)));
            }
        }
        let matrix = Tensor::from_slice(&[taps * own, filters], &matrix)?;
        let panels = pack_panels(&matrix, false)?;
        shape = [panels.shape()[0], panels.shape()[1], panels.shape()[2]];
        all.extend(panels.to_vec::<f32>()?);
    }
    Tensor::from_slice(&[shape[0] * c.groups, shape[1], shape[2]], &all)
}

/// Panels of `[taps * channels of a group, filters]` that groups share.
fn shared(
    c: &Convolution,
    taps: i64,
    at: impl Fn(i64, i64, i64) -> f32,
) -> Result<Tensor, TensorError> {
    let own = c.channels / c.groups;
    let size = ((taps * own) as usize, c.filters as usize);
    let mut all = vec![0f32; size.0 * size.1];
    for row in 0..taps * own {
        for filter in 0..c.filters {
            let place = shared_panel_offset(size, row as usize, filter as usize);
            all[place] = at(filter, row % own, row / own);
        }
    }
    Tensor::from_slice(&[all.len() as i64], &all)
}

/// The panels of `[numbers * channels, filters]` of filters that are transformed for Winograd's algorithm. `at` returns the weight
/// of a filter, a channel and a tap.
fn turned(
    c: &Convolution,
    form: Winograd,
    at: impl Fn(i64, i64, i64) -> f32,
) -> Result<Tensor, TensorError> {
    let count = (c.channels * c.filters) as usize;
    let mut matrix = vec![0f32; form.filter_elements() * count];
    for channel in 0..c.channels {
        for filter in 0..c.filters {
            let kernel = std::array::from_fn(|tap| f64::from(at(filter, channel, tap as i64)));
            let place = (channel * c.filters + filter) as usize;
            for (number, value) in form.transform_filter(&kernel).into_iter().enumerate() {
                matrix[number * count + place] = value as f32;
            }
        }
    }
    let rows = form.filter_elements() as i64 * c.channels;
    pack_panels(&Tensor::from_slice(&[rows, c.filters], &matrix)?, false)
}

/// The strides between filters, between channels, and between the taps of each dim.
fn strides(c: &Convolution, weights: &Tensor) -> Vec<i64> {
    let shape = weights.shape();
    let letters = std::iter::once('O').chain(['I']).chain("DHW"[3 - c.dims..].chars());
    let stride = |letter: char| {
        let at = c.weight_layout.find(letter).unwrap_or(0);
        shape[at + 1..].iter().product()
    };
    letters.map(stride).collect()
}
