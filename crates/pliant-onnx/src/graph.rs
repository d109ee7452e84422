//! [`import`]: walks a graph's nodes in order and builds the function.

mod declared;
mod inputs;
mod measure;
mod named;
mod names;
mod places;

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_diag::{FileId, SourceMap};
use pliant_ir::attr_names::{GLOBAL_SYMBOL, INPUT_NAMES, NUM_INPUT, OUTPUT_NAMES};
use pliant_ir::relax::origins::DIVISIBLE;
use pliant_ir::relax::{Expr, FunctionBuilder, TypeData};
use pliant_ir::{AttrValue, DType, IRModule};
use pliant_ops::registry;
use pliant_opt::convert_to_dataflow::ConvertToDataflow;
use pliant_opt::copy_aliased_results::FRESH_RESULTS;
use pliant_pass::{ModulePass, PassContext};
use pliant_sym::Sym;
use pliant_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::coded::moves;
use crate::contract::{DynamicDim, ShapeReport, Watch};
use crate::dims::Symbols;
use crate::error::{ImportError, Problem};
use crate::external::ExternalData;
use crate::form;
use crate::guard;
use crate::limits::Limits;
use crate::meter::Meter;
use crate::model::Model;
use crate::node::{Node, label};
use crate::ops;
use crate::origin::{Origin, Origins};
use crate::proto::type_proto::Value as TypeValue;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto};
use crate::record::Recorder;
use crate::schema;
use crate::tensor;
use crate::value::Value;

pub(crate) use inputs::constant_value;
use places::Places;

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
    /// Whether the model may fix declared symbols: it is a warning then, else an error. Where nothing is said, it may fix
    /// those that only the file names, and none that `dynamic` or `shapes` declares.
    pub allow_specialization: Option<bool>,
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

/// Imports a model.
///
/// # Errors
/// Everything that keeps it from being imported, node by node.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, ImportError> {
    imported(model, options, false)
}

/// A model of one node that is imported when a program runs: nothing is left to the run again.
pub(crate) fn import_alone(model: &Model) -> Result<Imported, ImportError> {
    imported(model, &ImportOptions::default(), true)
}

fn imported(
    model: &Model,
    options: &ImportOptions,
    node_alone: bool,
) -> Result<Imported, ImportError> {
    let form = form::check(&model.proto, &model.limits);
    if !form.problems.is_empty() || !form.within {
        return Err(ImportError { problems: form.problems });
    }
    let graph = model.proto.graph.as_ref().ok_or_else(|| Problem::invalid("there is no graph"))?;
    let mut importer = Importer::new(model);
    importer.places.file = options.file;
    importer.node_alone = node_alone;
    importer.symbols.divide(&options.divisible).map_err(ImportError::from)?;
    let parts = importer.main(graph, options);
    if importer.problems.is_empty() {
        importer.problems.extend(importer.symbols.unknown_divisible());
    }
    let mut warnings: Vec<Problem> = schema::note(model).into_iter().collect();
    warnings.extend(importer.settled(options.allow_specialization));
    match parts {
        Some(parts) if importer.problems.is_empty() => {
            let mut imported = importer.finish(parts, warnings);
            imported.module = in_dataflow(imported.module)?;
            Ok(imported)
        }
        _ => Err(ImportError { problems: importer.problems }),
    }
}

/// As [`import`]; the errors of the program's runs then name the nodes that they come from.
///
/// # Errors
/// As [`import`].
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

/// The module with its bindings in dataflow blocks, in which passes fuse and reorder.
fn in_dataflow(module: IRModule) -> Result<IRModule, ImportError> {
    let made = ConvertToDataflow::default().apply(module, &PassContext::new(registry()));
    made.map_err(|e| Problem::internal("ConvertToDataflow", e).into())
}

