//! NumPy broadcasting with symbolic sizes that may be 1: computes the sizes of the result and the
//! indices at which loop functions read the operands.
//!
//! Provable cases are decided at compile time: equal sizes, a size of 1, and a size other than 1. All other cases are decided at
//! run time. The broadcast size of `n` and `m` is then `T.Select(n == 1, m, n)`. It is not the maximum, because 1 and 0 broadcast
//! to 0. The loop function checks that each operand's size is 1 or equal to the result's size, and reads an operand of size 1 at
//! index 0.

use std::sync::Arc;

use pliant_ir::op::InferError;
use pliant_ir::relax::Function;
use pliant_ir::{Sym, SymArena};
use pliant_sym::SymKind;

use crate::legalize::{LegalizeCtx, LegalizeError, Value};
use crate::shared_operator_rules::operand_types;
use crate::size_proofs;
use crate::te::{self, Check};
use crate::type_inference::InferCtx;

/// Returns the sizes that were broadcast to `size`: the operands of the select term if
/// [`broadcast_dim`] created `size`, else only `size` itself.
pub fn broadcast_sources(syms: &mut SymArena, mut size: Sym) -> Vec<Sym> {
    let one = syms.int(1);
    let mut list = Vec::new();
    while let SymKind::Select(is_one, rest, first) = syms.kind(size) {
        if syms.eq(first, one) != is_one {
            break;
        }
        list.push(first);
        size = rest;
    }
    list.push(size);
    list
}

/// The broadcast size of several sizes as a symbolic integer: the first size that is not 1, or 1 if
/// all sizes are 1. `None` if the list is empty.
fn first_not_one(syms: &mut SymArena, list: &[Sym]) -> Option<Sym> {
    let one = syms.int(1);
    let (&last, front) = list.split_last()?;
    Some(front.iter().rev().fold(last, |rest, &size| {
        let is_one = syms.eq(size, one);
        syms.select(is_one, rest, size)
    }))
}

/// Whether a size is provably not 1.
fn is_never_one(func: &mut Function, size: Sym) -> bool {
    let one = func.syms.int(1);
    func.syms.as_var(size).is_none() && size_proofs::equal(func, size, one) == Some(false)
}

/// The broadcast size of two sizes; `None` if they provably differ and neither can be 1.
pub fn broadcast_dim(func: &mut Function, a: Sym, b: Sym) -> Option<Sym> {
    match (func.syms.as_int(a), func.syms.as_int(b)) {
        _ if a == b => return Some(a),
        (Some(1), _) => return Some(b),
        (_, Some(1)) => return Some(a),
        (Some(_), Some(_)) => return None,
        // A constant other than 1 is the only possible result.
        (Some(_), None) => return may_stretch_to(func, b, a).then_some(a),
        (None, Some(_)) => return may_stretch_to(func, a, b).then_some(b),
        (None, None) => {}
    }
    let (mut list, other) =
        (broadcast_sources(&mut func.syms, a), broadcast_sources(&mut func.syms, b));
    if list.iter().all(|s| other.contains(s)) {
        return Some(b);
    }
    for size in other {
        if !list.iter().any(|&known| provably_equal(func, known, size)) {
            list.push(size);
        }
    }
    let certain = list.iter().copied().find(|&s| is_never_one(func, s));
    if let Some(size) = certain {
        return list.iter().all(|&s| may_stretch_to(func, s, size)).then_some(size);
    }
    first_not_one(&mut func.syms, &list)
}

/// Whether two sizes are provably equal.
fn provably_equal(func: &mut Function, a: Sym, b: Sym) -> bool {
    // The prover can never show that two different symbols are equal.
    let symbols = func.syms.as_var(a).is_some() && func.syms.as_var(b).is_some();
    a == b || !symbols && size_proofs::equal(func, a, b) == Some(true)
}

/// Whether a size may be broadcast to `target`: it may be equal to 1 or to `target`.
fn may_stretch_to(func: &mut Function, size: Sym, target: Sym) -> bool {
    size_proofs::equal(func, size, target) != Some(false) || !is_never_one(func, size)
}

/// Whether an operand's size may be broadcast to the fixed size `target`: it may be equal to 1 or to `target`.
pub fn may_broadcast_to(func: &mut Function, size: Sym, target: Sym) -> bool {
    may_stretch_to(func, size, target)
}

