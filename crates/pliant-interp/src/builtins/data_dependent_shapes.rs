//! Builtins whose result shapes depend on the values of their operands: `nonzero`, `unique` and `dynamic_strided_slice`.

use std::cmp::Ordering;

use pliant_tensor::{DType, Tensor};

use super::Args;
use crate::InterpError;
use crate::Value;
use crate::interp_error::Result;
use crate::interpreter::Interpreter;
use crate::loop_functions::buffer_view::View;
use crate::loop_functions::scalar_arithmetic::Val;

/// Compares two elements to sort them in ascending order, with NaN last.
fn order(a: &Val, b: &Val, dtype: DType) -> Ordering {
    match (a, b) {
        (Val::Float(a), Val::Float(b)) => {
            a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
        (Val::Int(a), Val::Int(b)) if dtype == DType::UInt64 => (*a as u64).cmp(&(*b as u64)),
        (Val::Int(a), Val::Int(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

fn elements(t: &Tensor) -> Result<Vec<Val>> {
    let t = t.to_contiguous()?;
    let view = View::of_tensor("x", &t);
    (0..t.numel() as i64).map(|i| view.read(i)).collect()
}

/// Creates a row-major tensor with the given elements.
fn new_tensor(
    interp: &Interpreter<'_>,
    shape: &[i64],
    dtype: DType,
    values: &[Val],
) -> Result<Value> {
    let t = interp.alloc_tensor(shape, dtype)?;
    let view = View::of_tensor("result", &t);
    for (i, value) in values.iter().enumerate() {
        view.write(i as i64, value)?;
    }
    Ok(t.into())
}

/// `nonzero(x)`: returns the indices of the nonzero elements, as a tensor of shape `(rank, count)`.
pub(super) fn nonzero(interp: &Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let t = a.tensor(0)?;
    let (shape, rank) = (t.shape(), t.ndim());
    let mut rows = vec![Vec::new(); rank];
    let mut count = 0;
    for (i, value) in elements(t)?.iter().enumerate() {
        if matches!(value, Val::Int(0)) || matches!(value, Val::Float(v) if *v == 0.0) {
            continue;
        }
        count += 1;
        let mut rest = i as i64;
        for d in (0..rank).rev() {
            rows[d].push(Val::Int(rest % shape[d]));
            rest /= shape[d];
        }
    }
    new_tensor(interp, &[rank as i64, count], DType::Int64, &rows.concat())
}

/// `unique(x, sorted, return_index, return_inverse, return_counts, axis)`: returns the distinct slices along `axis` or, without
/// an axis, the distinct elements. If `sorted` is false, the result is in the order of the first occurrences.
pub(super) fn unique(interp: &Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let t = a.tensor(0)?;
    let flag = |i: usize| a.0.get(i).and_then(Value::as_int).is_some_and(|v| v != 0);
    let rank = t.ndim() as i64;
    let (shape, axis) = match a.0.get(5).and_then(Value::as_int) {
        Some(axis) => (t.shape().to_vec(), if axis < 0 { axis + rank } else { axis } as usize),
        None => (vec![t.numel() as i64], 0),
    };
    let Some(&len) = shape.get(axis) else {
        return a.type_mismatch(0, &format!("a tensor with an axis {axis}"));
    };
    let inner: i64 = shape[axis + 1..].iter().product();
    let outer: i64 = shape[..axis].iter().product();
    let all = elements(t)?;
    let at = |o: i64, i: i64, k: i64| &all[((o * len + i) * inner + k) as usize];
    let compare = |x: i64, y: i64| {
        for o in 0..outer {
            for k in 0..inner {
                let ordering = order(at(o, x, k), at(o, y, k), t.dtype());
                if ordering.is_ne() {
                    return ordering;
                }
            }
        }
        Ordering::Equal
    };
    let mut indices: Vec<i64> = (0..len).collect();
    indices.sort_by(|&x, &y| compare(x, y).then(x.cmp(&y)));
    // As in NumPy, NaN elements are equal to each other, but slices that contain NaN are not.
    let is_nan = |v: &Val| matches!(v, Val::Float(v) if v.is_nan());
    let has_nan = |i| (0..outer).any(|o| (0..inner).any(|k| is_nan(at(o, i, k))));
    let nan_differs = shape.len() > 1;
    let same = |a: i64, b: i64| compare(a, b).is_eq() && !(nan_differs && has_nan(a));
    // Each group contains the indices of equal slices, in ascending order.
    let mut groups: Vec<Vec<i64>> = Vec::new();
    for i in indices {
        match groups.last_mut() {
            Some(group) if same(group[0], i) => group.push(i),
            _ => groups.push(vec![i]),
        }
    }
    if !flag(1) {
        groups.sort_by_key(|g| g[0]);
    }
    let mut values = Vec::with_capacity(all.len());
    for o in 0..outer {
        for group in &groups {
            values.extend((0..inner).map(|k| at(o, group[0], k).clone()));
        }
    }
    let mut out_shape = shape;
    out_shape[axis] = groups.len() as i64;
    let mut fields = vec![new_tensor(interp, &out_shape, t.dtype(), &values)?];
    let mut inverse = vec![Val::Int(0); len as usize];
    for (g, group) in groups.iter().enumerate() {
        group.iter().for_each(|&i| inverse[i as usize] = Val::Int(g as i64));
    }
    let index = groups.iter().map(|g| Val::Int(g[0])).collect();
    let counts = groups.iter().map(|g| Val::Int(g.len() as i64)).collect();
    for (operand, list) in [(2, index), (3, inverse), (4, counts)] {
        let list: Vec<Val> = list;
        if flag(operand) {
            fields.push(new_tensor(interp, &[list.len() as i64], DType::Int64, &list)?);
        }
    }
    Ok(if fields.len() == 1 { fields.remove(0) } else { Value::tuple(fields) })
}

/// `dynamic_strided_slice(x, begin, end, strides)`: returns `x[begin[0]:end[0]:strides[0], ...]` with the semantics of Python
/// slices.
pub(super) fn strided_slice(interp: &Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let t = a.tensor(0)?;
    let lists: [Vec<i64>; 3] =
        [a.tensor(1)?.to_i64_vec()?, a.tensor(2)?.to_i64_vec()?, a.tensor(3)?.to_i64_vec()?];
    if let Some(i) = lists.iter().position(|l| l.len() != t.ndim()) {
        return a.type_mismatch(i + 1, "a vector with one element for each dim of operand 0");
    }
    let mut selected: Vec<Vec<i64>> = Vec::new();
    for (d, &dim) in t.shape().iter().enumerate() {
        let (begin, end, step) = (lists[0][d], lists[1][d], lists[2][d]);
        if step == 0 {
            return Err(InterpError::check(format!(
                "relax.dynamic_strided_slice: the stride of dim {d} is 0"
            )));
        }
        let from_start = |b: i64| if b < 0 { b.saturating_add(dim) } else { b };
        let (begin, end) = (from_start(begin), from_start(end));
        let mut indices: Vec<i64> = (0..dim)
            .filter(|&i| match step > 0 {
                true => i >= begin && i < end && (i - begin.max(0)) % step == 0,
                false => i <= begin && i > end && (begin.min(dim - 1) - i) % step == 0,
            })
            .collect();
        if step < 0 {
            indices.reverse();
        }
        selected.push(indices);
    }
    let shape: Vec<i64> = selected.iter().map(|c| c.len() as i64).collect();
    let all = elements(t)?;
    let mut positions = vec![0];
    for (indices, &dim) in selected.iter().zip(t.shape()) {
        positions =
            positions.iter().flat_map(|p| indices.iter().map(move |i| p * dim + i)).collect();
    }
    let values: Vec<Val> = positions.into_iter().map(|p| all[p as usize].clone()).collect();
    new_tensor(interp, &shape, t.dtype(), &values)
}
