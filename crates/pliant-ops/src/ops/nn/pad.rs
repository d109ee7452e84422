//! Padding of tensors: constant, reflected, replicated or circular.

use pliant_ir::Sym;
use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;

use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::size_proofs;
use crate::te::{self, Check, Expr};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.nn.pad",
    infer,
    "Adds elements before and after each axis: (before_1, after_1, before_2, ...). Negative numbers remove elements. The mode \
    selects the new elements: `pad_value` (\"constant\"), the data mirrored at the edge (\"reflect\"), the edge element \
    (\"replicate\" or \"edge\"), or the data repeated periodically (\"circular\" or \"wrap\").",
)
.operands(&["data"])
.attrs(&[
    ("pad_width", Default::Required),
    ("pad_mode", Default::Str("constant")),
    ("pad_value", Default::Float(0.0)),
])
.symbolic("pad_width")
.dims(DimTrait::Paired("pad_width"))
.te(Pattern::Injective, te_pad)
.numpy("pad")
.onnx(&["Pad"])
.errors(
    "`pad_width` does not have two values per axis, the mode needs more elements than an axis has, or `pad_value` does not fit \
    the type of `data`",
)
    .gradient_from_te()];

/// The mode that determines the contents of the padding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PadMode {
    Constant,
    Reflect,
    Replicate,
    Circular,
}

fn pad_mode(ctx: &InferCtx<'_>) -> Result<PadMode, InferError> {
    if ctx.attr("pad_mode").is_none() {
        return Ok(PadMode::Constant);
    }
    const MODE_NAMES: [&str; 6] = ["constant", "reflect", "replicate", "edge", "circular", "wrap"];
    let position = ctx.choice("pad_mode", &MODE_NAMES)?;
    Ok([
        PadMode::Constant,
        PadMode::Reflect,
        PadMode::Replicate,
        PadMode::Replicate,
        PadMode::Circular,
        PadMode::Circular,
    ][position])
}

/// The padding before and after each axis; `None` if it is unknown.
fn pad_widths(ctx: &mut InferCtx<'_>) -> Result<Option<Vec<(Sym, Sym)>>, InferError> {
    let bad = "pad_width must be a list of integers, two for each axis";
    let sizes = ctx.sizes_attr("pad_width").map_err(|_| ctx.error(bad))?;
    let sizes = sizes.ok_or_else(|| ctx.error(bad))?;
    if sizes.count().is_some_and(|n| n % 2 != 0) {
        return Err(ctx.error(bad));
    }
    let Some(list) = sizes.known_sizes() else { return Ok(None) };
    let known: Vec<i64> = list.iter().filter_map(|&w| ctx.func.syms.as_int(w)).collect();
    ctx.check_range("pad_width", &known, -(1 << 31))?;
    Ok(Some(list.chunks(2).map(|p| (p[0], p[1])).collect()))
}

/// The minimum size of an axis for which this padding is defined.
fn min_axis_size(ctx: &mut InferCtx<'_>, mode: PadMode, (before, after): (Sym, Sym)) -> Sym {
    let syms = &mut ctx.func.syms;
    let (zero, one) = (syms.int(0), syms.int(1));
    let max_width = syms.max(before, after);
    let need = match mode {
        PadMode::Constant => return zero,
        PadMode::Reflect => syms.add(max_width, one),
        PadMode::Replicate | PadMode::Circular => one,
    };
    match size_proofs::at_most(ctx.func, one, max_width) {
        Some(true) => need,
        Some(false) => zero,
        None => {
            let is_padded = ctx.func.syms.lt(zero, max_width);
            ctx.func.syms.select(is_padded, need, zero)
        }
    }
}

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, mode) = (ctx.tensor(0)?, pad_mode(ctx)?);
    if !ctx.attr("pad_value").is_none() {
        ctx.element_value("pad_value", t.dtype)?;
    }
    let Some(widths) = pad_widths(ctx)? else { return Ok(ctx.tensor_type(None, t.ndim, t.dtype)) };
    if let Some(rank) = t.ndim.filter(|&rank| rank != widths.len()) {
        let (need, count) = (2 * rank, 2 * widths.len());
        return Err(ctx.error(format!(
            "pad_width must have {need} values, two for each axis of data, but has {count}"
        )));
    }
    let Some(mut dims) = t.dims else {
        return Ok(ctx.tensor_type(None, Some(widths.len()), t.dtype));
    };
    for (axis, &pair) in widths.iter().enumerate() {
        let need = min_axis_size(ctx, mode, pair);
        if size_proofs::at_most(ctx.func, need, dims[axis]) == Some(false) {
            let dim = ctx.dim_text(dims[axis]);
            let [before, after, need] = [pair.0, pair.1, need].map(|s| ctx.dim_text(s));
            return Err(ctx.error(format!(
                "axis {axis} of size {dim} is too small for padding of {before} before and \
                 {after} after it: this pad_mode needs a size of at least {need}"
            )));
        }
        let syms = &mut ctx.func.syms;
        let (extra, minus) = (syms.add(pair.0, pair.1), syms.int(-1));
        let size = syms.add(dims[axis], extra);
        if size_proofs::at_most(ctx.func, size, minus) == Some(true) {
            let dim = ctx.dim_text(dims[axis]);
            return Err(ctx.error(format!(
                "negative values in pad_width remove more elements from axis {axis} \
                         than its size, {dim}"
            )));
        }
        dims[axis] = size;
    }
    Ok(ctx.tensor_type(Some(dims), None, t.dtype))
}

