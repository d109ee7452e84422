//! The loops of a scatter: a copy of the data, then the updates in row-major order. Updates that cannot write the same element run
//! in parallel.

use pliant_tensor::DType;

use super::super::parallel_row_loops::{MIN_CHUNK_ELEMENTS, for_each_element};
use super::super::reductions::accumulator;
use super::index_bounds::{self, Negative};
use crate::te::{self, Body, Expr, Tensor};

/// A function that writes one update, given the indices of an element in the result and in the updates.
type WriteUpdate<'a> = dyn Fn(&mut Body, &[Expr], &[Expr]) + 'a;

/// Emits the update of one element of the result: combines it with `update` by the reduction.
fn apply_update(b: &mut Body, to: &Tensor, at: &[Expr], update: &Expr, reduction: &str) {
    let old = to.at(at);
    let update = te::cast(update, to.dtype());
    let new = match reduction {
        "add" | "mean" => &old + &update,
        "mul" if to.dtype().is_bool() => te::and(&old, &update),
        "mul" => te::binary(te::BinOp::Mul, &old, &update),
        "min" => te::minimum(&old, &update),
        "max" => te::maximum(&old, &update),
        _ => update,
    };
    b.store(to, at, &new);
}

/// The updates of a scatter, and how they can be split into parallel parts.
pub(super) struct ScatterUpdates<'a> {
    /// The dims of the tensor of updates.
    pub(super) shape: &'a [Expr],
    /// The number of leading dims of the updates. One index in each of these dims selects a row of
    /// the updates, which is written to one position of the result. The remaining dims are the dims
    /// of the row.
    pub(super) lead: usize,
    /// The dim, if any, whose index is also an index in the result. Updates with different indices in this dim write different
    /// elements.
    pub(super) split: Option<usize>,
    /// The run-time checks of the operands.
    pub(super) checks: &'a [te::Check],
}

/// Maximum number of parallel parts into which a dim of the updates other than the first is split. It is limited because every part
/// reads the index tuples of all rows again.
const MAX_INNER_PARTS: i64 = 8;

/// The number of 4-byte elements in a cache line: the minimum width of a parallel part of a row.
const CACHE_LINE_ELEMENTS: i64 = 16;

impl ScatterUpdates<'_> {
    /// The first dim after the `lead` leading ones whose size is not 1.
    pub(super) fn row_dim(shape: &[Expr], lead: usize) -> Option<usize> {
        (lead..shape.len()).find(|&k| !shape[k].is_const(1))
    }

    /// The number of indices of dim `k` (the split dim) that each parallel part of the updates processes.
    fn indices_per_part(&self, k: usize) -> Expr {
        let others = self.shape.iter().enumerate().filter(|&(i, _)| i != k);
        let each = others.fold(te::int(1), |n, (_, d)| n * d);
        let mut step = te::ceildiv(&te::int(MIN_CHUNK_ELEMENTS), &te::maximum(&each, &te::int(1)));
        if k > 0 {
            step = te::maximum(&step, &te::ceildiv(&self.shape[k], &te::int(MAX_INNER_PARTS)));
        }
        let inner = self.shape[k + 1..].iter().fold(te::int(1), |n, d| n * d);
        let line = te::ceildiv(&te::int(CACHE_LINE_ELEMENTS), &te::maximum(&inner, &te::int(1)));
        te::ceildiv(&step, &line) * line
    }

    /// Emits loops over the updates in row-major order. If the updates have a split dim, its parts
    /// run in parallel. `target` maps the leading indices of an update to the leading indices of
    /// the result. `write` writes one element; its arguments are the complete indices in the result
    /// and in the updates.
    fn for_each_update(
        &self,
        b: &mut Body,
        target: &dyn Fn(&mut Body, &[Expr]) -> Vec<Expr>,
        write: &WriteUpdate<'_>,
    ) {
        let Some(k) = self.split else { return self.updates_part(b, None, target, write) };
        let (size, step) = (&self.shape[k], b.let_("step", &self.indices_per_part(k)));
        b.parallel("part", &te::ceildiv(size, &step), |b, part| {
            let first = b.let_("first", &(part * &step));
            // Asserted once per part rather than for each element.
            let inside = te::and(&te::ge(&first, &te::int(0)), &te::lt(&first, size));
            b.assert(&inside, "a part lies outside of the updates");
            let size = te::minimum(&step, &(size - &first));
            self.updates_part(b, Some((k, first, size)), target, write);
        });
    }

    /// Emits the loops over the updates of one parallel part, or over all updates if `part` is `None`. `part` consists of the split
    /// dim (the dim of the updates that is divided into parts), the part's first index in this dim, and the number of indices in
    /// the part.
    fn updates_part(
        &self,
        b: &mut Body,
        part: Option<(usize, Expr, Expr)>,
        target: &dyn Fn(&mut Body, &[Expr]) -> Vec<Expr>,
        write: &WriteUpdate<'_>,
    ) {
        let mut shape = self.shape.to_vec();
        if let Some((k, _, size)) = &part {
            shape[*k] = size.clone();
        }
        let index = |i: &[Expr], from: usize| {
            let mut index = i.to_vec();
            if let Some((k, first, _)) = &part
                && (from..from + i.len()).contains(k)
            {
                index[k - from] = first + &i[k - from];
            }
            index
        };
        b.for_each(&shape[..self.lead], |b, i| {
            let lead = index(i, 0);
            let to = target(b, &lead);
            b.for_each(&shape[self.lead..], |b, i| {
                let row = index(i, self.lead);
                write(b, &[&to[..], &row].concat(), &[lead, row].concat());
            });
        });
    }
}

