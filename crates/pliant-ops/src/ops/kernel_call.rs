//! Calls of library kernels as operators.

use pliant_ir::op::InferError;
use pliant_ir::print::type_text;
use pliant_ir::relax::kernel_call::{ATTRIBUTES, AXES, KERNEL, KernelCall, NEW_AXIS, OPERANDS};
use pliant_ir::relax::{Type, TypeData};
use pliant_kernel_api::{Dims, Order, Role, leading_dims};

use crate::decl::{Default, OpDecl, Pattern};
use crate::infer::{InferCtx, TensorTy};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::te::{self, Tensor, TensorView};

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.call_kernel",
    infer,
    "Calls a library kernel (docs/kernels.md), which writes new tensors of the given types. Operands and attributes are named: \
     `R.call_kernel(\"pool\", x=x, kind=\"max\", ..., out_sinfo=...)`. `axes` gives, for an operand or a result, the dim of the \
     tensor that is each dim of the kernel, or -1 for a dim of size 1.",
)
.operands(&["*tensors"])
.attrs(&[
    (KERNEL, Default::Required),
    (OPERANDS, Default::Required),
    (AXES, Default::None),
    (ATTRIBUTES, Default::None),
])
.te(Pattern::Opaque, te_call_kernel)];

fn decode(ctx: &InferCtx<'_>) -> Result<KernelCall, InferError> {
    KernelCall::of_attrs(ctx.attrs, ctx.args.len()).map_err(|message| ctx.error(message))
}

/// The explicit type, after its tensors and those of the operands were compared with the declaration.
fn infer(ctx: &mut InferCtx<'_>) -> Result<Type, InferError> {
    let call = decode(ctx)?;
    for (i, &at) in call.operands.iter().enumerate() {
        let tensor = ctx.tensor(i)?;
        check(ctx, &call, at, &tensor)?;
    }
    let ty = match *ctx.ty_args {
        [ty] => ty,
        [] => return Err(ctx.error("the types of the results are missing: out_sinfo")),
        _ => ctx.func.intern(TypeData::Tuple(ctx.ty_args.into())),
    };
    let results = match ctx.func.types.get(ty) {
        TypeData::Tuple(fields) => fields.to_vec(),
        _ => vec![ty],
    };
    let Some(written) = call.results(results.len()) else {
        let count = results.len();
        let names = call.kernel.operands.iter().filter(|operand| operand.role.is_written());
        let names: Vec<&str> = names.map(|operand| operand.name).collect();
        let name = call.kernel.name;
        let message =
            format!("kernel {name} writes {}, but there are {count} results", names.join(", "));
        return Err(ctx.error(message));
    };
    for (&at, &result) in written.iter().zip(&results) {
        let name = call.kernel.operands[at].name;
        if !matches!(ctx.func.types.get(result), TypeData::Tensor { .. }) {
            let text = type_text(ctx.func, result);
            return Err(ctx.error(format!("result {name} is a tensor, but its type is {text}")));
        }
        let tensor = ctx.tensor_ty(result, || name.to_string())?;
        check(ctx, &call, at, &tensor)?;
    }
    Ok(ty)
}

/// Compares a tensor with the declaration of its operand.
fn check(
    ctx: &InferCtx<'_>,
    call: &KernelCall,
    at: usize,
    tensor: &TensorTy,
) -> Result<(), InferError> {
    let (kernel, operand) = (call.kernel, &call.kernel.operands[at]);
    let wrong = |what: String| {
        Err(ctx.error(format!("operand {} of kernel {} {what}", operand.name, kernel.name)))
    };
    if tensor.scalar {
        return wrong("is a scalar, expected a tensor".to_string());
    }
    let accumulates = kernel.attr("accumulate").is_some_and(|(_, first)| call.numbers[first] != 0);
    if operand.role == Role::Accumulator && accumulates {
        return wrong("is a new tensor, which the kernel cannot add to: accumulate".to_string());
    }
    if let Some(dtype) = tensor.dtype
        && operand.dtypes().all(|own| own != dtype)
    {
        let wanted: Vec<String> = operand.dtypes().map(|dtype| dtype.to_string()).collect();
        return wrong(format!("is {dtype}, expected {}", wanted.join(" or ")));
    }
    let names = dims(call, at);
    let rank = match &call.axes[at] {
        Some(axes) => {
            let own = axes.iter().filter(|&&axis| axis != NEW_AXIS).count();
            if let Some(rank) = tensor.ndim.filter(|&rank| rank != own) {
                return wrong(format!("has {rank} dims, but axes for {own}: {axes:?}"));
            }
            let in_order = axes.iter().filter(|&&axis| axis != NEW_AXIS).is_sorted();
            if operand.order == Order::RowMajor && !in_order {
                return wrong(format!("has the axes {axes:?}, but the kernel takes it in order"));
            }
            Some(axes.len())
        }
        None => tensor.ndim,
    };
    match rank.filter(|&rank| leading_dims(names, rank).is_none()) {
        Some(rank) => wrong(format!("has {rank} dims, expected ({})", names.join(", "))),
        None => Ok(()),
    }
}

/// The names of an operand's dims.
fn dims(call: &KernelCall, at: usize) -> &'static [&'static str] {
    match call.kernel.operands[at].dims {
        Dims::Fixed(dims) => dims,
        Dims::ByLayout(list) => {
            let (_, first) = call.kernel.attr("layout").expect("the layout is an attribute");
            list[call.numbers[first] as usize]
        }
    }
}

/// One statement that calls the kernel.
fn te_call_kernel(ctx: &mut LegalizeCtx<'_>) -> Result<Vec<Tensor>, LegalizeError> {
    let call = decode(&ctx.infer())?;
    let tensors = (0..ctx.args.len()).map(|i| ctx.tensor(i)).collect::<Result<Vec<_>, _>>()?;
    let count = ctx.out_tys().len();
    let written = call.results(count).ok_or_else(|| ctx.error("has too many results"))?;
    let results = (0..count)
        .map(|k| Ok((ctx.out_shape(k)?, ctx.out_dtype(k)?)))
        .collect::<Result<Vec<_>, LegalizeError>>()?;
    let name = |at: usize| call.kernel.operands[at].name;
    ctx.hint = Some(call.kernel.name);
    Ok(te::extern_(call.kernel.name, &results, |b, out| {
        let mut new = te::KernelCall::new(call.kernel);
        for (tensor, &at) in tensors.iter().zip(&call.operands) {
            new = new.operand(name(at), view(tensor, call.axes[at].as_deref()));
        }
        for (tensor, &at) in out.iter().zip(&written) {
            new = new.operand(name(at), view(tensor, call.axes[at].as_deref()));
        }
        let mut numbers = &call.numbers[..];
        for attr in call.kernel.attrs {
            let (own, rest) = numbers.split_at(attr.ty.numbers());
            numbers = rest;
            new = new.numbers(attr, own);
        }
        b.evaluate(new.finish());
    }))
}

/// The view of a tensor with the dims of the kernel.
fn view<'a>(tensor: &'a Tensor, axes: Option<&[i64]>) -> TensorView<'a> {
    let view = TensorView::from(tensor);
    match axes {
        Some(axes) => view.with_axes(axes),
        None => view,
    }
}
