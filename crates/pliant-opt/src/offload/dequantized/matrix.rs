//! Access to the integers, scales and zero points of a dequantized constant that is the right operand of a matmul.

use pliant_tensor::{DType, Tensor, TensorError, pack_panels};

use super::DequantizedWeights;

/// The integers of a constant in row-major order. The variants distinguish the data types.
pub(crate) enum Integers<'a> {
    Int8(&'a [i8]),
    UInt8(&'a [u8]),
    Int32(&'a [i32]),
}

impl Integers<'_> {
    fn of(tensor: &Tensor) -> Result<Integers<'_>, TensorError> {
        Ok(match tensor.dtype() {
            DType::Int8 => Integers::Int8(tensor.as_slice()?),
            DType::UInt8 => Integers::UInt8(tensor.as_slice()?),
            _ => Integers::Int32(tensor.as_slice()?),
        })
    }

    fn get(&self, index: usize) -> i32 {
        match self {
            Integers::Int8(elements) => elements[index].into(),
            Integers::UInt8(elements) => elements[index].into(),
            Integers::Int32(elements) => elements[index],
        }
    }

    /// The smallest and the largest of the integers; `None` if the constant has no elements.
    pub fn range(&self) -> Option<(i32, i32)> {
        fn range_of<T: Copy + Ord + Into<i32>>(elements: &[T]) -> Option<(i32, i32)> {
            let (first, rest) = elements.split_first()?;
            let range = rest.iter().fold((*first, *first), |(a, b), &x| (a.min(x), b.max(x)));
            Some((range.0.into(), range.1.into()))
        }
        match self {
            Integers::Int8(elements) => range_of(elements),
            Integers::UInt8(elements) => range_of(elements),
            Integers::Int32(elements) => range_of(elements),
        }
    }
}

/// A dequantized constant as the right operand of a matmul, which sums over the rows of this matrix.
pub(crate) struct Matrix<'a> {
    weights: &'a DequantizedWeights,
    /// The integers of the constant. The constant may be the transpose of the matrix.
    pub integers: Integers<'a>,
    /// The number of rows, which is the inner size of the matmul.
    pub k: usize,
    /// The number of columns of the matrix.
    pub n: usize,
}

impl Matrix<'_> {
    /// Creates the matrix of dequantized weights, whose integers are int8, uint8 or int32.
    ///
    /// # Errors
    /// If the integers are not contiguous, or are misaligned.
    pub fn of(weights: &DequantizedWeights) -> Result<Matrix<'_>, TensorError> {
        let t = &weights.integers;
        let integers = Integers::of(t)?;
        let (rows, columns) = (t.shape()[0] as usize, t.shape()[1] as usize);
        let (k, n) = if weights.transposed { (columns, rows) } else { (rows, columns) };
        Ok(Matrix { weights, integers, k, n })
    }

    /// Returns (row, column) in the constant of the matrix element at row `p` and column `j`. They are swapped if the constant is
    /// the transpose of the matrix.
    fn constant_position(&self, p: usize, j: usize) -> (usize, usize) {
        if self.weights.transposed { (j, p) } else { (p, j) }
    }

    /// The quantized integer of the element at row `p` and column `j`.
    pub fn integer(&self, p: usize, j: usize) -> i32 {
        let (row, column) = self.constant_position(p, j);
        let columns = if self.weights.transposed { self.k } else { self.n };
        self.integers.get(row * columns + column)
    }

    /// The scale of the element at row `p` and column `j`.
    pub fn scale(&self, p: usize, j: usize) -> f64 {
        let (row, column) = self.constant_position(p, j);
        self.weights.scale.number_at(row, column)
    }

    /// The zero point of the element at row `p` and column `j`: the sum of all numbers that are subtracted from its integer.
    pub fn zero_point(&self, p: usize, j: usize) -> f64 {
        let (row, column) = self.constant_position(p, j);
        self.weights.zeros.iter().map(|z| z.number_at(row, column)).sum()
    }

    /// The number of adjacent rows that share a scale and a zero point in every column.
    pub fn group_size(&self) -> usize {
        let axis = usize::from(self.weights.transposed);
        let parameters = || self.weights.zeros.iter().chain([&self.weights.scale]);
        // Scales and zero points can change only where a repetition ends.
        let may_change = |p: usize| {
            parameters().any(|s| s.size[axis] > 1 && p.is_multiple_of(s.repeats[axis].max(1)))
        };
        let mut group = 0;
        for p in (1..self.k).filter(|&p| may_change(p)) {
            let same = |j: usize| {
                self.scale(p, j) == self.scale(p - 1, j)
                    && self.zero_point(p, j) == self.zero_point(p - 1, j)
            };
            if group != 0 && p % group == 0 {
                continue;
            }
            if !(0..self.n).all(same) {
                group = greatest_common_divisor(p, group);
            }
        }
        if group == 0 { self.k } else { group }
    }

    /// Packs per-group numbers, such as scales, as a float32 matrix with the columns of this matrix and one row for each group of
    /// `group` rows. The result consists of panels (blocks of adjacent columns). `of(row, column)` returns the number for the group
    /// that starts at this row.
    pub fn pack_per_group(
        &self,
        group: usize,
        of: impl Fn(usize, usize) -> f64,
    ) -> Result<Tensor, TensorError> {
        let rows = self.k.div_ceil(group);
        let elements: Vec<f32> =
            (0..rows * self.n).map(|i| of(i / self.n * group, i % self.n) as f32).collect();
        pack_panels(&Tensor::from_slice(&[rows as i64, self.n as i64], &elements)?, false)
    }
}

/// The greatest common divisor of `a` and `b`, by Euclid's algorithm.
fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
