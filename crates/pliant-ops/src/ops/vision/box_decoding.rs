//! Operators that decode boxes from predictions: get_valid_counts, multibox_transform_loc.

use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;
use pliant_ir::{DType, Sym};

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_float, shared_dim};
use crate::te::{self, Expr};
use crate::type_inference::{InferCtx, TensorTy};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.vision.get_valid_counts",
        infer_counts,
        "Filters the boxes of `data` (batch, boxes, elements) whose score exceeds the threshold and whose class is not negative. \
        Returns their number (int32), the boxes in order followed by rows of -1, and their indices (int32) followed by -1. With \
        `id_index` -1, there is no class.",
    )
    .operands(&["data"])
    .attrs(&[
        ("score_threshold", Default::Float(0.0)),
        ("id_index", Default::Int(0)),
        ("score_index", Default::Int(1)),
    ])
    .te(Pattern::Opaque, te_counts)
    .errors("`data` does not have 3 dims, or an index attribute is out of range for its last dim"),
    OpDecl::new(
        "relax.vision.multibox_transform_loc",
        infer_multibox,
        "Decodes boxes (ymin, xmin, ymax, xmax) as in SSD (Liu et al., 2016): from offsets (x, y, w, h) to anchors (left, top, \
        right, bottom). Also returns the softmax of the class logits, with 0 for scores below the threshold and, without \
        `keep_background`, for class 0.",
    )
    .operands(&["cls_pred", "loc_pred", "anchor"])
    .attrs(&[
        ("clip", Default::Bool(false)),
        ("threshold", Default::Float(0.0)),
        ("variances", Default::None),
        ("keep_background", Default::Bool(true)),
    ])
    .te(Pattern::Opaque, te_multibox)
    .errors("the operands do not have the shapes (batch, classes, n), (batch, 4 * n) and (1, n, 4)"),
];

/// Checks that operand `i` has rank `want`, if its rank is known.
pub(super) fn check_rank(
    ctx: &InferCtx<'_>,
    i: usize,
    want: usize,
) -> Result<TensorTy, InferError> {
    let t = ctx.tensor(i)?;
    match t.ndim {
        Some(n) if n != want => {
            let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
            Err(ctx.error(format!("{name} must have {want} dims, but is {ty}")))
        }
        _ => Ok(t),
    }
}

