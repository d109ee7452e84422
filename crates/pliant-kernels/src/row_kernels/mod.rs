//! Kernels that compute each row of a tensor independently of the others.
//!
//! | module | owns |
//! |---|---|
//! | [`arg_reduce`] | argmax and argmin |
//! | [`fft`] | discrete Fourier transforms |
//! | [`sort`] | sorting, argsort and top-k |
//! | `isa_dispatch` | compilation of loops for each instruction set |
//! | `row_addresses` | the addresses of rows |

/// Calls a generic function with the element type of a data type. Bool elements are bytes.
macro_rules! for_dtype {
    ($dtype:expr, $generic:ident $args:tt) => {
        match $dtype {
            pliant_tensor::DType::Int8 => $generic::<i8> $args,
            pliant_tensor::DType::Int16 => $generic::<i16> $args,
            pliant_tensor::DType::Int32 => $generic::<i32> $args,
            pliant_tensor::DType::Int64 => $generic::<i64> $args,
            pliant_tensor::DType::Bool | pliant_tensor::DType::UInt8 => $generic::<u8> $args,
            pliant_tensor::DType::UInt16 => $generic::<u16> $args,
            pliant_tensor::DType::UInt32 => $generic::<u32> $args,
            pliant_tensor::DType::UInt64 => $generic::<u64> $args,
            pliant_tensor::DType::Float16 => $generic::<half::f16> $args,
            pliant_tensor::DType::BFloat16 => $generic::<half::bf16> $args,
            pliant_tensor::DType::Float64 => $generic::<f64> $args,
            _ => $generic::<f32> $args,
        }
    };
}
pub mod arg_reduce;
pub mod fft;
mod isa_dispatch;
mod row_addresses;
pub mod sort;
