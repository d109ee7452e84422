//! Converter of `Scan`, which applies its body graph to the slices of tensors.

use pliant_ir::relax::Expr;
use pliant_sym::Sym;

use super::scan_outputs::LoopResult;
use super::{collecting_loop, convert_body, increment, is_below};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, Node, ints_attr};
use crate::proto::GraphProto;

/// A tensor that is scanned slice by slice along an axis.
#[derive(Clone, Copy)]
struct ScanInput {
    x: Expr,
    axis: usize,
    backward: bool,
}

/// Reads a list attribute, which must have `len` numbers. An absent attribute counts as zeros.
fn int_list(n: &Node<'_, '_>, name: &str, len: usize) -> Result<Vec<i64>, Problem> {
    let list = n.attrs().ints(name)?.map_or_else(|| vec![0; len], <[i64]>::to_vec);
    if list.len() == len {
        Ok(list)
    } else {
        let text = format!("attribute '{name}' must have {len} numbers, but has {}", list.len());
        Err(Problem::invalid(text))
    }
}

/// Reads a list attribute of scan directions: 0 is forward, 1 is backward.
fn directions(n: &Node<'_, '_>, name: &str, len: usize) -> Result<Vec<i64>, Problem> {
    let list = int_list(n, name, len)?;
    match list.iter().find(|d| !(0..=1).contains(*d)) {
        Some(other) => Err(Problem::invalid(format!(
            "attribute '{name}' must contain only 0 (forward) and 1 (backward), but contains {other}"
        ))),
        None => Ok(list),
    }
}

pub(super) fn scan(n: &mut Node<'_, '_>) -> ConvertResult {
    let graph = n.attrs().graph("body")?;
    // Before opset 9, the first input is the lengths of the sequences.
    let skipped_inputs = usize::from(n.opset < 9);
    let input_count = n.len().saturating_sub(skipped_inputs);
    let count = n.attrs().int("num_scan_inputs")?.unwrap_or(0);
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 || input_count < count || graph.input.len() != input_count {
        return Err(Problem::attribute(format!(
            "attribute 'num_scan_inputs' is {count}, the node has {input_count} loop-carried and scanned inputs, and its body \
             has {} inputs: the attribute must be from 1 to the number of inputs of the node, and the body must have as many \
             inputs",
            graph.input.len()
        )));
    }
    let carried = input_count - count;
    if graph.output.len() < carried {
        return Err(Problem::invalid(format!(
            "the body of the loop has {} outputs, but must return all {carried} loop-carried values",
            graph.output.len()
        )));
    }
    if skipped_inputs > 0 {
        scan_batches(n, graph, carried)
    } else {
        scan_slices(n, graph, carried)
    }
}

/// Converts a `Scan` node of opset 9 or later, with the body `graph`. The first `carried` inputs are the initial values of the
/// state that is passed from iteration to iteration. The other inputs are scanned slice by slice.
fn scan_slices(n: &mut Node<'_, '_>, graph: &GraphProto, carried: usize) -> ConvertResult {
    let count = graph.input.len() - carried;
    let axes = int_list(n, "scan_input_axes", count)?;
    let backward = directions(n, "scan_input_directions", count)?;
    let mut scanned = Vec::with_capacity(count);
    for (k, (&axis, &backward)) in axes.iter().zip(&backward).enumerate() {
        let x = n.tensor(carried + k)?;
        let rank = n.rank(x)?;
        scanned.push(ScanInput { x, axis: n.axis(axis, rank)?, backward: backward != 0 });
    }
    let iterations = n.dims(scanned[0].x)?[scanned[0].axis];
    for one in &scanned[1..] {
        let length = n.dims(one.x)?[one.axis];
        n.require_equal(
            iterations,
            length,
            "the scanned inputs have {} and {} slices along their scan axes, but must have equally many",
        )?;
    }
    let first = (0..carried).map(|i| n.input(i)).collect();
    let last = loop_over_slices(n, graph, first, &scanned, iterations)?;
    let mut outputs = last.state;
    let collected = last.parts.len();
    let axes = int_list(n, "scan_output_axes", collected)?;
    let backward = directions(n, "scan_output_directions", collected)?;
    for (k, parts) in last.parts.into_iter().enumerate() {
        let y = parts.stack(n, iterations)?;
        let mut y = n.materialize(&y)?;
        if backward[k] != 0 {
            y = n.op_with("relax.flip", &[y], ints_attr("axis", 0))?;
        }
        let rank = n.rank(y)?;
        let axis = n.axis(axes[k], rank)?;
        let mut order: Vec<usize> = (1..rank).collect();
        order.insert(axis, 0);
        outputs.push(n.permute(y, &order)?.into());
    }
    Ok(outputs)
}

