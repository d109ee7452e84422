//! Scan outputs: the values that the iterations of a loop collect. They form a chain in the loop state, so that an iteration
//! appends its value without copying the previous ones.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_sym::Sym;

use super::loop_state::{LoopCondition, LoopState, while_loop};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ExprResult, Node};
use crate::sequence_optional_types::{ObjectType, OuterSymbols};
use pliant_kernel_api::host_function_names;

/// A callback that emits the body of a loop. It receives the state before an iteration, and returns
/// the state after it and the values that the iteration collects.
type CollectingBody<'t> =
    &'t mut dyn FnMut(&mut Node<'_, '_>, &[Value]) -> Result<(Vec<Value>, Vec<Value>), Problem>;

/// The result of a loop: its final state, and its scan outputs (the values that it collects from all iterations).
pub(in crate::ops) struct LoopResult {
    pub state: Vec<Value>,
    pub parts: Vec<ScanOutput>,
}

/// A scan output: the values that the iterations collect for one output of the loop.
pub(in crate::ops) struct ScanOutput {
    chain: Expr,
    /// The type of each collected value, as far as it is known outside the loop body.
    object_type: ObjectType,
}

impl ScanOutput {
    /// Stacks the collected values along a new first axis, whose size is `iterations`.
    ///
    /// # Errors
    /// If the values are not tensors.
    pub fn stack(&self, n: &mut Node<'_, '_>, iterations: Sym) -> Result<Value, Problem> {
        let ObjectType::Tensor { dtype, narrow, dims } = &self.object_type else {
            let message = format!(
                "a scan output of the body must be a tensor, but is {}",
                self.object_type.name()
            );
            return Err(Problem::invalid(message));
        };
        let zero = n.func().syms.int(0);
        let known = dims.as_deref().unwrap_or_default();
        let empty: Vec<Sym> = known.iter().map(|d| d.unwrap_or(zero)).collect();
        let (empty, element) = (n.func().shape(&empty), n.func().dtype_value(*dtype));
        let all = n.call_host(host_function_names::CHAIN_STACK, &[self.chain, empty, element])?;
        let dims =
            dims.as_ref().map(|dims| [Some(iterations)].iter().chain(dims).copied().collect());
        n.value_of_object(all, &ObjectType::Tensor { dtype: *dtype, narrow: *narrow, dims })
    }

    /// Converts the collected values to a sequence.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn to_sequence(&self, n: &mut Node<'_, '_>) -> Result<Value, Problem> {
        let all = n.call_host(host_function_names::CHAIN_SEQUENCE, &[self.chain])?;
        Ok(Value::Object(all, ObjectType::Sequence(Box::new(self.object_type.clone()))))
    }
}

/// Emits a loop whose iterations compute the next state and `count` scan outputs (values that the loop collects from all
/// iterations). With `same_type`, the values of an output must have equal types, so that they can be stacked.
pub(in crate::ops) fn collecting_loop(
    n: &mut Node<'_, '_>,
    first: Vec<(String, Value)>,
    (count, same_type): (usize, bool),
    condition: LoopCondition<'_>,
    iteration: CollectingBody<'_>,
) -> Result<LoopResult, Problem> {
    let outer = OuterSymbols::current(&n.func().syms);
    let (carried, mut first) = (first.len(), first);
    for k in 0..count {
        let empty_chain = n.null_value()?;
        first.push((format!("parts_{k}"), Value::Object(empty_chain, ObjectType::Internal)));
    }
    let mut object_types: Vec<ObjectType> = Vec::new();
    let state = LoopState::new(n, first)?;
    let mut all = while_loop(n, state, condition, &mut |n, values| {
        let (state, chains) = values.split_at(carried);
        let (mut next, parts) = iteration(n, state)?;
        if next.len() != carried || parts.len() != count {
            return Err(Problem::invalid(format!(
                "the loop body must return {carried} loop-carried values and {count} scan outputs, but returns {} and {}",
                next.len(),
                parts.len()
            )));
        }
        object_types.clear();
        for (chain, part) in chains.iter().zip(&parts) {
            let ((chain, _), (part, object_type)) =
                (n.object_of_value(chain)?, n.object_of_value(part)?);
            object_types.push(object_type.erase_inner_symbols(&n.func().syms, outer));
            let same_type = n.int_operand(i64::from(same_type));
            let more = n.call_host(host_function_names::CHAIN_PUSH, &[chain, part, same_type])?;
            next.push(Value::Object(more, ObjectType::Internal));
        }
        Ok(next)
    })?;
    let chains = all.split_off(carried);
    let mut parts = Vec::with_capacity(count);
    for (chain, object_type) in chains.iter().zip(object_types) {
        let (chain, _) = n.object_of_value(chain)?;
        parts.push(ScanOutput { chain, object_type });
    }
    Ok(LoopResult { state: all, parts })
}

/// Emits `counter + 1`.
pub(in crate::ops) fn increment(n: &mut Node<'_, '_>, counter: &Value) -> Result<Value, Problem> {
    let counter = n.materialize(counter)?;
    let one = n.scalar(1i64)?;
    Ok(n.op("relax.add", &[counter, one])?.into())
}

/// Emits the comparison `counter < size`.
pub(in crate::ops) fn is_below(n: &mut Node<'_, '_>, counter: &Value, size: Expr) -> ExprResult {
    let counter = n.materialize(counter)?;
    let size = n.cast(size, DType::Int64)?;
    n.op("relax.less", &[counter, size])
}
