//! Converts the nodes of a graph in order. A node either calls an operator, which has a converter, or a function of the model,
//! which is inlined.
//!
//! If a converter fails because too little is known about the operands, the node is imported at run time, when the operands exist
//! (`deferred_node/defer_node.rs`). This fallback is in `node_outputs`. It also applies to `If` and `Loop`, but first to the nodes
//! in their graphs.
//!
//! The fallback applies only to failures of converters. These nodes never reach `defer_node`:
//! - nodes with an unknown operator, or with attributes, operands or types that their schema does not allow (`operator_schemas`):
//!   the import fails;
//! - calls of functions of the model. The nodes in the inlined function are converted one by one, and each of them may be deferred;
//! - nodes of operators that the user has registered (`ops/user_registered_ops.rs`), and data movement of narrow types: if the
//!   conversion fails, the import fails;
//! - nodes that depend on a node whose conversion failed.

use rustc_hash::FxHashMap;

use super::inputs_and_initializers::constant_value;
use super::{FunctionKey, Importer, identifier, normalized_domain};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::initializer_tensors;
use crate::node::{Node, label};
use crate::operator_schemas;
use crate::ops;
use crate::panic_guard;
use crate::proto::tensor_proto::DataType;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use crate::rational_dims;
use crate::subbyte_types::is_data_movement;

