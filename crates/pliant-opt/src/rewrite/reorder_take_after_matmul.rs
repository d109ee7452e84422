//! # What it does
//! Gathers columns of a matmul's result instead of columns of its right operand: `x @ take(w, i)` becomes `take(x @ w, i)`, so
//! that only the matmul reads `w`.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32"), i: R.Tensor(("m",), "int64")) -> R.Tensor(("n", "m"), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     with R.dataflow():
//!         lv = R.take(w, i, axis=1)
//!         gv = R.matmul(x, lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32"), i: R.Tensor(("m",), "int64")) -> R.Tensor(("n", "m"), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(x, w)
//!         gv = R.take(lv, i, axis=-1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! A matrix whose last axis is indexed by a vector or a scalar.
//!
//! # Keeps
//! Other indexing. Also `mode="nan"`: if the summed dim is empty, the result would be 0 instead of NaN.
//!
//! # Never
//! Changes a value: each column of the result is summed as before.

use pliant_ir::{AttrValue, IRModule, Op};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{is_op, rewrite_call, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};

use crate::common::matmul_and_conv_operands::{MATMUL, defining_attrs, dims, matmul_pattern};

const TAKE: Op = Op::new("relax.take");

/// The pass that gathers columns after a matmul instead of before it. See the module documentation.
pub struct ReorderTakeAfterMatmul;

impl ModulePass for ReorderTakeAfterMatmul {
    fn name(&self) -> &str {
        "ReorderTakeAfterMatmul"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let writers = MayWrite::of(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let [x, w, indices] = [wildcard(), wildcard(), wildcard()];
            let taken = is_op(TAKE).call([w.clone(), indices.clone()]);
            let matmul = matmul_pattern(&x, &taken);
            let count = rewrite_call(func, &matmul, ctx.ops, Some(&writers), |cx, matches| {
                let operands = [&x, &w, &indices, &taken, &matmul].map(|p| matches.get(p));
                let [Some(x), Some(w), Some(indices), Some(taken), Some(matmul)] = operands else {
                    return Ok(None);
                };
                let (take, matmul_attrs) = (defining_attrs(cx, taken), defining_attrs(cx, matmul));
                let (Some(take), Some(matmul_attrs)) = (take, matmul_attrs) else {
                    return Ok(None);
                };
                let is_last_axis =
                    matches!(take.get("axis").and_then(AttrValue::as_int), Some(1 | -1));
                let is_matrix = dims(cx.func, w).is_some_and(|d| d.len() == 2);
                let is_vector = dims(cx.func, indices).is_some_and(|d| d.len() < 2);
                let is_nan_mode = take.get("mode").and_then(AttrValue::as_str) == Some("nan");
                if !is_last_axis || !is_matrix || !is_vector || is_nan_mode {
                    return Ok(None);
                }
                let product = cx.call(MATMUL, &[x, w], matmul_attrs)?;
                cx.call(TAKE, &[product, indices], take.with("axis", AttrValue::Int(-1))).map(Some)
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}
