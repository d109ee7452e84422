//! Concatenation and splitting along an axis: concat, split.

use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;
use pliant_ir::{DType, Sym};
use pliant_sym::SymKind;

use super::join_gradients;
use crate::call_attributes::Sizes;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::flat_at;
use crate::ops::indexing::index_bounds;
use crate::ops::parallel_row_loops::{RowLoops, for_each_element};
use crate::shared_operator_rules::{numel, shared_dim};
use crate::size_proofs;
use crate::te::{self, Body, Check, Expr, Tensor};
use crate::type_inference::{InferCtx, Precision, TensorTy};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.concat",
        infer_concat,
        "Concatenates tensors along an axis. With `axis=None`, they are flattened first and may differ in rank. The result has \
        the type of the tensors.",
    )
    .operands(&["tensors"])
    .attrs(&[("axis", Default::Int(0))])
    .dims(DimTrait::Named(&["axis"]))
    .te(Pattern::Injective, te_concat)
    .numpy("concatenate")
    .onnx(&["Concat"])
    .errors("there are no tensors, they differ in type, rank or another dim than the axis, or the axis is out of range")
    .gradient(join_gradients::concat),
    OpDecl::new(
        "relax.split",
        infer_split,
        "Splits a tensor along an axis into a number of parts, or at indices, which are clamped to the axis. If an axis of size \
        `n` is split into `k` parts, each part has `ceil(n / k)` elements. If `k` does not divide `n`, the last parts are \
        smaller or empty. A part between two indices is empty if the second is not larger than the first.",
    )
    .operands(&["x"])
    .attrs(&[("indices_or_sections", Default::Required), ("axis", Default::Int(0))])
    .symbolic("indices_or_sections")
    .dims(DimTrait::Named(&["axis"]))
    .te(Pattern::Injective, te_split)
    .numpy("split")
    .onnx(&["Split"])
    .limits("a symbolic number of parts, because it determines the number of results")
    .errors("an index is negative, the number of parts is not a constant from 1 to 65536, or the axis is out of range")
    .gradient(join_gradients::split),
];

// ---- concat ----

/// Tensors to be concatenated: at least one, with the same rank and data type where these are known.
pub(super) struct ConcatOperands {
    pub(super) parts: Vec<TensorTy>,
    pub(super) ndim: Option<usize>,
    pub(super) dtype: Option<DType>,
}

/// The tensors of operand 0, at least one; `None` if their number is unknown.
fn nonempty_tensors(ctx: &InferCtx<'_>) -> Result<Option<Vec<TensorTy>>, InferError> {
    let parts = ctx.tensors(0)?;
    if parts.as_ref().is_some_and(Vec::is_empty) {
        return Err(ctx.error("tensors must contain at least one tensor"));
    }
    Ok(parts)
}

/// The tensors of operand 0 to be concatenated; `None` if their number is unknown.
///
/// # Errors
/// If there are no tensors, or they differ in rank or data type.
pub(super) fn concat_operands(ctx: &InferCtx<'_>) -> Result<Option<ConcatOperands>, InferError> {
    let Some(parts) = nonempty_tensors(ctx)? else { return Ok(None) };
    let ndim = parts.iter().find_map(|p| p.ndim);
    let dtype = parts.iter().find_map(|p| p.dtype);
    let joined = ctx.joined_dtype(parts.iter().map(|p| p.dtype));
    for (k, p) in parts.iter().enumerate() {
        let different_dtype = p.dtype.is_some_and(|d| Some(d) != dtype);
        if different_dtype || p.ndim.is_some_and(|n| Some(n) != ndim) {
            let (tys, what) =
                (ctx.operand_type_text(0), if different_dtype { "data type" } else { "rank" });
            return Err(ctx.error(format!(
                "tensors[{k}] differs in {what} from the tensors before it: {tys}"
            )));
        }
    }
    Ok(Some(ConcatOperands { parts, ndim, dtype: joined }))
}

