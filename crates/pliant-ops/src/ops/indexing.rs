//! Selection of elements by index and by range.

pub mod dynamic_slice;
pub mod gather;
pub mod index_bounds;
pub mod scatter;
mod scatter_loops;
pub mod tensor_scatter;

mod scatter_gradients;

use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;
use pliant_ir::{DType, Sym};

use self::index_bounds::{Negative, WRAP_NEGATIVE};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{require_float, require_integer};
use crate::size_proofs;
use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.take",
        infer_take,
        "Gathers slices along an axis at the given indices. Negative indices count from the end. Indices out of range are a \
        run-time error (mode \"fast\"), are mapped into the range (\"clip\", \"wrap\"), or result in NaN (\"nan\"). Without \
        `wrap_negative`, negative indices are out of range in the mode \"fast\".",
    )
    .operands(&["x", "indices: index"])
    .attrs(&[
        ("axis", Default::None),
        ("mode", Default::Str("fast")),
        (WRAP_NEGATIVE, Default::Bool(true)),
    ])
    .te(Pattern::Injective, te_take)
    .numpy("take")
    .onnx(&["Gather"])
    .errors(
        "`axis` is out of range, `axis` is missing although `x` is not a vector, the mode is \"nan\" although `x` is not a float \
        tensor, or `wrap_negative` is false in a mode other than \"fast\"",
    )
    .gradient(scatter_gradients::take),
    OpDecl::new(
        "relax.strided_slice",
        infer_slice,
        "Slices along axes: every `strides[k]`-th element from `begin[k]` (inclusive) to `end[k]` (exclusive) of axis \
        `axes[k]`.",
    )
    .operands(&["x", "axes: size", "begin: size", "end: size", "strides?: size"])
    .attrs(&[("assume_inbound", Default::Bool(false))])
    .dims(DimTrait::NamedByOperand(1))
    .te(Pattern::Injective, te_slice)
    .onnx(&["Slice"])
    .errors("an axis is out of range or occurs twice, the lists differ in length, or a stride is 0 or not a constant")
    .gradient_from_te(),
];

// ---- take ----

const OUT_OF_RANGE_MODES: &[&str] = &["fast", "wrap", "clip", "nan"];

/// The axis that is indexed. If the attribute `axis` is absent, the tensor must be a vector.
fn take_axis(ctx: &InferCtx<'_>, ndim: usize) -> Result<usize, InferError> {
    if !ctx.attr("axis").is_none() {
        return ctx.axis("axis", ndim);
    }
    if ndim == 1 {
        return Ok(0);
    }
    Err(ctx.error(format!(
        "axis may be omitted only for a tensor of rank 1, but {x} has rank {ndim}",
        x = ctx.operand_name(0)
    )))
}

fn infer_take(ctx: &mut InferCtx<'_>) -> InferResult {
    let (x, indices) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_integer(ctx, 1, &indices)?;
    let mode = OUT_OF_RANGE_MODES[ctx.choice("mode", OUT_OF_RANGE_MODES)?];
    if mode == "nan" {
        require_float(ctx, 0, &x)?;
    }
    if mode != "fast" && Negative::of_attr(ctx)? == Negative::OutOfRange {
        let text =
            format!("wrap_negative=False requires the mode \"fast\", but the mode is {mode:?}");
        return Err(ctx.error(text));
    }
    let Some(ndim) = x.ndim else { return Ok(ctx.tensor_type(None, None, x.dtype)) };
    let axis = take_axis(ctx, ndim)?;
    let rank = indices.ndim.map(|n| ndim - 1 + n);
    let dims = x.dims.zip(indices.dims).map(|(x, i)| [&x[..axis], &i, &x[axis + 1..]].concat());
    Ok(ctx.tensor_type(dims, rank, x.dtype))
}

fn te_take(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (x, indices) = (ctx.tensor(0)?, ctx.value(1)?);
    let infer = ctx.infer();
    let axis = take_axis(&infer, x.ndim())?;
    let mode = OUT_OF_RANGE_MODES[infer.choice("mode", OUT_OF_RANGE_MODES)?];
    let negative = Negative::of_attr(&infer)?;
    let size = x.shape()[axis].clone();
    let count = indices.shape().len();
    let shape = [&x.shape()[..axis], indices.shape(), &x.shape()[axis + 1..]].concat();
    let out = te::compute(shape, "T_take", |i| {
        let index = indices.at(&i[axis..axis + count]);
        let signed_index = index_bounds::as_int64(&index);
        let position = match mode {
            "wrap" if index.ty().dtype == DType::UInt64 => {
                let remainder = te::floormod(&index, &te::cast(&size, DType::UInt64));
                te::cast(&remainder, te::Ty::I64)
            }
            "wrap" => te::floormod(&signed_index, &size),
            "clip" => index_bounds::clamp(&signed_index, &size),
            _ => index_bounds::normalize(&index, &size, negative),
        };
        let element = x.at(&[&i[..axis], &[position], &i[axis + count..]].concat());
        if mode != "nan" {
            return element;
        }
        let inside = te::and(&te::ge(&signed_index, &-&size), &te::lt(&signed_index, &size));
        te::if_then_else(&inside, &element, &te::const_of(f64::NAN, x.dtype()))
    });
    Ok(vec![match mode {
        "nan" => out,
        "fast" if ctx.trust_indices => out,
        "fast" => out.with_check(index_bounds::check_all(indices.shape(), |c| {
            index_bounds::range_condition("relax.take", (axis, &indices.at(c), &size), negative)
        })),
        // Modes that map all indices into the range require a non-empty range.
        _ => out.with_check(index_bounds::check_all(indices.shape(), |_| {
            let message =
                format!("relax.take: axis {axis} of size {size} is empty, so no index is in range");
            (te::gt(&size, &te::int(0)), message.into())
        })),
    }])
}

