//! [`import`]: converts the nodes of a graph in order and builds the function `main`.
//!
//! # Tolerated violations
//! Violations of the ONNX specification that ONNX Runtime tolerates are warnings (`Importer::tolerate`), and errors if the option
//! `strict` is set:
//!
//! | violation | what the import assumes | file |
//! |---|---|---|
//! | an input has a negative dim | a symbol without a name | `inputs_and_initializers.rs` |
//! | a value has a wrong declared shape | the inferred shape | `declared_type_checks.rs` |
//! | a contributed domain has no opset import | the newest known version | `../graph_checker.rs` |
//! | the signal of `STFT` has 2 dims | a real signal without its last dim | `../ops/signal_processing.rs` |

mod constants_and_outputs;
mod declared_type_checks;
mod import_options;
mod inputs_and_initializers;
mod name_scopes;
mod node_conversion;
mod node_source_spans;
mod result_shape_checks;
mod size_symbols;

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_diag::SourceMap;
use pliant_ir::attr_names::{
    DEFAULT_INPUTS, GLOBAL_SYMBOL, INPUT_NAMES, NARROW_OUTPUTS, NUM_INPUT, OUTPUT_NAMES,
};
use pliant_ir::relax::size_origins::DIVISIBLE;
use pliant_ir::relax::{Expr, FunctionBuilder};
use pliant_ir::{AttrValue, IRModule};
use pliant_ops::registry;
use pliant_opt::canonicalize::convert_to_dataflow::ConvertToDataflow;
use pliant_opt::memory::copy_aliased_results::FRESH_RESULTS;
use pliant_pass::{ModulePass, PassContext};
use pliant_sym::Sym;
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use crate::dim_symbols::DimSymbols;
use crate::external_data::ExternalData;
use crate::failed_node_recorder::FailureRecorder;
use crate::graph_checker;
use crate::import_deadline::ImportDeadline;
use crate::import_error::{ImportError, Problem};
use crate::import_limits::Limits;
use crate::imported_value::Value;
use crate::model_file::Model;
use crate::operator_schemas;
use crate::partly_known_vectors::KnownElements;
use crate::proto::type_proto::Value as TypeValue;
use crate::proto::{FunctionProto, GraphProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use crate::subbyte_types;
use crate::symbol_constraints::SymbolConstraints;
use crate::value_origins::{Origin, Origins};

pub use import_options::{DimSpec, ImportOptions, Imported};
pub(crate) use inputs_and_initializers::constant_value;
pub(crate) use node_conversion::{operator_name, unknown_operator};
use node_source_spans::SourceSpans;
use size_symbols::SizeSymbols;

/// Imports a model as a module with the function `main`.
///
/// # Examples
/// ```
/// use pliant_onnx::{ImportOptions, Limits, Model, import};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
/// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
/// // `RELU` contains a model with the node y = Relu(x), where x has the shape [n].
/// let model = Model::from_bytes(RELU, Limits::default())?;
/// let imported = import(&model, &ImportOptions::default())?;
/// assert!(imported.module.get("main").is_some());
/// assert_eq!((&imported.inputs[0][..], &imported.outputs[0][..]), ("x", "y"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// All problems that prevent the import, in the order of the nodes.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, ImportError> {
    let checked = graph_checker::check(&model.proto, &model.limits, options.strict);
    let graph = graph_of(model)?;
    if !checked.problems.is_empty() || !checked.within_limits {
        let mut problems = checked.problems;
        if checked.within_limits {
            problems.extend(all_problems(model, graph, options));
        }
        return Err(ImportError { problems });
    }
    let mut importer = Importer::new(model);
    importer.spans.file = options.file;
    importer.tolerated = checked.tolerated;
    importer.import_graph(model, graph, options).map_err(|first| {
        let all = all_problems(model, graph, options);
        // The first problem is reported even if the second pass, which collects all problems, finds none.
        if all.is_empty() { first } else { ImportError { problems: all } }
    })
}