/// Infers the type of the concatenation of all flattened operands.
fn infer_concat_flat(ctx: &mut InferCtx<'_>) -> InferResult {
    let Some(parts) = nonempty_tensors(ctx)? else {
        return Ok(ctx.tensor_type(None, Some(1), None));
    };
    let dtype = parts.iter().find_map(|p| p.dtype);
    if let Some(k) = parts.iter().position(|p| p.dtype.is_some_and(|d| Some(d) != dtype)) {
        let tys = ctx.operand_type_text(0);
        return Err(ctx.error(format!(
            "tensors[{k}] differs in data type from the tensors before it: {tys}"
        )));
    }
    let dtype = ctx.joined_dtype(parts.iter().map(|p| p.dtype));
    if ctx.precision == Precision::Tvm {
        require_vectors(ctx, &parts)?;
    }
    if let [only] = &parts[..]
        && (only.ndim == Some(1) || ctx.precision == Precision::Tvm)
    {
        return Ok(ctx.tensor_type_like(only, dtype));
    }
    let sizes: Option<Vec<Sym>> =
        parts.iter().map(|p| p.dims.as_ref().map(|d| numel(ctx, d))).collect();
    let dims = sizes.map(|sizes| vec![ctx.func.syms.sum(sizes)]);
    Ok(ctx.tensor_type(dims, Some(1), dtype))
}

/// Rejects tensors that are not vectors: TVM requires an axis to concatenate them.
fn require_vectors(ctx: &InferCtx<'_>, parts: &[TensorTy]) -> Result<(), InferError> {
    match parts.iter().position(|p| p.ndim.is_some_and(|n| n != 1)) {
        Some(k) => Err(ctx.error(format!(
            "tensors[{k}] must have 1 dim if axis is None, but the tensors are {ty}",
            ty = ctx.operand_type_text(0)
        ))),
        None => Ok(()),
    }
}

fn infer_concat(ctx: &mut InferCtx<'_>) -> InferResult {
    if ctx.attr("axis").is_none() {
        return infer_concat_flat(ctx);
    }
    let Some(ConcatOperands { parts, ndim, dtype }) = concat_operands(ctx)? else {
        return Ok(ctx.tensor_type(None, None, None));
    };
    let axis = ndim.map(|ndim| ctx.axis("axis", ndim)).transpose()?;
    if let [only] = &parts[..] {
        return Ok(ctx.tensor_type_like(only, dtype));
    }
    let (Some(ndim), Some(axis)) = (ndim, axis) else {
        return Ok(ctx.tensor_type(None, None, dtype));
    };
    let Some(mut dims) = parts[0].dims.clone() else {
        return Ok(ctx.tensor_type(None, Some(ndim), dtype));
    };
    for (k, p) in parts.iter().enumerate().skip(1) {
        let Some(other) = &p.dims else { return Ok(ctx.tensor_type(None, Some(ndim), dtype)) };
        for i in 0..ndim {
            dims[i] = if i == axis {
                ctx.func.syms.add(dims[i], other[i])
            } else {
                ctx.assume_equal(dims[i], other[i]);
                shared_dim(ctx, dims[i], other[i]).ok_or_else(|| {
                    let (a, b) = (ctx.dim_text(dims[i]), ctx.dim_text(other[i]));
                    ctx.error(format!(
                        "tensors[{k}] has size {b} in dim {i}, but the tensors before it have {a}"
                    ))
                })?
            };
        }
    }
    Ok(ctx.tensor_type(Some(dims), None, dtype))
}

/// Reads the operands of `concat`, flattened if there is no axis. All dims of the operands except
/// `axis` are assumed to equal the dims of the result, `out`.
fn joined_parts(ctx: &mut LegalizeCtx<'_>, out: &[Sym], axis: Option<usize>) -> TeResult {
    let parts = ctx.fields_with_dims(0, |_, part_dims| match axis {
        Some(axis) => {
            let dims = part_dims.iter().zip(out).enumerate();
            dims.map(|(i, (&d, &o))| if i == axis { d } else { o }).collect()
        }
        None => part_dims.to_vec(),
    })?;
    let flat = |p: Tensor| {
        let size = p.shape().iter().fold(te::int(1), |all, d| all * d);
        te::compute(vec![size], "T_flat", |i| flat_at(&p, &i[0]))
    };
    Ok(if axis.is_some() { parts } else { parts.into_iter().map(flat).collect() })
}