/// The import under way.
pub(crate) struct Importer<'m> {
    pub(crate) builder: FunctionBuilder<'static>,
    pub(crate) external: ExternalData,
    pub(crate) limits: Limits,
    pub(crate) symbols: Symbols,
    /// What the names stand for, of the graph under way and those around it.
    scopes: Vec<FxHashMap<String, (Value, Origin)>>,
    pub(crate) opsets: FxHashMap<&'m str, i64>,
    functions: FxHashMap<FunctionKey<'m>, &'m FunctionProto>,
    /// The constants made so far, by where their data lies.
    constants: FxHashMap<(usize, Vec<i64>), Expr>,
    problems: Vec<Problem>,
    params: IndexMap<String, Tensor>,
    pub(crate) meter: Meter,
    /// Keeps what failed for a report; without one an import only tells it.
    pub(crate) recorder: Option<Recorder<'m>>,
    pub(crate) watch: Watch,
    pub(crate) origins: Origins,
    /// What is made now.
    pub(crate) origin: Origin,
    /// Whether what cannot be converted is not left to the run.
    pub(crate) node_alone: bool,
    places: Places,
    /// What the file says of the values of its graph.
    declared: FxHashMap<&'m str, &'m ValueInfoProto>,
    /// Whether the sizes that it says are those of the values: not where the user gave others for inputs.
    declared_sizes: bool,
    /// Whether nothing has an effect but its result; checks of ranges have one.
    pure: bool,
}

/// The result of the main graph.
pub(crate) struct Parts {
    inputs: Vec<String>,
    outputs: Vec<String>,
    result: Expr,
}

