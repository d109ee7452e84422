//! # What it does
//! Offloads int32 matmuls to int8 library kernels if the left operand is a cast int8 or uint8 tensor, with or without a zero
//! point, and each column of the constant right operand fits 8 bits up to an offset. The constant is packed for the kernel
//! ([`pliant_tensor::pack_quads`]), together with the sums of its columns. Operators that alone read a result in its dataflow
//! block become the epilogue, in this order: the cast to float32, a per-tensor or per-row factor, per-column factors, a bias,
//! an activation. Results are bit-exact, except that an activation may change the sign of a zero.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "uint8"), z: R.Tensor((), "int32")) -> R.Tensor(("n", 3), "int32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.astype(x, dtype="int32")
//!         lv1 = R.subtract(lv, z)
//!         gv = R.matmul(lv1, R.const([[1, -2, 3], [4, 5, -6]], "int32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), dtype="uint8"), z: R.Tensor((), dtype="int32")) -> R.Tensor(("n", 3), dtype="int32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         lv: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
//!         lv1: R.Tensor((n, 2), dtype="int32") = R.subtract(lv, z)
//!         gv: R.Tensor((n, 3), dtype="int32") = R.call_tir(cls.matmul_int8, (x, z, metadata["relax.expr.Constant"][0], R.const([5, 3, -3], "int32")), out_sinfo=R.Tensor((n, 3), dtype="int32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def matmul_int8(var_A: T.handle, B: T.Buffer((), "int32"), C: T.Buffer((1, 1, 16, 4), "int8"), D: T.Buffer((3,), "int32"), var_matmul_int8: T.handle):
//!     ...
//!         T.evaluate(T.call_kernel("matmul_int8", ...))
//! ```
//!
//! # Requires
//! That the right operand is a constant already ([`FoldConstant`](crate::canonicalize::fold_constant)). It is of use before
//! [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! Products of other types, of constants of another rank than 2 or whose columns span more than 8 bits, those with a zero
//! point for each element, and all of them where kernels are switched off.
//!
//! # Never
//! Moves a read behind a call that may write into what it reads.

mod found;
mod kernel;
pub(crate) mod weights;

use pliant_ir::IRModule;
use pliant_ir::relax::{Expr, Function, Var};
use pliant_pass::{ModulePass, PassContext, PassError, Writers};
use pliant_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::kernels::{Kernels, bind_calls, each_found};
use found::Product;
use weights::Weights;

/// See the module's documentation.
pub struct PackIntegers;

impl ModulePass for PackIntegers {
    fn name(&self) -> &str {
        "PackIntegers"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let writers = Writers::of(&module);
        let mut packer = Packer { packed: Vec::new() };
        let find = |func: &Function| found::all(func, ctx.ops, &writers);
        each_found(&mut module, ctx, find, |kernels, func, found| {
            packer.function(kernels, func, &found, ctx)
        })?;
        Ok(module)
    }
}

struct Packer {
    /// Constants that were tried already, with what became of them.
    packed: Vec<(Tensor, Option<Weights>)>,
}

impl Packer {
    fn function(
        &mut self,
        kernels: &mut Kernels,
        func: &mut Function,
        found: &[Product],
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        let (mut calls, mut gone): (FxHashMap<Var, Expr>, FxHashSet<Var>) = Default::default();
        for product in found {
            ctx.check_cancelled()?;
            if let Some(call) = self.call(kernels, func, product)? {
                let finish = product.finish.as_ref();
                calls.insert(finish.map_or(product.result, |f| f.result), call);
                gone.extend(finish.iter().flat_map(|f| &f.inside));
            }
        }
        bind_calls(func, &calls, &gone)
    }

    /// The call of the loop function; `None` where the constant does not fit, or the result would be of another type.
    fn call(
        &mut self,
        kernels: &mut Kernels,
        func: &mut Function,
        p: &Product,
    ) -> Result<Option<Expr>, PassError> {
        let failed = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("a product of integers has no loop function: {e}"))
        };
        let known = self.packed.iter().find(|(w, _)| w.same(&p.weights));
        let weights = match known {
            Some((_, weights)) => weights.clone(),
            None => {
                let weights = weights::packed(&p.weights).map_err(|e| failed(&e))?;
                self.packed.push((p.weights.clone(), weights.clone()));
                weights
            }
        };
        let Some(weights) = weights else { return Ok(None) };
        let ty = func.var(p.finish.as_ref().map_or(p.result, |f| f.result)).ty;
        let call = kernel::call(func, p, &weights).map_err(|e| failed(&e))?;
        if call.out_tys != [ty] {
            return Ok(None);
        }
        Ok(Some(kernels.call(func, call)))
    }
}
