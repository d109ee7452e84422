//! # What it does
//! Concatenates tensors before transposing them if all are transposed in the same way, so that only one `permute_dims` is needed.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((2, "n"), "float32"), y: R.Tensor((3, "n"), "float32")) -> R.Tensor(("n", 5), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.permute_dims(x, axes=[1, 0])
//!         lv1 = R.permute_dims(y, axes=None)
//!         gv = R.concat((lv, lv1), axis=1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((2, "n"), "float32"), y: R.Tensor((3, "n"), "float32")) -> R.Tensor(("n", 5), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.concat((x, y), axis=0)
//!         gv = R.permute_dims(lv, axes=[1, 0])
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! The operand of the concatenation is a tuple literal, and all ranks are known.
//!
//! # Keeps
//! Transposed tensors that are read elsewhere: they are still computed for these readers.
//!
//! # Never
//! Changes a value.

use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::{AttrValue, Attrs, IRModule, Op};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{RewriteCx, is_op, rewrite_call, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};

use crate::common::matmul_and_conv_operands::{
    PERMUTE_DIMS, defining_attrs, defining_operands, permute_axes,
};

const CONCAT: Op = Op::new("relax.concat");

/// The pass that concatenates tensors before transposing them. See the module documentation.
pub struct ReorderPermuteDimsAfterConcat;

impl ModulePass for ReorderPermuteDimsAfterConcat {
    fn name(&self) -> &str {
        "ReorderPermuteDimsAfterConcat"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let writers = MayWrite::of(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let tensors = wildcard();
            let concat = is_op(CONCAT).call([tensors.clone()]);
            let count =
                rewrite_call(func, &concat, ctx.ops, Some(&writers), |cx, matches| {
                    match (matches.get(&tensors), matches.get(&concat)) {
                        (Some(tensors), Some(concat)) => reorder(cx, tensors, concat),
                        _ => Ok(None),
                    }
                })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}

fn reorder(cx: &mut RewriteCx<'_>, tensors: Expr, concat: Expr) -> Result<Option<Expr>, PassError> {
    let ExprData::Tuple(fields) = *cx.func.expr(cx.value(tensors)) else { return Ok(None) };
    let fields = cx.func.list(fields).to_vec();
    let permuted: Option<Vec<_>> = fields.iter().map(|&f| permuted_operand(cx, f)).collect();
    let Some(permuted) = permuted else { return Ok(None) };
    let Some((_, order)) = permuted.first() else { return Ok(None) };
    if fields.len() < 2 || permuted.iter().any(|(_, other)| other != order) {
        return Ok(None);
    }
    let axis = defining_attrs(cx, concat).and_then(|a| a.get("axis").and_then(AttrValue::as_int));
    let Some(axis) = axis.map(|a| if a < 0 { a + order.len() as i64 } else { a }) else {
        return Ok(None);
    };
    let Some(&input_axis) = usize::try_from(axis).ok().and_then(|a| order.get(a)) else {
        return Ok(None);
    };
    let axes = AttrValue::ints(order.iter().map(|&d| d as i64));
    let inputs: Vec<Expr> = permuted.iter().map(|(input, _)| *input).collect();
    let inputs = cx.func.tuple(&inputs);
    let attrs = Attrs::default().with("axis", AttrValue::Int(input_axis as i64));
    let concatenated = cx.call(CONCAT, &[inputs], attrs)?;
    cx.call(PERMUTE_DIMS, &[concatenated], Attrs::default().with("axes", axes)).map(Some)
}

/// Returns (original tensor, order of dims) if an operand is the result of a `permute_dims`; `None` otherwise.
fn permuted_operand(cx: &RewriteCx<'_>, e: Expr) -> Option<(Expr, Vec<usize>)> {
    let input = *defining_operands(cx, e, PERMUTE_DIMS)?.first()?;
    let rank = cx.func.rank_of(cx.func.expr_ty(input))?;
    let order = permute_axes(&defining_attrs(cx, e)?, usize::try_from(rank).ok()?)?;
    Some((input, order))
}
