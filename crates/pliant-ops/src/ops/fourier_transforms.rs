//! Discrete Fourier transforms of a signal, and of windows along the signal (STFT). Complex numbers
//! are represented by a last dim of size 2.

use pliant_ir::Sym;
use pliant_ir::op::InferError;

use pliant_kernel_api::kernels::fft::KERNEL;

use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{ConstantSizes, Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{require_float, shared_dim};
use crate::te::{self, Expr, TensorView};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.signal.dft",
        infer_dft,
        "The discrete Fourier transform along an axis of real (last dim 1) or complex numbers (last dim 2). The signal is \
        truncated or padded with zeros to `dft_length`. `onesided` returns the first `dft_length // 2 + 1` frequencies. The \
        inverse is divided by the length. The last dim of the result has size 2.",
    )
    .operands(&["data", "dft_length?: size"])
    .attrs(&[
        ("axis", Default::Int(-2)),
        ("inverse", Default::Bool(false)),
        ("onesided", Default::Bool(false)),
    ])
    .te(Pattern::Opaque, te_dft)
    .constant_sizes(ConstantSizes::LastDim(0))
    .numpy("fft.fft")
    .onnx(&["DFT"])
    .limits("the inverse of a one-sided spectrum, because it does not determine the length")
    .errors(
        "`data` has fewer than 2 dims, its last dim is neither 1 nor 2, the axis is out of range or the last one, or \
        `dft_length` is not positive",
    ),
    OpDecl::new(
        "relax.signal.stft",
        infer_stft,
        "The short-time Fourier transform of float signals of shape (batch, length, 1 or 2): the discrete Fourier transforms of \
        frames of `frame_length` elements that start every `frame_step` elements, each multiplied by the window. The result has \
        the shape (batch, frames, frequencies, 2).",
    )
    .operands(&["signal", "frame_step: size", "window?", "frame_length?: size"])
    .attrs(&[("onesided", Default::Bool(true))])
    .te(Pattern::Opaque, te_stft)
    .constant_sizes(ConstantSizes::LastDim(0))
    .onnx(&["STFT"])
    .errors(
        "`signal` does not have 3 dims, `window` and `frame_length` are missing or differ in length, or a complex signal is \
        `onesided`",
    ),
];

/// Returns the size in operand `i`, which must be positive; `None` if it is unknown.
fn size_operand(ctx: &InferCtx<'_>, i: usize) -> Result<Option<Sym>, InferError> {
    let size = match ctx.sizes(i)?.dims.as_deref() {
        Some(&[one]) => one,
        None => return Ok(None),
        Some(list) => {
            return Err(ctx.error(format!(
                "{operand} must be a single integer, but has {} values",
                list.len(),
                operand = ctx.operand_name(i)
            )));
        }
    };
    match ctx.func.syms.as_int(size) {
        Some(v) if v < 1 => Err(ctx.error(format!(
            "{operand} must be above 0, but is {v}",
            operand = ctx.operand_name(i)
        ))),
        _ => Ok(Some(size)),
    }
}

/// Whether the last dim contains complex numbers (size 2) or real numbers (size 1). Rejects other
/// sizes.
fn is_complex(ctx: &InferCtx<'_>, last: Sym) -> Result<bool, InferError> {
    match ctx.func.syms.as_int(last) {
        Some(1) => Ok(false),
        Some(2) => Ok(true),
        _ => {
            let (name, ty) = (ctx.operand_name(0), ctx.operand_type_text(0));
            Err(ctx.error(format!(
                "the last dim of {name} must be 1 (real) or 2 (complex), but {name} is {ty}"
            )))
        }
    }
}

/// The number of frequencies in the spectrum of a signal of length `n`: `n // 2 + 1` for a one-sided spectrum, else `n`.
fn frequency_count(ctx: &mut InferCtx<'_>, n: Sym) -> Result<Sym, InferError> {
    if !ctx.bool("onesided")? {
        return Ok(n);
    }
    let (two, one) = (ctx.func.syms.int(2), ctx.func.syms.int(1));
    let half = ctx.func.syms.floordiv(n, two);
    Ok(ctx.func.syms.add(half, one))
}

// ---- dft ----

fn dft_axis(ctx: &InferCtx<'_>, ndim: usize) -> Result<usize, InferError> {
    let axis = ctx.axis("axis", ndim)?;
    if axis + 1 == ndim {
        return Err(
            ctx.error("axis must not name the last dim, which holds the real and imaginary parts")
        );
    }
    Ok(axis)
}

