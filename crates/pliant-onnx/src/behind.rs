//! What can be said of a node whose inputs are not known, because the node before it failed: its operator, its attributes,
//! and the nodes of its graphs and functions. The rest has to wait until what stands before it is mended.

use pliant_ir::relax::{TensorShape, TypeData};

use crate::error::Problem;
use crate::graph::{Importer, operator_name, own_domain, unknown};
use crate::guard;
use crate::node::{Node, label};
use crate::ops;
use crate::proto::{FunctionProto, NodeProto};
use crate::schema;
use crate::value::Value;

/// The versions of the operator sets that a graph or a function takes its nodes from.
type Opset<'a> = &'a dyn Fn(&str) -> Option<i64>;

impl Importer<'_> {
    /// Tells what is wrong with a node that is not converted, whatever its inputs turn out to be: with its attributes, where
    /// its inputs are given and nothing else is told of it, and with what is inside of it.
    pub(crate) fn told_behind(&mut self, node: &NodeProto, inputs: Option<&[Value]>) {
        let mut found = Vec::new();
        for graph in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
            self.told_of(&graph.node, &|domain| Some(self.opset_of(domain)), &mut found);
        }
        let key = (own_domain(node.domain()), node.op_type(), node.overload());
        match self.function(&key) {
            Some(function) => self.told_inside(function, &mut found),
            None => found.extend(inputs.and_then(|inputs| self.of_attributes(node, inputs))),
        }
        for problem in found {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    fn told_of(&self, nodes: &[NodeProto], opset: Opset<'_>, found: &mut Vec<Problem>) {
        for node in nodes {
            let domain = own_domain(node.domain());
            if let Some(function) = self.function(&(domain, node.op_type(), node.overload())) {
                self.told_inside(function, found);
                continue;
            }
            let known = ops::find(domain, node.op_type()).is_some();
            let outcome = match known || ops::user::find(domain, node.op_type()).is_some() {
                false => Err(unknown(node)),
                true if !known => Ok(()),
                true => {
                    let version = opset(domain).unwrap_or_else(|| schema::newest(domain));
                    schema::check(node, version)
                }
            };
            found.extend(outcome.err().map(|p| p.at(&label(node), &operator_name(node))));
            for graph in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
                self.told_of(&graph.node, opset, found);
            }
        }
    }

    fn told_inside(&self, function: &FunctionProto, found: &mut Vec<Problem>) {
        let opset = |domain: &str| {
            let mut own = function.opset_import.iter();
            own.find(|o| own_domain(o.domain()) == domain).map(|o| o.version())
        };
        self.told_of(&function.node, &opset, found);
    }

    /// What is wrong with the node's attributes by themselves: found by converting it for tensors of which nothing is known.
    fn of_attributes(&mut self, node: &NodeProto, inputs: &[Value]) -> Option<Problem> {
        let domain = own_domain(node.domain());
        let row = ops::find(domain, node.op_type())?;
        // Graphs inside are converted with the node that they belong to.
        if node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty()) {
            return None;
        }
        let opset = self.opset_of(domain);
        let inputs = inputs.iter().map(|v| match v {
            Value::Failed => self.anything(),
            known => known.clone(),
        });
        let inputs = inputs.collect();
        let watch = self.watch.clone();
        let outcome = guard::convert(row, &mut Node::new(self, node, opset, inputs));
        self.watch = watch;
        let problem = outcome.err().filter(|problem| problem.of_attribute)?;
        Some(problem.at(&label(node), &operator_name(node)))
    }

    /// A tensor of any type.
    fn anything(&mut self) -> Value {
        let func = self.builder.func_mut();
        let ty = func.intern(TypeData::Tensor { shape: TensorShape::Unknown, dtype: None });
        let var = self.builder.param("stand_in", ty);
        Value::Expr(self.builder.func_mut().var_expr(var))
    }
}
