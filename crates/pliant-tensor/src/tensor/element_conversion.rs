//! Conversion of the elements of a tensor of any data type to `f64` and `i64`.

use crate::{DType, Tensor, TensorError};

impl Tensor {
    /// Converts the elements to `f64` in row-major order. 64-bit integers are rounded.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>, TensorError> {
        self.convert(|dtype, bytes| match dtype {
            DType::Float16 => half::f16::from_ne_bytes(fixed(bytes)).to_f64(),
            DType::BFloat16 => half::bf16::from_ne_bytes(fixed(bytes)).to_f64(),
            DType::Float32 => f64::from(f32::from_ne_bytes(fixed(bytes))),
            DType::Float64 => f64::from_ne_bytes(fixed(bytes)),
            DType::UInt64 => u64::from_ne_bytes(fixed(bytes)) as f64,
            _ => read_int(dtype, bytes) as f64,
        })
    }

    /// Converts the elements to `i64` in row-major order. Floats are truncated, and `uint64` wraps
    /// around.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_i64_vec(&self) -> Result<Vec<i64>, TensorError> {
        self.convert(|dtype, bytes| match dtype {
            DType::Float16 => half::f16::from_ne_bytes(fixed(bytes)).to_f64() as i64,
            DType::BFloat16 => half::bf16::from_ne_bytes(fixed(bytes)).to_f64() as i64,
            DType::Float32 => f32::from_ne_bytes(fixed(bytes)) as i64,
            DType::Float64 => f64::from_ne_bytes(fixed(bytes)) as i64,
            _ => read_int(dtype, bytes),
        })
    }

    fn convert<T>(&self, read: impl Fn(DType, &[u8]) -> T) -> Result<Vec<T>, TensorError> {
        let tensor = self.to_contiguous()?;
        let dtype = self.dtype();
        Ok(tensor.as_bytes()?.chunks_exact(dtype.size()).map(|bytes| read(dtype, bytes)).collect())
    }
}

/// Returns the first `N` bytes of `bytes`, the bytes of an element, as an array.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[..N]);
    out
}

fn read_int(dtype: DType, bytes: &[u8]) -> i64 {
    match dtype {
        DType::Bool => i64::from(bytes[0] != 0),
        DType::Int8 => i64::from(bytes[0] as i8),
        DType::Int16 => i64::from(i16::from_ne_bytes(fixed(bytes))),
        DType::Int32 => i64::from(i32::from_ne_bytes(fixed(bytes))),
        DType::UInt8 => i64::from(bytes[0]),
        DType::UInt16 => i64::from(u16::from_ne_bytes(fixed(bytes))),
        DType::UInt32 => i64::from(u32::from_ne_bytes(fixed(bytes))),
        // Int64 and UInt64. The callers handle floats.
        _ => i64::from_ne_bytes(fixed(bytes)),
    }
}
