//! [`DType`]: the element types of tensors and scalars, with their names and DLPack encoding.

use std::fmt;
use std::str::FromStr;

/// The type of a tensor element or of a scalar.
///
/// It is displayed and parsed as `float32`, `int64`, `bool`, `bfloat16` and so on. The numbering (`as u8`) is part of the
/// executable format, so new types must be appended.
///
/// # Examples
/// ```
/// use pliant_tensor::DType;
///
/// let dtype: DType = "bfloat16".parse().expect("the name of a type");
/// assert_eq!(dtype, DType::BFloat16);
/// assert_eq!(dtype.to_string(), "bfloat16");
/// assert!("float33".parse::<DType>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool = 0,
    /// Signed 8-bit integer.
    Int8 = 1,
    /// Signed 16-bit integer.
    Int16 = 2,
    /// Signed 32-bit integer.
    Int32 = 3,
    /// Signed 64-bit integer; the type of sizes and symbols.
    Int64 = 4,
    /// Unsigned 8-bit integer.
    UInt8 = 5,
    /// Unsigned 16-bit integer.
    UInt16 = 6,
    /// Unsigned 32-bit integer.
    UInt32 = 7,
    /// Unsigned 64-bit integer.
    UInt64 = 8,
    /// IEEE 754 half precision.
    Float16 = 9,
    /// bfloat16: the upper half of a `float32`.
    BFloat16 = 10,
    /// IEEE 754 single precision.
    Float32 = 11,
    /// IEEE 754 double precision.
    Float64 = 12,
}

/// The kind of a [`DType`], without its width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DTypeKind {
    /// `bool`.
    Bool,
    /// `int8` to `int64`.
    Int,
    /// `uint8` to `uint64`.
    UInt,
    /// `float16`, `bfloat16`, `float32`, `float64`.
    Float,
}

/// Type codes that DLPack uses (`DLDataTypeCode`).
mod code {
    pub(super) const INT: u8 = 0;
    pub(super) const UINT: u8 = 1;
    pub(super) const FLOAT: u8 = 2;
    pub(super) const BFLOAT: u8 = 4;
    pub(super) const BOOL: u8 = 6;
}

/// All element types. A row contains type, name, DLPack code, bits and kind. The index of a row is `DType as u8`.
const TABLE: [(DType, &str, u8, u8, DTypeKind); 13] = [
    (DType::Bool, "bool", code::BOOL, 8, DTypeKind::Bool),
    (DType::Int8, "int8", code::INT, 8, DTypeKind::Int),
    (DType::Int16, "int16", code::INT, 16, DTypeKind::Int),
    (DType::Int32, "int32", code::INT, 32, DTypeKind::Int),
    (DType::Int64, "int64", code::INT, 64, DTypeKind::Int),
    (DType::UInt8, "uint8", code::UINT, 8, DTypeKind::UInt),
    (DType::UInt16, "uint16", code::UINT, 16, DTypeKind::UInt),
    (DType::UInt32, "uint32", code::UINT, 32, DTypeKind::UInt),
    (DType::UInt64, "uint64", code::UINT, 64, DTypeKind::UInt),
    (DType::Float16, "float16", code::FLOAT, 16, DTypeKind::Float),
    (DType::BFloat16, "bfloat16", code::BFLOAT, 16, DTypeKind::Float),
    (DType::Float32, "float32", code::FLOAT, 32, DTypeKind::Float),
    (DType::Float64, "float64", code::FLOAT, 64, DTypeKind::Float),
];

impl DType {
    /// Returns all element types in order of their numbers.
    pub fn all() -> impl ExactSizeIterator<Item = DType> {
        TABLE.iter().map(|row| row.0)
    }

    /// Returns the type with number `index` (`DType as u8`); `None` if there is none.
    pub fn from_index(index: u8) -> Option<DType> {
        TABLE.get(index as usize).map(|row| row.0)
    }

    /// Returns the name of the type, such as `float32`.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Returns the name with its indefinite article, for messages: `a float32`, `an int64`.
    pub fn with_article(self) -> String {
        format!("{} {}", if self.is_int() { "an" } else { "a" }, self.name())
    }

    /// Returns the size of an element in bytes.
    pub const fn size(self) -> usize {
        (TABLE[self as usize].3 / 8) as usize
    }

    /// Returns the size of an element in bits; 8 for `bool`.
    pub const fn bits(self) -> u8 {
        TABLE[self as usize].3
    }

    /// Returns the kind of the type, such as float.
    pub const fn kind(self) -> DTypeKind {
        TABLE[self as usize].4
    }

