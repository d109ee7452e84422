//! [`scan()`]: tensors whose rows depend on earlier rows, such as cumulative sums and recurrent networks.

use rustc_hash::{FxHashMap, FxHashSet};

use super::TeError;
use super::create_prim_func::stages_of;
use super::expr::{Expr, ExprKind, Var};
use super::expr_builders::minimum;
use super::expr_traversal::{post_order, redirect_loads, substitute};
use super::extern_stage::{Body, stage_of};
use super::scan_dependences::{UnprovedReads, distance, unproved_reads};
use super::sym_conversion::simplify;
use super::tensor::{Compute, Tensor, TensorOp, placeholder};

/// Creates a scan: tensors of recurrent states, whose first axis is the step. The first rows are
/// the rows of `init`. Each later row is the row of `update` at the same step; it may read earlier
/// rows through the placeholders `state`. Intermediate stages that read a state also have the step
/// as their first axis.
///
/// # Examples
/// ```
/// use pliant_ir::DType;
/// use pliant_ops::te;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Cumulative sums: each row is the row before it plus the element of `x`.
/// let n = te::var("n").expr();
/// let x = te::placeholder(vec![n.clone()], DType::Float32, "x");
/// let state = te::placeholder(vec![n.clone()], DType::Float32, "state");
/// let init = te::compute(vec![te::int(1)], "init", |i| x.at(i));
/// let update = te::compute(vec![n], "update", |i| state.at(&[i[0].clone() - 1]) + x.at(i));
/// let sums = te::scan("sums", &[init], &[update], &[state])?;
/// assert_eq!((sums.len(), sums[0].ndim()), (1, 1));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the numbers, ranks, types or sizes of the states do not match, or if the first axis of a
/// stage that reads a state is not the step.
pub fn scan(
    name: &str,
    init: &[Tensor],
    update: &[Tensor],
    state: &[Tensor],
) -> Result<Vec<Tensor>, TeError> {
    check(name, init, update, state)?;
    let outs: Vec<Tensor> = state
        .iter()
        .enumerate()
        .map(|(k, s)| {
            let label = if state.len() == 1 { name.to_string() } else { format!("{name}_{k}") };
            placeholder(s.shape().to_vec(), s.dtype(), label)
        })
        .collect();
    let mut buffers: FxHashMap<Tensor, Tensor> =
        state.iter().cloned().zip(outs.iter().cloned()).collect();
    let steps = stages_reading_state(update, state);
    let mut body = Body::default();
    for stage in &steps {
        check_step(name, stage, state)?;
        let to = match update.iter().position(|u| u == stage) {
            Some(k) => outs[k].clone(),
            None => body.alloc(stage.name(), stage.shape(), stage.dtype()),
        };
        buffers.insert(stage.clone(), to);
    }
    let rows = &state[0].shape()[0];
    let first = minimum(&init[0].shape()[0], rows);
    for (from, to) in init.iter().zip(&outs) {
        let mut shape = from.shape().to_vec();
        shape[0] = first.clone();
        body.for_each(&shape, |b, i| {
            // The formula is evaluated in place, so that nothing is read if there are no steps.
            let value = match from.as_compute().filter(|stage| stage.checks.is_empty()) {
                Some(stage) => b.value(&substitute(&stage.body, &axis_indices(stage, i))),
                None => from.at(i),
            };
            b.store(to, i, &value);
        });
    }
    body.for_("t", &(rows - &first), |b, t| {
        let t = b.let_("step", &(t + &first));
        for stage in &steps {
            if let Some(formula) = stage.as_compute() {
                let unproved = unproved_reads(formula, state, &steps);
                write_row(b, name, (&buffers[stage], formula, unproved), (&t, &first), &buffers);
            }
        }
        // An update that reads no state is copied row by row.
        for (k, u) in update.iter().enumerate().filter(|(_, u)| !steps.contains(u)) {
            let rest = &u.shape()[1..];
            b.for_each(rest, |b, i| {
                let at: Vec<Expr> = std::iter::once(t.clone()).chain(i.iter().cloned()).collect();
                b.store(&outs[k], &at, &u.at(&at));
            });
        }
    });
    Ok(stage_of(name, outs, body.finish(), true))
}

