//! Dequantised constants as matrices.

use pliant_tensor::{Tensor, TensorError, pack_panels};

use super::{Weights, integers};

/// A constant as a matrix of rows that are summed over.
pub(crate) struct Matrix<'a> {
    weights: &'a Weights,
    /// The integers of the constant as it lies.
    pub integers: Vec<i32>,
    /// Its rows.
    pub k: usize,
    /// Its columns.
    pub n: usize,
}

impl Matrix<'_> {
    /// Of what is dequantised.
    ///
    /// # Errors
    /// Memory.
    pub fn of(weights: &Weights) -> Result<Matrix<'_>, TensorError> {
        let t = &weights.integers;
        // Other types are none that a constant is dequantised from.
        let integers = integers(t)?.unwrap_or_default();
        let (rows, columns) = (t.shape()[0] as usize, t.shape()[1] as usize);
        let (k, n) = if weights.transposed { (columns, rows) } else { (rows, columns) };
        Ok(Matrix { weights, integers, k, n })
    }

    /// Row and column of the constant as it lies.
    fn place(&self, p: usize, j: usize) -> (usize, usize) {
        if self.weights.transposed { (j, p) } else { (p, j) }
    }

    /// The integer that is stored.
    pub fn integer(&self, p: usize, j: usize) -> i32 {
        let (row, column) = self.place(p, j);
        self.integers[if self.weights.transposed { row * self.k } else { row * self.n } + column]
    }

    /// What it is multiplied by.
    pub fn scale(&self, p: usize, j: usize) -> f64 {
        let (row, column) = self.place(p, j);
        self.weights.scale.at(row, column)
    }

    /// What is taken from it.
    pub fn zero(&self, p: usize, j: usize) -> f64 {
        let (row, column) = self.place(p, j);
        self.weights.zeros.iter().map(|z| z.at(row, column)).sum()
    }

    /// Rows that share scales and zero points, in all columns.
    pub fn group(&self) -> usize {
        let mut group = 0;
        for p in 1..self.k {
            let same = |j: usize| {
                self.scale(p, j) == self.scale(p - 1, j) && self.zero(p, j) == self.zero(p - 1, j)
            };
            if group != 0 && p % group == 0 {
                continue;
            }
            if !(0..self.n).all(same) {
                group = common_divisor(p, group);
            }
        }
        if group == 0 { self.k } else { group }
    }

    /// Numbers of groups in panels of float32.
    pub fn panels(
        &self,
        group: usize,
        of: impl Fn(usize, usize) -> f64,
    ) -> Result<Tensor, TensorError> {
        let rows = self.k.div_ceil(group);
        let all: Vec<f32> =
            (0..rows * self.n).map(|i| of(i / self.n * group, i % self.n) as f32).collect();
        pack_panels(&Tensor::from_slice(&[rows as i64, self.n as i64], &all)?, false)
    }
}

fn common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
