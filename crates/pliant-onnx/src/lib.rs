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

mod alone;
mod arithmetic;
mod attr;
mod behind;
mod coded;
mod contract;
mod dims;
mod elements;
mod error;
mod external;
mod fold;
mod form;
mod graph;
mod guard;
pub mod host;
mod kind;
mod limits;
mod meter;
mod model;
mod node;
pub mod ops;
mod origin;
pub mod proto;
mod ratio;
mod record;
mod reduce;
mod refuse;
mod relation;
mod report;
mod require;
mod run;
mod scan;
mod schema;
mod size;
mod tensor;
mod value;
mod watch;

pub use alone::{Depth, NodeAtRun, Operand};
pub use arithmetic::evaluate_dim;
pub use contract::{Constraint, Declared, DynamicDim, ShapeReport, SymbolInfo};
pub use error::{ImportError, Problem, ProblemKind};
pub use graph::{DimSpec, ImportOptions, Imported, import, import_with};
pub use limits::Limits;
pub use model::Model;
pub use report::{Finding, Report, check};
