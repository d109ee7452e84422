//! How many nodes a model has once its functions are written out, and how deep they are nested.

use rustc_hash::FxHashMap;

use crate::error::Problem;
use crate::graph::{FunctionKey, function_key, operator_name, own_domain};
use crate::limits::Limits;
use crate::node::label;
use crate::proto::{FunctionProto, ModelProto, NodeProto};

/// Refuses a model that has too many nodes, or too many inside each other. A few functions that call each other several
/// times are nodes without number.
pub(crate) fn check(model: &ModelProto, limits: &Limits) -> Result<(), Problem> {
    let Some(graph) = &model.graph else { return Ok(()) };
    let functions = model.functions.iter().map(|f| (function_key(f), f)).collect();
    let mut size = Size { depth: limits.depth, functions, counted: FxHashMap::default() };
    let nodes = size.count(&graph.node, 0, None)?;
    let most = limits.nodes;
    if nodes <= most {
        return Ok(());
    }
    let has = if model.functions.is_empty() { "" } else { " with its functions written out" };
    let message = format!("the model has {nodes} nodes{has}; at most {most} are taken");
    Err(Problem::invalid(message))
}

/// The count so far.
struct Size<'m> {
    depth: usize,
    functions: FxHashMap<FunctionKey<'m>, &'m FunctionProto>,
    counted: FxHashMap<FunctionKey<'m>, usize>,
}

impl<'m> Size<'m> {
    fn count(
        &mut self,
        nodes: &'m [NodeProto],
        depth: usize,
        inside: Option<&NodeProto>,
    ) -> Result<usize, Problem> {
        if depth > self.depth {
            let most = self.depth;
            let message = format!("graphs or calls of functions are nested more than {most} deep");
            let problem = Problem::invalid(message);
            // The innermost node that still counts is the one to look at.
            return Err(match inside {
                Some(node) => problem.at(&label(node), &operator_name(node)),
                None => problem,
            });
        }
        let mut total = nodes.len();
        for node in nodes {
            for graph in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
                total = total.saturating_add(self.count(&graph.node, depth + 1, Some(node))?);
            }
            let key = (own_domain(node.domain()), node.op_type(), node.overload());
            let Some(&function) = self.functions.get(&key) else { continue };
            let within = match self.counted.get(&key) {
                Some(&within) => within,
                None => self.count(&function.node, depth + 1, Some(node))?,
            };
            self.counted.insert(key, within);
            total = total.saturating_add(within);
        }
        Ok(total)
    }
}
