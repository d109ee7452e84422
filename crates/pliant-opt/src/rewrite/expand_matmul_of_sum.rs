//! # What it does
//! Distributes a matmul over a sum: `x @ (a + b)` becomes `x @ a + x @ b`. This is profitable if `a` is a low-rank matmul (LoRA
//! adapters): [`AdjustMatmulOrder`](crate::rewrite::adjust_matmul_order) can then change the order of the matmuls.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32"), a: R.Tensor((16, 2), "float32"), b: R.Tensor((2, 16), "float32")) -> R.Tensor(("n", 16), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(a, b)
//!         lv1 = R.add(w, lv)
//!         gv = R.matmul(x, lv1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32"), a: R.Tensor((16, 2), "float32"), b: R.Tensor((2, 16), "float32")) -> R.Tensor(("n", 16), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(a, b)
//!         lv1 = R.matmul(x, w)
//!         lv2 = R.matmul(x, lv)
//!         gv = R.add(lv1, lv2)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! The addends must have the type of the sum. For integers, the result of the matmul must also have this data type, because a sum
//! of 8-bit integers wraps around before a matmul with a wider result reads it.
//!
//! # Keeps
//! Sums that do not depend on the inputs (constants, and values computed only from parameters from `num_input` on).
//!
//! # Never
//! Guarantees bit-identical results, because the sum is computed after the matmuls instead of before them.

use pliant_ir::{Attrs, IRModule, Op};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{is_op, rewrite_call, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};

use crate::common::matmul_and_conv_operands::{
    MATMUL, defining_attrs, input_independent_vars, is_input_independent, matmul_pattern, same_type,
};

const ADD: Op = Op::new("relax.add");

/// The pass that distributes a matmul over a sum. See the module documentation.
pub struct ExpandMatmulOfSum;

impl ModulePass for ExpandMatmulOfSum {
    fn name(&self) -> &str {
        "ExpandMatmulOfSum"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let writers = MayWrite::of(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let independent = input_independent_vars(func);
            let [x, a, b] = [wildcard(), wildcard(), wildcard()];
            let sum = is_op(ADD).call([a.clone(), b.clone()]);
            let matmul = matmul_pattern(&x, &sum);
            let count = rewrite_call(func, &matmul, ctx.ops, Some(&writers), |cx, matches| {
                let operands = [&x, &a, &b, &sum, &matmul].map(|p| matches.get(p));
                let [Some(x), Some(a), Some(b), Some(sum), Some(matmul)] = operands else {
                    return Ok(None);
                };
                let same_types = same_type(cx.func, a, b) && same_type(cx.func, a, sum);
                let [sum_dtype, product_dtype] = [sum, matmul].map(|e| cx.func.ty(e).dtype());
                let wraps_equally =
                    sum_dtype == product_dtype || sum_dtype.is_some_and(|dtype| dtype.is_float());
                let is_independent = is_input_independent(cx.func, &independent, a)
                    && is_input_independent(cx.func, &independent, b);
                if is_independent || !same_types || !wraps_equally {
                    return Ok(None);
                }
                let attrs = defining_attrs(cx, matmul).unwrap_or_default();
                let first = cx.call(MATMUL, &[x, a], attrs.clone())?;
                let second = cx.call(MATMUL, &[x, b], attrs)?;
                cx.call(ADD, &[first, second], Attrs::default()).map(Some)
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}
