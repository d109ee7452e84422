//! What can go wrong with tensors: one error type with messages meant for users.

use std::fmt;

use crate::DType;

/// Why a tensor could not be made, viewed or exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The number of elements or bytes does not fit the address space.
    SizeOverflow {
        /// The shape asked for.
        shape: Vec<i64>,
        /// The element type asked for.
        dtype: DType,
    },
    /// A dimension is negative.
    NegativeDim {
        /// The shape asked for.
        shape: Vec<i64>,
    },
    /// The view reaches outside its storage.
    OutOfBounds {
        /// First byte of the view, relative to the storage.
        begin: i128,
        /// One past the last byte of the view.
        end: i128,
        /// Bytes in the storage.
        storage: usize,
    },
    /// The elements are of another type than the one asked for.
    DTypeMismatch {
        /// The type asked for.
        expected: DType,
        /// The type of the tensor.
        actual: DType,
    },
    /// Two shapes, or a shape and its strides, do not belong together.
    ShapeMismatch {
        /// The shape (or strides) asked for.
        expected: Vec<i64>,
        /// The shape of the tensor.
        actual: Vec<i64>,
    },
    /// The number of elements given is not that of the shape.
    LengthMismatch {
        /// Elements that the shape has.
        expected: usize,
        /// Elements that were given.
        actual: usize,
    },
    /// The operation needs a contiguous tensor.
    NotContiguous {
        /// The shape of the tensor.
        shape: Vec<i64>,
        /// Its strides, in elements.
        strides: Vec<i64>,
    },
    /// The address is no multiple of the element size.
    Misaligned {
        /// The element type.
        dtype: DType,
    },
    /// The tensor must not be written.
    ReadOnly,
    /// The tensor's memory is shared, so it cannot be borrowed for writing.
    Shared,
    /// A byte of a `bool` tensor is neither 0 nor 1.
    InvalidBool,
    /// The system has no memory left for the request.
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// More memory than Pliant may hold at once.
    MemoryLimit {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes held already.
        held: usize,
        /// Bytes that may be held.
        limit: usize,
    },
    /// The environment's limit of memory is no number of bytes.
    WrongLimit {
        /// What it says.
        text: String,
    },
    /// A foreign tensor that Pliant cannot take, on another device for instance; the text says why.
    Unsupported(String),
    /// A foreign tensor of an element type that Pliant does not have; the text says which.
    UnsupportedDType(String),
    /// A foreign tensor that breaks the rules of its protocol; the text says how.
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
                write!(f, "bytes {begin}..{end} lie outside a storage of {storage} bytes")
            }
            TensorError::DTypeMismatch { expected, actual } => {
                write!(f, "expected dtype {expected}, but the tensor has dtype {actual}")
            }
            TensorError::ShapeMismatch { expected, actual } => {
                write!(f, "expected shape {expected:?}, but the tensor has shape {actual:?}")
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
            TensorError::Shared => f.write_str("the tensor's memory is shared"),
            TensorError::InvalidBool => {
                f.write_str("a bool tensor holds a byte that is neither 0 nor 1")
            }
            TensorError::OutOfMemory { bytes } => write!(f, "out of memory: {bytes} bytes"),
            TensorError::MemoryLimit { bytes, held, limit } => write!(
                f,
                "out of memory: {bytes} bytes more than the {held} that are held, but the limit is {limit} \
                 (set_memory_limit or PLIANT_MEMORY_LIMIT sets another)"
            ),
            TensorError::WrongLimit { text } => write!(
                f,
                "PLIANT_MEMORY_LIMIT is '{text}', but must be a number of bytes above 0, or of multiples of 1024 with \
                 K, M, G or T behind it: 4G"
            ),
            TensorError::Unsupported(why)
            | TensorError::UnsupportedDType(why)
            | TensorError::Malformed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for TensorError {}