fn te_concat(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let out = ctx.out_dims(0)?;
    let flat = ctx.infer().attr("axis").is_none();
    let axis = if flat { None } else { Some(ctx.infer().axis("axis", out.len())?) };
    let parts = joined_parts(ctx, &out, axis)?;
    let axis = axis.unwrap_or(0);
    let last = axis + 1 == out.len();
    let has_many_parts =
        parts.len() > if last { MAX_SELECTED_PARTS_LAST_AXIS } else { MAX_SELECTED_PARTS };
    if has_many_parts
        && ctx.existing_tensors.is_none()
        && matches!(ctx.func.syms.kind(out[axis]), SymKind::Sum { .. } | SymKind::BigAdd(..))
    {
        // Pass the sum of many sizes as one variable. It is the size of the result along the axis.
        ctx.vars.name_term(out[axis], "total");
    }
    let shape = ctx.size_list(&out);
    if has_many_parts {
        return Ok(concat_sequentially(&parts, &shape, axis));
    }
    Ok(vec![te::compute(shape, "T_concat", |i| {
        // Nested selects, built from the last part to the first: part `k` is selected if the index is before its end.
        let mut starts = vec![te::int(0)];
        for p in &parts {
            let next = &starts[starts.len() - 1] + &p.shape()[axis];
            starts.push(next);
        }
        let read = |k: usize| {
            let mut at = i.to_vec();
            at[axis] = &i[axis] - &starts[k];
            parts[k].at(&at)
        };
        let last = parts.len() - 1;
        (0..last).rev().fold(read(last), |rest, k| {
            te::if_then_else(&te::lt(&i[axis], &starts[k + 1]), &read(k), &rest)
        })
    })])
}

/// Maximum number of tensors to be concatenated for which the concatenation is lowered to one expression, if the axis is not the
/// last one. The expression selects a tensor for each row. It grows with their number, because the start of a tensor along the axis
/// is the sum of all previous sizes.
pub(super) const MAX_SELECTED_PARTS: usize = 64;

/// Maximum number of tensors to be concatenated along the last axis for which the concatenation is lowered to one expression. The
/// limit is lower than for other axes, because the expression selects a tensor for each element instead of each row.
const MAX_SELECTED_PARTS_LAST_AXIS: usize = 8;

/// Lowers a concatenation to loops that copy the tensors `parts` one after another, with constant code size per tensor. The rows
/// over the dims before the axis are copied in parallel. If there are no such dims, the elements of each tensor are copied in
/// parallel.
fn concat_sequentially(parts: &[Tensor], shape: &[Expr], axis: usize) -> Vec<Tensor> {
    te::extern_("T_concat", &[(shape.to_vec(), parts[0].dtype())], |b, out| {
        let size = b.let_("size", &shape[axis]);
        if axis == 0 {
            return copy_parts(b, &out[0], parts, &size, &[]);
        }
        let mut rows = RowLoops::new(&[&shape[..axis], &[te::int(1)]].concat(), axis);
        rows.len = shape[axis..].iter().fold(te::int(1), |len, d| len * d);
        rows.for_each_row(b, |_| (), |b, (), row| copy_parts(b, &out[0], parts, &size, row));
    })
}

/// Emits the loops that copy one row of each part to the result. The rows follow each other along
/// the axis, whose size in the result is `size`.
fn copy_parts(b: &mut Body, out: &Tensor, parts: &[Tensor], size: &Expr, row: &[Expr]) {
    let start = b.cell("start", &te::int(0));
    for part in parts {
        let shape = &part.shape()[row.len()..];
        b.if_(&te::lt(&te::int(0), &shape[0]), |b| {
            let first = b.let_("first", &index_bounds::clamp(&start.get(), size));
            let end = &first + &shape[0];
            b.assert(&te::le(&end, size), "relax.concat: the parts exceed the result");
            let copy = |b: &mut Body, i: &[Expr]| {
                let to = [row, &[&i[0] + &first], &i[1..]].concat();
                b.store(out, &to, &part.at(&[row, i].concat()));
            };
            // Vectors are often short shapes, for which a parallel loop is not profitable.
            match row.is_empty() && shape.len() > 1 {
                true => for_each_element(b, shape, copy),
                false => b.for_each(shape, copy),
            }
            b.set(&start, &end);
        });
    }
}

