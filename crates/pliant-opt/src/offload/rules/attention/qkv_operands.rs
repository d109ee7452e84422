//! Finds the tensors that contain queries, keys and values, their layout, and the columns that they occupy in a wider tensor.

use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::{AttrValue, Op};
use pliant_pass::pattern::RewriteCx;

use super::SWAP_HEADS_AND_ROWS;
use super::half_precision_casts::before_widening;
use super::score_scale_factors::strip_factors;
use crate::common::matmul_and_conv_operands::{
    PERMUTE_DIMS, defining_attrs, defining_operands, permute_axes,
};
use crate::common::operators_after_lowering::RESHAPE;

const REPEAT: Op = Op::new("relax.repeat");
const SPLIT: Op = Op::new("relax.split");

/// The layout of queries, keys or values in a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// The tensor has the dims `(batch, rows, size)` and contains one head.
    SingleHead,
    /// The tensor has the dims `(batch, heads, rows, size)`.
    Heads,
    /// The tensor has the dims `(batch, rows, heads, size)`.
    Tokens,
    /// The tensor has the dims `(batch, rows, width)`. The last dim contains `heads` adjacent heads of `size` elements each, from
    /// index `column` on.
    Columns { column: i64, heads: i64, size: i64 },
}

/// A tensor that contains queries, keys or values, and their layout in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub tensor: Expr,
    pub layout: Layout,
}

/// Returns (permutation, operand) if a value is a transpose; `None` otherwise.
fn match_permute(cx: &RewriteCx<'_>, e: Expr) -> Option<(Vec<usize>, Expr)> {
    let e = before_widening(cx, e);
    let inner = defining_operands(cx, e, PERMUTE_DIMS)?[0];
    let rank = cx.func.ty(inner).dims()?.len();
    Some((permute_axes(&defining_attrs(cx, e)?, rank)?, inner))
}

/// If a value is a transpose of keys, returns the keys, and multiplies `scale` by their constant factors; `None` otherwise.
pub(super) fn transposed_keys(cx: &RewriteCx<'_>, kt: Expr, scale: &mut f64) -> Option<Source> {
    if let Some(keys) = keys_with_merged_heads(cx, kt, scale) {
        return source_of(cx, keys);
    }
    let (order, inner) = match_permute(cx, kt)?;
    match order[..] {
        [0, 2, 1] | [0, 1, 3, 2] => {
            let inner = strip_factors(cx, inner, scale);
            source_of(cx, inner)
        }
        [0, 2, 3, 1] => Some(tokens_source(cx, inner)),
        _ => None,
    }
}

/// Recognizes a transpose of keys in the form that the PyTorch exporter writes: the batch and head dims are merged, the result is
/// transposed, and the merged dim is split again. Returns the keys.
fn keys_with_merged_heads(cx: &RewriteCx<'_>, kt: Expr, scale: &mut f64) -> Option<Expr> {
    let &[batch, heads, size, rows] = cx.func.ty(kt).dims()? else { return None };
    let mut merged_scale = *scale;
    let merged = strip_factors(
        cx,
        defining_operands(cx, before_widening(cx, kt), RESHAPE)?[0],
        &mut merged_scale,
    );
    let (order, flat) = match_permute(cx, merged)?;
    let flat = strip_factors(cx, flat, &mut merged_scale);
    let keys = defining_operands(cx, flat, RESHAPE)?[0];
    let is_merged_transpose = order == [0, 2, 1] && cx.func.ty(flat).dims()?[1..] == [rows, size];
    if !is_merged_transpose || cx.func.ty(keys).dims()? != [batch, heads, rows, size] {
        return None;
    }
    *scale = merged_scale;
    Some(strip_factors(cx, keys, scale))
}