/// Converts `Scan` of opset 8, which scans each batch element separately, along axis 0 of the element's slices. `carried` is the
/// number of values that are passed from iteration to iteration.
fn scan_batches(n: &mut Node<'_, '_>, graph: &GraphProto, carried: usize) -> ConvertResult {
    if n.has_input(0) {
        return Err(Problem::unsupported(
            "sequence_lens (input 0 of Scan in opset 8) is not supported: all sequences must have the same length",
        )
        .with_help("convert the model to opset 9 or newer"));
    }
    let count = graph.input.len() - carried;
    let backward = directions(n, "directions", count)?;
    let mut tensors = Vec::with_capacity(carried + count);
    for i in 0..carried + count {
        tensors.push(n.tensor(i + 1)?);
    }
    let [batch, iterations, ..] = n.dims(tensors[carried])?[..] else {
        return Err(Problem::invalid(format!(
            "scanned input {} must have at least 2 dims, the batch axis and the sequence axis",
            carried + 1
        )));
    };
    for &x in &tensors[carried + 1..] {
        let length = n.dims_with_min_rank(x, 2)?[1];
        n.require_equal(
            iterations,
            length,
            "the scanned inputs have {} and {} slices along their scan axes, but must have equally many",
        )?;
    }
    let mut iteration = |n: &mut Node<'_, '_>, state: &[Value]| {
        let index = n.materialize(&state[0])?;
        let mut slices = Vec::with_capacity(tensors.len());
        for &x in &tensors {
            slices.push(n.take(x, index, 0)?);
        }
        let first = slices[..carried].iter().map(|&e| e.into()).collect();
        let scanned = slices[carried..].iter().zip(&backward);
        let scanned: Vec<ScanInput> = scanned
            .map(|(&x, &backward)| ScanInput { x, axis: 0, backward: backward != 0 })
            .collect();
        let last = loop_over_slices(n, graph, first, &scanned, iterations)?;
        let mut parts = last.state;
        for collected in last.parts {
            parts.push(collected.stack(n, iterations)?);
        }
        Ok((vec![increment(n, &state[0])?], parts))
    };
    let max = n.size_scalar(batch)?;
    let mut condition = |n: &mut Node<'_, '_>, state: &[Value]| is_below(n, &state[0], max);
    let first = vec![("batch".to_owned(), n.scalar(0i64)?.into())];
    let last =
        collecting_loop(n, first, (graph.output.len(), true), &mut condition, &mut iteration)?;
    last.parts.iter().map(|parts| parts.stack(n, batch)).collect()
}

/// Emits the loop that applies the body to each slice.
fn loop_over_slices(
    n: &mut Node<'_, '_>,
    graph: &GraphProto,
    first: Vec<Value>,
    scanned: &[ScanInput],
    iterations: Sym,
) -> Result<LoopResult, Problem> {
    let carried = first.len();
    let mut state = vec![("i".to_owned(), n.scalar(0i64)?.into())];
    let names = graph.input.iter().map(|i| i.name().to_owned());
    state.extend(names.zip(first));
    let mut iteration = |n: &mut Node<'_, '_>, state: &[Value]| {
        let mut inputs = state[1..].to_vec();
        let counter = n.materialize(&state[0])?;
        for s in scanned {
            let mut index = counter;
            if s.backward {
                let one = n.func().syms.int(1);
                let last = n.func().syms.sub(iterations, one);
                let last = n.size_scalar(last)?;
                index = n.op("relax.subtract", &[last, index])?;
            }
            inputs.push(n.take(s.x, index, s.axis)?.into());
        }
        let outputs = convert_body(n, graph, inputs)?;
        let mut after = vec![increment(n, &state[0])?];
        after.extend_from_slice(&outputs[..carried]);
        Ok((after, outputs[carried..].to_vec()))
    };
    let max = n.size_scalar(iterations)?;
    let mut condition = |n: &mut Node<'_, '_>, state: &[Value]| is_below(n, &state[0], max);
    let collected = graph.output.len() - carried;
    let mut last = collecting_loop(n, state, (collected, true), &mut condition, &mut iteration)?;
    last.state.remove(0);
    Ok(last)
}
