//! Creates the loop function of an attention, which contains one call of the kernel `attention`.

use pliant_ir::DType;
use pliant_ir::relax::Expr as RelaxExpr;
use pliant_kernel_api::kernels::attention::KERNEL;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, TensorView};
use pliant_ops::{LegalizeError, te_call_with_sizes};
use pliant_pass::pattern::RewriteCx;

use super::SWAP_HEADS_AND_ROWS;
use super::attention_matcher::Attention;
use super::fully_masked_queries::FullyMaskedResult;
use super::qkv_operands::{Layout, Source};

/// Returns a view with the dims (batch, heads, rows, size) of a tensor with the given layout.
fn heads_view<'a>(tensor: impl Into<TensorView<'a>>, layout: Layout) -> TensorView<'a> {
    let view = tensor.into();
    match layout {
        Layout::SingleHead => view.unsqueeze(1),
        Layout::Heads => view,
        Layout::Tokens => view.permute(&SWAP_HEADS_AND_ROWS),
        Layout::Columns { column, heads, size } => {
            view.split_part(2, column, heads, size).permute(&SWAP_HEADS_AND_ROWS)
        }
    }
}

/// Returns a view of a bias or mask that has the dims of the scores. `has_score_dim` states for each dim, counted from the last,
/// whether its size is that of the scores; otherwise its size is 1.
fn scores_view<'a>(
    tensor: impl Into<TensorView<'a>>,
    scores: &[Expr; 4],
    has_score_dim: &[bool],
    layout: Layout,
) -> TensorView<'a> {
    let mut view = tensor.into();
    let mut repeated: Vec<bool> =
        has_score_dim.iter().map(|has_score_dim| !has_score_dim).collect();
    if layout == Layout::SingleHead && view.dims().len() == 3 {
        view = view.unsqueeze(1);
        repeated.insert(2, true);
    }
    view.broadcast(scores, &repeated)
}

/// Creates the loop function that computes an attention, and a call of it. `visible` is the mask, which is true for
/// keys that a query may attend to. If `by_tokens` is set, the results have the dims (batch, rows, heads, size),
/// otherwise (batch, heads, rows, size).
pub(super) fn loop_function_call(
    cx: &mut RewriteCx<'_>,
    a: &Attention,
    visible: Option<RelaxExpr>,
    by_tokens: bool,
) -> Result<TirCall, LegalizeError> {
    let mut operands: Vec<_> = a.sources.iter().map(|s: &Source| s.tensor).collect();
    operands.extend(a.bias);
    let mask_at = operands.len();
    operands.extend(visible);
    let offset: Vec<_> = a.causal.into_iter().collect();
    te_call_with_sizes(cx.func, "attention", &operands, &offset, |t, offset| {
        let source_view = |k: usize| heads_view(&t[k], a.sources[k].layout);
        let (q, k, v) = (source_view(0), source_view(1), source_view(2));
        let is_single_head = a.sources[0].layout == Layout::SingleHead;
        let layout = match (is_single_head, a.heads_before_rows && !by_tokens) {
            (true, _) => Layout::SingleHead,
            (_, true) => Layout::Heads,
            _ => Layout::Tokens,
        };
        let dim = |view: &TensorView<'_>, at: usize| view.dims()[at].clone();
        let (batch, heads, rows, size) = (dim(&q, 0), dim(&q, 1), dim(&q, 2), dim(&v, 3));
        let scores = [batch.clone(), heads.clone(), rows.clone(), dim(&k, 2)];
        let shape = match layout {
            Layout::SingleHead => vec![batch, rows, size],
            Layout::Heads => vec![batch, heads, rows, size],
            _ => vec![batch, rows, heads, size],
        };
        Ok(te::extern_("attention", &[(shape, DType::Float32)], |b, out| {
            let float64 = DType::Float64;
            let scale = match a.scale {
                Some(scale) => te::const_of(scale, float64),
                None => te::rsqrt(&te::cast(&dim(&q, 3), float64)),
            };
            let bias =
                a.bias.map(|_| scores_view(&t[3], &scores, &a.bias_dims, a.sources[0].layout));
            let masked = a.mask.as_ref().map(|(mask, has_score_dim)| {
                (mask, scores_view(&t[mask_at], &scores, has_score_dim, a.sources[0].layout))
            });
            let mut call = te::KernelCall::new(&KERNEL)
                .operand("q", q)
                .operand("k", k)
                .operand("v", v)
                .optional("bias", bias)
                .operand("out", heads_view(&out[0], layout))
                .attr("scale", &[scale])
                .attr("softcap", &[te::const_of(a.cap, float64)])
                .attr("causal", &[te::int(i64::from(a.causal.is_some()))])
                .attr("offset", &[offset.first().cloned().unwrap_or_else(|| te::int(0))])
                .attr("window", &[te::int(a.window)])
                .choice(
                    "fully_masked",
                    match a.fully_masked_result {
                        FullyMaskedResult::Zeros => "zeros",
                        FullyMaskedResult::Nan => "nan",
                        FullyMaskedResult::ZerosForNan => "zeros_for_nan",
                    },
                );
            if let Some((mask, view)) = masked {
                call = call
                    .operand("mask", view)
                    .attr("masked_score", &[te::const_of(mask.masked_score, float64)])
                    .attr("mask_before_bias", &[te::int(i64::from(mask.before_bias))]);
            }
            b.evaluate(call.finish());
        }))
    })
}
