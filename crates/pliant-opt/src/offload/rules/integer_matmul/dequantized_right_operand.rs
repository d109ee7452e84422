//! Converts right operands of matmuls that are dequantized from constants to integers and per-column scales.

use pliant_tensor::{Tensor, TensorError};

use crate::offload::dequantized::{DequantizedWeights, MAX_ZERO_POINT, Matrix};

/// An integer right operand with per-column scales.
pub(in crate::offload::rules) struct QuantizedRight {
    /// The integers minus their zero points, as int32.
    pub integers: Tensor,
    /// The float32 scales of the columns.
    pub scales: Tensor,
}

impl QuantizedRight {
    /// Converts dequantized weights to integers and per-column scales. `None` if a scale or zero point varies along a column, if
    /// a zero point is not integral, if a column spans more than 8 bits, or if sums of products with left integers of magnitude
    /// `max_left` may overflow 32 bits.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn of(
        weights: &DequantizedWeights,
        max_left: i64,
    ) -> Result<Option<QuantizedRight>, TensorError> {
        let matrix = Matrix::of(weights)?;
        let (k, n) = (matrix.k, matrix.n);
        let zeros: Vec<f64> = (0..n).map(|j| matrix.zero_point(0, j)).collect();
        let scales: Vec<f32> = (0..n).map(|j| matrix.scale(0, j) as f32).collect();
        let is_valid = zeros.iter().all(|z| z.fract() == 0.0 && z.abs() <= MAX_ZERO_POINT)
            && scales.iter().all(|s| s.is_finite());
        if !is_valid || matrix.group_size() != k {
            return Ok(None);
        }
        let mut columns = vec![ColumnRange::default(); n];
        let mut integers = Vec::with_capacity(k * n);
        for p in 0..k {
            for (j, column) in columns.iter_mut().enumerate() {
                let x = i64::from(matrix.integer(p, j)) - zeros[j] as i64;
                column.add(x);
                // Columns that do not fit are rejected below.
                integers.push(x as i32);
            }
        }
        if !columns.iter().all(|c| c.fits_8_bits(max_left)) {
            return Ok(None);
        }
        let integers = Tensor::from_slice(&[k as i64, n as i64], &integers)?;
        let scales = Tensor::from_slice(&[n as i64], &scales)?;
        Ok(Some(QuantizedRight { integers, scales }))
    }
}

/// The range and the total magnitude of the integers of a column or filter.
#[derive(Clone, Default)]
pub(in crate::offload::rules) struct ColumnRange {
    /// The (minimum, maximum) of the integers; `None` if there are none.
    range: Option<(i64, i64)>,
    /// The sum of the magnitudes of the integers.
    total_magnitude: i64,
}

impl ColumnRange {
    pub(in crate::offload::rules) fn add(&mut self, x: i64) {
        self.range = Some(self.range.map_or((x, x), |(low, high)| (low.min(x), high.max(x))));
        self.total_magnitude = self.total_magnitude.saturating_add(x.abs());
    }

    /// Whether the integers span at most 8 bits, and sums of their products with integers of magnitude `max_left` fit 32 bits.
    pub(in crate::offload::rules) fn fits_8_bits(&self, max_left: i64) -> bool {
        let (low, high) = self.range.unwrap_or_default();
        high - low <= 255 && self.total_magnitude.saturating_mul(max_left) <= i64::from(i32::MAX)
    }
}
