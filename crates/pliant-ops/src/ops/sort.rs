//! Ordering: sort, argsort, topk, median. All are stable: equal elements keep their order, also when descending. NaN
//! comes after every number, in either direction.

use pliant_ir::op::InferError;
use pliant_ir::relax::{Type, TypeData};
use pliant_ir::{DType, Sym};

use super::index::safe;
use crate::decl::{Default, OpDecl, Pattern};
use crate::infer::InferCtx;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::prove;
use crate::te::{self, Body, Expr, Tensor};

type Inferred = Result<Type, InferError>;
type Outputs = Result<Vec<Tensor>, LegalizeError>;

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new("relax.sort", infer_sort, "The elements in order along an axis; stable, NaN last.")
        .operands(&["x"])
        .attrs(&[("axis", Default::Int(-1)), ("descending", Default::Bool(false))])
        .te(Pattern::Opaque, te_sort)
        .numpy("sort"),
    OpDecl::new(
        "relax.argsort",
        infer_argsort,
        "The indices that put the elements in order along an axis; stable, NaN last.",
    )
    .operands(&["data"])
    .attrs(&[
        ("axis", Default::Int(-1)),
        ("descending", Default::Bool(false)),
        ("dtype", Default::Str("int32")),
    ])
    .te(Pattern::Opaque, te_argsort)
    .numpy("argsort"),
    OpDecl::new(
        "relax.topk",
        infer_topk,
        "The k largest or smallest elements along an axis in order, their indices, or both (ret_type \"values\", \
         \"indices\", \"both\"). Of equal ones the first come first; NaN last.",
    )
    .operands(&["data"])
    .attrs(&[
        ("k", Default::Int(1)),
        ("axis", Default::Int(-1)),
        ("ret_type", Default::Str("both")),
        ("largest", Default::Bool(true)),
        ("dtype", Default::Str("int32")),
    ])
    .te(Pattern::Opaque, te_topk)
    .onnx(&["TopK"]),
    OpDecl::new(
        "relax.median",
        infer_median,
        "The middle element in order, the lower of two, over all elements; along one axis also its index.",
    )
    .operands(&["x"])
    .attrs(&[("axis", Default::None), ("keepdims", Default::Bool(false))])
    .te(Pattern::Opaque, te_median),
];

// ---- merge sort ----

/// A row to sort: its length, element type and direction.
pub(super) struct Order<'e> {
    pub(super) len: &'e Expr,
    pub(super) dtype: DType,
    pub(super) descending: bool,
}

/// Buffers for the elements of a row and the places they come from, and a second pair to merge into.
pub(super) struct Row {
    pub(super) keys: [Tensor; 2],
    pub(super) places: [Tensor; 2],
}

impl Row {
    pub(super) fn new(b: &mut Body, order: &Order<'_>) -> Row {
        let len = std::slice::from_ref(order.len);
        let mut keys = |name: &str| b.alloc(name, len, order.dtype);
        let keys = [keys("keys"), keys("keys_to")];
        let mut places = |name: &str| b.alloc(name, len, DType::Int64);
        Row { keys, places: [places("places"), places("places_to")] }
    }
}

/// Whether `a` comes strictly before `b`.
fn before(order: &Order<'_>, a: &Expr, b: &Expr) -> Expr {
    let less = if order.descending { te::gt(a, b) } else { te::lt(a, b) };
    if !order.dtype.is_float() {
        return less;
    }
    te::or(&less, &te::and(&te::isnan(b), &te::not(&te::isnan(a))))
}

