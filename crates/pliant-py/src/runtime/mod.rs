//! Run-time values: tensors, shapes, devices, packed functions, executables and VMs.
//!
//! | module | owns |
//! |---|---|
//! | `ndarray`, `shape_tuple`, `device` | the Python classes of tensors, shapes and devices |
//! | `array_import`, `dlpack` | the import of foreign arrays, and DLPack capsules |
//! | `value_conversion`, `packed_functions` | the conversion of values and functions between Python and the VM |
//! | `executable_and_model`, `named_inputs_outputs` | `Executable` and `Model`; inputs and outputs by name |
//! | `model_description`, `preallocated_outputs` | descriptions of a model; memory of the caller for results |
//! | `virtual_machine`, `vm_objects` | `VirtualMachine`; the Python objects to which a VM refers |
//! | `ahead_of_time` | programs with machine code as objects, libraries and executables |
//! | `exec_builder`, `reference_interpreter` | executables built by hand, the reference interpreter |
//! | `profile`, `explorer` | profiles, and the page of the explorer |
//! | `ctrl_c_interrupts`, `sigint_handler`, `run_options` | Ctrl-C, time limits and cancellation |

pub mod ahead_of_time;
pub mod array_import;
pub mod ctrl_c_interrupts;
pub mod device;
pub mod dlpack;
pub mod exec_builder;
pub mod executable_and_model;
pub mod explorer;
pub mod model_description;
pub mod named_inputs_outputs;
pub mod ndarray;
pub mod packed_functions;
pub mod preallocated_outputs;
pub mod profile;
pub mod reference_interpreter;
pub mod run_options;
pub mod shape_tuple;
mod sigint_handler;
pub mod value_conversion;
pub mod virtual_machine;
pub mod vm_objects;