/// Imports a model with one node at run time, when the types of the operands are known. The node is
/// never deferred again, so these imports do not nest. Only the first problem is reported.
pub(crate) fn import_single_node(model: &Model) -> Result<Imported, ImportError> {
    let checked = graph_checker::check(&model.proto, &model.limits, false);
    if !checked.problems.is_empty() || !checked.within_limits {
        return Err(ImportError { problems: checked.problems });
    }
    Importer::for_deferred_node(model).import_graph(
        model,
        graph_of(model)?,
        &ImportOptions::default(),
    )
}

fn graph_of(model: &Model) -> Result<&GraphProto, Problem> {
    model.proto.graph.as_ref().ok_or_else(|| {
        Problem::invalid("the model contains no graph (field 'graph' of ModelProto)")
    })
}

/// Finds all problems that prevent the conversion of nodes. Nodes downstream of a failed node are checked as far as the file
/// declares their input types.
fn all_problems(model: &Model, graph: &GraphProto, options: &ImportOptions) -> Vec<Problem> {
    let mut importer = Importer::recording(model);
    importer.convert_model(graph, options);
    importer.into_problems_and_failures().0
}

/// Imports a model like [`import`], and adds the nodes to `sources`, so that run-time errors of the program name the node from
/// which they come.
///
/// # Examples
/// ```
/// use pliant_onnx::{ImportOptions, Limits, Model, import_with};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
/// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
/// // `RELU` contains a model with the node y = Relu(x), where x has the shape [n].
/// let model = Model::from_bytes(RELU, Limits::default())?;
/// let mut sources = pliant_diag::SourceMap::new();
/// let imported = import_with(&model, &ImportOptions::default(), &mut sources)?;
/// assert!(imported.nodes.contains("Relu"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The same errors as [`import`].
pub fn import_with(
    model: &Model,
    options: &ImportOptions,
    sources: &mut SourceMap,
) -> Result<Imported, ImportError> {
    let file = sources.add_graph("an ONNX model");
    let imported = import(model, &ImportOptions { file: Some(file), ..options.clone() })?;
    sources.name_nodes(file, &imported.nodes);
    Ok(imported)
}

/// Puts the module's bindings into dataflow blocks, because passes fuse and reorder only inside these blocks.
fn convert_to_dataflow(module: IRModule) -> Result<IRModule, ImportError> {
    let converted = ConvertToDataflow::default().apply(module, &PassContext::new(registry()));
    converted.map_err(|e| Problem::internal("ConvertToDataflow", e).into())
}

/// The state of the import of one model.
pub(crate) struct Importer<'m> {
    pub(crate) builder: FunctionBuilder<'static>,
    pub(crate) external: ExternalData,
    pub(crate) limits: Limits,
    pub(crate) symbols: DimSymbols,
    /// For the current graph and each enclosing graph (innermost last), the values of the names defined so far, with their origins.
    scopes: Vec<FxHashMap<String, (Value, Origin)>>,
    opsets: FxHashMap<&'m str, i64>,
    functions: FxHashMap<FunctionKey<'m>, &'m FunctionProto>,
    pub(crate) known_elements: KnownElements,
    /// The constants that the import has created so far, by the address of their data and by shape. Tensors that share data and
    /// shape get the same constant.
    constants: FxHashMap<(usize, Vec<i64>), Expr>,
    pub(crate) problems: Vec<Problem>,
    /// The violations of the ONNX specification that the import tolerates.
    tolerated: Vec<Problem>,
    /// Whether violations that other imports tolerate are problems.
    strict: bool,
    params: IndexMap<String, Tensor>,
    pub(crate) deadline: ImportDeadline,
    /// The recorder of failed nodes for a report. Without it, only the problems are collected.
    pub(crate) recorder: Option<FailureRecorder<'m>>,
    pub(crate) symbol_constraints: SymbolConstraints,
    pub(crate) origins: Origins,
    /// The origin of the values that are being created: the node that is being converted. Messages
    /// about sizes use it.
    pub(crate) origin: Origin,
    /// Whether this import runs at run time, for a node that the first import deferred. If so, a node that cannot be converted is
    /// an error and is not deferred again.
    pub(crate) is_deferred_import: bool,
    spans: SourceSpans,
    size_symbols: SizeSymbols,
    /// The types that the file declares for intermediate values and outputs of the graph.
    declared: FxHashMap<&'m str, &'m ValueInfoProto>,
    /// Whether the sizes in `declared` are valid. They are invalid if the user overrides sizes of inputs.
    declared_sizes: bool,
    /// Whether the function being built has no side effects. Run-time checks are side effects.
    pure: bool,
}