// ---- strided_slice ----

/// The slice of one axis: its first index, its step and its length. Negative and out-of-range
/// bounds have been resolved.
pub(super) struct AxisSlice {
    axis: usize,
    pub(super) begin: Sym,
    pub(super) step: i64,
    pub(super) len: Sym,
}

/// The slices of a tensor with known dims; `None` if a bound is unknown.
fn axis_slices(ctx: &mut InferCtx<'_>, dims: &[Sym]) -> Result<Option<Vec<AxisSlice>>, InferError> {
    let inbound = ctx.bool("assume_inbound")?;
    let lists = (ctx.sizes(1)?, ctx.sizes(2)?, ctx.sizes(3)?);
    let strides = if ctx.has_operand(4) { Some(ctx.sizes(4)?) } else { None };
    let (Some(axes), Some(begins), Some(ends)) = (lists.0.dims, lists.1.dims, lists.2.dims) else {
        return Ok(None);
    };
    let one = ctx.func.syms.int(1);
    let strides = match strides {
        None => vec![one; axes.len()],
        Some(s) => match s.dims {
            Some(s) => s,
            None => return Ok(None),
        },
    };
    if [begins.len(), ends.len(), strides.len()].iter().any(|&n| n != axes.len()) {
        let [a, b, e, s] = [axes.len(), begins.len(), ends.len(), strides.len()];
        return Err(ctx.error(format!(
            "axes, begin, end and strides must have the same length, but have {a}, \
             {b}, {e} and {s} elements"
        )));
    }
    let mut out: Vec<AxisSlice> = Vec::with_capacity(axes.len());
    for (k, &axis) in axes.iter().enumerate() {
        let axis =
            ctx.func.syms.as_int(axis).ok_or_else(|| {
                ctx.error(format!("axes must be constants, but axes[{k}] is not"))
            })?;
        let axis = ctx.normalize_axis(axis, dims.len())?;
        if out.iter().any(|s| s.axis == axis) {
            return Err(ctx.error(format!("axis {axis} appears twice in axes")));
        }
        let step = ctx.func.syms.as_int(strides[k]).filter(|&s| s != 0 && s != i64::MIN);
        let step = step.ok_or_else(|| {
            let step = ctx.dim_text(strides[k]);
            ctx.error(format!("strides must be constants other than 0, but strides[{k}] is {step}"))
        })?;
        let step = step.clamp(-MAX_STEP, MAX_STEP);
        if inbound {
            check_inbound(ctx, axis, dims[axis], (begins[k], ends[k], step))?;
        }
        out.push(axis_slice(ctx, axis, dims[axis], (begins[k], ends[k], step), inbound));
    }
    Ok(Some(out))
}

/// Maximum magnitude of a slice step. A longer step selects only the first element of any tensor, so it is clamped.
const MAX_STEP: i64 = 1 << 48;

/// The bound of a slice that stands for "to the end": larger than the size of any tensor.
const BEYOND_ANY_SIZE: i64 = 1 << 62;

/// The first index and the length of a slice by NumPy's rules: negative bounds count from the end, and all bounds are clipped.
fn axis_slice(
    ctx: &mut InferCtx<'_>,
    axis: usize,
    dim: Sym,
    (begin, end, step): (Sym, Sym, i64),
    inbound: bool,
) -> AxisSlice {
    let (low, high) = if step > 0 { (0, 0) } else { (-1, -1) };
    let mut bound = |b: Sym| {
        // Large integers, such as the largest int64, mean "to the end". Computing with them could overflow.
        match ctx.func.syms.as_int(b) {
            Some(v) if v >= BEYOND_ANY_SIZE => {
                let high = ctx.func.syms.int(high);
                ctx.func.syms.add(dim, high)
            }
            Some(v) if v <= -BEYOND_ANY_SIZE => ctx.func.syms.int(low),
            _ => from_start(ctx, b, dim),
        }
    };
    let (begin, end) = (bound(begin), bound(end));
    let zero = ctx.func.syms.int(0);
    let (begin, end) = if inbound {
        (begin, end)
    } else if step > 0 && size_proofs::at_most(ctx.func, zero, begin) == Some(true) {
        // A start beyond the end and a negative length both result in an empty slice, so only the end must be clipped.
        (begin, clip_above(ctx, end, dim))
    } else {
        (clip(ctx, begin, dim, low, high), clip(ctx, end, dim, low, high))
    };
    let syms = &mut ctx.func.syms;
    let span = if step > 0 { syms.sub(end, begin) } else { syms.sub(begin, end) };
    let size = syms.int(step.abs());
    let len = syms.ceildiv(span, size);
    let len = if size_proofs::at_most(ctx.func, zero, len) == Some(true) {
        len
    } else {
        ctx.func.syms.max(len, zero)
    };
    AxisSlice { axis, begin, step, len }
}