fn provably_equal(a: &Expr, b: &Expr) -> bool {
    a.same_as(b) || simplify(&(a - b)).is_const(0)
}

fn check(name: &str, init: &[Tensor], update: &[Tensor], state: &[Tensor]) -> Result<(), TeError> {
    let error = |problem: String| Err(TeError(format!("scan '{name}': {problem}")));
    if state.is_empty() || init.len() != state.len() || update.len() != state.len() {
        let (i, u, s) = (init.len(), update.len(), state.len());
        return error(format!(
            "the scan has {s} states, {i} initial values and {u} updates, but these numbers must be equal and at least 1"
        ));
    }
    for ((i, u), s) in init.iter().zip(update).zip(state) {
        let state_name = s.name();
        if !s.is_placeholder() {
            return error(format!("state '{state_name}' must be created by te.placeholder"));
        }
        if s.ndim() == 0 || i.ndim() != s.ndim() || u.ndim() != s.ndim() {
            return error(format!(
                "state '{state_name}' has {} dims, but its initial values have {} and its update has {}; all must have the same \
                 number of dims, and the first dim must be the number of steps",
                s.ndim(),
                i.ndim(),
                u.ndim()
            ));
        }
        if i.dtype() != s.dtype() || u.dtype() != s.dtype() {
            let (dtype, initial, update) = (s.dtype(), i.dtype(), u.dtype());
            return error(format!(
                "state '{state_name}' has data type {dtype}, its initial values have {initial} and its update has {update}; all \
                 must have the same data type"
            ));
        }
        let dims = s.shape().iter().zip(u.shape()).zip(i.shape()).enumerate();
        for (k, ((sd, ud), id)) in dims {
            if k == 0 && !provably_equal(sd, ud) {
                return error(format!(
                    "the first dim of state '{state_name}' is {sd}, but the first dim of its update is {ud}; both must be the \
                     number of steps"
                ));
            }
            if k > 0 && !(provably_equal(sd, ud) && provably_equal(sd, id)) {
                return error(format!(
                    "dim {k} of state '{state_name}' is {sd}, dim {k} of its update is {ud} and dim {k} of its initial values is \
                     {id}, but these sizes must be equal"
                ));
            }
        }
        if !provably_equal(&s.shape()[0], &state[0].shape()[0])
            || !provably_equal(&i.shape()[0], &init[0].shape()[0])
        {
            return error(format!(
                "state '{state_name}' and its initial values must have as many steps as those of state '{}'",
                state[0].name()
            ));
        }
    }
    Ok(())
}

/// The stages that read a state, directly or indirectly. Producers come first.
fn stages_reading_state(update: &[Tensor], state: &[Tensor]) -> Vec<Tensor> {
    let mut reads: FxHashSet<Tensor> = state.iter().cloned().collect();
    let mut steps = Vec::new();
    for stage in stages_of(update) {
        if stage.inputs().iter().any(|t| reads.contains(t)) {
            reads.insert(stage.clone());
            steps.push(stage);
        }
    }
    steps
}

fn check_step(name: &str, stage: &Tensor, states: &[Tensor]) -> Result<(), TeError> {
    let stage_name = stage.name();
    let steps = &states[0].shape()[0];
    match stage.op() {
        TensorOp::Compute(compute)
            if stage.shape().first().is_some_and(|d| provably_equal(d, steps)) =>
        {
            let mut reads_earlier_steps = true;
            post_order(&compute.body, |e| {
                let ExprKind::Load(read, at) = e.kind() else { return };
                reads_earlier_steps &=
                    !(states.contains(read) && distance(compute, at).is_some_and(|d| d >= 0));
            });
            if reads_earlier_steps {
                Ok(())
            } else {
                Err(TeError(unavailable_step_message(name, stage_name)))
            }
        }
        TensorOp::Compute(_) => Err(TeError(format!(
            "scan '{name}': stage '{stage_name}' reads a state, so the size of its first dim must be the number of steps, {steps}"
        ))),
        _ => Err(TeError(format!(
            "scan '{name}': stage '{stage_name}' reads a state, so it must be a te.compute"
        ))),
    }
}

