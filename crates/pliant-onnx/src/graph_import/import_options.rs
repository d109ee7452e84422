//! The options and the result of an import.

use indexmap::IndexMap;
use pliant_diag::FileId;
use pliant_ir::{DType, IRModule};
use pliant_tensor::Tensor;

use crate::import_error::Problem;
use crate::shape_constraint_report::{DynamicDim, ShapeReport};

/// The options of an import.
///
/// # Examples
/// ```
/// use pliant_onnx::{DimSpec, ImportOptions, Limits, Model, import};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
/// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
/// // `RELU` contains a model with the node y = Relu(x), where x has the shape [n].
/// let model = Model::from_bytes(RELU, Limits::default())?;
/// let mut options = ImportOptions::default();
/// options.shapes.insert("x".into(), vec![DimSpec::Size(4)]);
/// let imported = import(&model, &options)?;
/// assert_eq!(imported.inputs, ["x"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Whether initializers become parameters of `main`, after the inputs. By default, they become constants.
    pub keep_params_in_input: bool,
    /// The dims of inputs, by input name. They override the dims that the file declares.
    pub shapes: IndexMap<String, Vec<DimSpec>>,
    /// The element types of inputs, by input name. They override the types in the file: an argument
    /// has the type in this option and is cast to the type in the file.
    pub dtypes: IndexMap<String, DType>,
    /// Whether all tensors that nodes compute are added to the outputs, to compare runtimes node by node.
    pub intermediates: bool,
    /// Declarations of single dims of inputs (symbols and their ranges), by input name and axis. They override the dims that the
    /// file declares.
    pub dynamic: IndexMap<String, IndexMap<usize, DynamicDim>>,
    /// The numbers that divide sizes, by symbol name: with `n: 4`, every size of the symbol `n` is a multiple of 4.
    pub divisible: IndexMap<String, i64>,
    /// Whether the model may restrict declared symbols to few sizes, including symbols that the
    /// file declares. If so, each restriction is reported as a warning instead of an error.
    pub allow_specialization: bool,
    /// Whether every violation of the ONNX specification is an error. By default, violations that ONNX Runtime tolerates, such as a
    /// negative dim of an input, are warnings.
    pub strict: bool,
    /// The file to which the source locations of the imported nodes refer, registered in a [`pliant_diag::SourceMap`]. The text of
    /// this file is [`Imported::nodes`].
    pub file: Option<FileId>,
}

/// A dim in the `shapes` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimSpec {
    /// The dim has a constant size.
    Size(i64),
    /// The dim is the symbol with the given name.
    Name(String),
    /// The dim is a new symbol without a given name.
    Any,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The module, whose function `main` computes the graph.
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
    /// The problems that do not prevent the import.
    pub warnings: Vec<Problem>,
    /// The labels of the nodes, one per line. Source locations refer to this text.
    pub nodes: String,
}
