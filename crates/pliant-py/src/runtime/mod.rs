//! Run-time values: tensors, shapes, devices, packed functions, executables and VMs.

pub mod array_import;
pub mod compiled;
pub mod device;
pub mod dlpack;
pub mod exec_builder;
pub mod feeds;
pub mod interpret;
pub mod interrupt;
pub mod ndarray;
pub mod packed;
pub mod profile;
pub mod shape;
mod sigint;
pub mod time_limit;
pub mod value;
pub mod virtual_machine;
pub mod vm_objects;