/// Fills the row with `key(i)` and sorts it: merges ever longer runs.
pub(super) fn sort_row(b: &mut Body, row: &Row, order: &Order<'_>, key: impl Fn(&Expr) -> Expr) {
    let len = order.len;
    b.for_("i", len, |b, i| {
        b.store(&row.keys[0], std::slice::from_ref(i), &key(i));
        b.store(&row.places[0], std::slice::from_ref(i), i);
    });
    let width = b.cell("width", &te::int(1));
    b.while_(&te::lt(&width.get(), len), |b| {
        // There and back again, so that nothing is copied: a run that is the whole row is merged with an empty one.
        let run = b.let_("run", &width.get());
        merge_runs(b, row, order, &run, 0);
        let two = b.let_("two", &(&run * 2));
        merge_runs(b, row, order, &two, 1);
        b.set(&width, &(&two * 2));
    });
}

/// Merges neighbouring runs of that length, from one pair of buffers into the other.
fn merge_runs(b: &mut Body, row: &Row, order: &Order<'_>, run: &Expr, from: usize) {
    let len = order.len;
    let two = b.let_("both", &(run * 2));
    b.for_("pair", &te::ceildiv(len, &two), |b, pair| {
        let start = b.let_("start", &(pair * &two));
        let middle = b.let_("middle", &te::minimum(&(&start + run), len));
        let end = b.let_("end", &te::minimum(&(&start + &two), len));
        merge(b, row, order, (&start, &middle, &end), from);
    });
}

/// Merges two neighbouring runs; of equal elements those of the left one come first. Which one an element comes from is
/// chosen without a branch, which would be mispredicted half of the time.
fn merge(
    b: &mut Body,
    row: &Row,
    order: &Order<'_>,
    (start, middle, end): (&Expr, &Expr, &Expr),
    from: usize,
) {
    let (keys, places) = (&row.keys[from], &row.places[from]);
    let (left, right) = (b.cell("left", start), b.cell("right", middle));
    b.for_("t", &(end - start), |b, t| {
        let to = safe::clamp(&(start + t), order.len);
        let (at_left, at_right) =
            (b.let_("at_left", &left.get()), b.let_("at_right", &right.get()));
        let i = b.let_("i", &safe::clamp(&at_left, order.len));
        let j = b.let_("j", &safe::clamp(&at_right, order.len));
        let (a, c) = (keys.at(std::slice::from_ref(&i)), keys.at(std::slice::from_ref(&j)));
        let (a, c) = (b.let_("a", &a), b.let_("c", &c));
        let take_right = te::or(
            &te::ge(&at_left, middle),
            &te::and(&te::lt(&at_right, end), &before(order, &c, &a)),
        );
        let taken = b.let_("taken", &te::cast(&take_right, te::Ty::I64));
        let is_right = te::ne(&taken, &te::int(0));
        let to = std::slice::from_ref(&to);
        b.store(&row.keys[1 - from], to, &te::select(&is_right, &c, &a));
        let place = te::select(&is_right, &j, &i);
        b.store(&row.places[1 - from], to, &places.at(std::slice::from_ref(&place)));
        b.set(&right, &(&at_right + &taken));
        b.set(&left, &(&at_left + 1 - &taken));
    });
}

/// Sorts each row along the axis and hands it on with the indices of the other dims.
fn each_row(
    b: &mut Body,
    x: &Tensor,
    axis: usize,
    order: &Order<'_>,
    mut write: impl FnMut(&mut Body, &Row, &dyn Fn(&Expr) -> Vec<Expr>),
) {
    let row = Row::new(b, order);
    let mut others = x.shape().to_vec();
    others.remove(axis);
    b.for_each(&others, |b, i| {
        let at = |k: &Expr| [&i[..axis], std::slice::from_ref(k), &i[axis..]].concat();
        sort_row(b, &row, order, |k| x.at(&at(k)));
        write(b, &row, &at);
    });
}

// ---- sort, argsort ----

fn infer_sort(ctx: &mut InferCtx<'_>) -> Inferred {
    let t = ctx.tensor(0)?;
    ctx.bool("descending")?;
    if let Some(ndim) = t.ndim {
        ctx.axis("axis", ndim)?;
    }
    Ok(ctx.like(&t, t.dtype))
}

