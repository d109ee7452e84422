//! # What it does
//! Chooses the cheaper order of a chain of two matmuls. Operands that do not depend on the inputs (constants, and values computed
//! only from parameters from `num_input` on) are multiplied first. Otherwise, the order that needs fewer multiplications for all
//! sizes is chosen.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((16, "n"), "float32"), y: R.Tensor(("n", 8), "float32"), v: R.Tensor((8,), "float32")) -> R.Tensor((16,), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(x, y)
//!         gv = R.matmul(lv, v)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((16, "n"), "float32"), y: R.Tensor(("n", 8), "float32"), v: R.Tensor((8,), "float32")) -> R.Tensor((16,), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(y, v)
//!         gv = R.matmul(x, lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Known sizes of the three operands. The second operand has two dims, the third one or two.
//!
//! # Keeps
//! The order if neither order is provably cheaper, if a matmul has an `out_dtype`, or if the result of the first matmul has
//! another reader.
//!
//! # Never
//! Guarantees bit-identical results, because the matmuls are rounded in another order.

use pliant_ir::relax::{Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, IRModule, Sym};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{Match, Pattern, RewriteCx, rewrite_call, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};
use rustc_hash::FxHashSet;

use crate::common::matmul_and_conv_operands::{
    MATMUL, defining_attrs, dims, input_independent_vars, is_input_independent, matmul_pattern,
    provably_cheaper,
};
use crate::offload::epilogue_activations::Readers;

/// The pass that chooses the cheaper order of two chained matmuls. See the module documentation.
pub struct AdjustMatmulOrder;

impl ModulePass for AdjustMatmulOrder {
    fn name(&self) -> &str {
        "AdjustMatmulOrder"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let writers = MayWrite::of(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let chain = MatmulChain::new();
            let independent = input_independent_vars(func);
            let readers = Readers::of(func);
            let either = chain.left.clone() | chain.right.clone();
            let count = rewrite_call(func, &either, ctx.ops, Some(&writers), |cx, matches| {
                chain.reorder(cx, matches, &independent, &readers)
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}

/// The patterns of a chain of two matmuls in both orders: `(a @ b) @ c` and `a @ (b @ c)`.
struct MatmulChain {
    operands: [Pattern; 3],
    inner: [Pattern; 2],
    left: Pattern,
    right: Pattern,
}

impl MatmulChain {
    fn new() -> MatmulChain {
        let [a, b, c] = [wildcard(), wildcard(), wildcard()];
        let inner = [matmul_pattern(&a, &b), matmul_pattern(&b, &c)];
        let (left, right) = (matmul_pattern(&inner[0], &c), matmul_pattern(&a, &inner[1]));
        MatmulChain { operands: [a, b, c], inner, left, right }
    }

    fn reorder(
        &self,
        cx: &mut RewriteCx<'_>,
        matches: &Match,
        independent: &FxHashSet<Var>,
        readers: &Readers,
    ) -> Result<Option<Expr>, PassError> {
        let [Some(a), Some(b), Some(c)] = self.operands.each_ref().map(|p| matches.get(p)) else {
            return Ok(None);
        };
        let is_left = matches.get(&self.left).is_some();
        let products =
            if is_left { [&self.inner[0], &self.left] } else { [&self.inner[1], &self.right] };
        // Another reader needs the inner product anyway, so the other order would add a product.
        let has_other_readers = |e: Expr| match cx.func.expr(e) {
            ExprData::Var(v) => readers.only_reader(cx.func, *v).is_none(),
            _ => false,
        };
        if matches.get(products[0]).is_some_and(has_other_readers) {
            return Ok(None);
        }
        let has_default_dtype = |p: &Pattern| {
            let attrs = matches.get(p).and_then(|e| defining_attrs(cx, e));
            attrs.is_some_and(|a| a.get("out_dtype").is_none_or(|d| d.is_none()))
        };
        if !products.into_iter().all(has_default_dtype) {
            return Ok(None);
        }
        let [independent_a, independent_b, independent_c] =
            [a, b, c].map(|e| is_input_independent(cx.func, independent, e));
        let Some((left, right)) = multiplication_counts(cx.func, a, b, c) else { return Ok(None) };
        let wants_left = match (independent_a && independent_b, independent_b && independent_c) {
            (true, false) => true,
            (false, true) => false,
            _ if is_left => !provably_cheaper(cx.func, right, left),
            _ => provably_cheaper(cx.func, left, right),
        };
        if wants_left == is_left {
            return Ok(None);
        }
        let none = Attrs::default();
        if wants_left {
            let first = cx.call(MATMUL, &[a, b], none.clone())?;
            return cx.call(MATMUL, &[first, c], none).map(Some);
        }
        let first = cx.call(MATMUL, &[b, c], none.clone())?;
        cx.call(MATMUL, &[a, first], none).map(Some)
    }
}

/// Returns the numbers of multiplications of `(a @ b) @ c` and of `a @ (b @ c)`. `None` if the two orders do not compute the same
/// result.
fn multiplication_counts(func: &mut Function, a: Expr, b: Expr, c: Expr) -> Option<(Sym, Sym)> {
    let (a, b, c) = (dims(func, a)?, dims(func, b)?, dims(func, c)?);
    let (&[k, n], 1 | 2) = (b.as_slice(), c.len()) else { return None };
    let (_, rows) = a.split_last()?;
    let syms = &mut func.syms;
    let one = syms.int(1);
    let m = rows.iter().fold(one, |m, &d| syms.mul(m, d));
    let p = if c.len() == 2 { c[1] } else { one };
    let mut volume = |x: Sym, y: Sym, z: Sym| {
        let area = syms.mul(x, y);
        syms.mul(area, z)
    };
    let (first, second) = (volume(m, k, n), volume(m, n, p));
    let (third, fourth) = (volume(k, n, p), volume(m, k, p));
    Some((syms.add(first, second), syms.add(third, fourth)))
}