    /// Whether the type is a 16-bit float.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::Float16 | DType::BFloat16)
    }

    /// Whether this is one of the four floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float)
    }

    /// Returns the largest finite value of a float type; `None` for other types.
    pub fn largest_float(self) -> Option<f64> {
        Some(match self {
            DType::Float16 => half::f16::MAX.to_f64(),
            DType::BFloat16 => half::bf16::MAX.to_f64(),
            DType::Float32 => f64::from(f32::MAX),
            DType::Float64 => f64::MAX,
            _ => return None,
        })
    }

    /// Whether this is a signed integer type.
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), DTypeKind::Int)
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_uint(self) -> bool {
        matches!(self.kind(), DTypeKind::UInt)
    }

    /// Whether this is `bool`.
    pub const fn is_bool(self) -> bool {
        matches!(self, DType::Bool)
    }

    /// Whether this is a signed or unsigned integer type.
    pub const fn is_integer(self) -> bool {
        self.is_int() || self.is_uint()
    }

    /// Returns the smallest and largest value of an integer type or bool, clamped to the range of
    /// int64.
    pub const fn int_range(self) -> (i64, i64) {
        let bits = self.bits() as u32;
        match self.kind() {
            DTypeKind::Bool => (0, 1),
            DTypeKind::UInt if bits == 64 => (0, i64::MAX),
            DTypeKind::UInt => (0, (1 << bits) - 1),
            _ => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
        }
    }

    /// Whether an integer or bool type can represent this value; false for floats. For `uint64` every `i64` is
    /// accepted: a negative number represents the uint64 with the same bits.
    pub const fn has_int(self, value: i64) -> bool {
        let bits = self.bits() as u32;
        match self.kind() {
            DTypeKind::Bool => value == 0 || value == 1,
            _ if bits == 64 => true,
            DTypeKind::UInt => value >> bits == 0,
            _ => matches!(value >> (bits - 1), 0 | -1),
        }
    }

    /// Whether this is a float type that can represent the value without overflow to infinity.
    pub fn has_float(self, value: f64) -> bool {
        self.largest_float().is_some_and(|most| !value.is_finite() || value.abs() <= most)
    }

    /// Whether a cast from the type `from` to this type preserves every value. Defined for integers and bool; false for floats. A
    /// cast to bool preserves only bools.
    pub const fn holds_all_of(self, from: DType) -> bool {
        let (wide, narrow) = (self.bits(), from.bits());
        match (self.kind(), from.kind()) {
            (DTypeKind::Float, _) | (_, DTypeKind::Float) => false,
            (_, DTypeKind::Bool) => true,
            (DTypeKind::Bool, _) | (DTypeKind::UInt, DTypeKind::Int) => false,
            (DTypeKind::Int, DTypeKind::UInt) => wide > narrow,
            _ => wide >= narrow,
        }
    }

    /// Returns the type to which two types are promoted when an operator combines them. Floats take
    /// precedence over integers, integers over bool, and wider types over narrower ones. A signed
    /// and an unsigned integer promote to the smallest signed type that can represent both, or to
    /// int64 if there is none. float16 and bfloat16 promote to float32.
    pub const fn promote(self, other: DType) -> DType {
        use DTypeKind::*;
        let wider = if self.bits() >= other.bits() { self } else { other };
        match (self.kind(), other.kind()) {
            (Float, Float) if self.bits() == 16 && other.bits() == 16 => {
                if self as u8 == other as u8 { self } else { DType::Float32 }
            }
            (Bool, _) => other,
            (_, Bool) => self,
            (Float, Float) | (Int, Int) | (UInt, UInt) => wider,
            (Float, _) => self,
            (_, Float) => other,
            (Int, UInt) => self.promote_signed(other),
            (UInt, Int) => other.promote_signed(self),
        }
    }

    const fn promote_signed(self, unsigned: DType) -> DType {
        match unsigned {
            _ if self.holds_all_of(unsigned) => self,
            DType::UInt8 => DType::Int16,
            DType::UInt16 => DType::Int32,
            _ => DType::Int64,
        }
    }

    /// Returns the DLPack type code and the number of bits of this type. The number of lanes is
    /// always 1.
    pub const fn to_dlpack(self) -> (u8, u8) {
        let row = TABLE[self as usize];
        (row.2, row.3)
    }

    /// Returns the type with the given DLPack code and bits; `None` if Pliant has no such type.
    /// Producers before DLPack 0.8 export `bool` as `uint1`, which is accepted as `bool`.
    pub fn from_dlpack(code: u8, bits: u8) -> Option<DType> {
        if (code, bits) == (code::UINT, 1) {
            return Some(DType::Bool);
        }
        TABLE.iter().find(|row| row.2 == code && row.3 == bits).map(|row| row.0)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a string that is not the name of an element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseDTypeError {
    /// The string that is not a name of an element type.
    pub text: String,
}

impl fmt::Display for ParseDTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown dtype '{}' (known:", self.text)?;
        for (i, dtype) in DType::all().enumerate() {
            write!(f, "{}{dtype}", if i == 0 { " " } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for ParseDTypeError {}

impl FromStr for DType {
    type Err = ParseDTypeError;

    fn from_str(text: &str) -> Result<DType, ParseDTypeError> {
        TABLE
            .iter()
            .find(|row| row.1 == text)
            .map(|row| row.0)
            .ok_or_else(|| ParseDTypeError { text: text.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_right_article() {
        let names = [DType::Int8, DType::Int64, DType::UInt8, DType::Float32, DType::Bool];
        let names = names.map(DType::with_article);
        assert_eq!(names, ["an int8", "an int64", "a uint8", "a float32", "a bool"]);
    }

    #[test]
    fn every_type_round_trips() {
        for (i, dtype) in DType::all().enumerate() {
            assert_eq!(dtype as usize, i);
            assert_eq!(DType::from_index(i as u8), Some(dtype));
            assert_eq!(dtype.to_string().parse(), Ok(dtype));
            let (code, bits) = dtype.to_dlpack();
            assert_eq!(DType::from_dlpack(code, bits), Some(dtype));
            assert_eq!(dtype.size() * 8, bits as usize);
        }
        assert_eq!(DType::from_index(13), None);
    }

    #[test]
    fn kinds_of_types() {
        assert!(DType::BFloat16.is_float() && !DType::BFloat16.is_integer());
        assert!(DType::UInt8.is_uint() && !DType::UInt8.is_int() && DType::UInt8.is_integer());
        assert!(DType::Bool.is_bool() && !DType::Bool.is_integer());
    }

    #[test]
    fn holds_all_of_compares_the_ranges_of_integer_types() {
        let integers = || DType::all().filter(|d| !d.is_float());
        let ends = |d: DType| match d {
            DType::UInt64 => (0i128, i128::from(u64::MAX)),
            d => (i128::from(d.int_range().0), i128::from(d.int_range().1)),
        };
        for (to, from) in integers().flat_map(|a| integers().map(move |b| (a, b))) {
            let ((low, high), (least, most)) = (ends(to), ends(from));
            assert_eq!(to.holds_all_of(from), low <= least && most <= high, "{from} to {to}");
        }
        assert!(
            !DType::Float32.holds_all_of(DType::Int8) && !DType::Int64.holds_all_of(DType::Float16)
        );
    }

    /// Casts a value to an integer or bool type, wrapping around.
    fn cast(value: i64, to: DType) -> i64 {
        match to {
            DType::Bool => i64::from(value != 0),
            DType::Int8 => i64::from(value as i8),
            DType::UInt8 => i64::from(value as u8),
            DType::Int16 => i64::from(value as i16),
            DType::UInt16 => i64::from(value as u16),
            DType::Int32 => i64::from(value as i32),
            DType::UInt32 => i64::from(value as u32),
            // As a 64-bit pattern, a negative value is larger than any narrower type can represent.
            DType::UInt64 if value < 0 => i64::MAX,
            _ => value,
        }
    }

    #[test]
    fn holds_all_of_agrees_with_casts_of_all_8_bit_values() {
        for from in [DType::Bool, DType::Int8, DType::UInt8] {
            let values = || (-256i64..256).filter(|&v| cast(v, from) == v);
            assert_eq!(values().count(), if from.is_bool() { 2 } else { 256 });
            for to in DType::all().filter(|d| !d.is_float()) {
                let preserves = values().all(|v| cast(v, to) == v);
                assert_eq!(to.holds_all_of(from), preserves, "{from} to {to}");
            }
        }
    }

    #[test]
    fn promotion_is_symmetric_and_lossless_where_possible() {
        for (a, b) in DType::all().flat_map(|a| DType::all().map(move |b| (a, b))) {
            let met = a.promote(b);
            assert_eq!(met, b.promote(a), "{a} and {b}");
            assert_eq!(a.promote(a), a);
            if met.is_float() {
                assert_eq!(met.is_float(), a.is_float() || b.is_float());
            } else if ![a, b].contains(&DType::UInt64) || a.is_uint() == b.is_uint() {
                assert!(met.holds_all_of(a) && met.holds_all_of(b), "{a} and {b} in {met}");
            }
        }
        assert_eq!(DType::Int8.promote(DType::UInt8), DType::Int16);
        assert_eq!(DType::Int64.promote(DType::UInt64), DType::Int64);
        assert_eq!(DType::Float16.promote(DType::BFloat16), DType::Float32);
        assert_eq!(DType::Float16.promote(DType::Int64), DType::Float16);
    }

    #[test]
    fn values_beyond_the_largest_finite_float_are_rejected() {
        for dtype in DType::all().filter(|d| d.is_float()) {
            let largest = dtype.largest_float().unwrap();
            assert!(
                dtype.has_float(largest) && dtype.has_float(-largest) && dtype.has_float(f64::NAN)
            );
            assert!(dtype == DType::Float64 || !dtype.has_float(largest * 1.01));
        }
        // The largest float32 overflows in bfloat16. Integer types and bool have no float values.
        assert!(!DType::BFloat16.has_float(f32::MAX.into()));
        assert!(!DType::Int64.has_float(f64::NAN) && !DType::Bool.has_float(1.0));
    }

    #[test]
    fn unknown_names_are_rejected() {
        assert!("float31".parse::<DType>().unwrap_err().to_string().contains("float32"));
        assert_eq!(DType::from_dlpack(5, 64), None);
        assert_eq!(DType::from_dlpack(1, 1), Some(DType::Bool));
    }
}
