//! Constant weights in the form that the kernel reads.

use pliant_tensor::gates::{pack_bias, pack_input, pack_state};
use pliant_tensor::{DType, Tensor, TensorError};

use super::found::{Layer, Weights};

/// The packed weights of a layer, where they are constants.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    /// `[directions, columns, inputs]`, in panels; likewise below.
    pub w: Option<Tensor>,
    /// `[directions, columns, hidden]`.
    pub r: Option<Tensor>,
    /// `[directions, columns]`; zeros where there are none.
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
    let shaped = |data: Option<Vec<f32>>, columns: i64, rows: &[i64]| {
        let shape = [&[l.directions, columns], rows].concat();
        data.map(|data| Tensor::from_slice(&shape, &data)).transpose()
    };
    let [of_input, of_state, of_bias] = l.columns();
    Ok(Packed {
        w: shaped(w, of_input, &[l.input])?,
        r: shaped(r, of_state, &[l.hidden])?,
        bias: shaped(bias, of_bias, &[])?,
    })
}

impl Layer {
    /// Columns of the packed weights of a direction: of the input, of the state, and biases.
    pub fn columns(&self) -> [i64; 3] {
        let hidden = self.hidden as usize;
        let of = [
            self.cell.input_columns(hidden),
            self.cell.state_columns(hidden),
            self.cell.bias_columns(hidden),
        ];
        of.map(|n| n.and_then(|n| i64::try_from(n).ok()).unwrap_or(i64::MAX))
    }
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
