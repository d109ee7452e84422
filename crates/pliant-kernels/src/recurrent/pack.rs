//! Weights and biases of LSTM layers in the order of the panels: for each 16 units their four gates side by side.

use super::{GATES, UNITS, WIDTH};

/// The panels of `weights[4 * hidden, k]`, whose rows are the gates one after another: `[panels, k, 64]`, zeros for units
/// beyond the last. A bias is packed as weights with `k` of 1. None where the sizes do not belong to the weights.
pub fn pack_gates(weights: &[f32], hidden: usize, k: usize) -> Option<Vec<f32>> {
    let rows = hidden.checked_mul(GATES)?;
    if weights.len() != rows.checked_mul(k)? {
        return None;
    }
    let panel = k.checked_mul(WIDTH)?;
    let mut packed = vec![0f32; hidden.div_ceil(UNITS).checked_mul(panel)?];
    for gate in 0..GATES {
        for unit in 0..hidden {
            let column = gate * UNITS + unit % UNITS;
            let first = unit / UNITS * panel + column;
            let row = &weights[(gate * hidden + unit) * k..][..k];
            for (at, &weight) in row.iter().enumerate() {
                packed[first + at * WIDTH] = weight;
            }
        }
    }
    Some(packed)
}
