//! Checks the nodes downstream of a failed node. Their input types are unknown, so only their operators, their attributes, and the
//! nodes of their subgraphs and functions are checked. Other checks are only possible once the upstream problem is fixed.

use pliant_ir::relax::{TensorShape, TypeData};

use crate::graph_import::{Importer, normalized_domain, operator_name, unknown_operator};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{Node, label};
use crate::operator_schemas;
use crate::ops;
use crate::panic_guard;
use crate::proto::{FunctionProto, NodeProto};

/// A function that looks up the opset version that a graph or a model function imports for a domain.
type OpsetLookup<'a> = &'a dyn Fn(&str) -> Option<i64>;

impl Importer<'_> {
    /// Reports the problems of an unconverted node that do not depend on its input types. Attributes are checked if `inputs` is
    /// present and the node does not call a function of the model. Nodes of subgraphs and functions are checked, too.
    pub(crate) fn check_downstream_node(&mut self, node: &NodeProto, inputs: Option<&[Value]>) {
        let mut entry = Vec::new();
        for graph in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
            self.check_nodes_without_inputs(
                &graph.node,
                &|domain| Some(self.opset_of(domain)),
                &mut entry,
            );
        }
        let key = (normalized_domain(node.domain()), node.op_type(), node.overload());
        match self.model_function(&key) {
            Some(function) => self.check_function_without_inputs(function, &mut entry),
            None => entry.extend(inputs.and_then(|inputs| self.attribute_problem(node, inputs))),
        }
        for problem in entry {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    /// Checks the operators and attributes of nodes, including the nodes of their subgraphs and functions.
    fn check_nodes_without_inputs(
        &self,
        nodes: &[NodeProto],
        opset: OpsetLookup<'_>,
        problems: &mut Vec<Problem>,
    ) {
        for node in nodes {
            let domain = normalized_domain(node.domain());
            if let Some(function) = self.model_function(&(domain, node.op_type(), node.overload()))
            {
                self.check_function_without_inputs(function, problems);
                continue;
            }
            let known = ops::find(domain, node.op_type()).is_some();
            let outcome =
                match known || ops::user_registered_ops::find(domain, node.op_type()).is_some() {
                    false => Err(unknown_operator(node)),
                    true if !known => Ok(()),
                    true => {
                        let version =
                            opset(domain).unwrap_or_else(|| operator_schemas::newest_opset(domain));
                        operator_schemas::check(node, version)
                    }
                };
            problems.extend(outcome.err().map(|p| p.at_node(&label(node), &operator_name(node))));
            for graph in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
                self.check_nodes_without_inputs(&graph.node, opset, problems);
            }
        }
    }

    /// Checks the nodes of a model function with the opset versions that the function imports.
    fn check_function_without_inputs(&self, function: &FunctionProto, problems: &mut Vec<Problem>) {
        let opset = |domain: &str| {
            let mut imports = function.opset_import.iter();
            imports.find(|o| normalized_domain(o.domain()) == domain).map(|o| o.version())
        };
        self.check_nodes_without_inputs(&function.node, &opset, problems);
    }

    /// The first problem with an attribute of a node. To find it, the node is converted with tensors of unknown type as inputs, and
    /// the result is discarded.
    fn attribute_problem(&mut self, node: &NodeProto, inputs: &[Value]) -> Option<Problem> {
        let domain = normalized_domain(node.domain());
        let entry = ops::find(domain, node.op_type())?;
        // Converting the node would also convert its subgraphs, which are checked separately.
        if node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty()) {
            return None;
        }
        let opset = self.opset_of(domain);
        let inputs = inputs.iter().map(|v| match v {
            Value::Failed => self.unknown_tensor(),
            known => known.clone(),
        });
        let inputs = inputs.collect();
        let symbol_constraints = self.symbol_constraints.clone();
        let outcome = panic_guard::convert(entry, &mut Node::new(self, node, opset, inputs));
        self.symbol_constraints = symbol_constraints;
        let problem = outcome.err().filter(|problem| problem.in_attribute)?;
        Some(problem.at_node(&label(node), &operator_name(node)))
    }

    /// Creates a tensor of unknown type.
    fn unknown_tensor(&mut self) -> Value {
        let func = self.builder.func_mut();
        let ty = func.intern(TypeData::Tensor { shape: TensorShape::Unknown, dtype: None });
        let var = self.builder.param("stand_in", ty);
        Value::Expr(self.builder.func_mut().var_expr(var))
    }
}
