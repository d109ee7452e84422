//! Packs constant weights of convolutions for the kernel `conv` at compile time.

use pliant_tensor::{Tensor, TensorError, Winograd, pack_panels, shared_panel_offset};

use super::conv_matcher::Convolution;

/// Packs weights in the format that the kernel needs for a convolution:
/// - `[taps, channels]` for depthwise convolutions, in which each channel has its own filter.
/// - Panels of transformed filters for Winograd's algorithm.
/// - Panels of 16 filters of several groups if groups share panels.
/// - Otherwise, for each group, the panels of `[taps * channels of a group, filters of a group]`.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn pack_weights(c: &Convolution, weights: &Tensor) -> Result<Tensor, TensorError> {
    let data = weights.to_vec::<f32>()?;
    let strides = strides(c, weights);
    let taps: i64 = c.filter_size.iter().product();
    let channels_per_group = c.channels / c.groups;
    let at = |filter: i64, channel: i64, tap: i64| {
        let mut rest = tap;
        let mut offset = filter * strides[0] + channel * strides[1];
        for (k, &size) in c.filter_size.iter().enumerate().rev() {
            offset += rest % size * strides[2 + k];
            rest /= size;
        }
        data[offset as usize]
    };
    if c.is_depthwise() {
        let packed = (0..taps).flat_map(|tap| (0..c.channels).map(move |f| (tap, f)));
        let packed: Vec<f32> = packed.map(|(tap, filter)| at(filter, 0, tap)).collect();
        return Tensor::from_slice(&[taps, c.channels], &packed);
    }
    if let Some(tile) = c.active_winograd() {
        return pack_winograd(c, tile, at);
    }
    let filters = c.filters / c.groups;
    if c.shares_panels() {
        return pack_shared(c, taps, at);
    }
    let (mut packed, mut shape) = (Vec::new(), [0; 3]);
    for group in 0..c.groups {
        let mut matrix = Vec::with_capacity((taps * channels_per_group * filters) as usize);
        for tap in 0..taps {
            for channel in 0..channels_per_group {
                matrix.extend((0..filters).map(|f| at(group * filters + f, channel, tap)));
            }
        }
        let matrix = Tensor::from_slice(&[taps * channels_per_group, filters], &matrix)?;
        let panels = pack_panels(&matrix, false)?;
        shape = [panels.shape()[0], panels.shape()[1], panels.shape()[2]];
        packed.extend(panels.to_vec::<f32>()?);
    }
    Tensor::from_slice(&[shape[0] * c.groups, shape[1], shape[2]], &packed)
}

/// Packs the weights of several groups into panels (blocks of adjacent filters) that contain filters of several groups. The
/// weights are the matrix `[taps * channels of a group, filters]`.
fn pack_shared(
    c: &Convolution,
    taps: i64,
    at: impl Fn(i64, i64, i64) -> f32,
) -> Result<Tensor, TensorError> {
    let channels_per_group = c.channels / c.groups;
    let size = ((taps * channels_per_group) as usize, c.filters as usize);
    let mut packed = vec![0f32; size.0 * size.1];
    for row in 0..taps * channels_per_group {
        for filter in 0..c.filters {
            let offset = shared_panel_offset(size, row as usize, filter as usize);
            packed[offset] = at(filter, row % channels_per_group, row / channels_per_group);
        }
    }
    Tensor::from_slice(&[packed.len() as i64], &packed)
}

/// Transforms filters for Winograd's algorithm, and packs them into panels (blocks of adjacent columns) of the matrix `[points of
/// a tile * channels, filters]`. `at` returns the weight of a filter, a channel and a tap.
fn pack_winograd(
    c: &Convolution,
    tile: Winograd,
    at: impl Fn(i64, i64, i64) -> f32,
) -> Result<Tensor, TensorError> {
    let count = (c.channels * c.filters) as usize;
    let mut matrix = vec![0f32; tile.filter_elements() * count];
    for channel in 0..c.channels {
        for filter in 0..c.filters {
            let filter_taps = std::array::from_fn(|tap| f64::from(at(filter, channel, tap as i64)));
            let offset = (channel * c.filters + filter) as usize;
            for (point, value) in tile.transform_filter(&filter_taps).into_iter().enumerate() {
                matrix[point * count + offset] = value as f32;
            }
        }
    }
    let rows = tile.filter_elements() as i64 * c.channels;
    pack_panels(&Tensor::from_slice(&[rows, c.filters], &matrix)?, false)
}

/// Returns the strides of the weights in elements: between filters, between channels, and between the taps of each spatial dim.
fn strides(c: &Convolution, weights: &Tensor) -> Vec<i64> {
    let shape = weights.shape();
    let letters = std::iter::once('O').chain(['I']).chain("DHW"[3 - c.dims..].chars());
    let stride = |letter: char| {
        let at = c.weight_layout.find(letter).unwrap_or(0);
        shape[at + 1..].iter().product()
    };
    letters.map(stride).collect()
}
