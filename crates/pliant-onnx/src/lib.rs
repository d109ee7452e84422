//! ONNX models as Pliant modules, with every symbolic dimension kept.
//!
//! [`import`] takes a decoded [`Model`] to an `IRModule` whose function `main` has the graph's inputs as parameters and
//! its initializers as constants. Nothing is specialised to an example: names of dimensions become symbols, arithmetic
//! on shapes is folded on symbols, and what only a run can know becomes a shape of the run. What cannot be taken is
//! reported whole, node by node ([`Problem`]).
//!
//! The way of a file: [`Model::open`] maps and decodes it within [`Limits`], `form` verifies the graph's form,
//! `graph` walks the nodes, and each node is converted by the row of its operator in the one table of [`ops`].

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
