//! # What it does
//! Makes calls of the library's product of 8-bit integers of products of int32 whose left operand was int8 or uint8 before,
//! with a zero point or without, and whose right operand is a constant of which each column fits 8 bits but for a number of its
//! own. The constant takes the form that the kernel reads ([`pliant_tensor::pack_quads`]), with the sums of its columns.
//! What follows a product in a dataflow block and nobody else reads is done where it is summed: the cast to float32, a factor of
//! all or of each row, factors of columns, a bias, an activation, in this order. Results are the same to
//! the bit, but that an activation may give a zero the other sign.
//!
//! # Before
//! With a tensor of `[4, 20]` for the constant.
//! ```python
//! lv: R.Tensor((n, 4), dtype="int32") = R.astype(x, dtype="int32")
//! lv1: R.Tensor((n, 4), dtype="int32") = R.subtract(lv, zero)
//! lv2: R.Tensor((n, 20), dtype="int32") = R.matmul(lv1, metadata["relax.expr.Constant"][0])
//! ```
//!
//! # After
//! With quads of `[1, 1, 32, 4]` and sums of `[20]`.
//! ```python
//! lv2 = R.call_tir(cls.matmul_int8, (x, zero, metadata["relax.expr.Constant"][0], metadata["relax.expr.Constant"][1]), out_sinfo=R.Tensor((n, 20), dtype="int32"))
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