fn infer_dft(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    if ctx.bool("inverse")? && ctx.bool("onesided")? {
        return Err(ctx.error(
            "inverse=True with onesided=True is not supported, because a one-sided spectrum does \
             not determine the length of the signal",
        ));
    }
    let length = if ctx.has_operand(1) { size_operand(ctx, 1)? } else { None };
    if t.ndim.is_some_and(|n| n < 2) {
        return Err(ctx.error(format!(
            "data must have at least 2 dims, but is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    let axis = t.ndim.map(|n| dft_axis(ctx, n)).transpose()?;
    let (Some(mut dims), Some(axis)) = (t.dims, axis) else {
        return Ok(ctx.tensor_type(None, t.ndim, t.dtype));
    };
    is_complex(ctx, dims[dims.len() - 1])?;
    if ctx.has_operand(1) && length.is_none() {
        return Ok(ctx.tensor_type(None, t.ndim, t.dtype));
    }
    let n = length.unwrap_or(dims[axis]);
    dims[axis] = frequency_count(ctx, n)?;
    let last = dims.len() - 1;
    dims[last] = ctx.func.syms.int(2);
    Ok(ctx.tensor_type(Some(dims), None, t.dtype))
}

/// Starts a call of the DFT kernel for transforms of this length. The caller adds the operands.
fn transform<'a>(length: &Expr, (onesided, inverse): (bool, bool)) -> te::KernelCall<'a> {
    te::KernelCall::new(&KERNEL)
        .attr("length", std::slice::from_ref(length))
        .attr("onesided", &[te::int(onesided.into())])
        .attr("inverse", &[te::int(inverse.into())])
}

fn te_dft(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let x = ctx.tensor(0)?;
    let infer = ctx.infer();
    let axis = dft_axis(&infer, dims.len())?;
    let sides = (infer.bool("onesided")?, infer.bool("inverse")?);
    let length = if infer.has_operand(1) { size_operand(&infer, 1)? } else { None };
    let n = ctx.size(length.unwrap_or(dims[axis]));
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    Ok(te::extern_("T_dft", &[(shape, dtype)], |b, out| {
        let rows = |tensor| TensorView::from(tensor).rows(axis, 1);
        let call = transform(&n, sides).operand("x", rows(&x)).operand("out", rows(&out[0]));
        b.evaluate(call.finish());
    }))
}

// ---- stft ----

/// The length of a frame of the STFT; `None` if it is unknown.
fn frame_length(ctx: &mut InferCtx<'_>) -> Result<Option<Sym>, InferError> {
    let explicit = if ctx.has_operand(3) { size_operand(ctx, 3)? } else { None };
    if !ctx.has_operand(2) {
        if !ctx.has_operand(3) {
            return Err(ctx.error(
                "window or frame_length is required, because it determines the length of a frame",
            ));
        }
        return Ok(explicit);
    }
    let window = ctx.tensor(2)?;
    if window.ndim.is_some_and(|n| n != 1) {
        return Err(ctx
            .error(format!("window must have 1 dim, but is {ty}", ty = ctx.operand_type_text(2))));
    }
    ctx.same_dtype(0, 2)?;
    match (explicit, window.dims) {
        (Some(n), Some(w)) => shared_dim(ctx, n, w[0]).map(Some).ok_or_else(|| {
            let (n, w) = (ctx.dim_text(n), ctx.dim_text(w[0]));
            ctx.error(format!(
                "window must have frame_length elements, but has {w}: frame_length is {n}"
            ))
        }),
        (None, Some(w)) if !ctx.has_operand(3) => Ok(Some(w[0])),
        (explicit, None) => Ok(explicit),
        _ => Ok(None),
    }
}

fn infer_stft(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    if t.ndim.is_some_and(|n| n != 3) {
        return Err(ctx.error(format!(
            "signal must have 3 dims, but is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    let (step, frame) = (size_operand(ctx, 1)?, frame_length(ctx)?);
    let (Some(dims), Some(step), Some(frame)) = (t.dims, step, frame) else {
        return Ok(ctx.tensor_type(None, Some(4), t.dtype));
    };
    if is_complex(ctx, dims[2])? && ctx.bool("onesided")? {
        return Err(ctx.error("onesided requires a real signal, but the signal is complex"));
    }
    let (zero, one) = (ctx.func.syms.int(0), ctx.func.syms.int(1));
    let rest = ctx.func.syms.sub(dims[1], frame);
    let frames = ctx.func.syms.floordiv(rest, step);
    let frames = ctx.func.syms.add(frames, one);
    let frames = match crate::size_proofs::at_most(ctx.func, zero, frames) {
        Some(true) => frames,
        _ => ctx.func.syms.max(frames, zero),
    };
    let (bins, two) = (frequency_count(ctx, frame)?, ctx.func.syms.int(2));
    Ok(ctx.tensor_type(Some(vec![dims[0], frames, bins, two]), None, t.dtype))
}

fn te_stft(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let mut infer = ctx.infer();
    let unknown = || {
        LegalizeError::unknown(
            "relax.signal.stft: frame_step and frame_length must be constants or symbolic sizes",
        )
    };
    let step = size_operand(&infer, 1)?.ok_or_else(unknown)?;
    let frame = frame_length(&mut infer)?.ok_or_else(unknown)?;
    let onesided = infer.bool("onesided")?;
    let x = ctx.tensor(0)?;
    let window = if ctx.has_operand(2) { Some(ctx.tensor_with_dims(2, &[frame])?) } else { None };
    let (step, n) = (ctx.size(step), ctx.size(frame));
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let frames = shape[1].clone();
    Ok(te::extern_("T_stft", &[(shape, dtype)], |b, out| {
        let x = TensorView::from(&x).windows(1, (&frames, &step), &n);
        let call = transform(&n, (onesided, false)).operand("x", x);
        let call = call.optional("window", window.as_ref()).operand("out", &out[0]);
        b.evaluate(call.finish());
    }))
}
