//! Non-maximum suppression: of boxes that overlap, the one with the highest score is kept. Boxes
//! with equal scores are processed in their input order.

use pliant_ir::DType;
use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;

use super::box_decoding::{assert_indices_in_row, check_rank, index_attr};
use super::kept_boxes::{BoxFields, KeptBoxes};
use crate::legalize::{LegalizeCtx, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::indexing::index_bounds::{as_int64, clamp};
use crate::shared_operator_rules::{operand_types, require_float, require_integer, shared_dim};
use crate::te::{self, Body, Expr, Tensor, TensorView};
use crate::type_inference::InferCtx;
use pliant_kernel_api::kernels::sort;
use pliant_tensor::CheckFailure;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.vision.non_max_suppression",
        infer_nms,
        "Non-maximum suppression of the first `valid_count` boxes of `data` (batch, boxes, elements). The `top_k` boxes with the \
        highest scores are considered in descending order. A box is kept if its score is positive and its overlap (IoU) with \
        each kept box of the same class, or of any class with `force_suppress`, is below `iou_threshold`, until \
        `max_output_size` boxes are kept. Returns the elements of `indices` for the kept boxes, followed by -1, and their \
        number, both int32. Without `return_indices`, returns the rows, with -1 as score and class of suppressed boxes; with \
        `invalid_to_bottom`, the kept rows are first.",
    )
    .operands(&["data", "valid_count: index", "indices: index"])
    .attrs(&[
        ("max_output_size", Default::Int(-1)),
        ("iou_threshold", Default::Float(0.5)),
        ("force_suppress", Default::Bool(false)),
        ("top_k", Default::Int(-1)),
        ("coord_start", Default::Int(2)),
        ("score_index", Default::Int(1)),
        ("id_index", Default::Int(0)),
        ("return_indices", Default::Bool(true)),
        ("invalid_to_bottom", Default::Bool(false)),
    ])
    .te(Pattern::Opaque, te_nms)
    .errors("the numbers of batches or boxes differ, or `valid_count` or an index attribute is out of range"),
    OpDecl::new(
        "relax.vision.all_class_non_max_suppression",
        infer_all,
        "ONNX's non-maximum suppression of boxes (batch, boxes, 4) for each class of scores (batch, classes, boxes). Boxes with \
        a score above `score_threshold` are considered, and overlaps (IoU) above `iou_threshold` are suppressed. The output \
        format \"onnx\" returns rows (batch, class, box), followed by -1, and their number. \"tensorflow\" returns, for each \
        batch, rows (class, box), their scores, and their number.",
    )
    .operands(&[
        "boxes",
        "scores",
        "max_output_boxes_per_class: index",
        "iou_threshold",
        "score_threshold",
    ])
    .attrs(&[("output_format", Default::Str("onnx"))])
    .te(Pattern::Opaque, te_all)
    .onnx(&["NonMaxSuppression"])
    .errors("the numbers of batches or boxes differ, or a limit is not one number"),
];

// ---- non_max_suppression ----

