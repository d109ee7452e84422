//! Counts the nodes of a model as if all functions were inlined, and determines the nesting depth.

use rustc_hash::FxHashMap;

use crate::graph_import::{FunctionKey, function_key, normalized_domain, operator_name};
use crate::import_error::Problem;
use crate::import_limits::Limits;
use crate::node::label;
use crate::proto::{FunctionProto, ModelProto, NodeProto};

/// Rejects a model with too many nodes or too deep nesting. A file with a few functions that call each other repeatedly can expand
/// to an exponential number of nodes.
pub(crate) fn check(model: &ModelProto, limits: &Limits) -> Result<(), Problem> {
    let Some(graph) = &model.graph else { return Ok(()) };
    let functions = model.functions.iter().map(|f| (function_key(f), f)).collect();
    let mut counter = NodeCounter { depth: limits.depth, functions, counted: FxHashMap::default() };
    let (nodes, _) = counter.count(&graph.node, 0, None)?;
    let max = limits.nodes;
    if nodes <= max {
        return Ok(());
    }
    let has = if model.functions.is_empty() { "" } else { " with its functions inlined" };
    let message =
        format!("the model has {nodes} nodes{has}, but the limit is {max} (Limits.nodes)");
    Err(Problem::invalid(message))
}

/// The state of the traversal that counts nodes.
struct NodeCounter<'m> {
    depth: usize,
    functions: FxHashMap<FunctionKey<'m>, &'m FunctionProto>,
    /// Cache: the node count and the nesting depth of each function.
    counted: FxHashMap<FunctionKey<'m>, (usize, usize)>,
}

impl<'m> NodeCounter<'m> {
    /// Counts the nodes of `nodes` and their subgraphs, with functions inlined, and determines the nesting depth.
    fn count(
        &mut self,
        nodes: &'m [NodeProto],
        depth: usize,
        parent: Option<&NodeProto>,
    ) -> Result<(usize, usize), Problem> {
        self.check_depth(depth, parent)?;
        let (mut total, mut height) = (nodes.len(), 0);
        for node in nodes {
            let mut add = |(nodes, deep): (usize, usize)| {
                total = total.saturating_add(nodes);
                height = height.max(deep + 1);
            };
            for graph in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
                add(self.count(&graph.node, depth + 1, Some(node))?);
            }
            let key = (normalized_domain(node.domain()), node.op_type(), node.overload());
            let Some(&function) = self.functions.get(&key) else { continue };
            let subtotal = match self.counted.get(&key) {
                // The function may have been counted at a smaller depth, so check the depth here, too.
                Some(&subtotal) => {
                    self.check_depth(depth + 1 + subtotal.1, Some(node))?;
                    subtotal
                }
                None => self.count(&function.node, depth + 1, Some(node))?,
            };
            self.counted.insert(key, subtotal);
            add(subtotal);
        }
        Ok((total, height))
    }

    /// Checks the nesting depth. The problem refers to the innermost node within the limit.
    fn check_depth(&self, depth: usize, parent: Option<&NodeProto>) -> Result<(), Problem> {
        if depth <= self.depth {
            return Ok(());
        }
        let max = self.depth;
        let message =
            format!("graphs or calls of functions are nested more than {max} deep (Limits.depth)");
        let problem = Problem::invalid(message);
        Err(match parent {
            Some(node) => problem.at_node(&label(node), &operator_name(node)),
            None => problem,
        })
    }
}
