//! Imports ONNX models as Pliant modules. All symbolic dims remain symbolic.
//!
//! [`import`] converts a decoded [`Model`] to an `IRModule`. The parameters of its function `main`
//! are the graph inputs; initializers become constants. Names of dims become symbols, shape
//! computations are folded symbolically, and sizes that are computed at run time become new
//! symbols. The import is not specialized for example inputs. It reports all problems, node by node
//! ([`Problem`]).
//!
//! An import has three steps. [`Model::open`] maps and decodes the file within [`Limits`].
//! `graph_checker` verifies that the graph is well-formed. `graph_import` converts the nodes in
//! order, each with the converter of its operator in the table of [`ops`].

mod declared_values;
mod decoded_model_size;
mod deferred_node;
mod dim_arithmetic;
mod dim_symbols;
mod downstream_node_checks;
mod external_data;
mod failed_node_recorder;
mod graph_checker;
mod graph_import;
mod import_deadline;
mod import_error;
mod import_limits;
mod imported_value;
mod initializer_tensors;
mod inlined_node_count;
mod model_file;
mod model_problem_report;
mod model_reducer;
mod node;
mod node_attributes;
mod node_size_requirements;
mod non_constant_inputs;
mod operator_schemas;
pub mod ops;
mod panic_guard;
mod partly_known_vectors;
pub mod proto;
mod rational_dims;
mod sequence_optional_types;
mod shape_constraint_report;
mod shape_folding;
mod subbyte_types;
mod symbol_constraints;
mod symbolic_size_condition;
mod unsupported_features;
mod value_origins;

pub use declared_values::{DeclaredDim, DeclaredSize, DeclaredValue};
pub use deferred_node::{DeferredNode, OperandSpec, Specialization};
pub use dim_arithmetic::evaluate_dim;
pub use graph_import::{DimSpec, ImportOptions, Imported, import, import_with};
pub use import_error::{ImportError, Problem, ProblemKind};
pub use import_limits::Limits;
pub use model_file::{Model, ModelMetadata};
pub use model_problem_report::{Finding, Report, check};
pub use shape_constraint_report::{Constraint, DeclaredBy, DynamicDim, ShapeReport, SymbolInfo};
