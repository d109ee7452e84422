//! # What it does
//! Rewrites `R.einsum` of two operands as `R.matmul` if only labels that both operands have are
//! summed. Operands and result are transposed where needed: transposes of constants are folded, and
//! [`FuseTransposeMatmul`](crate::fuse::fuse_transpose_matmul) removes others. Several summed
//! labels, several columns, and several rows in addition to batch dims are merged into one dim. So
//! the passes on `R.matmul` also apply to these products: packed constants, widened 16-bit floats,
//! integer products, attention.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("b", "t", 3), "float32")) -> R.Tensor(("b", "t", 2, 2), "float32"):
//!     b = T.int64()
//!     t = T.int64()
//!     with R.dataflow():
//!         gv = R.einsum((x, R.const([[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]], "float32")), subscripts="btd,dhk->bthk")
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("b", "t", 3), "float32")) -> R.Tensor(("b", "t", 2, 2), "float32"):
//!     b = T.int64()
//!     t = T.int64()
//!     with R.dataflow():
//!         lv: R.Tensor((3, 4), "float32") = R.reshape(R.const([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[9.0, 10.0], [11.0, 12.0]]], "float32"), R.shape([3, 4]))
//!         lv1: R.Tensor((b, t, 4), "float32") = R.matmul(x, lv)
//!         gv: R.Tensor((b, t, 2, 2), "float32") = R.reshape(lv1, R.shape([b, t, 2, 2]))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Known sizes: equal for summed labels, and equal or 1 for batch dims.
//!
//! # Keeps
//! Diagonals, sums over labels of one operand, outer and inner products, and more or fewer than two
//! operands. Products of variables that loops read in place, but a product only after a copy. All
//! of them if kernels are disabled.
//!
//! # Never
//! Changes what is summed; the order of summation is that of `R.matmul`.

mod roles;

use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Sym};
use pliant_ops::einsum_equation::{Equation, ParsedEquation};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{RewriteCx, is_op, rewrite_call, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};

use crate::common::lowered_ops::RESHAPE;
use crate::common::products::{
    EINSUM, MATMUL, PERMUTE_DIMS, defining_attrs, defining_operands, dims, input_independent_vars,
    is_input_independent,
};
use roles::{Plan, Turn, plan};

/// See the module's documentation.
pub struct EinsumToMatmul;

