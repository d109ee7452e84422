//! Passes that lower operators to constructs that the VM executes: calls of loop functions, explicit allocations, builtins and
//! arithmetic on sizes.
//!
//! | module | what |
//! |---|---|
//! | `attach_global_symbol` | name public functions for the executable |
//! | `call_tir_rewrite` | allocate the outputs of destination-passing calls |
//! | `legalize_ops` | lower operators to loop functions |
//! | `lower_runtime_builtin` | lower memory operators to builtins of the virtual machine |
//! | `remove_purity_checking` | stop tracking purity |
//! | `to_non_dataflow` | turn dataflow blocks into plain blocks |
//! | `vm_shape_lower` | compute and check symbolic sizes explicitly |

pub mod attach_global_symbol;
pub mod call_tir_rewrite;
pub mod legalize_ops;
pub mod lower_runtime_builtin;
pub mod remove_purity_checking;
pub mod to_non_dataflow;
pub mod vm_shape_lower;
