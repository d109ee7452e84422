//! Derives the adjoints of the inputs of tensor expressions from the adjoints of the outputs (reverse-mode differentiation).
//!
//! A stage `y[i] = sum_k f(A[g(i, k)], ...)` adds `f'(...) * dy[i]` to the adjoint of `A[g(i, k)]` for all `i` and `k`. If `g` only
//! permutes and drops indices, the adjoint of `A` is a stage with one formula: a sum over the dropped indices. Otherwise, it is a
//! stage made of statements that adds to the elements one by one.

use rustc_hash::{FxHashMap, FxHashSet};

use super::TeError;
use super::expr::{Expr, ExprKind, IterVar, Reducer, Var};
use super::expr_builders::{all, const_of, eq, if_then_else, reduce_axis, sum};
use super::expr_traversal::substitute;
use super::extern_stage::{Body, extern_};
use super::scalar_adjoint::{ReadAdjoint, read_adjoints};
use super::tensor::{Compute, Tensor, TensorOp, compute};

/// The adjoints of `inputs`, given the outputs with their adjoints. `None` for an input on which no output depends.
///
/// # Errors
/// If an output depends on an input through a stage made of statements, a reduction by a user-defined function, or an intrinsic
/// without a derivative.
pub fn adjoints(
    outputs: &[(Tensor, Tensor)],
    inputs: &[Tensor],
) -> Result<Vec<Option<Tensor>>, TeError> {
    let stages = stages_in_order(outputs.iter().map(|(output, _)| output));
    let active = active_tensors(&stages, inputs);
    let mut partial: FxHashMap<Tensor, Vec<Tensor>> = FxHashMap::default();
    for (output, adjoint) in outputs {
        partial.entry(output.clone()).or_default().push(adjoint.clone());
    }
    for stage in stages.iter().rev() {
        if stage.is_placeholder() || !active.contains(stage) {
            continue;
        }
        let Some(list) = partial.remove(stage) else { continue };
        let adjoint = total(stage, &list);
        let TensorOp::Compute(formula) = stage.op() else {
            return Err(TeError::new(format!(
                "the stage '{}' is made of statements, which cannot be differentiated",
                stage.name()
            )));
        };
        for (tensor, adjoint) in stage_adjoints(stage, formula, &adjoint, &active)? {
            partial.entry(tensor).or_default().push(adjoint);
        }
    }
    Ok(inputs.iter().map(|t| partial.get(t).map(|list| total(t, list))).collect())
}

/// All tensors from which the outputs are computed, each after its inputs.
fn stages_in_order<'t>(outputs: impl Iterator<Item = &'t Tensor>) -> Vec<Tensor> {
    let (mut seen, mut order) = (FxHashSet::default(), Vec::new());
    let mut stack: Vec<(Tensor, bool)> = outputs.map(|t| (t.clone(), false)).collect();
    while let Some((tensor, expanded)) = stack.pop() {
        if expanded {
            order.push(tensor);
        } else if seen.insert(tensor.clone()) {
            let inputs = tensor.inputs();
            stack.push((tensor, true));
            stack.extend(inputs.into_iter().filter(|t| !seen.contains(t)).map(|t| (t, false)));
        }
    }
    order
}

/// The float tensors that depend on an input.
fn active_tensors(stages: &[Tensor], inputs: &[Tensor]) -> FxHashSet<Tensor> {
    let mut active: FxHashSet<Tensor> = inputs.iter().cloned().collect();
    for stage in stages {
        if stage.dtype().is_float() && stage.inputs().iter().any(|t| active.contains(t)) {
            active.insert(stage.clone());
        }
    }
    active
}

/// The sum of partial adjoints of a tensor.
fn total(tensor: &Tensor, list: &[Tensor]) -> Tensor {
    match list {
        [one] => one.clone(),
        _ => compute(tensor.shape().to_vec(), format!("{}_adjoint", tensor.name()), |i| {
            let terms = list.iter().map(|t| t.at(i)).reduce(|a, b| a + b);
            terms.unwrap_or_else(|| const_of(0.0, tensor.dtype()))
        }),
    }
}

/// The contributions of a stage to the adjoints of the tensors that it reads.
fn stage_adjoints(
    stage: &Tensor,
    formula: &Compute,
    adjoint: &Tensor,
    active: &FxHashSet<Tensor>,
) -> Result<Vec<(Tensor, Tensor)>, TeError> {
    let at: Vec<Expr> = formula.axes.iter().map(|axis| axis.var.expr()).collect();
    let dy = adjoint.at(&at);
    let mut axes = formula.axes.clone();
    let reads = match formula.body.kind() {
        ExprKind::Reduce(r) => {
            axes.extend(r.axes.iter().cloned());
            let y = stage.at(&at);
            let (guard, dx) = match &r.reducer {
                Reducer::Sum => (None, dy),
                Reducer::Prod => (None, dy * y / &r.source),
                Reducer::Max | Reducer::Min => (Some(eq(&r.source, &y)), dy),
                Reducer::Custom(_) => {
                    return Err(TeError::new(format!(
                        "the stage '{}' reduces with a user-defined function, which cannot be differentiated",
                        stage.name()
                    )));
                }
            };
            let mut reads = read_adjoints(&r.source, &dx, active)?;
            if let Some(guard) = guard {
                reads.iter_mut().for_each(|read| read.guards.push(guard.clone()));
            }
            reads
        }
        _ => read_adjoints(&formula.body, &dy, active)?,
    };
    let mut by_tensor: Vec<(Tensor, Vec<ReadAdjoint>)> = Vec::new();
    for read in reads {
        match by_tensor.iter_mut().find(|(t, _)| *t == read.tensor) {
            Some((_, list)) => list.push(read),
            None => by_tensor.push((read.tensor.clone(), vec![read])),
        }
    }
    Ok(by_tensor
        .into_iter()
        .flat_map(|(tensor, reads)| {
            let adjoints = adjoints_of_reads(&tensor, &axes, reads);
            adjoints.into_iter().map(move |adjoint| (tensor.clone(), adjoint))
        })
        .collect())
}