impl ModulePass for EinsumToMatmul {
    fn name(&self) -> &str {
        "EinsumToMatmul"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let writers = MayWrite::of(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let whole = is_op(EINSUM).call([wildcard()]);
            let known = input_independent_vars(func);
            let count = rewrite_call(func, &whole, ctx.ops, Some(&writers), |cx, found| {
                let Some(root) = found.get(&whole) else { return Ok(None) };
                let Some(einsum) = Einsum::of(cx, root) else { return Ok(None) };
                let early = einsum.operands.map(|e| is_input_independent(cx.func, &known, e));
                match einsum.product(cx, early) {
                    Some(plan) => einsum.written(cx, &plan).map(Some),
                    None => Ok(None),
                }
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}

/// An einsum of two operands of known sizes.
struct Einsum {
    operands: [Expr; 2],
    equation: Equation,
    sizes: [Vec<Sym>; 2],
    result: Vec<Sym>,
    dtype: DType,
}

impl Einsum {
    fn of(cx: &RewriteCx<'_>, root: Expr) -> Option<Einsum> {
        let tuple = *defining_operands(cx, root, EINSUM)?.first()?;
        let ExprData::Tuple(fields) = *cx.func.expr(cx.value(tuple)) else { return None };
        let &[a, b] = cx.func.list(fields) else { return None };
        let sizes = [dims(cx.func, a)?, dims(cx.func, b)?];
        let attrs = defining_attrs(cx, root)?;
        let terms = Terms::parse(attrs.get("subscripts")?.as_str()?).ok()?;
        let equation = terms.over(&[sizes[0].len(), sizes[1].len()]).ok()?;
        let (dtype, result) = (cx.func.ty(root).dtype()?, dims(cx.func, root)?);
        Some(Einsum { operands: [a, b], equation, sizes, result, dtype })
    }

    /// The best product for this einsum, if it is faster. `early` says which operands are known
    /// before the inputs, so that transforming them has no run-time cost.
    fn product(&self, cx: &mut RewriteCx<'_>, early: [bool; 2]) -> Option<Plan> {
        let mut plans = Vec::with_capacity(2);
        for swapped in [false, true] {
            let sizes = [&self.sizes[0][..], &self.sizes[1]];
            let plan = plan(&mut cx.func.syms, &self.equation, sizes, &self.result, swapped)?;
            let early = if swapped { [early[1], early[0]] } else { early };
            let moved = (0..2).filter(|&i| plan.operands[i].moves() && !early[i]).count();
            let cost = moved + usize::from(plan.order.is_some());
            plans.push(((cost, !early[1]), plan, early));
        }
        let (_, plan, early) = plans.into_iter().min_by_key(|(cost, ..)| *cost)?;
        let (gains, copies) = (self.gains(&plan, early), copies(&plan, early));
        (gains >= copies).then_some(plan)
    }

    /// The gain of a product, on the same scale as [`copies`].
    fn gains(&self, plan: &Plan, early: [bool; 2]) -> Cost {
        let real = matches!(self.dtype, DType::Float32 | DType::Float64);
        match self.dtype {
            // Loops convert each element every time they read it.
            DType::Float16 | DType::BFloat16 => Cost::Scattered,
            // The library sums over one dim.
            _ if real && !plan.alike => Cost::Scattered,
            _ if early[0] || early[1] => Cost::Rows,
            _ => Cost::Nothing,
        }
    }

    /// The product with the transposes and reshapes around it.
    fn written(&self, cx: &mut RewriteCx<'_>, plan: &Plan) -> Result<Expr, PassError> {
        let [a, b] = self.operands;
        let [left, right] = if plan.swapped { [b, a] } else { [a, b] };
        let left = turned(cx, left, &plan.operands[0])?;
        let right = turned(cx, right, &plan.operands[1])?;
        let product = cx.call(MATMUL, &[left, right], Attrs::default())?;
        let parted = match &plan.parted {
            Some(dims) => reshaped(cx, product, dims)?,
            None => product,
        };
        match &plan.order {
            Some(order) => permuted(cx, parted, order),
            None => Ok(parted),
        }
    }
}

/// The cost or the gain of a product.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// Nothing at run time, or nothing that cannot be undone.
    Nothing,
    /// A result that cannot be fused with its bias, or copies of whole rows.
    Rows,
    /// Elementwise copies.
    Scattered,
}

/// The run-time cost of a product in addition to the multiplication.
fn copies(plan: &Plan, early: [bool; 2]) -> Cost {
    let late = plan.operands.iter().zip(early).filter(|(_, early)| !early);
    let turns: Vec<&Turn> = late.map(|(turn, _)| turn).collect();
    let constants = early[0] || early[1];
    // For variable operands, another order is read in place unless dims are merged.
    let kept = |turn: &Turn| turn.dims.is_none() && !constants;
    let result = Turn { order: plan.order.clone(), dims: plan.parted.clone() };
    let mut all = turns.into_iter().chain([&result]);
    if all.clone().any(|turn| turn.scatters() && !kept(turn)) {
        Cost::Scattered
    } else if plan.parted.is_some() || all.any(|turn| turn.moves() && !kept(turn)) {
        Cost::Rows
    } else {
        Cost::Nothing
    }
}

fn turned(cx: &mut RewriteCx<'_>, e: Expr, turn: &Turn) -> Result<Expr, PassError> {
    let e = match &turn.order {
        Some(order) => permuted(cx, e, order)?,
        None => e,
    };
    match &turn.dims {
        Some(dims) => reshaped(cx, e, dims),
        None => Ok(e),
    }
}

fn permuted(cx: &mut RewriteCx<'_>, e: Expr, order: &[usize]) -> Result<Expr, PassError> {
    let axes = AttrValue::ints(order.iter().map(|&a| a as i64));
    cx.call(PERMUTE_DIMS, &[e], Attrs::default().with("axes", axes))
}

fn reshaped(cx: &mut RewriteCx<'_>, e: Expr, dims: &[Sym]) -> Result<Expr, PassError> {
    let shape = cx.func.shape(dims);
    cx.call(RESHAPE, &[e, shape], Attrs::default())
}