fn infer_argsort(ctx: &mut InferCtx<'_>) -> Inferred {
    infer_sort(ctx)?;
    let (t, dtype) = (ctx.tensor(0)?, index_dtype(ctx)?);
    Ok(ctx.like(&t, Some(dtype)))
}

/// The type of indices in the result.
fn index_dtype(ctx: &InferCtx<'_>) -> Result<DType, InferError> {
    let dtype = ctx.dtype("dtype")?.unwrap_or(DType::Int32);
    if dtype.is_bool() {
        return Err(ctx.error("dtype must be a type of numbers"));
    }
    Ok(dtype)
}

fn ordered(ctx: &mut LegalizeCtx<'_>, name: &str, places: bool) -> Outputs {
    let (x, dtype) = (ctx.tensor(0)?, ctx.out_dtype(0)?);
    let infer = ctx.infer();
    let (axis, descending) = (infer.axis("axis", x.ndim())?, infer.bool("descending")?);
    let order = Order { len: &x.shape()[axis], dtype: x.dtype(), descending };
    Ok(te::extern_(name, &[(x.shape().to_vec(), dtype)], |b, out| {
        each_row(b, &x, axis, &order, |b, row, at| {
            let from = if places { &row.places[0] } else { &row.keys[0] };
            b.for_("k", order.len, |b, k| {
                b.store(&out[0], &at(k), &from.at(std::slice::from_ref(k)))
            });
        });
    }))
}

fn te_sort(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    ordered(ctx, "sort", false)
}

fn te_argsort(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    ordered(ctx, "argsort", true)
}

// ---- topk ----

fn infer_topk(ctx: &mut InferCtx<'_>) -> Inferred {
    let t = ctx.tensor(0)?;
    let ret = ctx.choice("ret_type", &["both", "values", "indices"])?;
    let (k, index) = (ctx.int("k")?, index_dtype(ctx)?);
    ctx.bool("largest")?;
    if k < 0 {
        return Err(ctx.error(format!("k must not be negative, but is {k}")));
    }
    let axis = t.ndim.map(|n| ctx.axis("axis", n)).transpose()?;
    let k = ctx.func.syms.int(k);
    let mut dims = t.dims;
    if let (Some(dims), Some(axis)) = (&mut dims, axis) {
        if prove::at_most(ctx.func, k, dims[axis]) == Some(false) {
            let (k, size) = (ctx.dim(k), ctx.dim(dims[axis]));
            return Err(ctx.error(format!("k is {k}, but axis {axis} has size {size}")));
        }
        dims[axis] = k;
    }
    let values = ctx.make(dims.clone(), t.ndim, t.dtype);
    let places = ctx.make(dims, t.ndim, Some(index));
    Ok(match ret {
        0 => ctx.func.intern(TypeData::Tuple([values, places].into())),
        1 => values,
        _ => places,
    })
}

fn te_topk(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let dims = ctx.dims(0)?;
    let (x, shape) = (ctx.tensor(0)?, ctx.out_shape(0)?);
    let infer = ctx.infer();
    let axis = infer.axis("axis", x.ndim())?;
    let (descending, index) = (infer.bool("largest")?, index_dtype(&infer)?);
    let ret = infer.choice("ret_type", &["both", "values", "indices"])?;
    let count = infer.int("k")?;
    let known: Sym = ctx.func.syms.int(count);
    let k = te::int(count);
    let fits = prove::at_most(ctx.func, known, dims[axis]) == Some(true);
    let order = Order { len: &x.shape()[axis], dtype: x.dtype(), descending };
    let mut kinds = vec![(false, x.dtype()), (true, index)];
    if ret > 0 {
        kinds = vec![kinds[ret - 1]];
    }
    let outputs: Vec<(Vec<Expr>, DType)> = kinds.iter().map(|&(_, d)| (shape.clone(), d)).collect();
    Ok(te::extern_("topk", &outputs, |b, out| {
        if !fits {
            let message = format!("relax.topk: k is {{0}}, but axis {axis} has size {{1}}");
            let cond = te::le(&k, order.len);
            b.assert(&te::explain(&cond, &[k.clone(), order.len.clone()]), message);
        }
        each_row(b, &x, axis, &order, |b, row, at| {
            b.for_("k", &k, |b, i| {
                let from = [safe::clamp(i, order.len)];
                for (to, &(places, _)) in out.iter().zip(&kinds) {
                    let source = if places { &row.places[0] } else { &row.keys[0] };
                    b.store(to, &at(i), &source.at(&from));
                }
            });
        });
    }))
}

