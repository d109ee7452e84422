//! The operators `relax.grad.*`: markers for the pass `Gradient`, and gradients that are operators of their own. The tensor
//! expressions of the latter are derived from those of the differentiated operators.

use crate::gradient::derived::te_of_gradient;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::te;
use crate::type_inference::InferCtx;

macro_rules! pool_backward {
    ($name:literal, $forward:literal) => {
        OpDecl::new(
            concat!("relax.grad.", $name),
            |ctx| infer_like(ctx, 1),
            concat!(
                "The adjoint of the data of `R.nn.",
                $forward,
                "`, given the adjoint of its result."
            ),
        )
        .operands(&["output_grad", "data"])
        .attrs(&[
            ("pool_size", Default::Ints(&[1, 1])),
            ("strides", Default::Ints(&[1, 1])),
            ("padding", Default::Ints(&[0, 0, 0, 0])),
            ("dilation", Default::Ints(&[1, 1])),
            ("ceil_mode", Default::Bool(false)),
            ("count_include_pad", Default::Bool(false)),
            ("layout", Default::Str("NCHW")),
            ("out_layout", Default::None),
        ])
        .lists(&[("pool_size", 2), ("strides", 2), ("padding", 4), ("dilation", 2)])
        .te(Pattern::Opaque, |ctx| te_of_gradient(ctx, concat!("relax.nn.", $forward), 1))
    };
}

macro_rules! marker {
    ($name:literal, $doc:literal) => {
        OpDecl::new(concat!("relax.grad.", $name), |ctx| infer_like(ctx, 0), $doc)
            .operands(&["input"])
            .te(Pattern::ElemWise, te_identity)
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    marker!("no_grad", "Returns its operand. Its adjoint is 0, so no gradient is computed for the values before it.")
        .zero_gradient(),
    marker!(
        "start_checkpoint",
        "Returns its operand. The pass `Gradient` computes the values between `start_checkpoint` and `end_checkpoint` again \
        for the gradients, instead of storing them."
    )
    .gradient(|g| g.first(g.dy())),
    marker!("end_checkpoint", "Returns its operand, which is stored for the gradients; see `start_checkpoint`.")
        .gradient(|g| g.first(g.dy())),
    OpDecl::new(
        "relax.grad.nll_loss_backward",
        |ctx| infer_like(ctx, 1),
        "The adjoint of the predictions of `R.nn.nll_loss`, given the adjoint of its result.",
    )
    .operands(&["output_grad", "predictions", "targets: index", "weights?"])
    .attrs(&[("reduction", Default::Str("mean")), ("ignore_index", Default::Int(-100))])
    .te(Pattern::Opaque, |ctx| te_of_gradient(ctx, "relax.nn.nll_loss", 1)),
    pool_backward!("max_pool2d_backward", "max_pool2d"),
    pool_backward!("avg_pool2d_backward", "avg_pool2d"),
    OpDecl::new(
        "relax.grad.take_backward",
        |ctx| infer_like(ctx, 1),
        "The adjoint of the operand `x` of `R.take`, given the adjoint of its result: adds `output_grad` to zeros at the indices.",
    )
    .operands(&["output_grad", "x", "indices: index"])
    .attrs(&[("axis", Default::None), ("mode", Default::Str("fast"))])
    .te(Pattern::Opaque, |ctx| te_of_gradient(ctx, "relax.take", 1)),
];

/// The type of operand `i`.
fn infer_like(ctx: &mut InferCtx<'_>, i: usize) -> InferResult {
    let t = ctx.tensor(i)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn te_identity(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.value(0)?;
    let shape = ctx.out_shape(0)?;
    Ok(vec![te::compute(shape, "T_identity", |i| x.at(i))])
}
