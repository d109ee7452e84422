//! What an import is given beside the model, and what it gives.

use indexmap::IndexMap;
use pliant_diag::FileId;
use pliant_ir::{DType, IRModule};
use pliant_tensor::Tensor;

use crate::contract::{DynamicDim, ShapeReport};
use crate::error::Problem;

/// How to import a model.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Initializers become parameters behind the inputs, in place of constants.
    pub keep_params_in_input: bool,
    /// Dims of inputs in place of those that the file declares: a number, or the name of a symbol.
    pub shapes: IndexMap<String, Vec<DimSpec>>,
    /// Element types of inputs in place of those that the file declares; what is fed is converted.
    pub dtypes: IndexMap<String, DType>,
    /// The tensors that the graph's nodes give become outputs behind its own, to compare them.
    pub intermediates: bool,
    /// What is known of single dims of inputs, by axis: symbols in place of what the file declares, with their ranges.
    pub dynamic: IndexMap<String, IndexMap<usize, DynamicDim>>,
    /// Numbers that divide symbols.
    pub divisible: IndexMap<String, i64>,
    /// Whether the model may fix declared symbols, those of the file included: it is a warning then, else an error.
    pub allow_specialization: bool,
    /// The graph of a [`pliant_diag::SourceMap`] that spans point into; [`Imported::nodes`] is its text.
    pub file: Option<FileId>,
}

/// A dim that the user gives.
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
    /// The module, whose function `main` is the graph.
    pub module: IRModule,
    /// The initializers behind the inputs of `main`, by name; empty unless they were asked for as parameters.
    pub params: IndexMap<String, Tensor>,
    /// The names of the inputs, in the order of `main`'s parameters.
    pub inputs: Vec<String>,
    /// The names of the outputs; `main` returns a tuple when there are several.
    pub outputs: Vec<String>,
    /// The symbols of the inputs, and which nodes constrain them.
    pub shapes: ShapeReport,
    /// What is wrong with the model that does not keep it from running.
    pub warnings: Vec<Problem>,
    /// The nodes as messages call them, one a line, which spans point into.
    pub nodes: String,
}
