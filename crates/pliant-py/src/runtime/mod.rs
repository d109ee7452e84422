//! Run-time values: tensors, shapes, devices, packed functions, executables and VMs.
//!
//! | module | owns |
//! |---|---|
//! | `ndarray`, `shape`, `device` | the Python classes of tensors, shapes and devices |
//! | `array_import`, `dlpack` | the import of foreign arrays, and DLPack capsules |
//! | `value`, `packed` | the conversion of values and functions between Python and the VM |
//! | `compiled`, `feeds` | `Executable` and `Model`; inputs and outputs by name |
//! | `virtual_machine`, `vm_objects` | `VirtualMachine`; the Python objects that a VM refers to |
//! | `exec_builder`, `interpret`, `profile` | executables built by hand, the reference interpreter, profiles |
//! | `interrupt`, `sigint`, `time_limit` | Ctrl-C and time limits |

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
