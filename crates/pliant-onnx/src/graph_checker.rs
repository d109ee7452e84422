//! Checks that a graph is well-formed: names are defined exactly once and before their use, nesting is limited, and calls of the
//! model's functions match their signatures.

use pliant_diag::spelling_suggestions::did_you_mean;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph_import::{FunctionKey, function_key, normalized_domain};
use crate::import_error::Problem;
use crate::import_limits::Limits;
use crate::inlined_node_count;
use crate::node::label;
use crate::operator_schemas::{self, MissingOpset};
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};

/// The result of checking whether a graph is well-formed.
pub(crate) struct GraphCheck {
    /// All violations in the graph, its subgraphs and its functions.
    pub problems: Vec<Problem>,
    /// The violations that the import tolerates; empty if it is strict.
    pub tolerated: Vec<Problem>,
    /// Whether the model is within the limits of the import. A model that exceeds them must not be traversed.
    pub within_limits: bool,
}

/// Checks the graph, its subgraphs and the functions of a model. If `strict` is set, no violation is tolerated.
pub(crate) fn check(model: &ModelProto, limits: &Limits, strict: bool) -> GraphCheck {
    let mut checker = GraphChecker {
        limits,
        problems: Vec::new(),
        scopes: Vec::new(),
        within_limits: true,
        functions: FxHashMap::default(),
        function: None,
    };
    if let Err(problem) = inlined_node_count::check(model, limits) {
        checker.problems.push(problem);
        checker.within_limits = false;
    }
    checker.problems.extend(operator_schemas::check_opset_versions(model));
    let (required, contributed): (Vec<_>, Vec<_>) = operator_schemas::unimported_domains(model)
        .partition(|missing| strict || missing.domain.is_empty());
    checker.problems.extend(required.iter().map(MissingOpset::problem));
    let tolerated = contributed.iter().map(MissingOpset::problem).collect();
    for function in &model.functions {
        if checker.functions.insert(function_key(function), function).is_some() {
            let name = function_label(function);
            checker
                .report(Problem::invalid(format!("the model defines two functions named {name}")));
        }
    }
    if let Some(graph) = &model.graph {
        checker.check_graph(graph);
    }
    for function in &model.functions {
        checker.function = Some(function);
        checker.check_function(function);
    }
    let GraphChecker { problems, within_limits, .. } = checker;
    GraphCheck { problems, tolerated, within_limits }
}

/// The state of the traversal that checks a model.
struct GraphChecker<'m> {
    limits: &'m Limits,
    problems: Vec<Problem>,
    within_limits: bool,
    /// The names that have been defined so far, in the current graph and the enclosing graphs.
    scopes: Vec<FxHashSet<&'m str>>,
    functions: FxHashMap<FunctionKey<'m>, &'m FunctionProto>,
    /// The model function whose body is being checked; `None` for the main graph.
    function: Option<&'m FunctionProto>,
}

impl<'m> GraphChecker<'m> {
    fn check_graph(&mut self, graph: &'m GraphProto) {
        if self.scopes.len() > self.limits.depth {
            // `node_count` has already reported the depth, except inside functions that are never called.
            if std::mem::replace(&mut self.within_limits, false) {
                let message = format!(
                    "graphs are nested more than {} deep (Limits.depth)",
                    self.limits.depth
                );
                self.report(Problem::invalid(message));
            }
            return;
        }
        self.scopes.push(FxHashSet::default());
        for input in &graph.input {
            if !self.define(input.name()) {
                self.report(Problem::invalid(format!(
                    "the graph has two inputs named '{}'",
                    input.name()
                )));
            }
        }
        let sparse = graph.sparse_initializer.iter().filter_map(|s| s.values.as_ref());
        let mut initial = FxHashSet::default();
        for tensor in graph.initializer.iter().chain(sparse) {
            if !initial.insert(tensor.name()) {
                let name = tensor.name();
                self.report(Problem::invalid(format!(
                    "the graph has two initializers named '{name}'"
                )));
            }
            // An initializer may be the default value of an input.
            self.define(tensor.name());
        }
        self.check_nodes(&graph.node);
        for output in graph.output.iter().filter(|o| !self.is_defined(o.name())).collect::<Vec<_>>()
        {
            let message = format!("no node computes the output '{}'", output.name());
            self.report(Problem::invalid(message));
        }
        self.scopes.pop();
    }

    fn check_function(&mut self, function: &'m FunctionProto) {
        self.scopes = vec![function.input.iter().map(String::as_str).collect()];
        self.check_nodes(&function.node);
        for output in function.output.iter().filter(|o| !self.is_defined(o)).collect::<Vec<_>>() {
            let name = function.name();
            let message = format!("no node computes the output '{output}' of function '{name}'");
            self.report(Problem::invalid(message));
        }
    }

