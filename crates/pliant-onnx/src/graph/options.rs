//! Options and results of an import.

use indexmap::IndexMap;
use pliant_diag::FileId;
use pliant_ir::{DType, IRModule};
use pliant_tensor::Tensor;

use crate::error::Problem;
use crate::shape_contract::{DynamicDim, ShapeReport};

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Make initializers parameters after the inputs, rather than constants.
    pub keep_params_in_input: bool,
    /// Overrides the declared dims of inputs by numbers or symbols.
    pub shapes: IndexMap<String, Vec<DimSpec>>,
    /// Overrides the declared element types of inputs. Arguments are converted to the declared
    /// type.
    pub dtypes: IndexMap<String, DType>,
    /// Add the tensors computed by the graph's nodes to the outputs, for comparisons.
    pub intermediates: bool,
    /// Declarations of single dims of inputs, by axis: symbols that override those of the file,
    /// with their ranges.
    pub dynamic: IndexMap<String, IndexMap<usize, DynamicDim>>,
    /// Divisors of symbols.
    pub divisible: IndexMap<String, i64>,
    /// Whether the model may restrict declared symbols, including those of the file, to few sizes.
    /// If so, this causes a warning, else an error.
    pub allow_specialization: bool,
    /// The graph of a [`pliant_diag::SourceMap`] that spans refer to. Its text is
    /// [`Imported::nodes`].
    pub file: Option<FileId>,
}

/// A dim specified by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimSpec {
    /// A size.
    Size(i64),
    /// A symbol.
    Name(String),
    /// A symbol without a name.
    Any,
}

/// An imported model.
#[derive(Debug)]
pub struct Imported {
    /// The module. Its function `main` is the graph.
    pub module: IRModule,
    /// The initializers that are parameters of `main` after its inputs, by name. Empty unless
    /// requested.
    pub params: IndexMap<String, Tensor>,
    /// The names of the inputs in the order of `main`'s parameters.
    pub inputs: Vec<String>,
    /// The names of the outputs. If there are several, `main` returns a tuple.
    pub outputs: Vec<String>,
    /// The symbols of the inputs, and the constraints on them.
    pub shapes: ShapeReport,
    /// Problems that do not prevent the model from running.
    pub warnings: Vec<Problem>,
    /// The labels of the nodes, one per line. Spans refer to this text.
    pub nodes: String,
}