impl<'m> Importer<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        let mut opsets = FxHashMap::default();
        for import in &model.proto.opset_import {
            opsets.insert(own_domain(import.domain()), import.version());
        }
        Importer {
            builder: FunctionBuilder::new(registry()),
            external: ExternalData::new(model.folder.clone()),
            limits: model.limits,
            symbols: Symbols::default(),
            scopes: vec![FxHashMap::default()],
            opsets,
            functions: model.proto.functions.iter().map(|f| (function_key(f), f)).collect(),
            constants: FxHashMap::default(),
            problems: Vec::new(),
            params: IndexMap::new(),
            meter: Meter::new(&model.limits),
            recorder: None,
            watch: Watch::default(),
            origins: Origins::default(),
            origin: Origin::default(),
            node_alone: false,
            places: Places::default(),
            declared: FxHashMap::default(),
            declared_sizes: true,
            pure: true,
        }
    }

    /// An import that goes on behind what fails and keeps it.
    pub(crate) fn recording(model: &'m Model) -> Self {
        let recorder = model.proto.graph.as_ref().map(|g| Recorder::new(&model.proto, g));
        Importer { recorder, ..Importer::new(model) }
    }

    /// Every problem, in the order of the nodes, and what failed.
    pub(crate) fn into_problems(self) -> (Vec<Problem>, Option<Recorder<'m>>) {
        (self.problems, self.recorder)
    }

    /// Looks at what was asked of symbols. What is broken is a problem; what is allowed is returned.
    pub(crate) fn settled(&mut self, allowed: Option<bool>) -> Vec<Problem> {
        let func = self.builder.func_mut();
        self.watch.settle(func, &self.origins, &self.symbols);
        self.problems.extend(self.watch.impossible(func));
        let (problems, warnings) = self.watch.broken(allowed);
        self.problems.extend(problems);
        warnings
    }

    /// A condition on sizes that the node under way needs.
    pub(crate) fn ask(&mut self, cond: Sym) {
        self.watch.ask(self.builder.func(), cond, self.origin);
    }

    /// Walks the graph; nothing where its result cannot be made.
    pub(crate) fn main(&mut self, graph: &'m GraphProto, options: &ImportOptions) -> Option<Parts> {
        let initial: FxHashMap<&str, ()> =
            graph.initializer.iter().map(|t| (t.name(), ())).collect();
        for name in options.dynamic.keys() {
            if !graph.input.iter().any(|i| i.name() == name) {
                let message = format!("shapes are declared for '{name}', which is no input");
                self.problems.push(Problem::invalid(message));
            }
        }
        let inputs: Vec<&ValueInfoProto> =
            graph.input.iter().filter(|i| !initial.contains_key(i.name())).collect();
        for name in options.shapes.keys().chain(options.dtypes.keys()) {
            if !inputs.iter().any(|i| i.name() == name) {
                let known: Vec<&str> = inputs.iter().map(|i| i.name()).collect();
                let problem = Problem::invalid(format!("there is no input '{name}'"));
                let help = format!("the inputs are {}", known.join(", "));
                self.problems.push(problem.with_help(help));
            }
        }
        self.settle(&inputs, options);
        self.places.under_way = self.places.inputs();
        self.builder.set_span(self.places.under_way);
        for input in &inputs {
            self.origin = self.origins.named(input.name());
            self.input(input, options);
        }
        self.initializers(graph, options.keep_params_in_input);
        self.origin = Origin::default();
        for (dim, range) in std::mem::take(&mut self.watch.ranges) {
            if let Err(problem) = self.check_range(dim, &range) {
                self.problems.push(problem);
            }
        }
        let infos = graph.value_info.iter().chain(&graph.output);
        self.declared = infos.map(|i| (i.name(), i)).collect();
        self.declared_sizes = options.shapes.is_empty() && options.dynamic.is_empty();
        self.nodes(&graph.node);
        let mut results = Vec::new();
        for output in &graph.output {
            match self.lookup(output.name()) {
                Some(Value::Failed) | None => {}
                Some(value) => match self.result(&value, output) {
                    Ok(e) => results.push(e),
                    Err(problem) => self.problems.push(problem),
                },
            }
        }
        if results.len() != graph.output.len() {
            return None;
        }
        let mut outputs: Vec<String> = graph.output.iter().map(|o| o.name().into()).collect();
        if options.intermediates {
            self.intermediates(graph, &mut outputs, &mut results);
        }
        let result = match results.as_slice() {
            [one] => *one,
            all => self.builder.func_mut().tuple(all),
        };
        let inputs = inputs.iter().map(|i| i.name().to_owned()).collect();
        Some(Parts { inputs, outputs, result })
    }

    /// Adds the tensors that nodes give to the outputs.
    fn intermediates(
        &mut self,
        graph: &GraphProto,
        outputs: &mut Vec<String>,
        results: &mut Vec<Expr>,
    ) {
        let names = graph.node.iter().flat_map(|n| &n.output).filter(|o| !o.is_empty());
        let mut given: FxHashSet<String> = outputs.iter().cloned().collect();
        for name in names {
            let Some(value) = self.lookup(name).filter(|_| given.insert(name.clone())) else {
                continue;
            };
            let info = ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() };
            // Sequences and optionals are no tensors.
            let Ok(e) = self.result(&value, &info) else { continue };
            if matches!(self.builder.func().ty(e), TypeData::Tensor { .. }) {
                outputs.push(name.clone());
                results.push(e);
            }
        }
    }

    fn finish(self, parts: Parts, warnings: Vec<Problem>) -> Imported {
        let count = parts.inputs.len() as i64;
        let mut func = self.builder.finish(parts.result, None, self.pure);
        func.attrs.insert(GLOBAL_SYMBOL.into(), AttrValue::str("main"));
        let wholes = self.symbols.wholes();
        if !wholes.is_empty() {
            let wholes = wholes.iter().map(|w| AttrValue::str(w)).collect();
            func.attrs.insert(DIVISIBLE.into(), AttrValue::List(wholes));
        }
        // Who runs a model may write into what it was fed without changing what came out.
        func.attrs.insert(FRESH_RESULTS.into(), AttrValue::Bool(true));
        func.attrs.insert(NUM_INPUT.into(), AttrValue::Int(count));
        // The names of the file, which need not be names of the script.
        let names = |of: &[String]| AttrValue::List(of.iter().map(|n| AttrValue::str(n)).collect());
        let given: Vec<String> = parts.inputs.iter().chain(self.params.keys()).cloned().collect();
        func.attrs.insert(INPUT_NAMES.into(), names(&given));
        func.attrs.insert(OUTPUT_NAMES.into(), names(&parts.outputs));
        let mut module = IRModule::default();
        module.insert("main", func);
        Imported {
            module,
            params: self.params,
            inputs: parts.inputs,
            outputs: parts.outputs,
            shapes: self.watch.report,
            warnings,
            nodes: self.places.text,
        }
    }

    // ---- nodes ----

    /// The functions that graphs inside a node may call.
    pub(crate) fn functions_used(&self) -> Vec<FunctionProto> {
        self.functions.values().map(|f| (*f).clone()).collect()
    }

    /// Converts nodes in order, into the innermost scope.
    pub(crate) fn nodes(&mut self, nodes: &[NodeProto]) {
        for node in nodes {
            self.node(node);
        }
    }

    /// Converts a node, whose bindings come from it.
    fn node(&mut self, node: &NodeProto) {
        let around = self.places.under_way;
        self.places.under_way = self.places.of(node);
        self.builder.set_span(self.places.under_way);
        self.converted(node);
        self.places.under_way = around;
        self.builder.set_span(around);
    }

    fn converted(&mut self, node: &NodeProto) {
        let goes_on = self.meter.goes_on().unwrap_or_else(|problem| {
            self.problems.push(problem);
            false
        });
        if !goes_on {
            return node.output.iter().for_each(|name| self.define(name, Value::Failed));
        }
        let inputs: Vec<Value> = node
            .input
            .iter()
            .map(|name| {
                if name.is_empty() {
                    Value::Absent
                } else {
                    self.lookup(name).unwrap_or(Value::Failed)
                }
            })
            .collect();
        let from = node.input.iter().map(|name| self.origin_of(name)).collect();
        let made = self.origins.node(node, from);
        let around = std::mem::replace(&mut self.origin, made);
        let given = if self.recorder.is_some() { inputs.clone() } else { Vec::new() };
        let outputs = match self.convert(node, inputs) {
            Ok(outputs) => outputs,
            // What failed inside the node, or before it, is told there.
            Err(problem) if problem.message.is_empty() => vec![Value::Failed; node.output.len()],
            Err(problem) => {
                let message = self.symbols.whole_text(&problem.message);
                let problem = Problem { message, ..problem };
                let problem = problem.at(&label(node), &operator_name(node));
                let outputs = self.record(node, &given, &problem);
                self.problems.push(problem);
                outputs
            }
        };
        let mut outputs = outputs.into_iter();
        for name in node.output.iter() {
            let value = outputs.next().unwrap_or(Value::Absent);
            if !name.is_empty() {
                let value = self.with_names(value, &identifier(name, "size"));
                let value = match self.measured(name, &value) {
                    Ok(()) => self.as_declared(node, name, value),
                    Err(problem) => {
                        self.problems.push(problem.at(&label(node), &operator_name(node)));
                        Value::Failed
                    }
                };
                self.origins.describe(made, self.builder.func(), &value);
                self.define(name, value);
            }
        }
        self.origin = around;
    }

    fn convert(&mut self, node: &NodeProto, inputs: Vec<Value>) -> Result<Vec<Value>, Problem> {
        let domain = own_domain(node.domain());
        let function = self.functions.get(&(domain, node.op_type(), node.overload())).copied();
        let row = ops::find(domain, node.op_type());
        let own = ops::user::find(domain, node.op_type());
        if function.is_none() && row.is_none() && own.is_none() {
            return Err(unknown(node));
        }
        let opset = self.opsets.get(domain).copied().unwrap_or_else(|| schema::newest(domain));
        if function.is_none() && row.is_some() {
            schema::check(node, opset)?;
        }
        // What a failed node feeds has no problem of its own.
        if inputs.iter().any(|v| matches!(v, Value::Failed)) {
            return Err(Problem::invalid(""));
        }
        if let Some(function) = function {
            return self.call(function, node, inputs);
        }
        let row = match (row, own) {
            (Some(row), _) => row,
            (None, Some(op)) => {
                return ops::user::convert(&mut Node::new(self, node, opset, inputs), op);
            }
            (None, None) => return Err(unknown(node)),
        };
        // What only moves elements moves those of small types like those that hold them.
        let small = match inputs.first() {
            Some(Value::Coded(ty, _)) if moves(node.op_type()) => Some(*ty),
            _ => None,
        };
        let Some(small) = small else {
            let given = inputs.clone();
            let outcome = guard::convert(row, &mut Node::new(self, node, opset, inputs));
            return outcome.or_else(|problem| self.at_run(node, &given, problem));
        };
        let held = inputs.into_iter().map(|v| match v {
            Value::Coded(_, held) => *held,
            other => other,
        });
        let outputs = guard::convert(row, &mut Node::new(self, node, opset, held.collect()))?;
        Ok(outputs.into_iter().map(|v| Value::Coded(small, Box::new(v))).collect())
    }

    /// Writes out a function of the model.
    fn call(
        &mut self,
        function: &'m FunctionProto,
        node: &NodeProto,
        inputs: Vec<Value>,
    ) -> Result<Vec<Value>, Problem> {
        let mut scope = FxHashMap::default();
        let mut inputs = inputs.into_iter();
        for (i, name) in function.input.iter().enumerate() {
            let origin = self.origins.input(self.origin, i);
            scope.insert(name.clone(), (inputs.next().unwrap_or(Value::Absent), origin));
        }
        // What the call gives goes before what the function says is given otherwise.
        let otherwise = function.attribute_proto.iter();
        let given = otherwise.chain(&node.attribute).map(|a| (a.name(), a)).collect();
        let body: Vec<NodeProto> =
            function.node.iter().map(|inner| with_attributes(inner, &given)).collect();
        // A function sees its own names and operator sets only.
        let scopes = std::mem::replace(&mut self.scopes, vec![scope]);
        let own = function.opset_import.iter().map(|o| (own_domain(o.domain()), o.version()));
        let opsets = std::mem::replace(&mut self.opsets, own.collect());
        let declared = std::mem::take(&mut self.declared);
        self.nodes(&body);
        self.declared = declared;
        let outputs = function.output.iter().map(|o| self.inner_output(o)).collect();
        self.scopes = scopes;
        self.opsets = opsets;
        Ok(outputs)
    }

    /// The values of a graph inside the one under way.
    pub(crate) fn graph_outputs(&mut self, graph: &GraphProto) -> Result<Vec<Value>, Problem> {
        for proto in &graph.initializer {
            let read = tensor::read(proto, &mut self.external, &self.limits);
            let told = |e| Problem::invalid(format!("initializer '{}': {e}", proto.name()));
            let value = constant_value(proto, read.map_err(told)?);
            let origin = self.origins.named(proto.name());
            self.define_from(proto.name(), value, origin);
        }
        self.nodes(&graph.node);
        Ok(graph.output.iter().map(|o| self.inner_output(o.name())).collect())
    }

    /// What was made has an effect but its result: a check.
    pub(crate) fn has_effect(&mut self) {
        self.pure = false;
    }

    /// What follows is a function of its own, until [`end_pure`](Self::end_pure) with what this returns.
    pub(crate) fn start_pure(&mut self) -> bool {
        std::mem::replace(&mut self.pure, true)
    }

    /// Whether the function that ends has no effect; what is around calls it.
    pub(crate) fn end_pure(&mut self, around: bool) -> bool {
        let pure = self.pure;
        self.pure &= around;
        pure
    }

    /// How many problems there are so far.
    pub(crate) fn problem_count(&self) -> usize {
        self.problems.len()
    }

    // ---- the function under construction ----

    /// The constant of a tensor, made once.
    pub(crate) fn constant(&mut self, tensor: &Tensor) -> Expr {
        let key = (tensor.data_ptr() as usize, tensor.shape().to_vec());
        if tensor.numel() == 0 {
            return self.builder.func_mut().constant(tensor.clone());
        }
        let builder = &mut self.builder;
        *self.constants.entry(key).or_insert_with(|| builder.func_mut().constant(tensor.clone()))
    }

    /// Binds a value to a variable named after the node's output. Dims that are not known or large become symbols of the
    /// run.
    pub(crate) fn bind(&mut self, value: Expr, node: &NodeProto) -> Expr {
        let hint = identifier(node.output.first().map_or("", String::as_str), "lv");
        let var = self.builder.emit_named(value, &hint);
        let var = match self.named_dims(var, &hint) {
            Some(ty) => {
                let from = self.builder.func().var_expr(var);
                self.builder.match_cast(from, ty, &hint)
            }
            None => var,
        };
        self.builder.func_mut().var_expr(var)
    }

    /// An output of the graph as a tensor.
    fn result(&mut self, value: &Value, output: &ValueInfoProto) -> Result<Expr, Problem> {
        let name = output.name();
        let identity = NodeProto { output: vec![name.into()], ..NodeProto::default() };
        let mut node = Node::new(self, &identity, 1, Vec::new());
        let value = match value {
            Value::Coded(_, held) => held,
            other => other,
        };
        match value {
            // A sequence becomes a tuple.
            Value::Sequence(items) => {
                let items: Result<Vec<Expr>, Problem> =
                    items.iter().map(|item| node.object(item).map(|(e, _)| e)).collect();
                return items.map(|items| node.func().tuple(&items));
            }
            Value::Object(e, _) => return Ok(*e),
            Value::Absent if is_optional(output) => return node.nothing(),
            _ => {}
        }
        node.materialize(value)
            .map_err(|p| Problem { message: format!("output '{name}': {}", p.message), ..p })
    }
}