    /// Checks the nodes of a graph in order, and records the names of their outputs as defined.
    fn check_nodes(&mut self, nodes: &'m [NodeProto]) {
        let mut definitions: Option<FxHashMap<&str, usize>> = None;
        for (i, node) in nodes.iter().enumerate() {
            for name in node.input.iter().filter(|n| !n.is_empty()) {
                if !self.is_defined(name) {
                    let definitions = definitions.get_or_insert_with(|| defining_nodes(nodes));
                    let definition =
                        definitions.get(name.as_str()).map(|&index| (index == i, &nodes[index]));
                    self.report_undefined(node, name, definition);
                }
            }
            self.check_call(node);
            self.check_attribute_references(node);
            for attr in &node.attribute {
                for graph in attr.g.iter().chain(&attr.graphs) {
                    self.check_graph(graph);
                }
            }
            for output in node.output.iter().filter(|o| !o.is_empty()) {
                if !self.define(output) {
                    let message =
                        format!("output '{output}' of the node has the same name as another value");
                    self.report(Problem::invalid(message).at_node(&label(node), node.op_type()));
                }
            }
        }
    }

    /// Checks the inputs, outputs and attributes of a node that calls a function against the function's signature. The node may
    /// omit trailing inputs and outputs.
    fn check_call(&mut self, node: &NodeProto) {
        let key = (normalized_domain(node.domain()), node.op_type(), node.overload());
        let Some(&function) = self.functions.get(&key) else { return };
        let operands = [
            (node.input.len(), function.input.len(), "inputs"),
            (node.output.len(), function.output.len(), "outputs"),
        ];
        for (actual, max, what) in operands {
            if actual > max {
                let name = function_label(function);
                let message = format!(
                    "the node has {actual} {what}, but the function {name} accepts at most {max}"
                );
                self.report(Problem::invalid(message).at_node(&label(node), node.op_type()));
            }
        }
        for attr in &node.attribute {
            if !function_attributes(function).any(|known| known == attr.name()) {
                let message = format!(
                    "the function {} has no attribute '{}'",
                    function_label(function),
                    attr.name()
                );
                let problem = Problem::invalid(message).at_node(&label(node), node.op_type());
                self.report(match did_you_mean(attr.name(), function_attributes(function)) {
                    Some(help) => problem.with_help(help),
                    None => problem,
                });
            }
        }
    }

    /// Checks that references to attributes occur only inside a function and refer to one of its attributes.
    fn check_attribute_references(&mut self, node: &NodeProto) {
        for attr in node.attribute.iter().filter(|a| !a.ref_attr_name().is_empty()) {
            let (name, to) = (attr.name(), attr.ref_attr_name());
            let message = match self.function {
                None => format!(
                    "attribute '{name}' refers to attribute '{to}' of a function, but the node is not in a function"
                ),
                Some(function) if !function_attributes(function).any(|known| known == to) => {
                    format!(
                        "attribute '{name}' refers to '{to}', which the function {} does not have",
                        function_label(function)
                    )
                }
                Some(_) => continue,
            };
            self.report(Problem::invalid(message).at_node(&label(node), node.op_type()));
        }
    }

    /// Records a name as defined in the innermost graph. Returns false if this graph has defined the name before.
    fn define(&mut self, name: &'m str) -> bool {
        self.scopes.last_mut().is_some_and(|s| s.insert(name))
    }

    /// Whether the current graph or an enclosing graph defines a name.
    fn is_defined(&self, name: &str) -> bool {
        self.scopes.iter().rev().any(|s| s.contains(name))
    }

    fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reports that a node reads a name that is not defined at that point. `definition` is the node that defines the name
    /// later, with a flag that is true if this node is also the reader; `None` if no node defines the name.
    fn report_undefined(
        &mut self,
        node: &NodeProto,
        name: &str,
        definition: Option<(bool, &NodeProto)>,
    ) {
        let (message, help) = match definition {
            None => (
                format!(
                    "the node reads '{name}', which is neither an input, an initializer nor an output of a node"
                ),
                "a part of the model is missing: export it again, or cut it with onnx.utils.extract_model",
            ),
            Some((true, _)) => (
                format!("the node reads its own output '{name}': the graph has a cycle"),
                "pass loop-carried values through a Loop or Scan node",
            ),
            Some((false, definition)) => (
                format!(
                    "the node reads '{name}' before {} computes it: nodes must be in topological order, without cycles",
                    label(definition)
                ),
                "sort the nodes topologically",
            ),
        };
        let problem = Problem::invalid(message).with_help(help);
        self.report(problem.at_node(&label(node), node.op_type()));
    }
}

/// The name of a function in messages.
fn function_label(function: &FunctionProto) -> String {
    let (domain, name, overload) = function_key(function);
    let domain_text = if domain.is_empty() { String::new() } else { format!(" of {domain}") };
    let overload_text = if overload.is_empty() { String::new() } else { format!(" ({overload})") };
    format!("'{name}'{overload_text}{domain_text}")
}

/// The attributes that a function accepts.
fn function_attributes(function: &FunctionProto) -> impl Iterator<Item = &str> {
    let default = function.attribute_proto.iter().map(|a| a.name());
    function.attribute.iter().map(String::as_str).chain(default)
}

/// Maps each output name to the index of the node that defines it.
fn defining_nodes(nodes: &[NodeProto]) -> FxHashMap<&str, usize> {
    let mut definitions = FxHashMap::default();
    for (i, node) in nodes.iter().enumerate() {
        definitions.extend(node.output.iter().map(|o| (o.as_str(), i)));
    }
    definitions
}
