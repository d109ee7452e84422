//! Converters of `Loop`, `Scan` and `SequenceMap`, whose bodies are graphs. The loop becomes a `relax.while_loop` over its state.
//!
//! Nodes in the body that cannot be imported statically are imported at run time. If a converter of this folder itself
//! fails, the whole loop is imported at run time (`deferred_node/defer_node.rs`).

mod loop_state;
mod scan;
mod scan_outputs;
mod sequence_map;

use pliant_ir::DType;

pub(super) use scan_outputs::{collecting_loop, increment, is_below};

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, Node};
use crate::proto::GraphProto;

pub(super) static OPS: &[OnnxOp] =
    &[op("Loop", loop_node), op("Scan", scan::scan), op("SequenceMap", sequence_map::sequence_map)];

/// Converts a body graph for the given inputs, in a new scope, and returns its outputs.
pub(super) fn convert_body(
    n: &mut Node<'_, '_>,
    graph: &GraphProto,
    inputs: Vec<Value>,
) -> Result<Vec<Value>, Problem> {
    if graph.input.len() != inputs.len() {
        return Err(Problem::invalid(format!(
            "the graph '{}' in an attribute of the node has {} inputs, but the node passes {} values to it",
            graph.name(),
            graph.input.len(),
            inputs.len()
        )));
    }
    let before = n.importer.problem_count();
    n.importer.enter_scope();
    // For the origins of values: the inputs of the body correspond to the last inputs of the node. Before opset 9, `Scan` has an
    // additional first input.
    let skip = n.len().saturating_sub(inputs.len());
    for (i, (info, value)) in graph.input.iter().zip(inputs).enumerate() {
        let origin = n.importer.origins.input_of(n.importer.origin, i + skip);
        n.importer.define_from(info.name(), value, origin);
    }
    let outputs = n.importer.convert_subgraph(graph);
    n.importer.leave_scope();
    // Problems inside the body have already been reported.
    if n.importer.problem_count() > before { Err(Problem::invalid("")) } else { outputs }
}

fn loop_node(n: &mut Node<'_, '_>) -> ConvertResult {
    let graph = n.attrs().graph("body")?;
    let carried = graph.input.len().saturating_sub(2);
    if n.len() < 2 || n.len() != carried + 2 || graph.output.len() <= carried {
        return Err(Problem::invalid(format!(
            "the node has {} inputs, and its body has {} inputs and {} outputs, but a loop with {carried} loop-carried values \
             requires {} inputs of the node and of the body, and at least {} outputs of the body",
            n.len(),
            graph.input.len(),
            graph.output.len(),
            carried + 2,
            carried + 1
        )));
    }
    let max = match n.optional_tensor(0)? {
        Some(max) => {
            let max = n.reshape_to_scalar(max)?;
            Some(n.cast(max, DType::Int64)?)
        }
        None => None,
    };
    let condition = if n.has_input(1) {
        n.condition_input(1, "the condition (input 1)")?
    } else {
        n.scalar(true)?
    };
    let mut first =
        vec![("i".to_owned(), n.scalar(0i64)?.into()), ("goes_on".to_owned(), condition.into())];
    for i in 0..carried {
        first.push((graph.input[i + 2].name().into(), n.input(i + 2)));
    }
    let mut iteration = |n: &mut Node<'_, '_>, state: &[Value]| {
        let outputs = convert_body(n, graph, state.to_vec())?;
        let condition = n.materialize(&outputs[0])?;
        let condition = n.branch_condition(condition, "the condition that the body returns")?;
        let mut after = vec![increment(n, &state[0])?, condition.into()];
        after.extend_from_slice(&outputs[1..=carried]);
        Ok((after, outputs[carried + 1..].to_vec()))
    };
    let mut condition = |n: &mut Node<'_, '_>, state: &[Value]| {
        let holds = n.materialize(&state[1])?;
        match max {
            Some(max) => {
                let in_bounds = is_below(n, &state[0], max)?;
                n.op("relax.logical_and", &[in_bounds, holds])
            }
            None => Ok(holds),
        }
    };
    let collected = graph.output.len() - carried - 1;
    let last = collecting_loop(n, first, (collected, true), &mut condition, &mut iteration)?;
    let mut outputs = last.state[2..].to_vec();
    if !last.parts.is_empty() {
        let one = n.func().syms.int(1);
        let iterations = n.materialize(&last.state[0])?;
        let iterations = n.reshape(iterations, &[one])?;
        let iterations = n.elements_as_symbols(iterations, 1)?[0];
        for parts in last.parts {
            outputs.push(parts.stack(n, iterations)?);
        }
    }
    Ok(outputs)
}
