//! # What it does
//! Offloads float32 matmuls whose right operand is dequantized from a constant of integers: a cast, minus a zero point, times a
//! scale, each per tensor, per column, or per group of rows of each column. In `R.linear` the bias becomes an addition.
//! Integers that span four bits are stored in four, others in eight; scales and zero points stay float32. No float32 copy of
//! the operand exists at run time.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 3), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.astype(R.const([[1, -2, 3], [4, 5, -6]], "int8"), dtype="float32")
//!         lv1 = R.multiply(lv, R.const(0.5, "float32"))
//!         gv = R.matmul(x, lv1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         lv: R.Tensor((2, 3), dtype="float32") = R.astype(R.const([[1, -2, 3], [4, 5, -6]], "int8"), dtype="float32")
//!         lv1: R.Tensor((2, 3), dtype="float32") = R.multiply(lv, R.const(0.5, "float32"))
//!         gv: R.Tensor((n, 3), dtype="float32") = R.call_tir(cls.matmul_stored, (x, R.const(..., "uint8"), R.const(..., "float32"), R.const(..., "float32")), out_sinfo=R.Tensor((n, 3), dtype="float32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def matmul_stored(var_A: T.handle, B: T.Buffer((1, 1, 16), "uint8"), C: T.Buffer((1, 1, 16), "float32"), D: T.Buffer((1, 1, 16), "float32"), var_matmul_stored: T.handle):
//!     ...
//!         T.evaluate(T.call_kernel("matmul_int4_weight", x=A, weight=B, scales=C, zeros=D, out=matmul_stored, group=2))
//! ```
//!
//! # Requires
//! That nobody has computed the right operand yet: it is of use before [`FoldConstant`](crate::canonicalize::fold_constant).
//!
//! # Keeps
//! Products of other types, of integers that span more than 8 bits, of scales that are not finite or change more often than from
//! eight rows to the next, and all of them where kernels are switched off.
//!
//! # Never
//! Keeps the order in which products are summed.

pub(crate) mod kernel;
mod weights;

use pliant_ir::relax::{Expr, Function, Var};
use pliant_ir::{IRModule, OpRegistry};
use pliant_pass::pattern::Defs;
use pliant_pass::rewrite::{reachable_seqs, rewrite_bindings};
use pliant_pass::{ModulePass, PassContext, PassError, Writers};
use rustc_hash::FxHashMap;

use crate::common::kernels::{Kernels, each_found};
use crate::common::products::{ByMatrix, bound_in_dataflow};
use crate::offload::dequantized::{Finder, Product};

/// See the module's documentation.
pub struct PackStored;

impl ModulePass for PackStored {
    fn name(&self) -> &str {
        "PackStored"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let writers = Writers::of(&module);
        let find = |func: &Function| all(func, ctx.ops, &writers);
        each_found(&mut module, ctx, find, |kernels, func, found| {
            function(kernels, func, &found, ctx)
        })?;
        Ok(module)
    }
}

/// The products of a function by dequantised constants.
fn all(func: &Function, ops: &dyn OpRegistry, writers: &Writers) -> Vec<Product> {
    let mut out = Vec::new();
    let mut defs = None;
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                if ByMatrix::of(func, binding.value).is_some() {
                    let defs = defs.get_or_insert_with(|| Defs::of(func, ops, Some(writers)));
                    out.extend(Finder { func, defs, place: binding.var }.product(binding.value));
                }
            }
        }
    }
    out
}

fn function(
    kernels: &mut Kernels,
    func: &mut Function,
    found: &[Product],
    ctx: &PassContext,
) -> Result<(), PassError> {
    let mut calls: FxHashMap<Var, (ByMatrix, Expr)> = FxHashMap::default();
    for product in found {
        ctx.check_cancelled()?;
        if !kernel::takes(func, product.by.x) {
            continue;
        }
        let failed = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("a product has no loop function: {e}"))
        };
        let stored = weights::stored(&product.weights).map_err(|e| failed(&e))?;
        let Some(stored) = stored else { continue };
        let ty = func.var(product.result).ty;
        let call = kernel::call(func, product.by.x, &stored).map_err(|e| failed(&e))?;
        if call.out_tys == [ty] {
            calls.insert(product.result, (product.by, kernels.call(func, call)));
        }
    }
    let (mut namer, local) = (None, bound_in_dataflow(func));
    rewrite_bindings(func, |func, binding, out| {
        match calls.get(&binding.var) {
            Some((by, call)) => by.bind(func, binding, *call, (&mut namer, &local), out),
            None => out.push(binding),
        }
        Ok(())
    })
}
