//! Operators that return properties of a tensor (such as its rank) as values, and that reinterpret
//! its memory.

use pliant_ir::DType;
use pliant_ir::relax::TypeData;

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, TeResult};
use crate::te;
use crate::type_inference::InferCtx;

const AXIS_ATTR: &[(&str, Default)] = &[("axis", Default::Required)];

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.inspect.tensor_shape_i",
        |ctx| infer_at_axis(ctx, true),
        "The size of dim `axis`, as an int64 scalar.",
    )
    .operands(&["tensor"])
    .attrs(AXIS_ATTR)
    .depends_on_types_only()
    .packed("vm.builtin.inspect.shape_i")
    .errors("the axis is negative or not less than the number of dims"),
    OpDecl::new(
        "relax.inspect.tensor_stride_i",
        |ctx| infer_at_axis(ctx, false),
        "The stride of dim `axis` in elements, as an int64 scalar.",
    )
    .operands(&["tensor"])
    .attrs(AXIS_ATTR)
    .packed("vm.builtin.inspect.stride_i")
    .errors("the axis is negative or not less than the number of dims"),
    OpDecl::new("relax.inspect.tensor_ndim", infer_ndim, "The number of dims, as an int32 scalar.")
        .operands(&["tensor"])
        .depends_on_types_only()
    .packed("vm.builtin.inspect.ndim"),
    OpDecl::new(
        "relax.inspect.tensor_dtype_code",
        |ctx| infer_dtype_property(ctx, DType::UInt8, |d| i64::from(d.to_dlpack().0)),
        "The DLPack type code of the elements, as a uint8 scalar.",
    )
    .operands(&["tensor"])
    .depends_on_types_only()
    .packed("vm.builtin.inspect.dtype_code"),
    OpDecl::new(
        "relax.inspect.tensor_dtype_bits",
        |ctx| infer_dtype_property(ctx, DType::UInt8, |d| i64::from(d.bits())),
        "The number of bits per element, as a uint8 scalar.",
    )
    .operands(&["tensor"])
    .depends_on_types_only()
    .packed("vm.builtin.inspect.dtype_bits"),
    OpDecl::new(
        "relax.inspect.tensor_dtype_lanes",
        |ctx| infer_dtype_property(ctx, DType::UInt16, |_| 1),
        "The number of lanes per element, as a uint16 scalar: always 1.",
    )
    .operands(&["tensor"])
    .depends_on_types_only()
    .packed("vm.builtin.inspect.dtype_lanes"),
    OpDecl::new(
        "relax.inspect.tensor_byte_offset",
        infer_offset,
        "The offset of the tensor in its storage in bytes, as a uint64 scalar.",
    )
    .operands(&["tensor"])
    .packed("vm.builtin.inspect.byte_offset"),
    OpDecl::new(
        "relax.inspect.tensor_elem_offset",
        infer_offset,
        "The offset of the tensor in its storage in elements, as a uint64 scalar.",
    )
    .operands(&["tensor"])
    .packed("vm.builtin.inspect.elem_offset"),
    OpDecl::new(
        "relax.memory.view",
        infer_view,
        "Reinterprets the memory of a tensor, from an offset in bytes on, as a tensor of another shape and data type. By \
        default, shape and type are those of `data`.",
    )
    .operands(&["data", "shape?: size"])
    .attrs(&[("dtype", Default::None), ("relative_byte_offset", Default::Int(0))])
    .limits("sharing the memory of the tensor: the result is a copy")
    .packed("vm.builtin.tensor_view")
    .errors("the result needs more bytes than `data` has, or the element size changes without a shape"),
    OpDecl::new(
        "relax.memory.ensure_zero_offset",
        infer_same,
        "The same tensor with offset 0 in its storage.",
    )
    .operands(&["data"])
    .view(te_same),
    OpDecl::new(
        "relax.builtin.stop_lift_params",
        infer_same,
        "The identity. LiftTransformParams does not lift computations across it.",
    )
    .operands(&["x"])
    .view(te_same)
    .gradient(|g| g.first(g.dy())),
];

fn scalar_type(ctx: &mut InferCtx<'_>, dtype: DType, value: Option<i64>) -> InferResult {
    let value = value.map(|v| ctx.func.syms.int(v));
    Ok(ctx.func.intern(TypeData::Prim { dtype, value }))
}

fn infer_at_axis(ctx: &mut InferCtx<'_>, size: bool) -> InferResult {
    let (t, axis) = (ctx.tensor(0)?, ctx.int("axis")?);
    if let Some(ndim) = t.ndim
        && !(0..ndim as i64).contains(&axis)
    {
        return Err(ctx.error(format!("axis is {axis}, but the tensor has {ndim} dims")));
    }
    let dim = t.dims.and_then(|dims| dims.get(usize::try_from(axis).ok()?).copied());
    let value = dim.filter(|_| size);
    Ok(ctx.func.intern(TypeData::Prim { dtype: DType::Int64, value }))
}

fn infer_ndim(ctx: &mut InferCtx<'_>) -> InferResult {
    let ndim = ctx.tensor(0)?.ndim;
    scalar_type(ctx, DType::Int32, ndim.map(|n| n as i64))
}

fn infer_dtype_property(
    ctx: &mut InferCtx<'_>,
    dtype: DType,
    value: fn(DType) -> i64,
) -> InferResult {
    let known = ctx.tensor(0)?.dtype;
    scalar_type(ctx, dtype, known.map(value))
}

fn infer_offset(ctx: &mut InferCtx<'_>) -> InferResult {
    ctx.tensor(0)?;
    scalar_type(ctx, DType::UInt64, None)
}

fn infer_same(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn te_same(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.tensor(0)?;
    Ok(vec![te::compute(x.shape().to_vec(), "T_same", |i| x.at(i))])
}

/// Whether operand `i` is present. An empty tuple counts as absent, too.
fn is_operand_present(ctx: &InferCtx<'_>, i: usize) -> bool {
    ctx.has_operand(i)
        && !matches!(ctx.operand_type(i), TypeData::Tuple(fields) if fields.is_empty())
}

fn infer_view(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let dtype = ctx.dtype("dtype")?.or(t.dtype);
    if !is_operand_present(ctx, 1) {
        if let (Some(old), Some(new)) = (t.dtype, dtype)
            && old.size() != new.size()
        {
            return Err(ctx.error(format!(
                "the elements of data have the type {old} and those of the result the type {new}, which differ in size, so the \
                 shape of the result must be passed"
            )));
        }
        return Ok(ctx.tensor_type_like(&t, dtype));
    }
    let sizes = ctx.result_sizes(1)?;
    let bytes = |ctx: &mut InferCtx<'_>, dims: &[pliant_ir::Sym], dtype: DType| {
        let product = ctx.func.syms.product(dims.to_vec());
        Some(i128::from(ctx.func.syms.as_int(product)?) * dtype.size() as i128)
    };
    if let (Some(old), Some(new), Some(from), Some(to)) = (&t.dims, &sizes.dims, t.dtype, dtype)
        && let (Some(actual), Some(expected)) = (bytes(ctx, old, from), bytes(ctx, new, to))
        && expected > actual
    {
        return Err(ctx.error(format!(
            "the view needs {expected} bytes, but the operand data has only {actual} bytes"
        )));
    }
    Ok(ctx.tensor_type(sizes.dims, sizes.ndim, dtype))
}
