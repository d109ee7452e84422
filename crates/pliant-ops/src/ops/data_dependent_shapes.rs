//! Operators whose results have a shape that depends on values. They are lowered to packed functions of the VM.
//!
//! Type inference gives the results only a rank. A `match_cast` after the call creates symbols for the sizes:
//! - In ONNX models, the importer inserts it (`pliant-onnx/src/graph_import/size_symbols.rs`).
//! - In scripts and other programs, the pass `MatchUnknownShapes` (`pliant-opt/src/canonicalize/match_unknown_shapes.rs`) inserts
//!   it, but only if a later operator needs the sizes. Otherwise, the sizes stay unknown. A program may also contain a `match_cast`
//!   of its own.

use pliant_ir::DType;
use pliant_ir::relax::TypeData;

use crate::op_declaration::{Default, InferResult, OpDecl};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.unique",
        infer_unique,
        "The distinct elements and, if requested, int64 vectors of their first indices, of the inverse mapping and of their \
        counts.",
    )
    .operands(&["x"])
    .attrs(&[
        ("sorted", Default::Bool(true)),
        ("return_index", Default::Bool(false)),
        ("return_inverse", Default::Bool(false)),
        ("return_counts", Default::Bool(false)),
        ("axis", Default::None),
    ])
    .packed("vm.builtin.unique")
    .data_dependent()
    .numpy("unique")
    .onnx(&["Unique"])
    .errors("the axis is out of range"),
    OpDecl::new(
        "relax.nonzero",
        infer_nonzero,
        "The indices of the nonzero elements, with one row per dim.",
    )
    .operands(&["x"])
    .packed("vm.builtin.nonzero")
    .data_dependent()
    .numpy("nonzero")
    .onnx(&["NonZero"]),
];

fn infer_unique(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let axis = if ctx.attr("axis").is_none() { None } else { Some(ctx.int("axis")?) };
    if let (Some(axis), Some(ndim)) = (axis, t.ndim) {
        ctx.normalize_axis(axis, ndim)?;
    }
    let rank = if axis.is_none() { Some(1) } else { t.ndim };
    // A scalar has one value.
    let one = ctx.func.syms.int(1);
    let dims = (t.ndim == Some(0)).then(|| vec![one]);
    let values = ctx.tensor_type(dims.clone(), rank, t.dtype);
    let mut fields = vec![values];
    for flag in ["return_index", "return_inverse", "return_counts"] {
        if ctx.bool(flag)? {
            fields.push(ctx.tensor_type(dims.clone(), Some(1), Some(DType::Int64)));
        }
    }
    Ok(match fields[..] {
        [one] => one,
        _ => ctx.func.intern(TypeData::Tuple(fields.into())),
    })
}

fn infer_nonzero(ctx: &mut InferCtx<'_>) -> InferResult {
    ctx.tensor(0)?;
    Ok(ctx.tensor_type(None, Some(2), Some(DType::Int64)))
}
