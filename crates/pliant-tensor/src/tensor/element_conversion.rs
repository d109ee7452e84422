//! Conversion of the elements of a tensor of any data type to `f64` and `i64`.

use crate::{DType, Tensor, TensorError};

impl Tensor {
    /// Converts the elements to `f64` in row-major order. 64-bit integers are rounded.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>, TensorError> {
        let tensor = self.to_contiguous()?;
        let bytes = tensor.as_bytes()?;
        Ok(match self.dtype() {
            DType::Bool => convert(bytes, |[byte]| f64::from(byte != 0)),
            DType::Int8 => convert(bytes, |b| f64::from(i8::from_ne_bytes(b))),
            DType::Int16 => convert(bytes, |b| f64::from(i16::from_ne_bytes(b))),
            DType::Int32 => convert(bytes, |b| f64::from(i32::from_ne_bytes(b))),
            DType::Int64 => convert(bytes, |b| i64::from_ne_bytes(b) as f64),
            DType::UInt8 => convert(bytes, |b| f64::from(u8::from_ne_bytes(b))),
            DType::UInt16 => convert(bytes, |b| f64::from(u16::from_ne_bytes(b))),
            DType::UInt32 => convert(bytes, |b| f64::from(u32::from_ne_bytes(b))),
            DType::UInt64 => convert(bytes, |b| u64::from_ne_bytes(b) as f64),
            DType::Float16 => convert(bytes, |b| half::f16::from_ne_bytes(b).to_f64()),
            DType::BFloat16 => convert(bytes, |b| half::bf16::from_ne_bytes(b).to_f64()),
            DType::Float32 => convert(bytes, |b| f64::from(f32::from_ne_bytes(b))),
            DType::Float64 => convert(bytes, f64::from_ne_bytes),
        })
    }

    /// Converts the elements to `i64` in row-major order. Floats are truncated, and `uint64` wraps
    /// around.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_i64_vec(&self) -> Result<Vec<i64>, TensorError> {
        let tensor = self.to_contiguous()?;
        let bytes = tensor.as_bytes()?;
        Ok(match self.dtype() {
            DType::Bool => convert(bytes, |[byte]| i64::from(byte != 0)),
            DType::Int8 => convert(bytes, |b| i64::from(i8::from_ne_bytes(b))),
            DType::Int16 => convert(bytes, |b| i64::from(i16::from_ne_bytes(b))),
            DType::Int32 => convert(bytes, |b| i64::from(i32::from_ne_bytes(b))),
            DType::UInt8 => convert(bytes, |b| i64::from(u8::from_ne_bytes(b))),
            DType::UInt16 => convert(bytes, |b| i64::from(u16::from_ne_bytes(b))),
            DType::UInt32 => convert(bytes, |b| i64::from(u32::from_ne_bytes(b))),
            DType::Int64 | DType::UInt64 => convert(bytes, i64::from_ne_bytes),
            DType::Float16 => convert(bytes, |b| half::f16::from_ne_bytes(b).to_f64() as i64),
            DType::BFloat16 => convert(bytes, |b| half::bf16::from_ne_bytes(b).to_f64() as i64),
            DType::Float32 => convert(bytes, |b| f32::from_ne_bytes(b) as i64),
            DType::Float64 => convert(bytes, |b| f64::from_ne_bytes(b) as i64),
        })
    }
}

/// Splits the bytes of a tensor into elements of `N` bytes, and converts each element with `read`.
fn convert<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|&element| read(element)).collect()
}
