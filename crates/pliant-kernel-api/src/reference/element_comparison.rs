//! Comparison of tensor elements, for the reference implementations of sorting and of minimum and
//! maximum.

use std::cmp::Ordering;

use pliant_tensor::DType;

use super::Number;

impl Number {
    /// Whether the tensor element is NaN.
    pub(crate) fn is_nan(self) -> bool {
        matches!(self, Number::Float(v) if v.is_nan())
    }

    /// Compares two elements of an operand of type `dtype`. NaN compares equal to every number.
    pub(crate) fn compare(self, other: Number, dtype: DType) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) if dtype == DType::UInt64 => {
                (a as u64).cmp(&(b as u64))
            }
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        }
    }
}
