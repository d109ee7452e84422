//! Imports ONNX models as Pliant modules. All symbolic dims are preserved.
//!
//! [`import`] converts a decoded [`Model`] to an `IRModule` whose function `main` has the graph's
//! inputs as parameters and its initializers as constants. Nothing is specialised for example
//! inputs: names of dims become symbols, shape arithmetic is folded symbolically, and unknown sizes
//! become new symbols at run time. All problems are reported, node by node ([`Problem`]).
//!
//! Steps of an import: [`Model::open`] maps and decodes the file within [`Limits`], `form` verifies
//! that the graph is well-formed, and `graph` visits the nodes. Each node is converted by the entry
//! for its operator in the table of [`ops`].

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
mod node;
mod node_count;
mod non_constant;
mod object_type;
pub mod ops;
mod panic_guard;
pub mod proto;
mod rational_dims;
mod report;
mod requirements;
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
pub use report::{Finding, Report, check};
pub use shape_contract::{Constraint, DeclaredBy, DynamicDim, ShapeReport, SymbolInfo};
