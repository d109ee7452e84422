//! Operators that return scalars: the element of a one-element tensor, and the trip count of a
//! range.

use pliant_ir::DType;
use pliant_ir::relax::TypeData;

use crate::op_declaration::{InferResult, OpDecl};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new("relax.item", infer_item, "The only element of a tensor, as a scalar of its type.")
        .operands(&["x"])
        .numpy("ndarray.item")
        .packed("vm.builtin.item")
        .errors("`x` does not have exactly one element"),
    OpDecl::new(
        "relax.trip_count",
        infer_trip_count,
        "The number of integers in Python's `range(start, stop, step)`, as an int64 scalar.",
    )
    .operands(&["start: scalar", "stop: scalar", "step: scalar"])
    .packed("vm.builtin.trip_count")
    .errors("an operand is not an integer scalar, or `step` is 0"),
];

fn infer_item(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    for &dim in t.dims.iter().flatten() {
        if ctx.func.syms.as_int(dim).is_some_and(|size| size != 1) {
            return Err(ctx.error(format!(
                "x must have one element, but is {ty}",
                ty = ctx.operand_type_text(0)
            )));
        }
    }
    Ok(ctx.func.intern(match t.dtype {
        Some(dtype) => TypeData::Prim { dtype, value: None },
        None => TypeData::Any,
    }))
}

fn infer_trip_count(ctx: &mut InferCtx<'_>) -> InferResult {
    for i in 0..3 {
        match ctx.operand_type(i) {
            TypeData::Any => {}
            TypeData::Prim { dtype, .. } if dtype.is_integer() => {}
            _ => {
                let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
                return Err(ctx.error(format!("{name} must be an integer scalar, but is {ty}")));
            }
        }
    }
    Ok(ctx.func.intern(TypeData::Prim { dtype: DType::Int64, value: None }))
}
