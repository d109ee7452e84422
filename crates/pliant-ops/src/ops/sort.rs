//! Sorting: sort, argsort, topk, median. All are stable: equal elements keep their order, also for
//! descending order. NaN is last in both directions.

use pliant_ir::DType;
use pliant_ir::op::InferError;
use pliant_ir::relax::{Type, TypeData};

use super::rows::{self, Rows};
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
    .symbolic("k")
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

// ---- rows in order ----

/// The length, the element type and the direction of a row to be sorted.
pub(super) struct Order<'e> {
    pub(super) len: &'e Expr,
    pub(super) dtype: DType,
    pub(super) descending: bool,
}

/// Buffers for the elements of a row and their original positions.
pub(super) struct Row {
    pub(super) keys: Tensor,
    pub(super) places: Tensor,
}

impl Row {
    pub(super) fn new(b: &mut Body, order: &Order<'_>) -> Row {
        let len = std::slice::from_ref(order.len);
        Row {
            keys: b.alloc("keys", len, order.dtype),
            places: b.alloc("places", len, DType::Int64),
        }
    }
}

/// Fills the row with `key(i)` and sorts it.
pub(super) fn sort_row(b: &mut Body, row: &Row, order: &Order<'_>, key: impl Fn(&Expr) -> Expr) {
    order_row(b, row, order, (&te::int(0), order.len), key);
}

/// Fills the row with `key(i)` and sorts it such that the positions `part.0 .. part.1` are correct.
fn order_row(
    b: &mut Body,
    row: &Row,
    order: &Order<'_>,
    part: (&Expr, &Expr),
    key: impl Fn(&Expr) -> Expr,
) {
    b.for_("i", order.len, |b, i| b.store(&row.keys, std::slice::from_ref(i), &key(i)));
    let numbers = [part.0.clone(), part.1.clone(), te::int(order.descending.into())];
    let addresses = [rows::front(&row.keys), rows::front(&row.places)];
    rows::call(b, "order", order.dtype, order.len, &numbers, &addresses);
}

