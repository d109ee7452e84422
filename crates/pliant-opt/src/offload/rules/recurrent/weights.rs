//! Constant weights in the form that the kernel reads.

use pliant_tensor::gates::{pack_bias, pack_input, pack_state};
use pliant_tensor::{DType, Tensor, TensorError};

use super::matcher::{Layer, Weights};

/// The packed weights of a layer, where they are constants.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    /// Input weights; the panels of one direction after those of the other, likewise below.
    pub w: Option<Tensor>,
    /// Recurrence weights.
    pub r: Option<Tensor>,
    /// Biases; zeros if the layer has none.
    pub bias: Option<Tensor>,
}

/// The weights of one direction after the other.
///
/// # Errors
/// Memory.
pub(super) fn packed(l: &Layer) -> Result<Packed, TensorError> {
    let (hidden, input) = (l.hidden as usize, l.input as usize);
    let w = each(l, Some(&l.w), |w| pack_input(l.cell, w?, hidden, input))?;
    let r = each(l, Some(&l.r), |r| pack_state(l.cell, r?, hidden))?;
    let bias = each(l, l.bias.as_ref(), |b| pack_bias(l.cell, b, hidden))?;
    let flat = |data: Option<Vec<f32>>| {
        data.map(|data| Tensor::from_slice(&[data.len() as i64], &data)).transpose()
    };
    Ok(Packed { w: flat(w)?, r: flat(r)?, bias: flat(bias)? })
}

/// What is packed of each direction; none where a run gives it.
fn each(
    l: &Layer,
    from: Option<&Weights>,
    pack: impl Fn(Option<&[f32]>) -> Option<Vec<f32>>,
) -> Result<Option<Vec<f32>>, TensorError> {
    let data = match from {
        Some(Weights::Given(..)) => return Ok(None),
        Some(Weights::Constant(t)) => Some(t.to_vec::<f32>()?),
        None => None,
    };
    let mut out = Vec::new();
    for d in 0..l.directions as usize {
        let own = data.as_ref().map(|all| {
            let one = all.len() / l.directions as usize;
            &all[d * one..][..one]
        });
        // The sizes were compared when the layer was found.
        out.extend(pack(own).ok_or_else(|| TensorError::SizeOverflow {
            shape: vec![l.directions, l.hidden, l.input],
            dtype: DType::Float32,
        })?);
    }
    Ok(Some(out))
}