/// The adjoint that reads in loops over `axes` contribute to the adjoint of a tensor, as a list of addends.
fn adjoints_of_reads(tensor: &Tensor, axes: &[IterVar], reads: Vec<ReadAdjoint>) -> Vec<Tensor> {
    let (mut addends, mut scattered) = (Vec::new(), Vec::new());
    for read in reads {
        match index_axes(tensor, axes, &read.indices) {
            Some(at) => addends.push(gathered(tensor, axes, &at, &read)),
            None => scattered.push(read),
        }
    }
    if !scattered.is_empty() {
        addends.push(scattered_adjoint(tensor, axes, &scattered));
    }
    addends
}

/// For each index of a read, the position in `axes` of the axis that it is. `None` if an index is another expression, an axis
/// occurs twice, or an axis does not have the size of the dim.
fn index_axes(tensor: &Tensor, axes: &[IterVar], indices: &[Expr]) -> Option<Vec<usize>> {
    let mut found = Vec::with_capacity(indices.len());
    for (index, size) in indices.iter().zip(tensor.shape()) {
        let var = index.as_var()?;
        let k = axes.iter().position(|axis| axis.var == *var)?;
        let covers = axes[k].min.is_const(0) && same_size(&axes[k].extent, size);
        if !covers || found.contains(&k) {
            return None;
        }
        found.push(k);
    }
    Some(found)
}

/// Whether two sizes are the same constant, variable or expression.
fn same_size(a: &Expr, b: &Expr) -> bool {
    use ExprKind::{Binary, Cast, Int, Select, Var};
    a.same_as(b)
        || match (a.kind(), b.kind()) {
            (Int(x), Int(y)) => x == y,
            (Var(x), Var(y)) => x == y,
            (Binary(f, a, c), Binary(g, b, d)) => f == g && same_size(a, b) && same_size(c, d),
            (Cast(x), Cast(y)) => a.ty() == b.ty() && same_size(x, y),
            (Select(c, a, b), Select(d, x, y)) => {
                same_size(c, d) && same_size(a, x) && same_size(b, y)
            }
            _ => false,
        }
}

/// The adjoint of a read whose indices are the axes `at`: the sum over the other axes.
fn gathered(tensor: &Tensor, axes: &[IterVar], at: &[usize], read: &ReadAdjoint) -> Tensor {
    let name = format!("{}_adjoint", tensor.name());
    compute(tensor.shape().to_vec(), name, |i| {
        let mut map: FxHashMap<Var, Expr> =
            at.iter().zip(i).map(|(&k, e)| (axes[k].var.clone(), e.clone())).collect();
        let mut summed = Vec::new();
        for (k, axis) in axes.iter().enumerate().filter(|(k, _)| !at.contains(k)) {
            let new = reduce_axis(substitute(&axis.extent, &map), format!("k{k}"));
            map.insert(axis.var.clone(), new.var.expr() + substitute(&axis.min, &map));
            summed.push(new);
        }
        let value = substitute(&guarded(read), &map);
        if summed.is_empty() { value } else { sum(&value, &summed) }
    })
}

/// The adjoint of a read, which is 0 unless its conditions are true.
fn guarded(read: &ReadAdjoint) -> Expr {
    let zero = const_of(0.0, read.value.ty().dtype);
    if_then_else(&all(&read.guards), &read.value, &zero)
}

/// The adjoint of reads at any indices: loops over the axes that add to one element after the other.
fn scattered_adjoint(tensor: &Tensor, axes: &[IterVar], reads: &[ReadAdjoint]) -> Tensor {
    let shape = tensor.shape().to_vec();
    let name = format!("{}_adjoint", tensor.name());
    let outputs = [(shape.clone(), tensor.dtype())];
    let mut stages = extern_(&name, &outputs, |b, out| {
        b.for_each(&shape, |b, i| b.store(&out[0], i, &const_of(0.0, tensor.dtype())));
        loops(b, axes, &mut FxHashMap::default(), &mut |b, at| {
            for read in reads {
                let new = |e: &Expr| substitute(e, at);
                b.if_(&new(&all(&read.guards)), |b| {
                    let indices: Vec<Expr> =
                        read.indices.iter().map(|i| b.let_("i", &new(i))).collect();
                    b.store(&out[0], &indices, &(out[0].at(&indices) + new(&read.value)));
                });
            }
        });
    });
    stages.remove(0)
}

/// Emits loops over axes, whose ranges may depend on outer axes. The body receives the expression for each axis's variable.
fn loops(
    b: &mut Body,
    axes: &[IterVar],
    at: &mut FxHashMap<Var, Expr>,
    body: &mut dyn FnMut(&mut Body, &FxHashMap<Var, Expr>),
) {
    let Some((axis, inner)) = axes.split_first() else { return body(b, at) };
    let extent = b.let_("extent", &substitute(&axis.extent, at));
    let min = substitute(&axis.min, at);
    b.for_(axis.var.name(), &extent, |b, i| {
        at.insert(axis.var.clone(), i + min);
        loops(b, inner, at, body);
    });
}