/// Domain, name and overload: what a node calls a function by.
pub(crate) type FunctionKey<'m> = (&'m str, &'m str, &'m str);

/// What a function is called by.
pub(crate) fn function_key(function: &FunctionProto) -> FunctionKey<'_> {
    (own_domain(function.domain()), function.name(), function.overload())
}

/// ONNX's own domain has two names.
pub(crate) fn own_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// The operator as users know it: `Conv`, `com.microsoft.Attention`.
pub(crate) fn operator_name(node: &NodeProto) -> String {
    match own_domain(node.domain()) {
        "" => node.op_type().into(),
        domain => format!("{domain}.{}", node.op_type()),
    }
}

fn unknown(node: &NodeProto) -> Problem {
    let operator = operator_name(node);
    let problem = Problem::unsupported(format!("operator {operator} is not supported"));
    let name = match own_domain(node.domain()) {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}.{}", node.op_type()),
    };
    let close = ops::closest(own_domain(node.domain()), node.op_type());
    let close = close.map_or_else(String::new, |close| format!("{close}; "));
    problem.with_help(format!(
        "{close}export it as operators that are, give the model a function of that name, or register it: \
         relax.op.register_op(\"{name}\")"
    ))
}

/// Whether a value may be declared to be none.
fn is_optional(info: &ValueInfoProto) -> bool {
    let value = info.r#type.as_ref().and_then(|t| t.value.as_ref());
    matches!(value, Some(TypeValue::OptionalType(_)))
}

/// A node of a function's body with the attributes that the call gives.
fn with_attributes(inner: &NodeProto, given: &FxHashMap<&str, &AttributeProto>) -> NodeProto {
    let mut node = inner.clone();
    node.attribute.retain_mut(|attr| {
        if attr.ref_attr_name().is_empty() {
            return true;
        }
        let Some(&found) = given.get(attr.ref_attr_name()) else { return false };
        let name = attr.name.take();
        *attr = found.clone();
        attr.name = name;
        true
    });
    node
}

/// The text as a name of the script.
pub(crate) fn identifier(text: &str, otherwise: &str) -> Arc<str> {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = text.chars().map(keep).collect();
    match name.trim_matches('_') {
        "" => otherwise.into(),
        short if short.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{otherwise}_{short}").into()
        }
        short => short.into(),
    }
}