/// Broadcasts two lists of dims, aligned at the right. `tail` is the number of trailing dims of the
/// operands that are not in the lists and are not broadcast. Axes in the error message are negative
/// numbers that count from the last dim of the operands.
///
/// # Errors
/// If two dims are provably incompatible. The message shows them.
pub fn broadcast_dims(
    ctx: &mut InferCtx<'_>,
    a: &[Sym],
    b: &[Sym],
    tail: usize,
) -> Result<Vec<Sym>, InferError> {
    let rank = a.len().max(b.len());
    let mut out = Vec::with_capacity(rank);
    for i in 0..rank {
        let of = |list: &[Sym]| (i + list.len()).checked_sub(rank).map(|k| list[k]);
        out.push(match (of(a), of(b)) {
            (Some(x), Some(y)) => {
                let is_one = |d: Sym| ctx.func.syms.as_int(d) == Some(1);
                if !is_one(x) && !is_one(y) {
                    ctx.assume_equal(x, y);
                }
                broadcast_dim(ctx.func, x, y).ok_or_else(|| {
                    let message =
                        incompatible_dims_message(ctx, &[x, y], i as i64 - (rank + tail) as i64);
                    ctx.error(message)
                })?
            }
            (Some(x), None) | (None, Some(x)) => x,
            (None, None) => continue,
        });
    }
    Ok(out)
}

/// The message that `sizes` cannot be broadcast together, for the error at compile time and for the run-time check. `axis` is the
/// index of their dim, as a negative number that counts from the last dim of the operands.
fn incompatible_dims_message(ctx: &InferCtx<'_>, sizes: &[Sym], axis: i64) -> String {
    let sizes: Vec<String> = sizes.iter().map(|&s| ctx.dim_text(s)).collect();
    let (last, front) = sizes
        .split_last()
        .map_or((String::new(), String::new()), |(l, f)| (l.clone(), f.join(", ")));
    let operands = operand_types(ctx);
    format!("dims {front} and {last} (axis {axis}) cannot be broadcast together: {operands}")
}

// ---- lowering ----

/// The dims to which the operands of a loop function are broadcast.
pub struct BroadcastTarget {
    dims: Vec<Sym>,
    /// For each dim, the operand sizes that must be checked at run time to be 1 or equal to the dim.
    unproved: Vec<Vec<Sym>>,
    /// The number of trailing dims that operands have in addition to `dims` and that are not broadcast: the maximum over all
    /// operands. Error messages need it to number the axes.
    tail: usize,
}

/// An operand of a loop function that is broadcast to the dims of the result.
pub struct BroadcastOperand {
    value: Value,
    axes: Vec<AxisIndexing>,
}

/// The index at which an operand's dim is read to compute an element of the result.
#[derive(Clone, Debug)]
pub(crate) enum AxisIndexing {
    /// The size of the dim is 1, so index 0 is read.
    Zero,
    /// The index of the result element in the same dim is read.
    Output,
    /// If the condition is true at run time, index 0 is read, else the index of the result element.
    ZeroIf(te::Expr),
}

impl BroadcastTarget {
    /// Creates a target with the dims `dims`, to which no operand has been broadcast yet.
    pub fn new(dims: &[Sym]) -> Self {
        BroadcastTarget { dims: dims.to_vec(), unproved: vec![Vec::new(); dims.len()], tail: 0 }
    }

    /// Creates the tensor of operand `i`, with the indexing that broadcasts all its dims to the
    /// target.
    ///
    /// # Errors
    /// If the shape or element type of the operand is unknown.
    pub fn operand(
        &mut self,
        ctx: &mut LegalizeCtx<'_>,
        i: usize,
    ) -> Result<BroadcastOperand, LegalizeError> {
        self.operand_with_fixed_dims(ctx, i, &[])
    }

    /// Creates the tensor of operand `i`, with the indexing that broadcasts its leading dims to the
    /// target. The trailing dims are not broadcast. They are assumed to equal `fixed_dims`, and the
    /// loop function checks this.
    ///
    /// # Errors
    /// If the shape or element type of the operand is unknown.
    pub fn operand_with_fixed_dims(
        &mut self,
        ctx: &mut LegalizeCtx<'_>,
        i: usize,
        fixed_dims: &[Sym],
    ) -> Result<BroadcastOperand, LegalizeError> {
        let mut dims = ctx.dims(i)?;
        let broadcast_rank = dims.len().saturating_sub(fixed_dims.len());
        self.tail = self.tail.max(fixed_dims.len());
        dims.truncate(broadcast_rank);
        dims.extend_from_slice(fixed_dims);
        let mut axes = self.index_broadcast_dims(ctx, &mut dims[..broadcast_rank]);
        axes.resize_with(dims.len(), || AxisIndexing::Output);
        Ok(BroadcastOperand { value: ctx.value_with_dims(i, &dims)?, axes })
    }

    /// Creates the tensors of operand `i`, which is a tuple of tensors. All dims of each tensor are
    /// broadcast to the target.
    ///
    /// # Errors
    /// If a shape or element type is unknown.
    pub fn fields(
        &mut self,
        ctx: &mut LegalizeCtx<'_>,
        i: usize,
    ) -> Result<Vec<BroadcastOperand>, LegalizeError> {
        let tys = ctx.infer().tensors(i)?.unwrap_or_default();
        let mut read = Vec::with_capacity(tys.len());
        for t in tys {
            let mut dims = t.dims.unwrap_or_default();
            let axes = self.index_broadcast_dims(ctx, &mut dims);
            read.push((dims, axes));
        }
        let tensors = ctx.fields_with_dims(i, |k, _| read[k].0.clone())?;
        let read = tensors.into_iter().zip(read);
        Ok(read.map(|(t, (_, axes))| BroadcastOperand { value: Value::Tensor(t), axes }).collect())
    }

