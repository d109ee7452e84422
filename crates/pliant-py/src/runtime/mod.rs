//! Run-time values: tensors, shapes, devices, packed functions, executables.

pub mod device;
pub mod dlpack;
pub mod import;
pub mod ndarray;
pub mod shape;
