//! The loop function of an attention: one call of the kernel `attention`.

use pliant_ir::DType;
use pliant_ir::relax::Expr as RelaxExpr;
use pliant_kernel_api::kernels::attention::KERNEL;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, TensorView};
use pliant_ops::{LegalizeError, te_call_with_sizes};
use pliant_pass::pattern::RewriteCx;

use super::EXCHANGED;
use super::guard::Blind;
use super::matcher::Attention;
use super::sources::{Layout, Source};

/// The view of a tensor of this layout with the dims (batch, heads, rows, size).
fn by_heads<'a>(tensor: impl Into<TensorView<'a>>, layout: Layout) -> TensorView<'a> {
    let view = tensor.into();
    match layout {
        Layout::One => view.unsqueeze(1),
        Layout::Heads => view,
        Layout::Tokens => view.permute(&EXCHANGED),
        Layout::Within { column, heads, size } => {
            view.split_part(2, column, heads, size).permute(&EXCHANGED)
        }
    }
}

/// The view of a bias or mask with the dims of the scores. `follows` states which of its dims, from the last, are those of the
/// scores; the others have size 1.
fn by_scores<'a>(
    tensor: impl Into<TensorView<'a>>,
    scores: &[Expr; 4],
    follows: &[bool],
    layout: Layout,
) -> TensorView<'a> {
    let mut view = tensor.into();
    let mut repeated: Vec<bool> = follows.iter().map(|follows| !follows).collect();
    if layout == Layout::One && view.dims().len() == 3 {
        view = view.unsqueeze(1);
        repeated.insert(2, true);
    }
    view.broadcast(scores, &repeated)
}

/// A call of the loop function. `seen` is the mask, true for visible keys. With `exchanged`, results are stored in the order
/// (batch, rows, heads, size) instead of (batch, heads, rows, size).
pub(super) fn call(
    cx: &mut RewriteCx<'_>,
    a: &Attention,
    seen: Option<RelaxExpr>,
    exchanged: bool,
) -> Result<TirCall, LegalizeError> {
    let mut operands: Vec<_> = a.sources.iter().map(|s: &Source| s.tensor).collect();
    operands.extend(a.bias);
    let mask_at = operands.len();
    operands.extend(seen);
    let offset: Vec<_> = a.causal.into_iter().collect();
    te_call_with_sizes(cx.func, "attention", &operands, &offset, |t, offset| {
        let own = |k: usize| by_heads(&t[k], a.sources[k].layout);
        let (q, k, v) = (own(0), own(1), own(2));
        let one = a.sources[0].layout == Layout::One;
        let layout = match (one, a.heads && !exchanged) {
            (true, _) => Layout::One,
            (_, true) => Layout::Heads,
            _ => Layout::Tokens,
        };
        let dim = |view: &TensorView<'_>, at: usize| view.dims()[at].clone();
        let (batch, heads, rows, size) = (dim(&q, 0), dim(&q, 1), dim(&q, 2), dim(&v, 3));
        let scores = [batch.clone(), heads.clone(), rows.clone(), dim(&k, 2)];
        let shape = match layout {
            Layout::One => vec![batch, rows, size],
            Layout::Heads => vec![batch, heads, rows, size],
            _ => vec![batch, rows, heads, size],
        };
        Ok(te::extern_("attention", &[(shape, DType::Float32)], |b, out| {
            let wide = DType::Float64;
            let scale = match a.scale {
                Some(scale) => te::const_of(scale, wide),
                None => te::rsqrt(&te::cast(&dim(&q, 3), wide)),
            };
            let bias = a.bias.map(|_| by_scores(&t[3], &scores, &a.bias_dims, a.sources[0].layout));
            let masked = a.mask.as_ref().map(|(mask, follows)| {
                (mask, by_scores(&t[mask_at], &scores, follows, a.sources[0].layout))
            });
            let mut call = te::KernelCall::new(&KERNEL)
                .operand("q", q)
                .operand("k", k)
                .operand("v", v)
                .optional("bias", bias)
                .operand("out", by_heads(&out[0], layout))
                .attr("scale", &[scale])
                .attr("softcap", &[te::const_of(a.cap, wide)])
                .attr("causal", &[te::int(i64::from(a.causal.is_some()))])
                .attr("offset", &[offset.first().cloned().unwrap_or_else(|| te::int(0))])
                .attr("window", &[te::int(a.window)])
                .choice(
                    "fully_masked",
                    match a.blind {
                        Blind::Zeros => "zeros",
                        Blind::Nan => "nan",
                        Blind::ZerosForNan => "zeros_for_nan",
                    },
                );
            if let Some((mask, view)) = masked {
                call = call
                    .operand("mask", view)
                    .attr("masked_score", &[te::const_of(mask.hidden, wide)])
                    .attr("mask_before_bias", &[te::int(i64::from(mask.first))]);
            }
            b.evaluate(call.finish());
        }))
    })
}