    /// Decides which index is read in each dim of an operand. The dims of operand and target are
    /// aligned at the right. An operand dim that must equal the target's dim is replaced by the
    /// target's dim.
    pub(crate) fn index_broadcast_dims(
        &mut self,
        ctx: &mut LegalizeCtx<'_>,
        dims: &mut [Sym],
    ) -> Vec<AxisIndexing> {
        let skip = self.dims.len().saturating_sub(dims.len());
        dims.iter_mut().enumerate().map(|(k, dim)| self.index_dim(ctx, k + skip, dim)).collect()
    }

    /// Decides which index is read in an operand dim that is broadcast to dim `at` of the target.
    /// An operand dim that must equal the target's dim is replaced by the target's dim.
    fn index_dim(&mut self, ctx: &mut LegalizeCtx<'_>, at: usize, dim: &mut Sym) -> AxisIndexing {
        let Some(&target) = self.dims.get(at) else { return AxisIndexing::Output };
        if ctx.func.syms.as_int(*dim) == Some(1) {
            return AxisIndexing::Zero;
        }
        let same = *dim == target || size_proofs::equal(ctx.func, *dim, target) == Some(true);
        if same || ctx.func.syms.as_int(target) == Some(1) || is_never_one(ctx.func, *dim) {
            *dim = target;
            return AxisIndexing::Output;
        }
        if !self.unproved[at].contains(dim) {
            self.unproved[at].push(*dim);
        }
        AxisIndexing::ZeroIf(te::eq(&ctx.size(*dim), &te::int(1)))
    }

    /// Adds the run-time checks of operand sizes ([`checks`](Self::checks)) to the stage that
    /// computes `tensor`.
    pub fn checked(&self, ctx: &mut LegalizeCtx<'_>, tensor: te::Tensor) -> te::Tensor {
        self.checks(ctx).into_iter().fold(tensor, |t, check| t.with_check(check))
    }

    /// Returns the run-time checks that operand sizes are 1 or equal to the target's size. The
    /// caller adds them to the first stage that reads an operand.
    pub fn checks(&self, ctx: &mut LegalizeCtx<'_>) -> Vec<Check> {
        let mut checks = Vec::new();
        for (at, unproved) in self.unproved.iter().enumerate() {
            if unproved.is_empty() {
                continue;
            }
            let target = ctx.size(self.dims[at]);
            let cond = unproved.iter().map(|&size| {
                let size = ctx.size(size);
                te::or(&te::eq(&size, &te::int(1)), &te::eq(&size, &target))
            });
            let Some(cond) = cond.reduce(|a, b| te::and(&a, &b)) else { continue };
            let mut sizes = broadcast_sources(&mut ctx.func.syms, self.dims[at]);
            for &size in unproved {
                let new = broadcast_sources(&mut ctx.func.syms, size);
                sizes.extend(new.into_iter().filter(|s| !sizes.contains(s)).collect::<Vec<_>>());
            }
            let message = incompatible_dims_message(
                &ctx.infer(),
                &sizes,
                at as i64 - (self.dims.len() + self.tail) as i64,
            );
            let message: Arc<str> = ctx.error(message).message.into();
            checks.push(Check { axes: Vec::new(), cond, message });
        }
        checks
    }
}

impl BroadcastOperand {
    /// Creates a tensor operand with the indexing of each of its dims.
    pub(crate) fn new(tensor: te::Tensor, axes: Vec<AxisIndexing>) -> Self {
        BroadcastOperand { value: Value::Tensor(tensor), axes }
    }

    /// Creates an operand that is not broadcast: each dim is read at the index of the result
    /// element.
    pub fn without_broadcast(tensor: te::Tensor) -> Self {
        let axes = vec![AxisIndexing::Output; tensor.ndim()];
        BroadcastOperand::new(tensor, axes)
    }

    /// The operand as a tensor or a scalar.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The element of the operand that the output element at `indices` is computed from.
    pub fn at(&self, indices: &[te::Expr]) -> te::Expr {
        let skip = indices.len().saturating_sub(self.axes.len());
        let operand_indices = self.axes.iter().zip(&indices[skip..]).map(|(axis, i)| match axis {
            AxisIndexing::Zero => te::int(0),
            AxisIndexing::Output => i.clone(),
            AxisIndexing::ZeroIf(cond) => te::select(cond, &te::int(0), i),
        });
        self.value.at(&operand_indices.collect::<Vec<_>>())
    }
}
