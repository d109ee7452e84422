//! Imports ONNX models as Pliant modules. All symbolic dims remain symbolic.
//!
//! [`import`] converts a decoded [`Model`] to an `IRModule`. The parameters of its function `main` are the graph inputs;
//! initializers become constants. Names of dims become symbols, shape computations are folded symbolically, and sizes that are
//! computed at run time become new symbols. The import is not specialised for example inputs. It reports all problems, node by node
//! ([`Problem`]).
//!
//! An import has three steps. [`Model::open`] maps and decodes the file within [`Limits`]. `graph_checker` verifies that the graph
//! is well-formed. `graph` converts the nodes in order, each with the converter of its operator in the table of [`ops`].

mod attributes;
mod decoded_size;
mod deferred_node;
mod dim_arithmetic;
mod dim_symbols;
mod downstream;
mod error;
mod external_data;
mod failure_recorder;
mod graph;
mod graph_checker;
pub mod host;
mod import_deadline;
mod known_elements;
mod limits;
mod model;
mod model_reducer;
mod model_report;
mod node;
mod node_count;
mod node_requirements;
mod non_constant_inputs;
mod object_type;
pub mod ops;
mod panic_guard;
pub mod proto;
mod rational_dims;
mod schema;
mod shape_contract;
mod shape_folding;
mod size_relation;
mod subbyte_types;
mod symbol_constraints;
mod tensor;
mod unsupported_features;
mod value;
mod value_origins;

pub use deferred_node::{DeferredNode, OperandSpec, Specialization};
pub use dim_arithmetic::evaluate_dim;
pub use error::{ImportError, Problem, ProblemKind};
pub use graph::{DimSpec, ImportOptions, Imported, import, import_with};
pub use limits::Limits;
pub use model::Model;
pub use model_report::{Finding, Report, check};
pub use shape_contract::{Constraint, DeclaredBy, DynamicDim, ShapeReport, SymbolInfo};
