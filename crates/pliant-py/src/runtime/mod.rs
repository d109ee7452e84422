//! Run-time values: tensors, shapes, devices, packed functions, executables and VMs.
//!
//! | module | owns |
//! |---|---|
//! | `ndarray`, `shape_tuple`, `device` | the Python classes of tensors, shapes and devices |
//! | `array_import`, `dlpack` | the import of foreign arrays, and DLPack capsules |
//! | `value_conversion`, `packed_functions` | the conversion of values and functions between Python and the VM |
//! | `executable_and_model`, `named_inputs_outputs` | `Executable` and `Model`; inputs and outputs by name |
//! | `virtual_machine`, `vm_objects` | `VirtualMachine`; the Python objects to which a VM refers |
//! | `ahead_of_time` | programs with machine code as objects, libraries and executables |
//! | `exec_builder`, `reference_interpreter`, `profile` | executables built by hand, the reference interpreter, profiles |
//! | `ctrl_c_interrupts`, `sigint_handler`, `time_limit` | Ctrl-C and time limits |

pub mod ahead_of_time;
pub mod array_import;
pub mod ctrl_c_interrupts;
pub mod device;
pub mod dlpack;
pub mod exec_builder;
pub mod executable_and_model;
pub mod named_inputs_outputs;
pub mod ndarray;
pub mod packed_functions;
pub mod profile;
pub mod reference_interpreter;
pub mod shape_tuple;
mod sigint_handler;
pub mod time_limit;
pub mod value_conversion;
pub mod virtual_machine;
pub mod vm_objects;
