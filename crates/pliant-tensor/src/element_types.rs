//! [`Element`]: the Rust types that represent tensor elements.

use half::{bf16, f16};

use crate::DType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type with the size, alignment and bit pattern of a [`DType`].
///
/// # Safety
/// `size_of::<Self>()` equals `DTYPE.size()`, and all bytes accepted by `is_valid` are valid values
/// of the type.
pub unsafe trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The element type of tensors whose elements have this Rust type.
    const DTYPE: DType;

    /// Whether the raw bytes are valid elements, so that they can be viewed as a slice of `Self`.
    #[doc(hidden)]
    fn is_valid(_bytes: &[u8]) -> bool {
        true
    }
}

macro_rules! element {
    ($($ty:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $ty {}
        // SAFETY: the type is plain data of the same size, valid for every bit pattern.
        unsafe impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

element! {
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64,
    f16 => Float16, bf16 => BFloat16, f32 => Float32, f64 => Float64,
}

impl sealed::Sealed for bool {}
// SAFETY: bool is one byte, and `is_valid` accepts only 0 and 1.
unsafe impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn is_valid(bytes: &[u8]) -> bool {
        bytes.iter().all(|&b| b <= 1)
    }
}