// ---- split ----

/// The parts into which an axis is split.
struct SplitParts {
    /// The start and the size of each part, along the axis that is split.
    parts: Vec<(Sym, Sym)>,
    /// Split indices that must be checked at run time not to be negative.
    unproved_indices: Vec<Sym>,
}

/// Returns the parts into which `split` divides the axis. `None` if the split indices are unknown.
fn split_parts(ctx: &mut InferCtx<'_>, dim: Sym) -> Result<Option<SplitParts>, InferError> {
    let zero = ctx.func.syms.int(0);
    let indices = match ctx.sizes_attr("indices_or_sections")? {
        Some(Sizes::Many(indices)) => indices,
        Some(Sizes::One(sections)) => return equal_parts(ctx, sections, dim).map(Some),
        Some(Sizes::UnknownOne) => return Err(unknown_part_count_error(ctx)),
        _ => return Ok(None),
    };
    let mut unproved_indices = Vec::new();
    for &index in &indices {
        match size_proofs::at_most(ctx.func, zero, index) {
            Some(true) => {}
            Some(false) => {
                let index = ctx.dim_text(index);
                return Err(
                    ctx.error(format!("the index {index} in indices_or_sections is negative"))
                );
            }
            None => unproved_indices.push(index),
        }
    }
    Ok(Some(SplitParts { parts: parts_between(ctx, &indices, dim), unproved_indices }))
}

/// The parts between split indices, which are clipped to the axis.
fn parts_between(ctx: &mut InferCtx<'_>, indices: &[Sym], dim: Sym) -> Vec<(Sym, Sym)> {
    let (mut parts, mut begin) = (Vec::new(), ctx.func.syms.int(0));
    for &index in indices {
        let cut = match size_proofs::at_most(ctx.func, index, dim) {
            Some(true) => index,
            _ => ctx.func.syms.min(index, dim),
        };
        parts.push((begin, part_size(ctx, begin, cut)));
        begin = cut;
    }
    parts.push((begin, part_size(ctx, begin, dim)));
    parts
}

/// The size of a part from `begin` to `end`; 0 if `end` is before `begin`.
fn part_size(ctx: &mut InferCtx<'_>, begin: Sym, end: Sym) -> Sym {
    let len = ctx.func.syms.sub(end, begin);
    match size_proofs::at_most(ctx.func, begin, end) {
        Some(true) => len,
        _ => {
            let zero = ctx.func.syms.int(0);
            ctx.func.syms.max(len, zero)
        }
    }
}

/// Splits an axis of size `dim` into `sections` parts of `ceil(dim / sections)` elements. The last parts have the remainder or
/// are empty.
fn equal_parts(ctx: &mut InferCtx<'_>, sections: Sym, dim: Sym) -> Result<SplitParts, InferError> {
    let Some(count) = ctx.func.syms.as_int(sections) else {
        return Err(unknown_part_count_error(ctx));
    };
    if !(1..=1 << 16).contains(&count) {
        return Err(ctx.error(format!(
            "the number of parts, indices_or_sections, must be from 1 to 65536, but is {count}"
        )));
    }
    let even = size_proofs::divides(ctx.func, sections, dim) == Some(true);
    let syms = &mut ctx.func.syms;
    let part = if even { syms.floordiv(dim, sections) } else { syms.ceildiv(dim, sections) };
    let mut begins = Vec::new();
    for k in 0..count {
        let k = syms.int(k);
        begins.push(syms.mul(part, k));
    }
    // At TVM's precision, the axis is assumed to be long enough.
    let parts = match even {
        false if ctx.precision == Precision::Tvm => {
            let last = begins.pop().unwrap_or(dim);
            let rest = ctx.func.syms.sub(dim, last);
            begins.into_iter().map(|begin| (begin, part)).chain([(last, rest)]).collect()
        }
        true => begins.into_iter().map(|begin| (begin, part)).collect(),
        false => parts_between(ctx, &begins[1..], dim),
    };
    Ok(SplitParts { parts, unproved_indices: Vec::new() })
}

