//! [`TensorError`]: errors of tensor operations, with messages for users.

use std::fmt;

use crate::DType;

/// The reason why a tensor could not be created, viewed or exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The number of elements or bytes exceeds the address space.
    SizeOverflow {
        /// The requested shape.
        shape: Vec<i64>,
        /// The requested element type.
        dtype: DType,
    },
    /// A dimension is negative.
    NegativeDim {
        /// The requested shape.
        shape: Vec<i64>,
    },
    /// A view refers to bytes outside its storage.
    OutOfBounds {
        /// The offset of the first byte of the view from the start of the storage, in bytes.
        begin: i128,
        /// The offset of the end of the view (one past its last byte) from the start of the storage, in bytes.
        end: i128,
        /// The size of the storage in bytes.
        storage: usize,
    },
    /// The element type of the tensor is not the requested one.
    DTypeMismatch {
        /// The element type that the caller requested.
        expected: DType,
        /// The element type of the tensor.
        actual: DType,
    },
    /// The tensor does not have the shape or rank that the operation requires.
    ShapeMismatch {
        /// The required shape.
        expected: Vec<i64>,
        /// The shape of the tensor.
        actual: Vec<i64>,
    },
    /// The shape and the strides of a view have different lengths.
    StridesMismatch {
        /// The shape of the view.
        shape: Vec<i64>,
        /// The strides of the view, in elements.
        strides: Vec<i64>,
    },
    /// The number of elements of the data does not match the shape.
    LengthMismatch {
        /// The number of elements that the shape requires.
        expected: usize,
        /// The number of elements of the data.
        actual: usize,
    },
    /// The number of bytes of the data does not match the shape and the element type.
    ByteLengthMismatch {
        /// The number of bytes of a tensor with this shape and element type.
        expected: usize,
        /// The number of bytes of the data.
        actual: usize,
    },
    /// The operation requires a contiguous tensor.
    NotContiguous {
        /// The shape of the tensor.
        shape: Vec<i64>,
        /// The strides of the tensor, in elements.
        strides: Vec<i64>,
    },
    /// The address of the elements is not a multiple of the element size.
    Misaligned {
        /// The element type.
        dtype: DType,
    },
    /// The tensor is read-only.
    ReadOnly,
    /// Other handles share the tensor's memory, so it cannot be borrowed mutably.
    Shared,
    /// A byte of a `bool` tensor is neither 0 nor 1.
    InvalidBool,
    /// The system is out of memory.
    OutOfMemory {
        /// The requested number of bytes.
        bytes: usize,
    },
    /// The request would exceed the memory limit.
    MemoryLimit {
        /// The requested number of bytes.
        bytes: usize,
        /// The number of bytes that counted towards the memory limit before the request.
        held: usize,
        /// The memory limit in bytes.
        limit: usize,
    },
    /// The environment variable that sets the memory limit has an invalid value.
    WrongLimit {
        /// The invalid value of the environment variable `PLIANT_MEMORY_LIMIT`.
        text: String,
    },
    /// A foreign tensor is not supported, for example because of its device. Contains the reason.
    Unsupported(String),
    /// The element type of a foreign tensor is not supported. Contains the type.
    UnsupportedDType(String),
    /// A foreign tensor violates the DLPack protocol. Contains the violation.
    Malformed(String),
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::SizeOverflow { shape, dtype } => {
                write!(f, "a tensor of shape {shape:?} and dtype {dtype} is too large to address")
            }
            TensorError::NegativeDim { shape } => {
                write!(f, "shape {shape:?} has a negative dimension")
            }
            TensorError::OutOfBounds { begin, end, storage } => {
                write!(
                    f,
                    "the view covers bytes {begin}..{end}, but its storage has {storage} bytes"
                )
            }
            TensorError::DTypeMismatch { expected, actual } => {
                write!(f, "expected dtype {expected}, but the tensor has dtype {actual}")
            }
            TensorError::ShapeMismatch { expected, actual } => {
                write!(f, "expected shape {expected:?}, but the tensor has shape {actual:?}")
            }
            TensorError::StridesMismatch { shape, strides } => {
                write!(f, "shape {shape:?} and strides {strides:?} have different lengths")
            }
            TensorError::ByteLengthMismatch { expected, actual } => {
                write!(
                    f,
                    "a tensor of this shape and dtype has {expected} bytes, but {actual} were given"
                )
            }
            TensorError::LengthMismatch { expected, actual } => {
                write!(f, "the shape has {expected} elements, but {actual} were given")
            }
            TensorError::NotContiguous { shape, strides } => {
                write!(f, "a tensor of shape {shape:?} with strides {strides:?} is not contiguous")
            }
            TensorError::Misaligned { dtype } => {
                write!(f, "the tensor's address is not a multiple of the size of {dtype}")
            }
            TensorError::ReadOnly => f.write_str("the tensor is read-only"),
            TensorError::Shared => {
                f.write_str("the tensor's memory is shared, so it cannot be borrowed mutably")
            }
            TensorError::InvalidBool => {
                f.write_str("a bool tensor contains a byte that is neither 0 nor 1")
            }
            TensorError::OutOfMemory { bytes } => {
                write!(f, "out of memory: {bytes} bytes cannot be allocated")
            }
            TensorError::MemoryLimit { bytes, held, limit } => write!(
                f,
                "out of memory: {bytes} bytes are requested and {held} bytes are in use, but the limit is {limit} bytes \
                 (set_memory_limit or PLIANT_MEMORY_LIMIT changes the limit)"
            ),
            TensorError::WrongLimit { text } => write!(
                f,
                "PLIANT_MEMORY_LIMIT is '{text}', but must be a positive number of bytes, or a number with one of the binary units \
                 K, M, G and T, such as 4G"
            ),
            TensorError::Unsupported(why)
            | TensorError::UnsupportedDType(why)
            | TensorError::Malformed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for TensorError {}
