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
    /// Make initializers parameters of `main`, after the inputs. Default: constants.
    pub keep_params_in_input: bool,
    /// Overrides the declared dims of inputs, by input name.
    pub shapes: IndexMap<String, Vec<DimSpec>>,
    /// Overrides the element types of inputs, by input name. Arguments have this type and are cast to the type in the file.
    pub dtypes: IndexMap<String, DType>,
    /// Add all tensors that nodes compute to the outputs, to compare runtimes node by node.
    pub intermediates: bool,
    /// Overrides single dims of inputs, by input name and axis: their symbols and the ranges of these.
    pub dynamic: IndexMap<String, IndexMap<usize, DynamicDim>>,
    /// Divisors of sizes, by symbol name.
    pub divisible: IndexMap<String, i64>,
    /// Whether the model may restrict declared symbols, including those of the file, to few sizes. If so, a restriction is a
    /// warning, else an error.
    pub allow_specialization: bool,
    /// The file in a [`pliant_diag::SourceMap`] that the source locations refer to. Its text is [`Imported::nodes`].
    pub file: Option<FileId>,
}

/// A dim in the `shapes` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimSpec {
    /// A size.
    Size(i64),
    /// A symbol with this name.
    Name(String),
    /// A new symbol.
    Any,
}

/// An imported model.
#[derive(Debug)]
pub struct Imported {
    /// The module. Its function `main` computes the graph.
    pub module: IRModule,
    /// The initializers that are parameters of `main`, by name, in the order of the parameters. Empty unless `keep_params_in_input`
    /// is set.
    pub params: IndexMap<String, Tensor>,
    /// The names of the graph inputs, in the order of `main`'s parameters.
    pub inputs: Vec<String>,
    /// The names of the outputs. If there are several, `main` returns a tuple.
    pub outputs: Vec<String>,
    /// The symbols of the inputs, and the constraints on them.
    pub shapes: ShapeReport,
    /// Problems that do not prevent the import.
    pub warnings: Vec<Problem>,
    /// The labels of the nodes, one per line. Source locations refer to this text.
    pub nodes: String,
}