impl<'m> Importer<'m> {
    /// The function of the model with the given key; `None` if there is none.
    pub(crate) fn model_function(&self, key: &FunctionKey<'_>) -> Option<&'m FunctionProto> {
        self.functions.get(key).copied()
    }

    /// Copies of all functions of the model, because the subgraphs of a node may call any of them.
    pub(crate) fn all_functions(&self) -> Vec<FunctionProto> {
        self.functions.values().map(|f| (*f).clone()).collect()
    }

    /// Converts nodes in order, in the innermost scope.
    pub(crate) fn convert_nodes(&mut self, nodes: &[NodeProto]) {
        for node in nodes {
            self.convert_node_with_span(node);
        }
    }

    /// Converts a node. All bindings that the conversion creates get the source location of the
    /// node.
    fn convert_node_with_span(&mut self, node: &NodeProto) {
        let enclosing = self.spans.current;
        self.spans.current = self.spans.node_span(node);
        self.builder.set_span(self.spans.current);
        self.convert_node(node);
        self.spans.current = enclosing;
        self.builder.set_span(enclosing);
    }

    /// Converts a node and defines the names of its outputs. If the conversion fails, the outputs are placeholders or
    /// [`Value::Failed`].
    fn convert_node(&mut self, node: &NodeProto) {
        let time_left = self.deadline.has_time().unwrap_or_else(|problem| {
            self.problems.push(problem);
            false
        });
        if !time_left {
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
        let node_origin = self.origins.add_node(node, from);
        let enclosing = std::mem::replace(&mut self.origin, node_origin);
        let original_inputs = if self.recorder.is_some() { inputs.clone() } else { Vec::new() };
        let outputs = match self.node_outputs(node, inputs) {
            Ok(outputs) => outputs,
            // An empty message means that a subgraph or an upstream node has already reported the problem.
            Err(problem) if problem.message.is_empty() => {
                if self.recorder.is_some() {
                    self.check_downstream_node(node, Some(&original_inputs));
                }
                vec![Value::Failed; node.output.len()]
            }
            Err(problem) => {
                let message = self.symbols.display_text(&problem.message);
                let problem = Problem { message, ..problem };
                let problem = problem.at_node(&label(node), &operator_name(node));
                let outputs = self.record_failure(node, &original_inputs, &problem);
                self.problems.push(problem);
                if self.recorder.is_some() {
                    self.check_downstream_node(node, None);
                }
                outputs
            }
        };
        let mut outputs = outputs.into_iter();
        for name in node.output.iter() {
            let value = outputs.next().unwrap_or(Value::Absent);
            if !name.is_empty() {
                let value = self.with_size_symbols(value, &identifier(name, "size"));
                let value = match self.check_result_size(name, &value) {
                    Ok(()) => self.check_declared_type(node, name, value),
                    Err(problem) => {
                        self.problems.push(problem.at_node(&label(node), &operator_name(node)));
                        Value::Failed
                    }
                };
                self.origins.record_properties(node_origin, self.builder.func(), &value);
                self.define(name, value);
            }
        }
        self.origin = enclosing;
    }

    /// Computes the values of a node's outputs: inlines the function that the node calls, or calls the converter of its operator.
    /// If the converter fails because too little is known about the operands, emits a call that imports the node at run time, when
    /// the operands exist. If the node cannot be converted for any operands, returns the problem.
    fn node_outputs(
        &mut self,
        node: &NodeProto,
        inputs: Vec<Value>,
    ) -> Result<Vec<Value>, Problem> {
        let domain = normalized_domain(node.domain());
        let function = self.functions.get(&(domain, node.op_type(), node.overload())).copied();
        let entry = ops::find(domain, node.op_type());
        let user_op = ops::user_registered_ops::find(domain, node.op_type());
        if function.is_none() && entry.is_none() && user_op.is_none() {
            return Err(unknown_operator(node));
        }
        let opset = self.opset_of(domain);
        if function.is_none() && entry.is_some() {
            operator_schemas::check(node, opset)?;
        }
        // Problems that result from an upstream failure are not reported again.
        if inputs.iter().any(|v| matches!(v, Value::Failed)) {
            return Err(Problem::invalid(""));
        }
        if function.is_none() && entry.is_some() {
            // Data movement operators accept narrow types, even if their schema in this opset does not.
            let narrow =
                |v: &&Value| is_data_movement(node.op_type()) && matches!(v, Value::Narrow(..));
            let of = |v: &Value| Some(v).filter(|v| !narrow(v)).and_then(|v| self.element_type(v));
            let types: Vec<_> = inputs.iter().map(of).collect();
            operator_schemas::check_types(node, opset, &types)?;
        }
        if let Some(function) = function {
            return self.inline_function(function, node, inputs);
        }
        let entry = match (entry, user_op) {
            (Some(entry), _) => entry,
            (None, Some(op)) => {
                return ops::user_registered_ops::convert(
                    &mut Node::new(self, node, opset, inputs),
                    op,
                );
            }
            (None, None) => return Err(unknown_operator(node)),
        };
        // Data movement operators are applied to the storage of narrow types.
        let narrow = match inputs.first() {
            Some(Value::Narrow(ty, _)) if is_data_movement(node.op_type()) => Some(*ty),
            _ => None,
        };
        let Some(narrow) = narrow else {
            if let Some(origin) = self.move_rational(entry, node, opset, &inputs) {
                return Ok(origin);
            }
            let original_inputs = inputs.clone();
            let outcome = panic_guard::convert(entry, &mut Node::new(self, node, opset, inputs));
            return outcome.or_else(|problem| self.defer_node(node, &original_inputs, problem));
        };
        let storages = inputs.into_iter().map(|v| match v {
            Value::Narrow(_, storages) => *storages,
            other => other,
        });
        let outputs =
            panic_guard::convert(entry, &mut Node::new(self, node, opset, storages.collect()))?;
        Ok(outputs.into_iter().map(|v| Value::Narrow(narrow, Box::new(v))).collect())
    }

    /// The element type of a tensor, if known.
    fn element_type(&self, value: &Value) -> Option<DataType> {
        let func = self.builder.func();
        let dtype = match value {
            Value::Narrow(ty, _) => return Some(*ty),
            Value::Expr(e) => func.ty(*e).dtype(),
            Value::Const(t) => Some(t.dtype()),
            Value::Symbolic(t) => Some(t.dtype),
            Value::Rational(r) => Some(r.dtype),
            _ => None,
        };
        dtype.map(initializer_tensors::data_type)
    }

    /// Applies a data movement operator to tensors of fractions of sizes ([`Value::Rational`]): applies it to the numerators and
    /// to the denominators separately. `None` if no input is such a tensor.
    fn move_rational(
        &mut self,
        entry: &ops::OnnxOp,
        node: &NodeProto,
        opset: i64,
        inputs: &[Value],
    ) -> Option<Vec<Value>> {
        let ([over, under], dtype) = rational_dims::split_quotients(self, node.op_type(), inputs)?;
        let over = panic_guard::convert(entry, &mut Node::new(self, node, opset, over)).ok()?;
        let under = panic_guard::convert(entry, &mut Node::new(self, node, opset, under)).ok()?;
        rational_dims::join_quotients(over, under, dtype)
    }

    /// Inlines the body of a model function in place of the node that calls it.
    fn inline_function(
        &mut self,
        function: &'m FunctionProto,
        node: &NodeProto,
        inputs: Vec<Value>,
    ) -> Result<Vec<Value>, Problem> {
        let mut scope = FxHashMap::default();
        let mut inputs = inputs.into_iter();
        for (i, name) in function.input.iter().enumerate() {
            let origin = self.origins.input_of(self.origin, i);
            scope.insert(name.clone(), (inputs.next().unwrap_or(Value::Absent), origin));
        }
        // Attributes of the call override the defaults of the function.
        let fallback = function.attribute_proto.iter();
        let attributes = fallback.chain(&node.attribute).map(|a| (a.name(), a)).collect();
        let body: Vec<NodeProto> =
            function.node.iter().map(|inner| with_call_attributes(inner, &attributes)).collect();
        // The body of a function sees only its own names and opset imports.
        let scopes = std::mem::replace(&mut self.scopes, vec![scope]);
        let function_opsets =
            function.opset_import.iter().map(|o| (normalized_domain(o.domain()), o.version()));
        let opsets = std::mem::replace(&mut self.opsets, function_opsets.collect());
        let declared = std::mem::take(&mut self.declared);
        self.convert_nodes(&body);
        self.declared = declared;
        let outputs = function.output.iter().map(|o| self.subgraph_output(o)).collect();
        self.scopes = scopes;
        self.opsets = opsets;
        Ok(outputs)
    }

    /// Converts a subgraph in the innermost scope and returns the values of its outputs.
    pub(crate) fn convert_subgraph(&mut self, graph: &GraphProto) -> Result<Vec<Value>, Problem> {
        for proto in &graph.initializer {
            let read = initializer_tensors::read_tensor(proto, &mut self.external, &self.limits);
            let with_context = |p: Problem| Problem {
                message: format!("initializer '{}': {}", proto.name(), p.message),
                ..p
            };
            let value = constant_value(proto, read.map_err(with_context)?);
            let origin = self.origins.add_named(proto.name());
            self.define_from(proto.name(), value, origin);
        }
        self.convert_nodes(&graph.node);
        Ok(graph.output.iter().map(|o| self.subgraph_output(o.name())).collect())
    }
}

/// The name of a node's operator in messages, such as `Conv` or `com.microsoft.Attention`.
pub(crate) fn operator_name(node: &NodeProto) -> String {
    match normalized_domain(node.domain()) {
        "" => node.op_type().into(),
        domain => format!("{domain}.{}", node.op_type()),
    }
}

/// Creates the problem that a node's operator is not supported.
pub(crate) fn unknown_operator(node: &NodeProto) -> Problem {
    let operator = operator_name(node);
    let problem = Problem::unsupported(format!("operator {operator} is not supported"));
    let name = match normalized_domain(node.domain()) {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}.{}", node.op_type()),
    };
    let close = ops::closest_operator_help(normalized_domain(node.domain()), node.op_type());
    let suggestion = close.map_or_else(String::new, |close| format!("{close}; "));
    problem.with_help(format!(
        "{suggestion}export the model with supported operators, add a model function of that name, or register the operator: \
         relax.op.register_op(\"{name}\")"
    ))
}

/// Copies a node of a function body, and replaces references to the function's attributes by their values.
fn with_call_attributes(
    inner: &NodeProto,
    attributes: &FxHashMap<&str, &AttributeProto>,
) -> NodeProto {
    let mut node = inner.clone();
    node.attribute.retain_mut(|attr| {
        if attr.ref_attr_name().is_empty() {
            return true;
        }
        let Some(&value) = attributes.get(attr.ref_attr_name()) else { return false };
        let name = attr.name.take();
        *attr = value.clone();
        attr.name = name;
        true
    });
    node
}