/// Rejects bounds that are provably out of the range that `assume_inbound` promises.
fn check_inbound(
    ctx: &mut InferCtx<'_>,
    axis: usize,
    dim: Sym,
    (begin, end, step): (Sym, Sym, i64),
) -> Result<(), InferError> {
    for bound in [begin, end] {
        // Large integers mean "to the end".
        if ctx
            .func
            .syms
            .as_int(bound)
            .is_some_and(|v| !(-BEYOND_ANY_SIZE..BEYOND_ANY_SIZE).contains(&v))
        {
            continue;
        }
        let low = ctx.func.syms.int(if step > 0 { 0 } else { -1 });
        let at = if ctx.func.syms.as_int(bound) == Some(-1) && step < 0 {
            bound
        } else {
            from_start(ctx, bound, dim)
        };
        let inside = [(low, at), (at, dim)];
        if inside.iter().any(|&(a, b)| size_proofs::at_most(ctx.func, a, b) == Some(false)) {
            let (bound, dim) = (ctx.dim_text(bound), ctx.dim_text(dim));
            return Err(ctx.error(format!(
                "bound {bound} is out of range for axis {axis} of size {dim}, but \
                 assume_inbound=True promises that all bounds are in range"
            )));
        }
    }
    Ok(())
}

/// Converts a slice bound, which counts from the end if it is negative, to a bound that counts from
/// the start.
fn from_start(ctx: &mut InferCtx<'_>, b: Sym, dim: Sym) -> Sym {
    let zero = ctx.func.syms.int(0);
    match size_proofs::at_most(ctx.func, zero, b) {
        Some(true) => b,
        Some(false) => ctx.func.syms.add(b, dim),
        None => {
            let (negative, moved) = (ctx.func.syms.lt(b, zero), ctx.func.syms.add(b, dim));
            ctx.func.syms.select(negative, moved, b)
        }
    }
}

/// Clips a bound to `low ..= dim + high`. A bound that is provably in range does not change.
fn clip(ctx: &mut InferCtx<'_>, b: Sym, dim: Sym, low: i64, high: i64) -> Sym {
    let (low, high) = (ctx.func.syms.int(low), ctx.func.syms.int(high));
    let max = ctx.func.syms.add(dim, high);
    let upper = clip_above(ctx, b, max);
    match size_proofs::at_most(ctx.func, low, upper) {
        Some(true) => upper,
        Some(false) => low,
        None => ctx.func.syms.max(upper, low),
    }
}

fn clip_above(ctx: &mut InferCtx<'_>, b: Sym, max: Sym) -> Sym {
    match size_proofs::at_most(ctx.func, b, max) {
        Some(true) => b,
        Some(false) => max,
        None => ctx.func.syms.min(b, max),
    }
}

fn infer_slice(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if ctx.sizes(1)?.ndim == Some(0) {
        return Ok(ctx.tensor_type_like(&t, t.dtype));
    }
    let Some(mut dims) = t.dims else { return Ok(ctx.tensor_type(None, t.ndim, t.dtype)) };
    let Some(slices) = axis_slices(ctx, &dims)? else {
        return Ok(ctx.tensor_type(None, t.ndim, t.dtype));
    };
    for s in slices {
        dims[s.axis] = s.len;
    }
    Ok(ctx.func.intern(TypeData::tensor(dims, t.dtype)))
}

fn te_slice(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let slices = axis_slices(&mut ctx.infer(), &dims)?;
    let slices = slices.ok_or_else(|| {
        LegalizeError::unknown(
            "relax.strided_slice: axes and strides must be constants, and begin and end must be \
             constants or symbolic sizes",
        )
    })?;
    let x = ctx.tensor(0)?;
    let shape = ctx.out_shape(0)?;
    let from: Vec<(usize, Expr, i64)> =
        slices.iter().map(|s| (s.axis, ctx.size(s.begin), s.step)).collect();
    Ok(vec![te::compute(shape, "T_strided_slice", |i| {
        let mut at = i.to_vec();
        for (axis, begin, step) in &from {
            at[*axis] = &i[*axis] * *step + begin;
        }
        x.at(&at)
    })])
}