/// Sorts a part of each row along the axis, and passes it on with the indices of the other dims.
fn each_row(
    b: &mut Body,
    x: &Tensor,
    axis: usize,
    order: &Order<'_>,
    part: (&Expr, &Expr),
    write: impl FnOnce(&mut Body, &Row, &dyn Fn(&Expr) -> Vec<Expr>),
) {
    let rows = Rows::new(x.shape(), axis);
    rows.each(
        b,
        |b| Row::new(b, order),
        |b, row, i| {
            let at = |k: &Expr| rows.at(i, k);
            order_row(b, row, order, part, |k| x.at(&at(k)));
            write(b, row, &at);
        },
    );
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

/// The index type of the result.
fn index_dtype(ctx: &InferCtx<'_>) -> Result<DType, InferError> {
    let dtype = ctx.dtype("dtype")?.unwrap_or(DType::Int32);
    if dtype.is_bool() {
        return Err(ctx.error("dtype must be a type of numbers"));
    }
    let data = ctx.tensor(0)?;
    if let Some(dims) = data.dims.filter(|d| !d.is_empty())
        && let Some(len) = ctx.func.syms.as_int(dims[ctx.axis("axis", dims.len())?])
        && let Some(most) = last_place(dtype)
        && len - 1 > most
    {
        return Err(ctx.error(format!("{dtype} does not hold the places of {len} elements")));
    }
    Ok(dtype)
}

/// The largest position that an integer type can represent; `None` if it can represent all
/// positions.
fn last_place(dtype: DType) -> Option<i64> {
    (dtype.is_integer() && dtype.bits() < 64).then(|| dtype.int_range().1)
}

/// Asserts at run time that the index type can represent the positions in a row.
fn check_places(b: &mut te::Body, op: &str, dtype: DType, len: &te::Expr) {
    if let Some(most) = last_place(dtype).filter(|_| len.as_int().is_none()) {
        let cond = te::le(len, &te::int(most + 1));
        let message = format!("{op}: {dtype} does not hold the places of {{0}} elements");
        b.assert(&te::explain(&cond, std::slice::from_ref(len)), message);
    }
}

fn ordered(ctx: &mut LegalizeCtx<'_>, name: &str, places: bool) -> Outputs {
    let (x, dtype) = (ctx.tensor(0)?, ctx.out_dtype(0)?);
    let infer = ctx.infer();
    let (axis, descending) = (infer.axis("axis", x.ndim())?, infer.bool("descending")?);
    let order = Order { len: &x.shape()[axis], dtype: x.dtype(), descending };
    let op = ctx.decl.name;
    Ok(te::extern_(name, &[(x.shape().to_vec(), dtype)], |b, out| {
        if places {
            check_places(b, op, dtype, order.len);
        }
        each_row(b, &x, axis, &order, (&te::int(0), order.len), |b, row, at| {
            let from = if places { &row.places } else { &row.keys };
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
    let (k, index) = (ctx.size_attr("k", 0)?, index_dtype(ctx)?);
    ctx.bool("largest")?;
    let axis = t.ndim.map(|n| ctx.axis("axis", n)).transpose()?;
    let mut dims = t.dims.filter(|_| k.is_some());
    if let (Some(dims), Some(axis), Some(k)) = (&mut dims, axis, k) {
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
    let mut infer = ctx.infer();
    let axis = infer.axis("axis", x.ndim())?;
    let (descending, index) = (infer.bool("largest")?, index_dtype(&infer)?);
    let ret = infer.choice("ret_type", &["both", "values", "indices"])?;
    let unknown = || LegalizeError::unknown("relax.topk: k is not known");
    let known = infer.size_attr("k", 0)?.ok_or_else(unknown)?;
    let k = ctx.size(known);
    let fits = prove::at_most(ctx.func, known, dims[axis]) == Some(true);
    let order = Order { len: &x.shape()[axis], dtype: x.dtype(), descending };
    let mut kinds = vec![(false, x.dtype()), (true, index)];
    if ret > 0 {
        kinds = vec![kinds[ret - 1]];
    }
    let outputs: Vec<(Vec<Expr>, DType)> = kinds.iter().map(|&(_, d)| (shape.clone(), d)).collect();
    let op = ctx.decl.name;
    Ok(te::extern_("topk", &outputs, |b, out| {
        if ret != 1 {
            check_places(b, op, index, order.len);
        }
        if !fits {
            let (most, size) = (te::told(&k, 0), te::told(order.len, 1));
            let message = format!("relax.topk: k is {most}, but axis {axis} has size {size}");
            let cond = te::le(&k, order.len);
            b.assert(&te::explain(&cond, &[k.clone(), order.len.clone()]), message);
        }
        let rows = Rows::new(x.shape(), axis);
        let last = axis + 1 == x.ndim();
        rows.each(
            b,
            |b| First::new(b, &order, &k, last),
            |b, first, i| {
                let at = |k: &Expr| rows.at(i, k);
                first.select(b, &x, &order, &k, &at);
                b.for_("k", &k, |b, i| {
                    for (to, &(places, _)) in out.iter().zip(&kinds) {
                        let source = if places { &first.places } else { &first.values };
                        b.store(to, &at(i), &source.at(std::slice::from_ref(i)));
                    }
                });
            },
        );
    }))
}

/// Buffers for the first elements of a row's order and the places they come from.
struct First {
    values: Tensor,
    places: Tensor,
    /// The row, unless its elements are side by side in the tensor.
    keys: Option<Tensor>,
}

impl First {
    fn new(b: &mut Body, order: &Order<'_>, count: &Expr, side_by_side: bool) -> First {
        let count = std::slice::from_ref(count);
        let len = std::slice::from_ref(order.len);
        First {
            values: b.alloc("values", count, order.dtype),
            places: b.alloc("places", count, DType::Int64),
            keys: (!side_by_side).then(|| b.alloc("keys", len, order.dtype)),
        }
    }

    /// Selects them from the row whose elements are at `at(i)`.
    fn select(
        &self,
        b: &mut Body,
        x: &Tensor,
        order: &Order<'_>,
        count: &Expr,
        at: &dyn Fn(&Expr) -> Vec<Expr>,
    ) {
        let row = match &self.keys {
            Some(keys) => {
                b.for_("i", order.len, |b, i| {
                    b.store(keys, std::slice::from_ref(i), &x.at(&at(i)));
                });
                rows::front(keys)
            }
            None => x.at(&at(&te::int(0))),
        };
        let numbers = [count.clone(), te::int(order.descending.into())];
        let addresses = [row, rows::front(&self.values), rows::front(&self.places)];
        rows::call(b, "first", order.dtype, order.len, &numbers, &addresses);
    }
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

/// The index of the median in a sorted row. There must be an element, unless there are no rows.
fn middle(b: &mut Body, shape: &[Expr], axis: usize) -> Expr {
    let some = te::gt(&shape[axis], &te::int(0));
    let others = shape.iter().enumerate().filter(|(k, _)| *k != axis);
    let none = others.fold(te::lt(&te::int(0), &te::int(0)), |none, (_, d)| {
        te::or(&none, &te::eq(d, &te::int(0)))
    });
    b.assert(&te::or(&some, &none), "relax.median: there is no element");
    b.let_("middle", &te::floordiv(&(&shape[axis] - 1), &te::int(2)))
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
            let from = middle(b, x.shape(), axis);
            each_row(b, &x, axis, &order, (&from, &(&from + 1)), |b, row, at| {
                let mut to = at(&te::int(0));
                if !keepdims {
                    to.remove(axis);
                }
                let middle = std::slice::from_ref(&from);
                b.store(&out[0], &to, &row.keys.at(middle));
                b.store(&out[1], &to, &row.places.at(middle));
            });
        }));
    }
    let len = x.shape().iter().fold(te::int(1), |n, d| n * d);
    let order = Order { len: &len, dtype: x.dtype(), descending: false };
    Ok(te::extern_("median", &[(shape.clone(), x.dtype())], |b, out| {
        let row = Row::new(b, &order);
        let from = middle(b, std::slice::from_ref(&len), 0);
        order_row(b, &row, &order, (&from, &(&from + 1)), |k| super::flat_at(&x, k));
        let to = vec![te::int(0); shape.len()];
        b.store(&out[0], &to, &row.keys.at(&[from]));
    }))
}
