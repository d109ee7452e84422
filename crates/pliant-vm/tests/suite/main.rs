//! The integration tests of `pliant-vm`. They are one binary, which links faster than one binary per file.

mod builtin_results;
mod cancellation;
mod data_dependent_builtins;
mod random_builtin_programs;
mod time_limits;
mod virtual_machine;
mod vm_test_setup;
