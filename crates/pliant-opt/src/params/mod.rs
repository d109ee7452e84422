//! Passes on the parameters (weights) of a model, which replace parameters by values, bundle them, change their types, or
//! precompute values that depend only on them.
//!
//! | module | what |
//! |---|---|
//! | `bind_params` | replace parameters by constants |
//! | `bind_symbolic_vars` | replace symbolic sizes by numbers or terms |
//! | `bundle_model_params` | pass the parameters of a model as one tuple |
//! | `lift_transform_params` | move computations on parameters alone to a function of their own |
//! | `update_param_struct_info` | change the types of parameters |

pub mod bind_params;
pub mod bind_symbolic_vars;
pub mod bundle_model_params;
pub mod lift_transform_params;
pub mod update_param_struct_info;