/// Returns the tensor and layout that the kernel reads for queries, keys or values `e` with the dims `(batch, rows, size)` or
/// `(batch, heads, rows, size)`. A transpose that swaps heads and rows is skipped, and so is the split of a wider tensor before it.
/// If there is neither, the tensor is `e` itself. `None` if the shape of `e` is unknown.
pub(super) fn source_of(cx: &RewriteCx<'_>, e: Expr) -> Option<Source> {
    if cx.func.ty(e).dims()?.len() == 3 {
        return Some(Source { tensor: e, layout: Layout::SingleHead });
    }
    match match_permute(cx, e) {
        Some((order, inner)) if order == SWAP_HEADS_AND_ROWS => Some(tokens_source(cx, inner)),
        _ => Some(Source { tensor: e, layout: Layout::Heads }),
    }
}

/// If `R.repeat` repeats each head of keys and values for the same number of query heads (grouped-query attention), returns the
/// keys and values before the repetition; `None` otherwise.
pub(super) fn shared_heads(cx: &RewriteCx<'_>, sources: [Source; 2]) -> Option<[Source; 2]> {
    let mut counts = Vec::with_capacity(2);
    let mut inner = Vec::with_capacity(2);
    for s in sources {
        let operand = defining_operands(cx, before_widening(cx, s.tensor), REPEAT)
            .filter(|_| s.layout == Layout::Heads)?[0];
        let attrs = defining_attrs(cx, before_widening(cx, s.tensor))?;
        let axis = attrs.get("axis").and_then(AttrValue::as_int)?;
        let heads = cx.func.syms.as_int(cx.func.ty(operand).dims().filter(|d| d.len() == 4)?[1])?;
        let count = attrs.get("repeats").and_then(AttrValue::as_int).filter(|&n| n > 0)?;
        if axis != 1 && axis != -3 {
            return None;
        }
        counts.push((heads, count));
        inner.push(source_of(cx, operand)?);
    }
    (counts[0] == counts[1]).then(|| [inner[0], inner[1]])
}

/// Returns the tensor and layout that the kernel reads for queries, keys or values `e` with the dims `(batch, rows, heads, size)`.
/// If `e` is a part of a wider tensor, the tensor is the wider one; otherwise it is `e` itself.
fn tokens_source(cx: &RewriteCx<'_>, e: Expr) -> Source {
    columns_source(cx, e).unwrap_or(Source { tensor: e, layout: Layout::Tokens })
}

/// If a value is a part of a tensor that is split along its last axis, returns this tensor and the columns of the part.
fn columns_source(cx: &RewriteCx<'_>, e: Expr) -> Option<Source> {
    let &[batch, rows, heads, size] = cx.func.ty(e).dims()? else { return None };
    let (heads, size) = (cx.func.syms.as_int(heads)?, cx.func.syms.as_int(size)?);
    let flat = defining_operands(cx, e, RESHAPE)?[0];
    let &[b, r, width] = cx.func.ty(flat).dims()? else { return None };
    let width = cx.func.syms.as_int(width)?;
    if (b, r) != (batch, rows) || Some(width) != heads.checked_mul(size) {
        return None;
    }
    let ExprData::TupleGetItem(parts, index) = *cx.func.expr(cx.value(flat)) else { return None };
    let tensor = defining_operands(cx, parts, SPLIT)?[0];
    let attrs = defining_attrs(cx, parts)?;
    let axis = attrs.get("axis").and_then(AttrValue::as_int).unwrap_or(0);
    let tensor_dims = cx.func.ty(tensor).dims()?;
    if tensor_dims.len() != 3 || (axis != -1 && axis != 2) || tensor_dims[..2] != [batch, rows] {
        return None;
    }
    let tensor_dims = cx.func.syms.as_int(tensor_dims[2])?;
    let column = match attrs.get("indices_or_sections")? {
        sections if sections.as_int().is_some() => {
            let sections = sections.as_int().filter(|&n| n > 0 && tensor_dims % n == 0)?;
            tensor_dims / sections * i64::from(index)
        }
        split_indices => match index {
            0 => 0,
            _ => *split_indices.as_ints()?.get(index as usize - 1)?,
        },
    };
    let is_in_range = column >= 0 && column.checked_add(width)? <= tensor_dims;
    let layout = Layout::Columns { column, heads, size };
    is_in_range.then_some(Source { tensor, layout })
}