// ---- median ----

fn infer_median(ctx: &mut InferCtx<'_>) -> Inferred {
    let t = ctx.tensor(0)?;
    let keepdims = ctx.bool("keepdims")?;
    let one = ctx.func.syms.int(1);
    let axes = match t.ndim {
        Some(n) => ctx.axes("axis", n)?,
        None if ctx.attr("axis").is_none() => None,
        None => {
            let field = ctx.make(None, None, t.dtype);
            let places = ctx.make(None, None, Some(DType::Int64));
            return Ok(ctx.func.intern(TypeData::Tuple([field, places].into())));
        }
    };
    let Some(axes) = axes else {
        let dims = match t.ndim {
            Some(n) if keepdims => Some(vec![one; n]),
            None if keepdims => None,
            _ => Some(Vec::new()),
        };
        return Ok(ctx.make(dims, None, t.dtype));
    };
    let [axis] = axes[..] else {
        return Err(ctx.error("axis must be one integer or None"));
    };
    let dims = t.dims.map(|mut dims| {
        if keepdims {
            dims[axis] = one;
        } else {
            dims.remove(axis);
        }
        dims
    });
    let rank = t.ndim.map(|n| if keepdims { n } else { n - 1 });
    let values = ctx.make(dims.clone(), rank, t.dtype);
    let places = ctx.make(dims, rank, Some(DType::Int64));
    Ok(ctx.func.intern(TypeData::Tuple([values, places].into())))
}

/// The middle of `len` elements that are sorted; there must be one.
fn middle(b: &mut Body, len: &Expr) -> Expr {
    b.assert(&te::gt(len, &te::int(0)), "relax.median: there is no element");
    te::floordiv(&(len - 1), &te::int(2))
}

fn te_median(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let x = ctx.tensor(0)?;
    let infer = ctx.infer();
    let axes = infer.axes("axis", x.ndim())?;
    let keepdims = infer.bool("keepdims")?;
    let shape = ctx.out_shape(0)?;
    if let Some(axes) = axes {
        let axis = axes[0];
        let order = Order { len: &x.shape()[axis], dtype: x.dtype(), descending: false };
        let outputs = [(shape.clone(), x.dtype()), (shape, DType::Int64)];
        return Ok(te::extern_("median", &outputs, |b, out| {
            each_row(b, &x, axis, &order, |b, row, at| {
                let from = [middle(b, order.len)];
                let mut to = at(&te::int(0));
                if !keepdims {
                    to.remove(axis);
                }
                b.store(&out[0], &to, &row.keys[0].at(&from));
                b.store(&out[1], &to, &row.places[0].at(&from));
            });
        }));
    }
    let len = x.shape().iter().fold(te::int(1), |n, d| n * d);
    let order = Order { len: &len, dtype: x.dtype(), descending: false };
    Ok(te::extern_("median", &[(shape.clone(), x.dtype())], |b, out| {
        let row = Row::new(b, &order);
        sort_row(b, &row, &order, |k| super::flat_at(&x, k));
        let from = [middle(b, &len)];
        let to = vec![te::int(0); shape.len()];
        b.store(&out[0], &to, &row.keys[0].at(&from));
    }))
}
