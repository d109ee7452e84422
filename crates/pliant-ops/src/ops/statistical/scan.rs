//! Running sums and products.

use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;
use pliant_ir::relax::Type;

use super::accumulator;
use crate::decl::{Default, OpDecl, Pattern};
use crate::infer::InferCtx;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::rules::numel;
use crate::te::{self, Expr, Tensor};

type Inferred = Result<Type, InferError>;
type Outputs = Result<Vec<Tensor>, LegalizeError>;

const ATTRS: &[(&str, Default)] =
    &[("axis", Default::None), ("dtype", Default::None), ("exclusive", Default::Bool(false))];

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.cumsum",
        infer,
        "Sums of the elements up to each along an axis, or of the flat tensor; without the element itself where \
         exclusive. Of type dtype, or that of data; float16 and bfloat16 are summed in float32.",
    )
    .operands(&["data"])
    .attrs(ATTRS)
    .dims(DimTrait::Named(&["axis"]))
    .te(Pattern::Opaque, |ctx| scan(ctx, "cumsum", 0.0, |a, b| a + b))
    .numpy("cumsum")
    .onnx(&["CumSum"]),
    OpDecl::new("relax.cumprod", infer, "Products of the elements up to each, as cumsum.")
        .operands(&["data"])
        .attrs(ATTRS)
        .dims(DimTrait::Named(&["axis"]))
        .te(Pattern::Opaque, |ctx| scan(ctx, "cumprod", 1.0, |a, b| a * b))
        .numpy("cumprod")
        .onnx(&["CumProd"]),
];

fn infer(ctx: &mut InferCtx<'_>) -> Inferred {
    let t = ctx.tensor(0)?;
    let dtype = ctx.dtype("dtype")?.or(t.dtype);
    if dtype.is_some_and(|d| d.is_bool()) {
        return Err(ctx
            .error("has no running total of bool")
            .with_help("say in which type to count: dtype=\"int64\""));
    }
    ctx.bool("exclusive")?;
    if ctx.attr("axis").is_none() {
        let dims = t.dims.map(|d| vec![numel(ctx, &d)]);
        return Ok(ctx.make(dims, Some(1), dtype));
    }
    if let Some(ndim) = t.ndim {
        ctx.axis("axis", ndim)?;
    }
    Ok(ctx.like(&t, dtype))
}

/// A running sum or product along an axis. The running totals of all positions in the dims after
/// the axis are kept at once, so that memory is read in order.
fn scan(
    ctx: &mut LegalizeCtx<'_>,
    name: &str,
    first: f64,
    combine: fn(&Expr, &Expr) -> Expr,
) -> Outputs {
    let (x, shape, dtype) = (ctx.tensor(0)?, ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let infer = ctx.infer();
    let flat = infer.attr("axis").is_none();
    let axis = if flat { 0 } else { infer.axis("axis", x.ndim())? };
    let exclusive = infer.bool("exclusive")?;
    let wide = accumulator(dtype);
    let first = te::const_of(first, wide);
    Ok(te::extern_(name, &[(shape.clone(), dtype)], |b, out| {
        if flat {
            let total = b.cell("total", &first);
            let position = flat_position(&x);
            b.for_each(x.shape(), |b, i| {
                let at = b.let_("at", &te::minimum(&position(i), &(&shape[0] - 1)));
                let next = b.let_("next", &combine(&total.get(), &te::cast(&x.at(i), wide)));
                let value = if exclusive { total.get() } else { next.clone() };
                b.store(&out[0], &[at], &value);
                b.set(&total, &next);
            });
            return;
        }
        let rest = &shape[axis + 1..];
        let totals = if rest.is_empty() { vec![te::int(1)] } else { rest.to_vec() };
        let total = b.alloc("total", &totals, wide);
        b.for_each(&shape[..axis], |b, lead| {
            b.for_each(&totals, |b, i| b.store(&total, i, &first));
            b.for_("k", &shape[axis], |b, k| {
                b.for_each(&totals, |b, i| {
                    let own = if rest.is_empty() { &[][..] } else { i };
                    let at = [lead, std::slice::from_ref(k), own].concat();
                    let next = b.let_("next", &combine(&total.at(i), &te::cast(&x.at(&at), wide)));
                    let value = if exclusive { total.at(i) } else { next.clone() };
                    b.store(&out[0], &at, &value);
                    b.store(&total, i, &next);
                });
            });
        });
    }))
}

/// The position of an element in the flattened tensor, in row-major order.
fn flat_position(x: &Tensor) -> impl Fn(&[Expr]) -> Expr {
    let shape = x.shape().to_vec();
    move |i: &[Expr]| i.iter().zip(&shape).fold(te::int(0), |acc, (i, d)| acc * d + i)
}
