//! Converter of `SequenceMap`, which applies its body graph to the items of sequences.

use pliant_ir::DType;

use super::{collecting_loop, convert_body, increment, is_below};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, Node};
use crate::proto::GraphProto;
use crate::sequence_optional_types::ObjectType;
use pliant_kernel_api::host_function_names;

pub(super) fn sequence_map(n: &mut Node<'_, '_>) -> ConvertResult {
    let graph = n.attrs().graph("body")?;
    let inputs = (0..n.len()).map(|i| n.value(i)).collect::<Result<Vec<Value>, Problem>>()?;
    match inputs.first() {
        Some(Value::Sequence(items)) => {
            let count = items.len();
            match all_static(&inputs, count) {
                true => unroll(n, graph, &inputs, count),
                false => map_in_loop(n, graph, &inputs),
            }
        }
        Some(Value::Object(_, ObjectType::Sequence(_))) => map_in_loop(n, graph, &inputs),
        _ => Err(Problem::invalid("input 0 must be a sequence")),
    }
}

/// Whether every input that is a sequence has statically known items and contains `count` of them. Other inputs do not matter.
fn all_static(inputs: &[Value], count: usize) -> bool {
    inputs.iter().all(|input| match input {
        Value::Sequence(items) => items.len() == count,
        Value::Object(_, ObjectType::Sequence(_)) => false,
        _ => true,
    })
}

/// Unrolls the loop: converts the body once for each item of the sequences, whose items are known.
fn unroll(
    n: &mut Node<'_, '_>,
    graph: &GraphProto,
    inputs: &[Value],
    count: usize,
) -> ConvertResult {
    let mut outputs = vec![Vec::with_capacity(count); graph.output.len()];
    for index in 0..count {
        let items = inputs.iter().map(|input| match input {
            Value::Sequence(items) => items[index].clone(),
            other => other.clone(),
        });
        let result = convert_body(n, graph, items.collect())?;
        outputs.iter_mut().zip(result).for_each(|(all, one)| all.push(one));
    }
    Ok(outputs.into_iter().map(Value::Sequence).collect())
}

/// Emits a loop that applies the body to the items of sequences at run time.
fn map_in_loop(n: &mut Node<'_, '_>, graph: &GraphProto, inputs: &[Value]) -> ConvertResult {
    let mut all = Vec::with_capacity(inputs.len());
    for input in inputs {
        all.push(match input {
            Value::Sequence(_) | Value::Object(_, ObjectType::Sequence(_)) => {
                let (e, object_type) = n.object_of_value(input)?;
                Value::Object(e, object_type)
            }
            other => other.clone(),
        });
    }
    let (first, _) = n.object_of_value(&all[0])?;
    let length = n.call_host(host_function_names::SEQUENCE_LENGTH, &[first])?;
    let length = n.object_to_tensor(length, Some(&[]), DType::Int64);
    let mut iteration = |n: &mut Node<'_, '_>, state: &[Value]| {
        let index = n.materialize(&state[0])?;
        let mut items = Vec::with_capacity(all.len());
        for input in &all {
            items.push(match input {
                Value::Object(e, ObjectType::Sequence(object_type)) => {
                    let item = n.call_host(host_function_names::SEQUENCE_AT, &[*e, index])?;
                    n.value_of_object(item, object_type)?
                }
                other => other.clone(),
            });
        }
        let outputs = convert_body(n, graph, items)?;
        Ok((vec![increment(n, &state[0])?], outputs))
    };
    let mut condition = |n: &mut Node<'_, '_>, state: &[Value]| is_below(n, &state[0], length);
    let counter = vec![("i".to_owned(), n.scalar(0i64)?.into())];
    let last =
        collecting_loop(n, counter, (graph.output.len(), false), &mut condition, &mut iteration)?;
    last.parts.iter().map(|parts| parts.to_sequence(n)).collect()
}
