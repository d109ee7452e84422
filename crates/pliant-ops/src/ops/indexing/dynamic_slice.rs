//! The operator dynamic_strided_slice, whose bounds are elements of tensors, so that the shape of the result depends on values.
//!
//! The result type has only a rank. A `match_cast` after the call creates symbols for the sizes. In ONNX models, the importer
//! inserts it. In other programs, the pass `MatchUnknownShapes` inserts it, but only if a later operator needs the sizes
//! (`ops/data_dependent_shapes.rs`).

use crate::op_declaration::{InferResult, OpDecl};
use crate::shared_operator_rules::{require_integer, shared_dim};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.dynamic_strided_slice",
    infer,
    "Slices every dim `d` as Python's `begin[d]:end[d]:strides[d]`. `begin`, `end` and `strides` are int64 vectors with one \
    element per dim.",
)
.operands(&["x", "begin: index", "end: index", "strides: index"])
.packed("vm.builtin.dynamic_strided_slice")
.data_dependent()
.onnx(&["Slice"])
.errors("a vector does not have one element per dim, or a stride is 0")];

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let x = ctx.tensor(0)?;
    for i in 1..4 {
        let t = ctx.tensor(i)?;
        require_integer(ctx, i, &t)?;
        let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
        if t.ndim.is_some_and(|n| n != 1) {
            return Err(ctx.error(format!("{name} must have 1 dim, but is {ty}")));
        }
        if let (Some(dims), Some(n)) = (t.dims, x.ndim) {
            let rank = ctx.func.syms.int(n as i64);
            if shared_dim(ctx, dims[0], rank).is_none() {
                return Err(ctx.error(format!("{name} must have {n} elements, but is {ty}")));
            }
        }
    }
    Ok(ctx.tensor_type(None, x.ndim, x.dtype))
}
