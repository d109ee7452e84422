//! The row kernels, element by element: sorting, extremes, Fourier transforms as sums.

use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

use pliant_ir::DType;

use super::scalar::{Val, round};
use super::view::View;
use crate::error::Result;

/// A row of contiguous elements.
pub(super) struct Row {
    view: Rc<View>,
    first: i64,
    values: Vec<Val>,
}

impl Row {
    /// The `n` elements from position `first`.
    pub(super) fn new(view: &Rc<View>, first: i64, n: i64) -> Result<Row> {
        let values = (0..n).map(|i| view.read_at(first + i)).collect::<Result<_>>()?;
        Ok(Row { view: view.clone(), first, values })
    }

    fn compare(&self, a: &Val, b: &Val) -> Ordering {
        match (a, b) {
            (Val::Int(a), Val::Int(b)) if self.view.dtype == DType::UInt64 => {
                (*a as u64).cmp(&(*b as u64))
            }
            (Val::Int(a), Val::Int(b)) => a.cmp(b),
            (Val::Float(a), Val::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        }
    }

    /// The indices of the elements in stable sorted order; NaNs come first or last.
    fn places(&self, descending: bool, nan_first: bool) -> Vec<i64> {
        let nan = |v: &Val| matches!(v, Val::Float(x) if x.is_nan());
        let mut places: Vec<i64> = (0..self.values.len() as i64).collect();
        places.sort_by(|&a, &b| {
            let (a, b) = (&self.values[a as usize], &self.values[b as usize]);
            match (nan(a), nan(b)) {
                (false, false) if descending => self.compare(b, a),
                (false, false) => self.compare(a, b),
                (x, y) if nan_first => y.cmp(&x),
                (x, y) => x.cmp(&y),
            }
        });
        places
    }

    /// Moves a range of ranks to its sorted positions, and writes the original indices of its
    /// elements.
    pub(super) fn order(
        &self,
        part: Range<i64>,
        descending: bool,
        (to, at): (&View, i64),
    ) -> Result<()> {
        let places = self.places(descending, false);
        for i in part {
            let place = places[i as usize];
            self.view.write_at(self.first + i, &self.values[place as usize])?;
            to.write_at(at + i, &Val::Int(place))?;
        }
        Ok(())
    }

    /// Writes the first elements of the order, and where they come from.
    pub(super) fn first(
        &self,
        count: i64,
        descending: bool,
        (values, v): (&View, i64),
        (to, at): (&View, i64),
    ) -> Result<()> {
        let places = self.places(descending, false);
        for (i, &place) in (0..count).zip(&places) {
            values.write_at(v + i, &self.values[place as usize])?;
            to.write_at(at + i, &Val::Int(place))?;
        }
        Ok(())
    }

    /// The index of the first largest or smallest element, or of the first NaN; `None` for an
    /// empty row.
    pub(super) fn extreme(&self, largest: bool) -> Option<i64> {
        self.places(largest, true).first().copied()
    }

    /// The discrete Fourier transform of complex numbers, with real and imaginary parts
    /// interleaved.
    pub(super) fn fourier(&self, inverse: bool) -> Result<()> {
        let parts: Vec<f64> = self.values.iter().map(Val::float).collect::<Result<_>>()?;
        let n = parts.len() / 2;
        for k in 0..n {
            let (mut re, mut im) = (0.0, 0.0);
            for j in 0..n {
                let turn = std::f64::consts::TAU * ((j * k) % n) as f64 / n as f64;
                let (sin, cos) = if inverse { (-turn).sin_cos() } else { turn.sin_cos() };
                let (a, b) = (parts[2 * j], parts[2 * j + 1]);
                re += a * cos + b * sin;
                im += b * cos - a * sin;
            }
            for (part, value) in [re, im].into_iter().enumerate() {
                let value = Val::Float(round(value, self.view.dtype));
                self.view.write_at(self.first + (2 * k + part) as i64, &value)?;
            }
        }
        Ok(())
    }
}