/// The main graph of the model after its conversion.
pub(crate) struct ConvertedGraph {
    inputs: Vec<String>,
    /// The names of graph inputs that become constants and not parameters, because the file has values for them.
    defaults: Vec<String>,
    outputs: Vec<String>,
    /// For each output, the name of its narrow type, or `""`.
    narrow_outputs: Vec<String>,
    result: Expr,
}

/// The name of the narrow element type of a tensor, or `""` for other types.
fn narrow_type_name(info: &ValueInfoProto) -> String {
    let tensor = match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
        Some(TypeValue::TensorType(tensor)) => tensor,
        _ => return String::new(),
    };
    let narrow = subbyte_types::narrow_type(tensor.elem_type().into());
    narrow.and_then(subbyte_types::ml_dtypes_name).unwrap_or_default().to_owned()
}

impl<'m> Importer<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        let mut opsets = FxHashMap::default();
        for import in &model.proto.opset_import {
            opsets.insert(normalized_domain(import.domain()), import.version());
        }
        Importer {
            builder: FunctionBuilder::new(registry()),
            external: ExternalData::new(model.folder.clone()),
            limits: model.limits,
            symbols: DimSymbols::default(),
            scopes: vec![FxHashMap::default()],
            opsets,
            functions: model.proto.functions.iter().map(|f| (function_key(f), f)).collect(),
            known_elements: KnownElements::default(),
            constants: FxHashMap::default(),
            problems: Vec::new(),
            tolerated: Vec::new(),
            strict: false,
            params: IndexMap::new(),
            deadline: ImportDeadline::new(&model.limits),
            recorder: None,
            symbol_constraints: SymbolConstraints::default(),
            origins: Origins::default(),
            origin: Origin::default(),
            is_deferred_import: false,
            spans: SourceSpans::default(),
            size_symbols: SizeSymbols::default(),
            declared: FxHashMap::default(),
            declared_sizes: true,
            pure: true,
        }
    }

    /// Creates an importer that records failed nodes and continues after them.
    pub(crate) fn recording(model: &'m Model) -> Self {
        let recorder = model.proto.graph.as_ref().map(|g| FailureRecorder::new(&model.proto, g));
        Importer { recorder, ..Importer::new(model) }
    }

    /// Creates an importer for the model of a deferred node, a node whose import was deferred to run time.
    fn for_deferred_node(model: &'m Model) -> Self {
        Importer { is_deferred_import: true, ..Importer::new(model) }
    }

    /// Converts the graph of the model into a module with the function `main`.
    fn import_graph(
        mut self,
        model: &Model,
        graph: &'m GraphProto,
        options: &ImportOptions,
    ) -> Result<Imported, ImportError> {
        let (parts, notes) = self.convert_model(graph, options);
        let Some(parts) = parts.filter(|_| self.problems.is_empty()) else {
            return Err(ImportError { problems: self.problems });
        };
        let warnings = operator_schemas::old_opset_note(model).into_iter().chain(notes).collect();
        let mut imported = self.build_module(parts, warnings);
        imported.module = convert_to_dataflow(imported.module)?;
        Ok(imported)
    }

    /// The problems of the import in the order of the nodes, and the recorder of failed nodes.
    pub(crate) fn into_problems_and_failures(self) -> (Vec<Problem>, Option<FailureRecorder<'m>>) {
        (self.problems, self.recorder)
    }

    /// Converts the main graph, then checks the constraints on symbols. Returns the converted graph and the warnings.
    pub(crate) fn convert_model(
        &mut self,
        graph: &'m GraphProto,
        options: &ImportOptions,
    ) -> (Option<ConvertedGraph>, Vec<Problem>) {
        self.strict = options.strict;
        if let Err(problem) = self.symbols.declare_divisors(&options.divisible) {
            self.problems.push(problem);
        }
        let parts = self.convert_main_graph(graph, options);
        if self.problems.is_empty() {
            self.problems.extend(self.symbols.undeclared_divisible());
        }
        let mut warnings = std::mem::take(&mut self.tolerated);
        warnings.extend(self.check_symbol_constraints(options.allow_specialization));
        (parts, warnings)
    }

    /// Records a violation of the ONNX specification that ONNX Runtime tolerates: a warning, or an error if the import is strict.
    pub(crate) fn tolerate(&mut self, violation: Problem) {
        let list = if self.strict { &mut self.problems } else { &mut self.tolerated };
        list.push(violation);
    }

    /// The version of the opset that the model imports for a domain; the newest known version if it imports none.
    pub(crate) fn opset_of(&self, domain: &str) -> i64 {
        self.opsets.get(domain).copied().unwrap_or_else(|| operator_schemas::newest_opset(domain))
    }

    /// The opset imports for a model that contains only the given node. They cover all domains of the file, of the node and of its
    /// subgraphs.
    pub(crate) fn opset_imports_for(&self, node: &NodeProto) -> Vec<OperatorSetIdProto> {
        let mut domains: Vec<&str> = self.opsets.keys().copied().collect();
        operator_schemas::domains_of(std::slice::from_ref(node), &mut domains);
        domains.sort_unstable();
        let opset = |domain: &str| OperatorSetIdProto {
            domain: Some(domain.into()),
            version: Some(self.opset_of(domain)),
        };
        domains.into_iter().map(opset).collect()
    }

    /// Checks the constraints that nodes impose on the sizes of symbols. A constraint that restricts a declared symbol to few
    /// sizes is recorded as a problem or, if `allowed` is set, returned as a warning.
    fn check_symbol_constraints(&mut self, allowed: bool) -> Vec<Problem> {
        let func = self.builder.func_mut();
        self.symbol_constraints.analyze(func, &self.origins, &self.symbols);
        self.problems.extend(self.symbol_constraints.unsatisfiable_symbols(func));
        let (problems, warnings) = self.symbol_constraints.specialization_problems(allowed);
        self.problems.extend(problems);
        warnings
    }

    /// Records a constraint on sizes that the current node imposes.
    pub(crate) fn record_constraint(&mut self, cond: Sym) {
        self.symbol_constraints.record(self.builder.func(), cond, self.origin);
    }

    /// Converts the main graph and its outputs. `None` if an output cannot be created.
    fn convert_main_graph(
        &mut self,
        graph: &'m GraphProto,
        options: &ImportOptions,
    ) -> Option<ConvertedGraph> {
        let (inputs, defaults) = self.create_params(graph, options);
        self.convert_initializers(graph, &inputs, options.keep_params_in_input);
        self.origin = Origin::default();
        for (dim, range) in std::mem::take(&mut self.symbol_constraints.ranges) {
            if let Err(problem) = self.check_range(dim, &range) {
                self.problems.push(problem);
            }
        }
        let infos = graph.value_info.iter().chain(&graph.output);
        self.declared = infos.map(|i| (i.name(), i)).collect();
        self.declared_sizes = options.shapes.is_empty() && options.dynamic.is_empty();
        self.convert_nodes(&graph.node);
        let mut results = Vec::new();
        for output in &graph.output {
            match self.lookup(output.name()) {
                Some(Value::Failed) | None => {}
                Some(value) => match self.output_expr(&value, output) {
                    Ok(e) => results.push(e),
                    Err(problem) => self.problems.push(problem),
                },
            }
        }
        if results.len() != graph.output.len() {
            return None;
        }
        let mut outputs: Vec<String> = graph.output.iter().map(|o| o.name().into()).collect();
        let mut narrow_outputs: Vec<String> = graph.output.iter().map(narrow_type_name).collect();
        if options.intermediates {
            self.add_intermediate_outputs(graph, &mut outputs, &mut results);
        }
        narrow_outputs.resize(outputs.len(), String::new());
        let result = match results.as_slice() {
            [one] => *one,
            all => self.builder.func_mut().tuple(all),
        };
        let inputs = inputs.iter().map(|i| i.name().to_owned()).collect();
        Some(ConvertedGraph { inputs, defaults, outputs, narrow_outputs, result })
    }

    /// Ends the function `main` and builds the result of the import.
    fn build_module(self, parts: ConvertedGraph, warnings: Vec<Problem>) -> Imported {
        let count = parts.inputs.len() as i64;
        let mut func = self.builder.finish(parts.result, None, self.pure);
        func.attrs.insert(GLOBAL_SYMBOL.into(), AttrValue::str("main"));
        let divisible = self.symbols.divisible_triples();
        if !divisible.is_empty() {
            let divisible = divisible.iter().map(|w| AttrValue::str(w)).collect();
            func.attrs.insert(DIVISIBLE.into(), AttrValue::List(divisible));
        }
        // // The results must not alias the inputs: callers may modify these after the call.
        func.attrs.insert(FRESH_RESULTS.into(), AttrValue::Bool(true));
        func.attrs.insert(NUM_INPUT.into(), AttrValue::Int(count));
        // Names of the file need not be valid identifiers in a script.
        let names = |of: &[String]| AttrValue::List(of.iter().map(|n| AttrValue::str(n)).collect());
        let input_names: Vec<String> =
            parts.inputs.iter().chain(self.params.keys()).cloned().collect();
        func.attrs.insert(INPUT_NAMES.into(), names(&input_names));
        func.attrs.insert(OUTPUT_NAMES.into(), names(&parts.outputs));
        if parts.narrow_outputs.iter().any(|name| !name.is_empty()) {
            func.attrs.insert(NARROW_OUTPUTS.into(), names(&parts.narrow_outputs));
        }
        if !parts.defaults.is_empty() {
            func.attrs.insert(DEFAULT_INPUTS.into(), names(&parts.defaults));
        }
        let mut module = IRModule::default();
        module.insert("main", func);
        Imported {
            module,
            params: self.params,
            inputs: parts.inputs,
            outputs: parts.outputs,
            shapes: self.symbol_constraints.report,
            warnings,
            nodes: self.spans.text,
        }
    }

    /// Records that the function being built has a side effect, because it contains a run-time
    /// check.
    pub(crate) fn mark_impure(&mut self) {
        self.pure = false;
    }

    /// Starts a nested function. Returns whether the enclosing function has been pure so far; the
    /// caller passes this to [`end_nested_function`](Self::end_nested_function).
    pub(crate) fn begin_nested_function(&mut self) -> bool {
        std::mem::replace(&mut self.pure, true)
    }

    /// Ends a nested function and returns whether it is pure. An impure nested function makes the enclosing function impure.
    pub(crate) fn end_nested_function(&mut self, outer_pure: bool) -> bool {
        let pure = self.pure;
        self.pure &= outer_pure;
        pure
    }

    /// The number of problems found so far.
    pub(crate) fn problem_count(&self) -> usize {
        self.problems.len()
    }
}

/// The key by which a function of the model is identified: domain, name and overload.
pub(crate) type FunctionKey<'m> = (&'m str, &'m str, &'m str);

/// The key that identifies a function of the model.
pub(crate) fn function_key(function: &FunctionProto) -> FunctionKey<'_> {
    (normalized_domain(function.domain()), function.name(), function.overload())
}

/// Normalizes the domain name: `ai.onnx` and the empty name both denote ONNX's own domain.
pub(crate) fn normalized_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// Converts a text to a script identifier. Returns `default` if no valid character remains.
pub(crate) fn identifier(text: &str, default: &str) -> Arc<str> {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = text.chars().map(keep).collect();
    match name.trim_matches('_') {
        "" => default.into(),
        short if short.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{default}_{short}").into()
        }
        short => short.into(),
    }
}
