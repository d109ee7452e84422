//! Sorting: sort, argsort, topk, median. All sorts are stable: equal elements keep their order, in ascending and in descending
//! order. NaN is last in both directions, except for `nan_is_largest` of topk.

use pliant_ir::DType;
use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;
use pliant_kernel_api::kernels::sort::KERNEL;

use super::reductions::reduction_gradients;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::size_proofs;
use crate::te::{self, Body, Expr, KernelCall, Tensor, TensorView};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new("relax.sort", infer_sort, "Sorts along an axis. The sort is stable, and NaN is last.")
        .operands(&["x"])
        .attrs(&[("axis", Default::Int(-1)), ("descending", Default::Bool(false))])
        .te(Pattern::Opaque, te_sort)
        .numpy("sort")
        .errors("the axis is out of range")
    .gradient(reduction_gradients::sort),
    OpDecl::new(
        "relax.argsort",
        infer_argsort,
        "The indices that sort the elements along an axis, of type `dtype`. The sort is stable, and NaN is last.",
    )
    .operands(&["data"])
    .attrs(&[
        ("axis", Default::Int(-1)),
        ("descending", Default::Bool(false)),
        ("dtype", Default::Str("int32")),
    ])
    .te(Pattern::Opaque, te_argsort)
    .numpy("argsort")
    .errors("the axis is out of range, or `dtype` is bool or cannot represent the indices"),
    OpDecl::new(
        "relax.topk",
        infer_topk,
        "The `k` largest or smallest elements along an axis in sorted order, their indices, or both (`ret_type` \"values\", \
        \"indices\", \"both\"). Indices have type `dtype`. Equal elements keep their order. NaN is last, or, with \
        `nan_is_largest`, larger than all numbers, as in ONNX.",
    )
    .operands(&["data"])
    .attrs(&[
        ("k", Default::Int(1)),
        ("axis", Default::Int(-1)),
        ("ret_type", Default::Str("both")),
        ("largest", Default::Bool(true)),
        ("dtype", Default::Str("int32")),
        ("nan_is_largest", Default::Bool(false)),
    ])
    .symbolic("k")
    .te(Pattern::Opaque, te_topk)
    .onnx(&["TopK"])
    .errors(
        "`k` is negative or larger than the axis, the axis is out of range, or `dtype` is bool or cannot represent the indices",
    )
    .gradient(reduction_gradients::topk),
    OpDecl::new(
        "relax.median",
        infer_median,
        "The median of all elements, or the medians along an axis together with their int64 indices. For an even number of \
        elements, the median is the lower of the two middle elements.",
    )
    .operands(&["x"])
    .attrs(&[("axis", Default::None), ("keepdims", Default::Bool(false))])
    .te(Pattern::Opaque, te_median)
    .errors("the axis is out of range or not one integer, or there are no elements along it")
    .gradient(reduction_gradients::median),
];

// ---- sort, argsort ----

