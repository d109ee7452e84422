//! The integration tests of `pliant-opt`, as one program, because each separate file would be linked separately.

mod custom_legalize;
mod linear_time_passes;
mod linear_time_stages;
mod lowering_passes;
mod pass_contracts;
mod pass_documentation;
mod unchanged_functions_stay_shared;
