//! Packs constant right operands for the kernel `matmul_int8` at compile time.

use pliant_ir::relax::{Expr, Function};
use pliant_tensor::{Tensor, TensorError, pack_vnni};

use crate::offload::dequantized::to_i32_integers;

/// The kernel operands that represent a packed right operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedOperands {
    /// The packed int8 integers with the dims `[panels, quads, width, 4]`. A panel consists of `width` adjacent columns, a quad
    /// of four adjacent rows.
    pub quads: Expr,
    /// The int32 sums of the columns.
    pub sums: Expr,
    /// The int32 zero points of the columns; `None` if all are 0.
    pub zeros: Option<Expr>,
}

/// A constant matrix, packed into quads of four adjacent rows.
#[derive(Clone, Debug)]
pub(crate) struct PackedWeights {
    /// The packed int8 integers with the dims `[panels, quads, width, 4]`. A panel consists of `width` adjacent columns, a quad
    /// of four adjacent rows.
    pub quads: Tensor,
    /// The int32 sums of the columns.
    pub sums: Tensor,
    /// The int32 zero points of the columns; `None` if all are 0.
    pub zeros: Option<Tensor>,
}

impl PackedWeights {
    /// Creates the kernel operands for the packed constants.
    pub(super) fn operands(&self, func: &mut Function) -> PackedOperands {
        let mut constant = |tensor: &Tensor| func.constant(tensor.clone());
        PackedOperands {
            quads: constant(&self.quads),
            sums: constant(&self.sums),
            zeros: self.zeros.as_ref().map(constant),
        }
    }
}

/// Packs a matrix of integers for the kernel. Returns `None` if the values of a column differ by
/// more than 255, so that no zero point makes them 8-bit integers.
///
/// # Errors
/// If memory cannot be allocated.
pub(crate) fn pack_matrix(matrix: &Tensor) -> Result<Option<PackedWeights>, TensorError> {
    let &[k, n] = matrix.shape() else { return Ok(None) };
    let (k, n) = (k as usize, n as usize);
    let Some(data) = to_i32_integers(matrix)? else { return Ok(None) };
    let mut ranges = vec![(0i64, 0i64); n];
    for (p, row) in data.chunks_exact(n.max(1)).enumerate() {
        for (range, &x) in ranges.iter_mut().zip(row) {
            let x = i64::from(x);
            *range = if p == 0 { (x, x) } else { (range.0.min(x), range.1.max(x)) };
        }
    }
    let mut offsets = Vec::with_capacity(n);
    for (low, high) in ranges {
        match (low, high) {
            (-128.., ..=127) => offsets.push(0),
            _ if high - low <= 255 => offsets.push((low + 128) as i32),
            _ => return Ok(None),
        }
    }
    let bytes = data.iter().enumerate().map(|(at, &x)| x.wrapping_sub(offsets[at % n]) as i8);
    let Some(quads) = pack_vnni(&bytes.collect::<Vec<i8>>(), k, n) else {
        return Ok(None);
    };
    let panels = n.div_ceil(quads.width);
    let shape = [panels, k.div_ceil(4), quads.width, 4].map(|d| d as i64);
    let columns = [n as i64];
    let has_no_zero_points = offsets.iter().all(|&o| o == 0);
    let zeros: Vec<i32> = offsets.iter().map(|o| o.wrapping_neg()).collect();
    Ok(Some(PackedWeights {
        quads: Tensor::from_slice(&shape, &quads.data)?,
        sums: Tensor::from_slice(&columns, &quads.sums)?,
        zeros: if has_no_zero_points { None } else { Some(Tensor::from_slice(&columns, &zeros)?) },
    }))
}
