//! Dequantised constants in the form that kernels read.

use pliant_tensor::{DType, Tensor, TensorError, pack_bytes, pack_nibbles, pack_panels};

use super::found::Weights;
use super::kernel::Stored;

/// Rows that share a scale at least: with fewer, scales would take as much memory as what they scale saves.
const LEAST_GROUP: usize = 8;
/// Zero points at most: whole ones are exact in float32, and so are differences from integers of 8 bits.
const MOST_ZERO: f64 = (1 << 16) as f64;

/// How much of a zero point may be lost where it is stored: its first 16 bits are not.
const LEAST_KEPT: f64 = 1.0 / (1 << 16) as f64;

/// A constant as a matrix of rows that are summed over.
pub(crate) struct Matrix<'a> {
    weights: &'a Weights,
    integers: Vec<i32>,
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
        let integers: Vec<i32> = match t.dtype() {
            DType::Int8 => t.to_vec::<i8>()?.into_iter().map(i32::from).collect(),
            DType::UInt8 => t.to_vec::<u8>()?.into_iter().map(i32::from).collect(),
            _ => t.to_vec::<i32>()?,
        };
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
    fn panels(
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

/// The constant as a kernel reads it; `None` where it does not fit.
///
/// # Errors
/// Memory.
pub(super) fn stored(weights: &Weights) -> Result<Option<Stored>, TensorError> {
    let matrix = Matrix::of(weights)?;
    let (k, n, integers) = (matrix.k, matrix.n, &matrix.integers);
    let finite = |all: &[f64], most: f64| all.iter().all(|x| x.abs() <= most);
    let sound = finite(&weights.scale.numbers, f64::from(f32::MAX))
        && weights.zeros.iter().all(|z| finite(&z.numbers, MOST_ZERO));
    let (low, high) = integers.iter().fold((i32::MAX, i32::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    let span = i64::from(high) - i64::from(low);
    if !sound || integers.is_empty() || span > 255 || f64::from(low).abs() > MOST_ZERO {
        return Ok(None);
    }
    let group = matrix.group();
    if group < k && (group < LEAST_GROUP || !group.is_multiple_of(2)) {
        return Ok(None);
    }
    // What is stored is less by this, and so is the zero point.
    let offset = match (span, low, high) {
        (..=15, ..) => low,
        (_, -128.., ..=127) => 0,
        _ => low + 128,
    };
    let all = (0..k * n).map(|i| matrix.integer(i / n, i % n) - offset);
    let panels = if span <= 15 {
        pack_nibbles(&all.map(|x| x as u8).collect::<Vec<_>>(), k, n)?
    } else {
        pack_bytes(&all.map(|x| x as i8).collect::<Vec<_>>(), k, n)?
    };
    let zero = |p: usize, j: usize| matrix.zero(p, j) - f64::from(offset);
    let groups = 0..k.div_ceil(group);
    // A small zero point of parts may lose them to the offset, and is all there is where the integer is 0.
    let held = |p: usize, j: usize| {
        let lost = f64::from(zero(p, j) as f32) - zero(p, j);
        lost.abs() <= matrix.zero(p, j).abs() * LEAST_KEPT
    };
    if !groups.clone().all(|g| (0..n).all(|j| held(g * group, j))) {
        return Ok(None);
    }
    let plain = groups.clone().all(|g| (0..n).all(|j| zero(g * group, j) == 0.0));
    let scales = matrix.panels(group, |p, j| matrix.scale(p, j))?;
    let zeros = if plain { None } else { Some(matrix.panels(group, zero)?) };
    let size = (k as i64, n as i64);
    Ok(Some(Stored { size, panels, groups: Some((group as i64, scales, zeros)) }))
}