fn infer_sort(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    ctx.bool("descending")?;
    if let Some(ndim) = t.ndim {
        ctx.axis("axis", ndim)?;
    }
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn infer_argsort(ctx: &mut InferCtx<'_>) -> InferResult {
    infer_sort(ctx)?;
    let (t, dtype) = (ctx.tensor(0)?, index_dtype(ctx)?);
    Ok(ctx.tensor_type_like(&t, Some(dtype)))
}

/// The type of the returned indices. Rejects a type that cannot represent all positions along the axis.
fn index_dtype(ctx: &InferCtx<'_>) -> Result<DType, InferError> {
    let dtype = ctx.dtype("dtype")?.unwrap_or(DType::Int32);
    if dtype.is_bool() {
        return Err(ctx.error("dtype must be a numeric data type, but is bool"));
    }
    let data = ctx.tensor(0)?;
    if let Some(dims) = data.dims.filter(|d| !d.is_empty())
        && let Some(len) = ctx.func.syms.as_int(dims[ctx.axis("axis", dims.len())?])
        && let Some(max) = max_position(dtype)
        && len - 1 > max
    {
        return Err(
            ctx.error(format!("dtype {dtype} cannot represent the indices of {len} elements"))
        );
    }
    Ok(dtype)
}

/// The largest position that an integer type can represent; `None` if it can represent all positions.
fn max_position(dtype: DType) -> Option<i64> {
    (dtype.is_integer() && dtype.bits() < 64).then(|| dtype.int_range().1)
}

/// Emits an assertion: at run time, the index type `dtype` must be able to represent all positions in a row of `len` elements. A
/// constant `len` needs no assertion, because type inference checks it.
fn check_positions(b: &mut te::Body, op: &str, dtype: DType, len: &te::Expr) {
    if let Some(max) = max_position(dtype).filter(|_| len.as_int().is_none()) {
        let cond = te::le(len, &te::int(max + 1));
        let message = format!("{op}: dtype {dtype} cannot represent the indices of {{0}} elements");
        b.assert(&te::explain(&cond, std::slice::from_ref(len)), message);
    }
}

/// The integer type in which the library kernel for sorting writes positions, if the operator returns positions of type `dtype`.
fn kernel_position_dtype(dtype: DType) -> DType {
    if dtype == DType::Int32 { dtype } else { DType::Int64 }
}

/// Converts a tensor of positions to the data type `dtype`.
fn convert_positions(positions: Tensor, dtype: DType) -> Tensor {
    if positions.dtype() == dtype {
        return positions;
    }
    let shape = positions.shape().to_vec();
    te::compute(shape, positions.name().clone(), |i| te::cast(&positions.at(i), dtype))
}

/// Lowers a sort along an axis. The result is the elements, or their positions if `positions` is set.
fn te_sorted(ctx: &mut LegalizeCtx<'_>, name: &str, positions: bool) -> TeResult {
    let (x, dtype) = (ctx.tensor(0)?, ctx.out_dtype(0)?);
    let infer = ctx.infer();
    let (axis, descending) = (infer.axis("axis", x.ndim())?, infer.bool("descending")?);
    let op = ctx.decl.name;
    let kernel_dtype = if positions { kernel_position_dtype(dtype) } else { dtype };
    let out = te::extern_(name, &[(x.shape().to_vec(), kernel_dtype)], |b, out| {
        if positions {
            check_positions(b, op, dtype, &x.shape()[axis]);
        }
        let (x, out) = (TensorView::from(&x), TensorView::from(&out[0]).rows(axis, 0));
        let call = KernelCall::new(&KERNEL).operand("x", x.rows(axis, 0));
        let call = call.operand(if positions { "positions" } else { "values" }, out);
        b.evaluate(call.attr("descending", &[te::int(descending.into())]).finish());
    });
    Ok(out.into_iter().map(|out| convert_positions(out, dtype)).collect())
}

fn te_sort(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_sorted(ctx, "sort", false)
}

fn te_argsort(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_sorted(ctx, "argsort", true)
}

// ---- topk ----

fn infer_topk(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let ret = ctx.choice("ret_type", &["both", "values", "indices"])?;
    let (k, index) = (ctx.size_attr("k", 0)?, index_dtype(ctx)?);
    ctx.bool("largest")?;
    ctx.bool("nan_is_largest")?;
    let axis = t.ndim.map(|n| ctx.axis("axis", n)).transpose()?;
    let mut dims = t.dims.filter(|_| k.is_some());
    if let (Some(dims), Some(axis), Some(k)) = (&mut dims, axis, k) {
        if size_proofs::at_most(ctx.func, k, dims[axis]) == Some(false) {
            let (k, size) = (ctx.dim_text(k), ctx.dim_text(dims[axis]));
            return Err(ctx.error(format!(
                "k is {k}, but must be at most the size of axis {axis}, which is {size}"
            )));
        }
        dims[axis] = k;
    }
    let values = ctx.tensor_type(dims.clone(), t.ndim, t.dtype);
    let positions = ctx.tensor_type(dims, t.ndim, Some(index));
    Ok(match ret {
        0 => ctx.func.intern(TypeData::Tuple([values, positions].into())),
        1 => values,
        _ => positions,
    })
}

fn te_topk(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let (x, shape) = (ctx.tensor(0)?, ctx.out_shape(0)?);
    let mut infer = ctx.infer();
    let axis = infer.axis("axis", x.ndim())?;
    let (descending, index) = (infer.bool("largest")?, index_dtype(&infer)?);
    let nan_first = descending && infer.bool("nan_is_largest")?;
    let ret = infer.choice("ret_type", &["both", "values", "indices"])?;
    let unknown = || LegalizeError::unknown("relax.topk: k must be a constant or a symbolic size");
    let known = infer.size_attr("k", 0)?.ok_or_else(unknown)?;
    let k = ctx.size(known);
    let fits = size_proofs::at_most(ctx.func, known, dims[axis]) == Some(true);
    let mut results = vec![("values", x.dtype()), ("positions", kernel_position_dtype(index))];
    if ret > 0 {
        results = vec![results[ret - 1]];
    }
    let outputs: Vec<(Vec<Expr>, DType)> = results.iter().map(|r| (shape.clone(), r.1)).collect();
    let op = ctx.decl.name;
    let out = te::extern_("topk", &outputs, |b, out| {
        let len = &x.shape()[axis];
        if ret != 1 {
            check_positions(b, op, index, len);
        }
        if !fits {
            let (max, size) = (te::size_text(&k, 0), te::size_text(len, 1));
            let message = format!(
                "relax.topk: k is {max}, but must be at most the size of axis {axis}, which is {size}"
            );
            b.assert(&te::explain(&te::le(&k, len), &[k.clone(), len.clone()]), message);
        }
        let call = KernelCall::new(&KERNEL).operand("x", TensorView::from(&x).rows(axis, 0));
        let call = results.iter().zip(out).fold(call, |call, (&(name, _), out)| {
            call.operand(name, TensorView::from(out).rows(axis, 0))
        });
        let call = call.attr("descending", &[te::int(descending.into())]);
        b.evaluate(call.attr("nan_first", &[te::int(nan_first.into())]).finish());
    });
    let out = out.into_iter().zip(&results).map(|(out, &(name, _))| match name {
        "positions" => convert_positions(out, index),
        _ => out,
    });
    Ok(out.collect())
}

// ---- median ----

fn infer_median(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let keepdims = ctx.bool("keepdims")?;
    let one = ctx.func.syms.int(1);
    let axes = match t.ndim {
        Some(n) => ctx.axes("axis", n)?,
        None if ctx.attr("axis").is_none() => None,
        None => {
            let field = ctx.tensor_type(None, None, t.dtype);
            let positions = ctx.tensor_type(None, None, Some(DType::Int64));
            return Ok(ctx.func.intern(TypeData::Tuple([field, positions].into())));
        }
    };
    let Some(axes) = axes else {
        let dims = match t.ndim {
            Some(n) if keepdims => Some(vec![one; n]),
            None if keepdims => None,
            _ => Some(Vec::new()),
        };
        return Ok(ctx.tensor_type(dims, None, t.dtype));
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
    let values = ctx.tensor_type(dims.clone(), rank, t.dtype);
    let positions = ctx.tensor_type(dims, rank, Some(DType::Int64));
    Ok(ctx.func.intern(TypeData::Tuple([values, positions].into())))
}

/// Returns the index of the median in the sorted row along `axis`; of two middle elements, the lower one. Emits an assertion that
/// the size of `axis` is not 0, unless another dim of `shape` is 0, so that there are no rows.
fn median_rank(b: &mut Body, shape: &[Expr], axis: usize) -> Expr {
    let some = te::gt(&shape[axis], &te::int(0));
    let others = shape.iter().enumerate().filter(|(k, _)| *k != axis);
    let none = others.fold(te::lt(&te::int(0), &te::int(0)), |none, (_, d)| {
        te::or(&none, &te::eq(d, &te::int(0)))
    });
    b.assert(&te::or(&some, &none), "relax.median: the reduced axis is empty, so it has no median");
    te::maximum(&te::floordiv(&(&shape[axis] - 1), &te::int(2)), &te::int(0))
}

/// A view of a tensor in which each element is a row of length 1.
fn column(tensor: &Tensor) -> TensorView<'_> {
    TensorView::from(tensor).flatten().unsqueeze(1)
}

fn te_median(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.tensor(0)?;
    let axes = ctx.infer().axes("axis", x.ndim())?;
    let shape = ctx.out_shape(0)?;
    let outputs = [(shape.clone(), x.dtype()), (shape, DType::Int64)];
    let Some(axes) = axes else {
        let len = x.shape().iter().fold(te::int(1), |n, d| n * d);
        return Ok(te::extern_("median", &outputs[..1], |b, out| {
            let from = median_rank(b, std::slice::from_ref(&len), 0);
            let x = TensorView::from(&x).flatten();
            let call = KernelCall::new(&KERNEL).operand("x", x).operand("values", column(&out[0]));
            b.evaluate(call.attr("first", &[from]).finish());
        }));
    };
    Ok(te::extern_("median", &outputs, |b, out| {
        let from = median_rank(b, x.shape(), axes[0]);
        let call = KernelCall::new(&KERNEL).operand("x", TensorView::from(&x).rows(axes[0], 0));
        let call = call.operand("values", column(&out[0])).operand("positions", column(&out[1]));
        b.evaluate(call.attr("first", &[from]).finish());
    }))
}