/// An attribute that is an index into a row of `size` elements. If it is `optional`, a negative index means `None`.
pub(super) fn index_attr(
    ctx: &InferCtx<'_>,
    key: &str,
    size: Option<Sym>,
    optional: bool,
) -> Result<Option<i64>, InferError> {
    let at = ctx.int(key)?;
    if optional && at < 0 {
        return Ok(None);
    }
    let size = size.and_then(|s| ctx.func.syms.as_int(s));
    if at < 0 || size.is_some_and(|n| at >= n) {
        return Err(ctx.error(format!(
            "{key} is {at}, which is out of range for the last dim of data: data is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    Ok(Some(at))
}

/// Emits an assertion that all indices are less than `size` at run time. A constant `size` needs no assertion, because type
/// inference checks it.
pub(super) fn assert_indices_in_row(b: &mut te::Body, op: &str, indices: &[i64], size: &Expr) {
    if let Some(max) = indices.iter().max().filter(|_| size.as_int().is_none()) {
        let cond = te::gt(size, &te::int(*max));
        let message = format!("{op}: index {max} is out of range for rows of size {{0}}");
        b.assert(&te::explain(&cond, std::slice::from_ref(size)), message);
    }
}

// ---- get_valid_counts ----

fn infer_counts(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = check_rank(ctx, 0, 3)?;
    require_float(ctx, 0, &t)?;
    ctx.float("score_threshold")?;
    let last = t.dims.as_ref().map(|d| d[2]);
    index_attr(ctx, "id_index", last, true)?;
    index_attr(ctx, "score_index", last, false)?;
    let take = |n: usize| t.dims.as_ref().map(|d| d[..n].to_vec());
    let counts = ctx.tensor_type(take(1), Some(1), Some(DType::Int32));
    let boxes = ctx.tensor_type(take(3), Some(3), t.dtype);
    let indices = ctx.tensor_type(take(2), Some(2), Some(DType::Int32));
    Ok(ctx.func.intern(TypeData::Tuple([counts, boxes, indices].into())))
}

fn te_counts(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.tensor(0)?;
    let infer = ctx.infer();
    let threshold = te::const_of(infer.float("score_threshold")?, x.dtype());
    let id = index_attr(&infer, "id_index", None, true)?;
    let score = infer.int("score_index")?;
    let (s, op) = (x.shape().to_vec(), ctx.decl.name);
    let outputs =
        [(s[..1].to_vec(), DType::Int32), (s.clone(), x.dtype()), (s[..2].to_vec(), DType::Int32)];
    Ok(te::extern_("get_valid_counts", &outputs, |b, out| {
        let indices: Vec<i64> = id.iter().copied().chain([score]).collect();
        assert_indices_in_row(b, op, &indices, &s[2]);
        b.for_("b", &s[0], |b, i| {
            b.for_each(&s[1..], |b, at| {
                b.store(
                    &out[1],
                    &[i.clone(), at[0].clone(), at[1].clone()],
                    &te::const_of(-1.0, x.dtype()),
                )
            });
            b.for_("n", &s[1], |b, n| b.store(&out[2], &[i.clone(), n.clone()], &te::int(-1)));
            let count = b.cell("count", &te::int(0));
            b.for_("n", &s[1], |b, n| {
                let read = |k: i64| x.at(&[i.clone(), n.clone(), te::int(k)]);
                let mut valid = te::gt(&read(score), &threshold);
                if let Some(id) = id {
                    valid = te::and(&valid, &te::ge(&read(id), &te::const_of(0.0, x.dtype())));
                }
                b.if_(&valid, |b| {
                    let to = b.let_(
                        "to",
                        &super::super::indexing::index_bounds::clamp(&count.get(), &s[1]),
                    );
                    b.for_("k", &s[2], |b, k| {
                        let value = x.at(&[i.clone(), n.clone(), k.clone()]);
                        b.store(&out[1], &[i.clone(), to.clone(), k.clone()], &value);
                    });
                    b.store(&out[2], &[i.clone(), to.clone()], n);
                    b.set(&count, &(&to + 1));
                });
            });
            b.store(&out[0], std::slice::from_ref(i), &count.get());
        });
    }))
}

// ---- multibox_transform_loc ----

fn variances(ctx: &InferCtx<'_>) -> Result<[f64; 4], InferError> {
    let list = ctx.floats("variances")?.unwrap_or_else(|| vec![1.0; 4]);
    <[f64; 4]>::try_from(list)
        .map_err(|list| ctx.error(format!("variances must have 4 numbers, but has {}", list.len())))
}

fn infer_multibox(ctx: &mut InferCtx<'_>) -> InferResult {
    let (cls, loc, anchor) =
        (check_rank(ctx, 0, 3)?, check_rank(ctx, 1, 2)?, check_rank(ctx, 2, 3)?);
    for (i, t) in [(0, &cls), (1, &loc), (2, &anchor)] {
        require_float(ctx, i, t)?;
    }
    ctx.same_dtype(0, 1)?;
    let dtype = ctx.same_dtype(0, 2)?;
    variances(ctx)?;
    ctx.float("threshold")?;
    if let (Some(c), Some(l), Some(a)) = (&cls.dims, &loc.dims, &anchor.dims) {
        let (one, four) = (ctx.func.syms.int(1), ctx.func.syms.int(4));
        let all = ctx.func.syms.mul(c[2], four);
        let pairs = [(c[0], l[0]), (all, l[1]), (a[0], one), (a[1], c[2]), (a[2], four)];
        for (x, y) in pairs {
            if shared_dim(ctx, x, y).is_none() {
                let types = operand_types(ctx);
                return Err(ctx
                    .error(format!(
                        "cls_pred, loc_pred and anchor must have the shapes (B, C, N), (B, 4 * N) and (1, N, 4): {types}"
                    )));
            }
        }
    }
    let four = ctx.func.syms.int(4);
    let boxes = cls.dims.as_ref().map(|d| vec![d[0], d[2], four]);
    let boxes = ctx.tensor_type(boxes, Some(3), dtype);
    let scores = ctx.tensor_type_like(&cls, dtype);
    Ok(ctx.func.intern(TypeData::Tuple([boxes, scores].into())))
}

fn te_multibox(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let (one, four) = (ctx.func.syms.int(1), ctx.func.syms.int(4));
    let all = ctx.func.syms.mul(dims[2], four);
    let cls = ctx.tensor(0)?;
    let loc = ctx.tensor_with_dims(1, &[dims[0], all])?;
    let anchor = ctx.tensor_with_dims(2, &[one, dims[2], four])?;
    let infer = ctx.infer();
    let (variances, clip) = (variances(&infer)?, infer.bool("clip")?);
    let (threshold, background) = (infer.float("threshold")?, infer.bool("keep_background")?);
    let dtype = cls.dtype();
    let acc_dtype = super::super::reductions::accumulator(dtype);
    let number = |v: f64| te::const_of(v, acc_dtype);
    let boxes = te::compute(ctx.out_shape(0)?, "T_boxes", |i| {
        let edge =
            |k: i64| te::cast(&anchor.at(&[te::int(0), i[1].clone(), te::int(k)]), acc_dtype);
        let offset = |k: usize| {
            let at = &i[1] * 4 + k as i64;
            te::cast(&loc.at(&[i[0].clone(), at]), acc_dtype) * number(variances[k])
        };
        // The x coordinates, then the y coordinates: the centre and half the size.
        let along = |k: usize| {
            let (low, high) = (edge(k as i64), edge(k as i64 + 2));
            let size = &high - &low;
            let centre = (high + low) / number(2.0) + offset(k) * &size;
            (centre, te::exp(&offset(k + 2)) * size / number(2.0))
        };
        let ((x, w), (y, h)) = (along(0), along(1));
        let corner = [&y - &h, &x - &w, y + h, x + w];
        let pick =
            |acc: Expr, k: usize| te::select(&te::eq(&i[2], &te::int(k as i64)), &corner[k], &acc);
        let value = (0..3).rev().fold(corner[3].clone(), pick);
        let value = match clip {
            true => te::maximum(&te::minimum(&value, &number(1.0)), &number(0.0)),
            false => value,
        };
        te::cast(&value, dtype)
    });
    let s = cls.shape();
    let c = te::reduce_axis(s[1].clone(), "c");
    let row = [s[0].clone(), s[2].clone()];
    let max = te::compute(row.to_vec(), "T_most", |i| {
        let value = cls.at(&[i[0].clone(), c.var.expr(), i[1].clone()]);
        te::max(&te::cast(&value, acc_dtype), std::slice::from_ref(&c))
    });
    let power = |i: &[Expr], c: &Expr| {
        let value = te::cast(&cls.at(&[i[0].clone(), c.clone(), i[1].clone()]), acc_dtype);
        te::exp(&(value - max.at(i)))
    };
    let sum = te::compute(row.to_vec(), "T_sum", |i| {
        te::sum(&power(i, &c.var.expr()), std::slice::from_ref(&c))
    });
    let scores = te::compute(s.to_vec(), "T_scores", |i| {
        let at = [i[0].clone(), i[2].clone()];
        let score = power(&at, &i[1]) / sum.at(&at);
        let mut kept = te::ge(&score, &number(threshold));
        if !background {
            kept = te::and(&kept, &te::ne(&i[1], &te::int(0)));
        }
        te::cast(&te::select(&kept, &score, &number(0.0)), dtype)
    });
    Ok(vec![boxes, scores])
}
