//! Right operands that are dequantised from constants, as integers and a scale for each column.

use pliant_tensor::{Tensor, TensorError};

use crate::offload::dequantized::{MOST_ZERO, Matrix, Weights};

/// A right operand.
pub(super) struct Right {
    /// Integers less their zero points, of int32.
    pub integers: Tensor,
    /// What the columns are multiplied by, in float32.
    pub scales: Tensor,
}

impl Right {
    /// `None` where a scale or zero point changes along a column, a zero point is not whole, a column spans more than 8 bits,
    /// or sums of products by integers of the magnitude `most` may leave 32 bits.
    ///
    /// # Errors
    /// Memory.
    pub fn of(weights: &Weights, most: i64) -> Result<Option<Right>, TensorError> {
        let matrix = Matrix::of(weights)?;
        let (k, n) = (matrix.k, matrix.n);
        let zeros: Vec<f64> = (0..n).map(|j| matrix.zero(0, j)).collect();
        let scales: Vec<f32> = (0..n).map(|j| matrix.scale(0, j) as f32).collect();
        let sound = zeros.iter().all(|z| z.fract() == 0.0 && z.abs() <= MOST_ZERO)
            && scales.iter().all(|s| s.is_finite());
        if !sound || matrix.group() != k {
            return Ok(None);
        }
        let mut columns = vec![Column::default(); n];
        let mut integers = Vec::with_capacity(k * n);
        for p in 0..k {
            for (j, column) in columns.iter_mut().enumerate() {
                let x = i64::from(matrix.integer(p, j)) - zeros[j] as i64;
                column.add(x);
                // What does not fit is refused below.
                integers.push(x as i32);
            }
        }
        if !columns.iter().all(|c| c.fits(most)) {
            return Ok(None);
        }
        let integers = Tensor::from_slice(&[k as i64, n as i64], &integers)?;
        let scales = Tensor::from_slice(&[n as i64], &scales)?;
        Ok(Some(Right { integers, scales }))
    }
}

/// What is known of the integers of a column, or of a filter.
#[derive(Clone, Default)]
pub(super) struct Column {
    /// The least and the largest.
    range: Option<(i64, i64)>,
    /// The sum of their magnitudes.
    total: i64,
}

impl Column {
    pub(super) fn add(&mut self, x: i64) {
        self.range = Some(self.range.map_or((x, x), |(low, high)| (low.min(x), high.max(x))));
        self.total = self.total.saturating_add(x.abs());
    }

    pub(super) fn fits(&self, most: i64) -> bool {
        let (low, high) = self.range.unwrap_or_default();
        high - low <= 255 && self.total.saturating_mul(most) <= i64::from(i32::MAX)
    }
}