/// Emits the statements of a scatter: the checks, a copy of the data, and the updates. For a mean,
/// the sums are divided by the number of updates.
pub(super) fn scatter(
    name: &str,
    data: &Tensor,
    reduction: &str,
    updates: &ScatterUpdates<'_>,
    target: &dyn Fn(&mut Body, &[Expr]) -> Vec<Expr>,
    value: &dyn Fn(&[Expr]) -> Expr,
) -> Vec<Tensor> {
    let (shape, dtype) = (data.shape().to_vec(), data.dtype());
    let mean = reduction == "mean";
    te::extern_(name, &[(shape.clone(), dtype)], |b, out| {
        for check in updates.checks {
            b.assert(&check.cond, check.message.clone());
        }
        let counts = mean.then(|| b.alloc("counts", &shape, DType::Int64));
        // Sums in half precision would round away small addends.
        let acc_dtype = accumulator(dtype);
        let sums = matches!(reduction, "mean" | "add" | "mul") && acc_dtype != dtype;
        let sums = sums.then(|| b.alloc("sums", &shape, acc_dtype));
        let to = sums.as_ref().unwrap_or(&out[0]);
        for_each_element(b, &shape, |b, i| b.store(to, i, &data.at(i)));
        if let Some(counts) = &counts {
            for_each_element(b, &shape, |b, i| b.store(counts, i, &te::int(1)));
        }
        updates.for_each_update(b, target, &|b, at, i| {
            apply_update(b, to, at, &value(i), reduction);
            if let Some(counts) = &counts {
                b.store(counts, at, &(counts.at(at) + 1));
            }
        });
        if let Some(counts) = &counts {
            for_each_element(b, &shape, |b, i| {
                let (sum, count) = (to.at(i), te::cast(&counts.at(i), acc_dtype));
                let mean = if dtype.is_float() { sum / count } else { te::floordiv(&sum, &count) };
                b.store(&out[0], i, &mean);
            });
        } else if let Some(sums) = &sums {
            for_each_element(b, &shape, |b, i| b.store(&out[0], i, &te::cast(&sums.at(i), dtype)));
        }
    })
}

/// Emits the checks of the index along `axis` at which a row is written, and returns the normalized
/// index.
pub(super) fn checked_row_index(
    b: &mut Body,
    op: &str,
    trust_indices: bool,
    (axis, index, size): (usize, &Expr, &Expr),
) -> Expr {
    let at = (axis, index, size);
    let position = index_bounds::emit_checked_index(b, op, trust_indices, at, Negative::FromEnd);
    // Asserted once per row rather than for each of its elements.
    b.assert(
        &te::lt(&position, size),
        format!("{op}: axis {axis} of data is empty, so no index is in range"),
    );
    position
}
