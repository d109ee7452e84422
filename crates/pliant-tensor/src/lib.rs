//! Tensors of Pliant: element types, aligned storage, strided views and DLPack exchange.

mod dtype;

pub use dtype::{DType, DTypeKind, ParseDTypeError};