fn infer_nms(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, count, indices) =
        (check_rank(ctx, 0, 3)?, check_rank(ctx, 1, 1)?, check_rank(ctx, 2, 2)?);
    require_float(ctx, 0, &t)?;
    require_integer(ctx, 1, &count)?;
    require_integer(ctx, 2, &indices)?;
    for key in ["max_output_size", "top_k"] {
        ctx.int(key)?;
    }
    ctx.float("iou_threshold")?;
    let last = t.dims.as_ref().map(|d| d[2]);
    index_attr(ctx, "id_index", last, true)?;
    index_attr(ctx, "score_index", last, false)?;
    let start = index_attr(ctx, "coord_start", last, false)?.unwrap_or(0);
    if last.and_then(|s| ctx.func.syms.as_int(s)).is_some_and(|n| start.saturating_add(4) > n) {
        return Err(ctx.error(format!(
            "coord_start is {start}, which leaves fewer than 4 columns for the \
                 coordinates: data is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    if let (Some(x), Some(c), Some(i)) = (&t.dims, &count.dims, &indices.dims) {
        for (a, b) in [(x[0], c[0]), (x[0], i[0]), (x[1], i[1])] {
            if shared_dim(ctx, a, b).is_none() {
                return Err(ctx.error(format!(
                    "data, valid_count and indices must have the same numbers of batches \
                             and boxes: {types}",
                    types = operand_types(ctx)
                )));
            }
        }
    }
    if !ctx.bool("return_indices")? {
        return Ok(ctx.tensor_type_like(&t, t.dtype));
    }
    let one = ctx.func.syms.int(1);
    let row_indices =
        ctx.tensor_type(t.dims.as_ref().map(|d| d[..2].to_vec()), Some(2), Some(DType::Int32));
    let counts =
        ctx.tensor_type(t.dims.as_ref().map(|d| vec![d[0], one]), Some(2), Some(DType::Int32));
    Ok(ctx.func.intern(TypeData::Tuple([row_indices, counts].into())))
}

/// The attributes of a non-maximum suppression.
struct NmsAttrs {
    max_boxes: i64,
    top: i64,
    iou: f64,
    same_class: bool,
    start: i64,
    score: i64,
    id: Option<i64>,
    return_indices: bool,
    compact: bool,
}

impl NmsAttrs {
    fn read(ctx: &InferCtx<'_>) -> Result<NmsAttrs, InferError> {
        let id = index_attr(ctx, "id_index", None, true)?;
        Ok(NmsAttrs {
            max_boxes: ctx.int("max_output_size")?,
            top: ctx.int("top_k")?,
            iou: ctx.float("iou_threshold")?,
            same_class: !ctx.bool("force_suppress")? && id.is_some(),
            start: ctx.int("coord_start")?,
            score: ctx.int("score_index")?,
            id,
            return_indices: ctx.bool("return_indices")?,
            compact: ctx.bool("invalid_to_bottom")?,
        })
    }
}

/// The scores of boxes, and the positions of boxes in descending order of their scores.
struct SortedScores {
    scores: Tensor,
    positions: Tensor,
}

impl SortedScores {
    fn new(b: &mut Body, len: &Expr, dtype: DType) -> SortedScores {
        let len = std::slice::from_ref(len);
        SortedScores {
            scores: b.alloc("scores", len, dtype),
            positions: b.alloc("positions", len, DType::Int64),
        }
    }

    /// Emits code that writes the score of each box to `scores`.
    fn fill(&self, b: &mut Body, score: impl Fn(&Expr) -> Expr) {
        b.for_("i", &self.scores.shape()[0], |b, i| {
            b.store(&self.scores, std::slice::from_ref(i), &score(i));
        });
    }

    /// Emits code that writes the positions of the `count` boxes with the highest scores, in descending order of the scores.
    fn sort_first(&self, b: &mut Body, count: &Expr) {
        let call = te::KernelCall::new(&sort::KERNEL).operand("x", &self.scores);
        let positions = TensorView::from(&self.positions).slice(0, 0, 1, count.clone());
        let call = call.operand("positions", positions);
        b.evaluate(call.attr("descending", &[te::int(1)]).finish());
    }

    /// Emits a loop over at most `limit` boxes in descending order of their scores, which ends early if `proceed` becomes false.
    /// The code sorts only the `first` best boxes before the loop, and all boxes once the loop goes beyond those. `write`
    /// receives the number of boxes before the visited box and the box's position.
    fn for_each_sorted(
        &self,
        b: &mut Body,
        (first, limit): (&Expr, &Expr),
        proceed: &Expr,
        write: impl FnOnce(&mut Body, &Expr, &Expr),
    ) {
        let boxes = &self.scores.shape()[0];
        let first = te::maximum(&te::minimum(first, boxes), &te::int(0));
        let first = b.let_("first", &first);
        self.sort_first(b, &first);
        let sorted = b.cell("sorted", &first);
        let next = b.cell("next", &te::int(0));
        b.while_(&te::and(&te::lt(&next.get(), limit), proceed), |b| {
            b.if_(&te::ge(&next.get(), &sorted.get()), |b| {
                self.sort_first(b, boxes);
                b.set(&sorted, boxes);
            });
            let rank = b.let_("rank", &clamp(&next.get(), boxes));
            b.set(&next, &(&rank + 1));
            let n = clamp(&self.positions.at(std::slice::from_ref(&rank)), boxes);
            let n = b.let_("n", &n);
            write(b, &rank, &n);
        });
    }
}

/// The number of boxes to sort before a suppression that keeps at most `kept` of `boxes` boxes. It is enough if every second
/// considered box is kept.
fn sorted_at_first(kept: &Expr, boxes: &Expr) -> Expr {
    te::minimum(kept, boxes) * 2 + 16
}

fn te_nms(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let x = ctx.tensor(0)?;
    let (counts, indices) =
        (ctx.tensor_with_dims(1, &dims[..1])?, ctx.tensor_with_dims(2, &dims[..2])?);
    let nms = NmsAttrs::read(&ctx.infer())?;
    let (s, op) = (x.shape().to_vec(), ctx.decl.name);
    let outputs = match nms.return_indices {
        true => {
            vec![(s[..2].to_vec(), DType::Int32), (vec![s[0].clone(), te::int(1)], DType::Int32)]
        }
        false => vec![(s.clone(), x.dtype())],
    };
    Ok(te::extern_("non_max_suppression", &outputs, |b, out| {
        let row_indices: Vec<i64> =
            nms.id.iter().copied().chain([nms.score, nms.start + 3]).collect();
        assert_indices_in_row(b, op, &row_indices, &s[2]);
        let row = SortedScores::new(b, &s[1], x.dtype());
        let capacity = match nms.max_boxes >= 0 {
            true => te::minimum(&s[1], &te::int(nms.max_boxes)),
            false => s[1].clone(),
        };
        let kept = KeptBoxes::alloc(b, &capacity, x.dtype(), nms.same_class);
        b.for_("b", &s[0], |b, i| {
            let valid = b.let_("valid", &as_int64(&counts.at(std::slice::from_ref(i))));
            let inside = te::and(&te::ge(&valid, &te::int(0)), &te::le(&valid, &s[1]));
            let message = format!("{op}: valid_count {{0}} is out of range for {{1}} boxes");
            let message = CheckFailure::Index.mark(&message);
            b.assert(&te::explain(&inside, &[valid.clone(), s[1].clone()]), message);
            // Invalid boxes are sorted last.
            row.fill(b, |k| {
                let score = x.at(&[i.clone(), k.clone(), te::int(nms.score)]);
                te::select(&te::lt(k, &valid), &score, &te::const_of(f64::NEG_INFINITY, x.dtype()))
            });
            let considered =
                if nms.top > 0 { te::minimum(&valid, &te::int(nms.top)) } else { valid };
            suppress(b, &nms, &x, (i, &row, &kept), &considered, &indices, out);
        });
    }))
}

/// Emits the suppression for the boxes of image `i` of the batch: goes through the first `considered` boxes in descending order of
/// their scores, drops each box that overlaps with a box that was kept before, and writes the results to `out`.
fn suppress(
    b: &mut Body,
    nms: &NmsAttrs,
    x: &Tensor,
    (i, row, kept): (&Expr, &SortedScores, &Tensor),
    considered: &Expr,
    indices: &Tensor,
    out: &[Tensor],
) {
    let s = x.shape();
    let minus = te::const_of(-1.0, x.dtype());
    let read = |n: &Expr, k: i64| x.at(&[i.clone(), n.clone(), te::int(k)]);
    let corners = |n: &Expr| [0, 1, 2, 3].map(|k| read(n, nms.start + k));
    if nms.return_indices {
        b.for_("n", &s[1], |b, n| b.store(&out[0], &[i.clone(), n.clone()], &te::int(-1)));
    } else {
        b.for_each(&s[1..], |b, at| {
            b.store(&out[0], &[i.clone(), at[0].clone(), at[1].clone()], &minus);
        });
    }
    let kept = KeptBoxes::new(b, kept);
    let is_limited = nms.max_boxes >= 0;
    let below_limit = match is_limited {
        true => te::lt(&kept.count.get(), &te::int(nms.max_boxes)),
        false => te::bool_const(true),
    };
    // Suppressed boxes have results too if these are not compact.
    let visits_all = !nms.return_indices && !nms.compact;
    let (first, proceed) = match visits_all || !is_limited {
        true => (considered.clone(), te::bool_const(true)),
        false => (sorted_at_first(&te::int(nms.max_boxes), considered), below_limit.clone()),
    };
    row.for_each_sorted(b, (&first, considered), &proceed, |b, r, n| {
        let is_candidate = te::gt(&read(n, nms.score), &te::const_of(0.0, x.dtype()));
        let keep = b.cell("keep", &te::and(&is_candidate, &below_limit));
        let class = nms.id.filter(|_| nms.same_class).map(|id| read(n, id));
        let fields = BoxFields::from_corners(b, &corners(n), class);
        kept.clear_if_suppressed(b, &keep, &fields, |iou| {
            te::ge(iou, &te::const_of(nms.iou, x.dtype()))
        });
        let to = b.let_("to", &clamp(&kept.count.get(), &s[1]));
        let write_row = |b: &mut Body, to: &Expr, dropped: bool| {
            b.for_("k", &s[2], |b, k| {
                let mut value = x.at(&[i.clone(), n.clone(), k.clone()]);
                for column in nms.id.iter().chain([&nms.score]).filter(|_| dropped) {
                    value = te::select(&te::eq(k, &te::int(*column)), &minus, &value);
                }
                b.store(&out[0], &[i.clone(), to.clone(), k.clone()], &value);
            });
        };
        b.if_else(
            &keep.get(),
            |b| {
                if nms.return_indices {
                    b.store(
                        &out[0],
                        &[i.clone(), to.clone()],
                        &indices.at(&[i.clone(), n.clone()]),
                    );
                } else {
                    write_row(b, if nms.compact { &to } else { r }, false);
                }
                kept.push(b, &fields);
            },
            |b| {
                if !nms.return_indices && !nms.compact {
                    write_row(b, r, true);
                }
            },
        );
    });
    if nms.return_indices {
        b.store(&out[1], &[i.clone(), te::int(0)], &kept.count.get());
    }
}

// ---- all_class_non_max_suppression ----

fn infer_all(ctx: &mut InferCtx<'_>) -> InferResult {
    let (boxes, scores) = (check_rank(ctx, 0, 3)?, check_rank(ctx, 1, 3)?);
    require_float(ctx, 0, &boxes)?;
    ctx.same_dtype(0, 1)?;
    for i in 2..5 {
        let t = ctx.tensor(i)?;
        let one = |d: &[pliant_ir::Sym]| d.iter().all(|&d| ctx.func.syms.as_int(d) == Some(1));
        if t.dims.as_deref().is_some_and(|d| d.len() > 1 || !one(d)) {
            let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
            return Err(ctx.error(format!("{name} must be one number, but is {ty}")));
        }
    }
    let max_boxes = ctx.tensor(2)?;
    require_integer(ctx, 2, &max_boxes)?;
    let format = ctx.choice("output_format", &["onnx", "tensorflow"])?;
    if let (Some(b), Some(s)) = (&boxes.dims, &scores.dims) {
        let four = ctx.func.syms.int(4);
        for (x, y) in [(b[0], s[0]), (b[1], s[2]), (b[2], four)] {
            if shared_dim(ctx, x, y).is_none() {
                return Err(ctx.error(format!(
                    "boxes (batch, boxes, 4) and scores (batch, classes, boxes) must have \
                             the same numbers of batches and boxes: {types}",
                    types = operand_types(ctx)
                )));
            }
        }
    }
    let (one, two, three) = (ctx.func.syms.int(1), ctx.func.syms.int(2), ctx.func.syms.int(3));
    let per_batch = scores.dims.as_ref().map(|d| ctx.func.syms.mul(d[1], d[2]));
    let batch = scores.dims.as_ref().map(|d| d[0]);
    let int = Some(DType::Int64);
    let fields = if format == 0 {
        let rows = batch.zip(per_batch).map(|(b, n)| ctx.func.syms.mul(b, n));
        vec![
            ctx.tensor_type(rows.map(|n| vec![n, three]), Some(2), int),
            ctx.tensor_type(Some(vec![one]), None, int),
        ]
    } else {
        let both = batch.zip(per_batch);
        vec![
            ctx.tensor_type(both.map(|(b, n)| vec![b, n, two]), Some(3), int),
            ctx.tensor_type(both.map(|(b, n)| vec![b, n]), Some(2), scores.dtype),
            ctx.tensor_type(batch.map(|b| vec![b]), Some(1), int),
        ]
    };
    Ok(ctx.func.intern(TypeData::Tuple(fields.into())))
}

/// The value of a tensor with one element.
fn single_element(value: &Value) -> Expr {
    let at: Vec<Expr> = value.shape().iter().map(|_| te::int(0)).collect();
    value.at(&at)
}

fn te_all(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(1)?;
    let four = ctx.func.syms.int(4);
    let boxes = ctx.tensor_with_dims(0, &[dims[0], dims[2], four])?;
    let scores = ctx.tensor(1)?;
    let (max_boxes, iou, min_score) = (ctx.value(2)?, ctx.value(3)?, ctx.value(4)?);
    let onnx = ctx.infer().choice("output_format", &["onnx", "tensorflow"])? == 0;
    let mut outputs = Vec::new();
    for k in 0..if onnx { 2 } else { 3 } {
        outputs.push((ctx.out_shape(k)?, ctx.out_dtype(k)?));
    }
    let (s, dtype) = (scores.shape().to_vec(), scores.dtype());
    Ok(te::extern_("all_class_non_max_suppression", &outputs, |b, out| {
        let row = SortedScores::new(b, &s[2], dtype);
        let (max_boxes, iou) =
            (as_int64(&single_element(&max_boxes)), te::cast(&single_element(&iou), dtype));
        let kept = KeptBoxes::alloc(b, &s[2], dtype, false);
        let min_score = te::cast(&single_element(&min_score), dtype);
        b.for_each(outputs[0].0.as_slice(), |b, i| b.store(&out[0], i, &te::int(-1)));
        if !onnx {
            b.for_each(outputs[1].0.as_slice(), |b, i| {
                b.store(&out[1], i, &te::const_of(0.0, dtype))
            });
        }
        let total = b.cell("total", &te::int(0));
        b.for_("b", &s[0], |b, i| {
            if !onnx {
                b.set(&total, &te::int(0));
            }
            b.for_("c", &s[1], |b, c| {
                row.fill(b, |k| scores.at(&[i.clone(), c.clone(), k.clone()]));
                let kept = KeptBoxes::new(b, &kept);
                // The first box with a low score ends the loop, since the scores descend.
                let has_candidates = b.cell("has_candidates", &te::bool_const(true));
                let proceed =
                    te::and(&has_candidates.get(), &te::lt(&kept.count.get(), &max_boxes));
                let limits = (&sorted_at_first(&max_boxes, &s[2]), &s[2]);
                row.for_each_sorted(b, limits, &proceed, |b, _, n| {
                    let score = row.scores.at(std::slice::from_ref(n));
                    b.set(&has_candidates, &te::gt(&score, &min_score));
                    let keep = b.cell("keep", &has_candidates.get());
                    let corners = |n: &Expr| {
                        [0, 1, 2, 3].map(|k| boxes.at(&[i.clone(), n.clone(), te::int(k)]))
                    };
                    let fields = BoxFields::from_corners(b, &corners(n), None);
                    kept.clear_if_suppressed(b, &keep, &fields, |overlap| te::gt(overlap, &iou));
                    b.if_(&keep.get(), |b| {
                        kept.push(b, &fields);
                        let at =
                            b.let_("at", &clamp(&total.get(), &outputs[0].0[usize::from(!onnx)]));
                        if onnx {
                            for (k, v) in [i, c, n].into_iter().enumerate() {
                                b.store(&out[0], &[at.clone(), te::int(k as i64)], v);
                            }
                        } else {
                            b.store(&out[0], &[i.clone(), at.clone(), te::int(0)], c);
                            b.store(&out[0], &[i.clone(), at.clone(), te::int(1)], n);
                            b.store(&out[1], &[i.clone(), at.clone()], &score);
                        }
                        b.set(&total, &(&at + 1));
                    });
                });
            });
            if !onnx {
                b.store(&out[2], std::slice::from_ref(i), &total.get());
            }
        });
        if onnx {
            b.store(&out[1], &[te::int(0)], &total.get());
        }
    }))
}