fn unknown_part_count_error(ctx: &InferCtx<'_>) -> InferError {
    ctx.error("the number of parts must be constant, because it is the number of results")
        .with_help(
            "pass the indices to split at, which may be symbolic: R.split(x, [n // 2], axis=0)",
        )
}

/// Whether TVM does not derive the sizes of the parts: a symbolic axis of size `dim` is split at indices.
fn has_imprecise_parts(ctx: &mut InferCtx<'_>, dim: Sym) -> Result<bool, InferError> {
    let at_indices = matches!(ctx.sizes_attr("indices_or_sections")?, Some(Sizes::Many(_)));
    Ok(ctx.precision == Precision::Tvm && at_indices && ctx.func.syms.as_int(dim).is_none())
}

fn infer_split(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let count = match ctx.sizes_attr("indices_or_sections")? {
        Some(Sizes::One(sections)) => ctx.func.syms.as_int(sections),
        Some(Sizes::UnknownOne) => None,
        Some(list) => match list.count() {
            Some(indices) => Some(indices as i64 + 1),
            // A shape of unknown length determines the number of results.
            None => return Ok(ctx.func.intern(TypeData::Any)),
        },
        None => Some(0),
    };
    let Some(count) = count else { return Err(unknown_part_count_error(ctx)) };
    let axis = t.ndim.map(|ndim| ctx.axis("axis", ndim)).transpose()?;
    if count == 1 {
        let whole = ctx.tensor_type_like(&t, t.dtype);
        return Ok(ctx.func.intern(TypeData::Tuple([whole].into())));
    }
    let cut = match (axis, &t.dims) {
        (Some(axis), Some(dims)) if !has_imprecise_parts(ctx, dims[axis])? => {
            split_parts(ctx, dims[axis])?.map(|cuts| (axis, cuts))
        }
        _ => None,
    };
    let fields = match (cut, t.dims) {
        (Some((axis, cuts)), Some(dims)) => {
            let mut fields = Vec::with_capacity(cuts.parts.len());
            for (_, len) in cuts.parts {
                let mut dims = dims.clone();
                dims[axis] = len;
                fields.push(ctx.tensor_type(Some(dims), None, t.dtype));
            }
            fields
        }
        _ => {
            if !(1..=1 << 16).contains(&count) {
                return Err(
                    ctx.error("indices_or_sections must be a number of parts or a list of indices")
                );
            }
            let part = ctx.tensor_type(None, t.ndim, t.dtype);
            vec![part; count as usize]
        }
    };
    Ok(ctx.func.intern(TypeData::Tuple(fields.into())))
}

fn te_split(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let axis = ctx.infer().axis("axis", dims.len())?;
    let cuts = split_parts(&mut ctx.infer(), dims[axis])?.ok_or_else(|| {
        LegalizeError::unknown(
            "relax.split: indices_or_sections must contain constants or symbolic sizes",
        )
    })?;
    let x = ctx.tensor(0)?;
    let mut outputs = Vec::with_capacity(cuts.parts.len());
    for (k, (begin, len)) in cuts.parts.into_iter().enumerate() {
        let (begin, len) = (ctx.size(begin), ctx.size(len));
        let mut shape = x.shape().to_vec();
        shape[axis] = len;
        outputs.push(te::compute(shape, format!("T_split_{k}"), |i| {
            let mut at = i.to_vec();
            at[axis] = &i[axis] + &begin;
            x.at(&at)
        }));
    }
    for sign in cuts.unproved_indices {
        let index = ctx.size(sign);
        let cond = te::explain(&te::ge(&index, &te::int(0)), std::slice::from_ref(&index));
        let message = "relax.split: the index {0} in indices_or_sections is negative".into();
        outputs[0] = outputs[0].with_check(Check { axes: Vec::new(), cond, message });
    }
    Ok(outputs)
}
