//! Weights in the form that the kernel reads.

use pliant_tensor::gates::{pack_bias, pack_input, pack_state};
use pliant_tensor::{DType, Tensor, TensorError};

use super::found::Layer;

/// The packed weights of a layer.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    /// `[directions, columns, inputs]`, in panels; likewise below.
    pub w: Tensor,
    /// `[directions, columns, hidden]`.
    pub r: Tensor,
    /// `[directions, columns]`.
    pub bias: Tensor,
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
    let columns = |of: Option<usize>| of.and_then(|n| i64::try_from(n).ok()).unwrap_or(i64::MAX);
    let shaped = |data: &[f32], columns: i64, rows: &[i64]| {
        Tensor::from_slice(&[&[l.directions, columns], rows].concat(), data)
    };
    Ok(Packed {
        w: shaped(&w, columns(l.cell.input_columns(hidden)), &[l.input])?,
        r: shaped(&r, columns(l.cell.state_columns(hidden)), &[l.hidden])?,
        bias: shaped(&bias, columns(l.cell.bias_columns(hidden)), &[])?,
    })
}

/// What is packed of each direction.
fn each(
    l: &Layer,
    from: Option<&Tensor>,
    pack: impl Fn(Option<&[f32]>) -> Option<Vec<f32>>,
) -> Result<Vec<f32>, TensorError> {
    let data = from.map(|t| t.to_vec::<f32>()).transpose()?;
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
    Ok(out)
}