fn unavailable_step_message(name: &str, stage: &str) -> String {
    format!(
        "scan '{name}': stage '{stage}' reads a state at its own step or a later one, which is not computed yet"
    )
}

/// The mapping of a stage's axes to the indices of an element.
fn axis_indices(stage: &Compute, at: &[Expr]) -> FxHashMap<Var, Expr> {
    stage.axes.iter().map(|axis| axis.var.clone()).zip(at.iter().cloned()).collect()
}

/// Emits the statements that write the row of a stage at step `t`. States and intermediate stages
/// are read from the buffers that store them.
fn write_row(
    b: &mut Body,
    name: &str,
    (to, stage, (reads, axes)): (&Tensor, &Compute, UnprovedReads<'_>),
    (t, first): (&Expr, &Expr),
    buffers: &FxHashMap<Tensor, Tensor>,
) {
    for check in &stage.checks {
        b.for_axes(&check.axes, |b, at| {
            b.assert(&redirect_loads(&substitute(&check.cond, at), buffers), check.message.clone());
        });
    }
    let rest: Vec<Expr> = stage.axes[1..].iter().map(|axis| axis.extent.clone()).collect();
    b.for_each(&rest, |b, i| {
        let at: Vec<Expr> = std::iter::once(t.clone()).chain(i.iter().cloned()).collect();
        let axis_values = axis_indices(stage, &at);
        for read in &reads {
            let is_available =
                substitute(&read.is_available(&stage.axes[0].var.expr(), first), &axis_values);
            b.for_axes(axes, |b, inner| {
                b.assert(
                    &redirect_loads(&substitute(&is_available, inner), buffers),
                    unavailable_step_message(name, to.name()),
                );
            });
        }
        let value = b.value(&redirect_loads(&substitute(&stage.body, &axis_values), buffers));
        b.store(to, &at, &value);
    });
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use pliant_tensor::DType;

    use super::*;
    use crate::te::{compute, create_prim_func, float, int, var};

    #[test]
    fn mismatched_states_and_updates_are_rejected() {
        let n = var("n").expr();
        let rows = |n: &Expr| placeholder(vec![n.clone(), int(4)], DType::Float32, "s");
        let state = rows(&n);
        let init = compute(vec![int(1), int(4)], "first", |_| float(0.0));
        let short = compute(vec![int(4)], "update", |_| float(0.0));
        let wrong = scan("scan", from_ref(&init), &[short], from_ref(&state));
        assert!(wrong.unwrap_err().0.contains("its update has 1"));
        let other = compute(vec![n.clone(), int(5)], "update", |_| float(0.0));
        let wrong = scan("scan", from_ref(&init), &[other], from_ref(&state));
        assert!(wrong.unwrap_err().0.contains("dim 1 of state 's' is 4, dim 1 of its update is 5"));
        let flat = compute(vec![int(4)], "flat", |i| state.at(&[int(0), i[0].clone()]));
        let update = compute(vec![n.clone(), int(4)], "update", |i| flat.at(&i[1..]));
        let wrong = scan("scan", &[init], &[update], &[state]);
        assert!(wrong.unwrap_err().0.contains("first dim must be the number of steps"));
    }

    #[test]
    fn running_sums_become_one_stage() {
        let n = var("n").expr();
        let x = placeholder(vec![n.clone(), int(4)], DType::Float32, "x");
        let state = placeholder(vec![n.clone(), int(4)], DType::Float32, "s");
        let init = compute(vec![int(1), int(4)], "first", |i| x.at(i));
        let update = compute(vec![n, int(4)], "update", |i| {
            state.at(&[&i[0] - &int(1), i[1].clone()]) + x.at(i)
        });
        let sums = scan("sums", &[init], &[update], &[state]).unwrap();
        let func = create_prim_func(&[(&x).into(), (&sums[0]).into()]).unwrap();
        assert!(pliant_ir::tir::verify::verify_prim_func(&func).is_empty());
    }
}
