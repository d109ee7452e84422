//! Packs constant weights of recurrent layers for the kernel `recurrent` at compile time.

use pliant_tensor::rnn_weight_layout::{pack_bias, pack_input, pack_state};
use pliant_tensor::{DType, Tensor, TensorError};

use super::recurrent_matcher::{Layer, Weights};

/// The packed constant weights of a recurrent layer. Fields are `None` for non-constant weights.
#[derive(Clone, Debug)]
pub(super) struct PackedWeights {
    /// The packed input weights. In the fields `w`, `r` and `bias`, the values of the first direction precede those of the
    /// second.
    pub w: Option<Tensor>,
    /// The packed recurrent weights, which are applied to the previous output.
    pub r: Option<Tensor>,
    /// The packed biases; zeros if the layer has none.
    pub bias: Option<Tensor>,
}

/// Packs the weights of a layer, one direction after the other.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn pack_weights(l: &Layer) -> Result<PackedWeights, TensorError> {
    let (hidden, input) = (l.hidden as usize, l.input as usize);
    let w = pack_directions(l, Some(&l.w), |w| pack_input(l.cell, w?, hidden, input))?;
    let r = pack_directions(l, Some(&l.r), |r| pack_state(l.cell, r?, hidden))?;
    let bias = pack_directions(l, l.bias.as_ref(), |b| pack_bias(l.cell, b, hidden))?;
    let flat = |data: Option<Vec<f32>>| {
        data.map(|data| Tensor::from_slice(&[data.len() as i64], &data)).transpose()
    };
    Ok(PackedWeights { w: flat(w)?, r: flat(r)?, bias: flat(bias)? })
}

/// Packs the weights of each direction with `pack`, and concatenates the results. `pack` receives `None` if the layer has no
/// weights `from`. Returns `None` if the weights are not constant.
fn pack_directions(
    l: &Layer,
    from: Option<&Weights>,
    pack: impl Fn(Option<&[f32]>) -> Option<Vec<f32>>,
) -> Result<Option<Vec<f32>>, TensorError> {
    let data = match from {
        Some(Weights::NonConstant(..)) => return Ok(None),
        Some(Weights::Constant(t)) => Some(t.to_vec::<f32>()?),
        None => None,
    };
    let mut out = Vec::new();
    for d in 0..l.directions as usize {
        let direction = data.as_ref().map(|all| {
            let size = all.len() / l.directions as usize;
            &all[d * size..][..size]
        });
        // The matcher has compared the sizes.
        out.extend(pack(direction).ok_or_else(|| TensorError::SizeOverflow {
            shape: vec![l.directions, l.hidden, l.input],
            dtype: DType::Float32,
        })?);
    }
    Ok(Some(out))
}