/// Returns the index of the data element that is copied to position `i` of the padded axis.
/// Position 0 is the first one after the leading padding. `n` is the size of the axis in the data.
/// The index is written with comparisons instead of a division. Loops are split at these
/// comparisons, so that vector loops copy the inner elements.
fn source_index(mode: PadMode, i: &Expr, n: &Expr) -> Expr {
    let (zero, last) = (te::int(0), n - 1);
    match mode {
        PadMode::Constant => i.clone(),
        PadMode::Replicate => {
            let clamped_above = te::select(&te::gt(i, &last), &last, i);
            te::select(&te::lt(i, &zero), &zero, &clamped_above)
        }
        PadMode::Reflect => {
            let clamped_above = te::select(&te::gt(i, &last), &(&last * 2 - i), i);
            te::select(&te::lt(i, &zero), &-i, &clamped_above)
        }
        PadMode::Circular => {
            let around = te::floormod(i, n);
            let clamped_above = te::if_then_else(&te::ge(i, n), &around, i);
            te::if_then_else(&te::lt(i, &zero), &around, &clamped_above)
        }
    }
}

fn te_pad(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let mut infer = ctx.infer();
    let (mode, widths) = (pad_mode(&infer)?, pad_widths(&mut infer)?);
    let widths = widths.ok_or_else(|| {
        LegalizeError::unknown("relax.nn.pad: pad_width must contain constants or symbolic sizes")
    })?;
    let value = infer.attr("pad_value").as_float().unwrap_or(0.0);
    let mut unproved = Vec::new();
    for (axis, &pair) in widths.iter().enumerate() {
        let need = min_axis_size(&mut infer, mode, pair);
        if size_proofs::at_most(infer.func, need, dims[axis]).is_none() {
            unproved.push((axis, need));
        }
    }
    let x = ctx.tensor(0)?;
    let shape = ctx.out_shape(0)?;
    let fill = te::const_of(value, x.dtype());
    let widths: Vec<(Expr, Expr)> =
        widths.iter().map(|&(before, after)| (ctx.size(before), ctx.size(after))).collect();
    let needs: Vec<(usize, Expr)> =
        unproved.iter().map(|&(axis, need)| (axis, ctx.size(need))).collect();
    let mut out = te::compute(shape, "T_pad", |i| {
        let (mut at, mut inside) = (i.to_vec(), Vec::new());
        for (axis, (before, after)) in widths.iter().enumerate() {
            let (before_is, after_is) = (before.as_int(), after.as_int());
            if (before_is, after_is) == (Some(0), Some(0)) {
                continue;
            }
            let position = &i[axis] - before;
            if mode == PadMode::Constant && before_is.is_none_or(|v| v > 0) {
                inside.push(te::ge(&i[axis], before));
            }
            if mode == PadMode::Constant && after_is.is_none_or(|v| v > 0) {
                inside.push(te::lt(&position, &x.shape()[axis]));
            }
            at[axis] = source_index(mode, &position, &x.shape()[axis]);
        }
        te::if_then_else(&te::all(&inside), &x.at(&at), &fill)
    });
    for (axis, need) in needs {
        let dim = x.shape()[axis].clone();
        let (has, needs) = (te::size_text(&dim, 0), te::size_text(&need, 1));
        let cond = te::explain(&te::ge(&dim, &need), &[dim, need]);
        let message = format!(
            "relax.nn.pad: axis {axis} of size {has} is too small for its padding: this pad_mode needs a size of at least {needs}"
        );
        out = out.with_check(Check { axes: Vec::new(), cond, message: message.into() });
    }
    Ok(vec![out])
}
