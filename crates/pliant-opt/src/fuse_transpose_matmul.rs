//! # What it does
//! Multiplies by a matrix as it lies in memory, where the program transposes it first: `x @ w.T` becomes `R.linear`,
//! whose loop function reads the weight's rows.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((8, 16), "float32")) -> R.Tensor(("n", 8), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.permute_dims(w, axes=[1, 0])
//!         gv = R.matmul(x, lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((8, 16), "float32")) -> R.Tensor(("n", 8), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.linear(x, w)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! A weight of two dims.
//!
//! # Keeps
//! Products with transposed tensors of more dims.
//!
//! # Never
//! Changes a value.

use pliant_ir::{IRModule, Op};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{is_op, rewrite_call, wildcard};
use pliant_pass::{ModulePass, PassContext, PassError, Writers};

use crate::products::{PERMUTE, attrs_of, dims, permutation, product};

const LINEAR: Op = Op("relax.linear");

/// See the module's documentation.
pub struct FuseTransposeMatmul;

impl ModulePass for FuseTransposeMatmul {
    fn name(&self) -> &str {
        "FuseTransposeMatmul"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let writers = Writers::of(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let [x, w] = [wildcard(), wildcard()];
            let turned = is_op(PERMUTE).call([w.clone()]);
            let whole = product(&x, &turned);
            let count = rewrite_call(func, &whole, ctx.ops, Some(&writers), |cx, found| {
                let parts = [&x, &w, &turned, &whole].map(|p| found.get(p));
                let [Some(x), Some(w), Some(turned), Some(whole)] = parts else { return Ok(None) };
                let order = attrs_of(cx, turned).and_then(|a| permutation(&a, 2));
                let matrix = dims(cx.func, w).is_some_and(|d| d.len() == 2);
                if !matrix || order.as_deref() != Some(&[1, 0]) {
                    return Ok(None);
                }
                let attrs = attrs_of(cx, whole).unwrap_or_default();
                cx.call(LINEAR, &[x, w], attrs).map(Some)
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}
