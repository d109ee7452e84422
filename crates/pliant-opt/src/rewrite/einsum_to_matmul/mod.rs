//! # What it does
//! Rewrites `R.einsum` of two operands to `R.matmul` if all summed labels occur in both operands. Operands and result are
//! transposed where needed: transposes of constants are folded, and [`FuseTransposeMatmul`](crate::fuse::fuse_transpose_matmul)
//! removes others. Several summed labels, several columns, and several rows next to batch dims are merged into one dim each. The
//! passes and offload rules for `R.matmul` then apply to these einsums, too: packing of constants, widening of 16-bit floats,
//! integer matmuls, attention.
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
//! Diagonals, sums over labels of one operand, outer and inner products, and einsums of more or fewer than two operands. Einsums
//! of non-constant operands that generated loops read in place, if a matmul would need copies. All einsums if kernels are
//! disabled.
//!
//! # Never
//! Changes the products that are summed. (Their order becomes that of `R.matmul`.)

mod matmul_plan;

use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Sym};
use pliant_ops::einsum_equation::{Equation, ParsedEquation};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{RewriteCx, is_op, rewrite_call, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};

use crate::common::matmul_and_conv_operands::{
    EINSUM, MATMUL, PERMUTE_DIMS, defining_attrs, defining_operands, dims, input_independent_vars,
    is_input_independent,
};
use crate::common::operators_after_lowering::RESHAPE;
use matmul_plan::{Plan, Transform, product_plan};

/// The pass that rewrites einsums of two operands as matmuls. See the module documentation.
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
            let einsum_pattern = is_op(EINSUM).call([wildcard()]);
            let independent = input_independent_vars(func);
            let count =
                rewrite_call(func, &einsum_pattern, ctx.ops, Some(&writers), |cx, matches| {
                    let Some(root) = matches.get(&einsum_pattern) else { return Ok(None) };
                    let Some(einsum) = Einsum::of(cx, root) else { return Ok(None) };
                    let independent =
                        einsum.operands.map(|e| is_input_independent(cx.func, &independent, e));
                    match einsum.best_plan(cx, independent) {
                        Some(plan) => einsum.emit(cx, &plan).map(Some),
                        None => Ok(None),
                    }
                })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}

/// An einsum of two operands with known sizes.
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
        let parsed = ParsedEquation::parse(attrs.get("subscripts")?.as_str()?).ok()?;
        let equation = parsed.for_ranks(&[sizes[0].len(), sizes[1].len()]).ok()?;
        let (dtype, result) = (cx.func.ty(root).dtype()?, dims(cx.func, root)?);
        Some(Einsum { operands: [a, b], equation, sizes, result, dtype })
    }

    /// Returns the best plan of a matmul for this einsum; `None` if generated loops are faster. `independent` states which
    /// operands do not depend on the inputs, so that transforming them has no run-time cost.
    fn best_plan(&self, cx: &mut RewriteCx<'_>, independent: [bool; 2]) -> Option<Plan> {
        let mut plans = Vec::with_capacity(2);
        for swapped in [false, true] {
            let sizes = [&self.sizes[0][..], &self.sizes[1]];
            let plan =
                product_plan(&mut cx.func.syms, &self.equation, sizes, &self.result, swapped)?;
            let independent = if swapped { [independent[1], independent[0]] } else { independent };
            let moved_operands =
                (0..2).filter(|&i| plan.operands[i].permutes() && !independent[i]).count();
            let cost = moved_operands + usize::from(plan.order.is_some());
            plans.push(((cost, !independent[1]), plan, independent));
        }
        let (_, plan, independent) = plans.into_iter().min_by_key(|(cost, ..)| *cost)?;
        let (benefit, copy_cost) =
            (self.benefit(&plan, independent), copy_cost(&plan, independent));
        (benefit >= copy_cost).then_some(plan)
    }

    /// The run time that a matmul saves compared with generated loops, on the same scale as [`copy_cost`].
    fn benefit(&self, plan: &Plan, independent: [bool; 2]) -> Cost {
        let is_float = matches!(self.dtype, DType::Float32 | DType::Float64);
        match self.dtype {
            // Loops convert each element every time that they read it.
            DType::Float16 | DType::BFloat16 => Cost::Elementwise,
            // The kernel library sums over one contiguous dim.
            _ if is_float && !plan.same_summed_order => Cost::Elementwise,
            _ if independent[0] || independent[1] => Cost::Rows,
            _ => Cost::Free,
        }
    }

    /// Emits the matmul of a plan, with the transposes and reshapes of its operands and of its result.
    fn emit(&self, cx: &mut RewriteCx<'_>, plan: &Plan) -> Result<Expr, PassError> {
        let [a, b] = self.operands;
        let [left, right] = if plan.swapped { [b, a] } else { [a, b] };
        let left = transformed(cx, left, &plan.operands[0])?;
        let right = transformed(cx, right, &plan.operands[1])?;
        let best_plan = cx.call(MATMUL, &[left, right], Attrs::default())?;
        let split_dims = match &plan.split_dims {
            Some(dims) => reshape(cx, best_plan, dims)?,
            None => best_plan,
        };
        match &plan.order {
            Some(order) => permute_dims(cx, split_dims, order),
            None => Ok(split_dims),
        }
    }
}

/// The run-time cost, or the benefit, of replacing an einsum by a matmul, in coarse steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// No cost at run time, except for transposes that later passes remove.
    Free,
    /// The cost of copying whole rows, or of reshaping the result, which prevents the fusion of a bias into the matmul.
    Rows,
    /// The cost of copies of single elements.
    Elementwise,
}

/// The run-time cost of the transposes and reshapes around a matmul.
fn copy_cost(plan: &Plan, independent: [bool; 2]) -> Cost {
    let at_run_time = plan.operands.iter().zip(independent).filter(|(_, independent)| !independent);
    let transforms: Vec<&Transform> = at_run_time.map(|(transform, _)| transform).collect();
    let constants = independent[0] || independent[1];
    // A permutation of a non-constant operand is read in place unless dims are merged.
    let is_read_in_place = |transform: &Transform| transform.dims.is_none() && !constants;
    let result = Transform { order: plan.order.clone(), dims: plan.split_dims.clone() };
    let mut all = transforms.into_iter().chain([&result]);
    if all.clone().any(|transform| transform.moves_last_dim() && !is_read_in_place(transform)) {
        Cost::Elementwise
    } else if plan.split_dims.is_some()
        || all.any(|transform| transform.permutes() && !is_read_in_place(transform))
    {
        Cost::Rows
    } else {
        Cost::Free
    }
}

fn transformed(cx: &mut RewriteCx<'_>, e: Expr, transform: &Transform) -> Result<Expr, PassError> {
    let e = match &transform.order {
        Some(order) => permute_dims(cx, e, order)?,
        None => e,
    };
    match &transform.dims {
        Some(dims) => reshape(cx, e, dims),
        None => Ok(e),
    }
}

fn permute_dims(cx: &mut RewriteCx<'_>, e: Expr, order: &[usize]) -> Result<Expr, PassError> {
    let axes = AttrValue::ints(order.iter().map(|&a| a as i64));
    cx.call(PERMUTE_DIMS, &[e], Attrs::default().with("axes", axes))
}

fn reshape(cx: &mut RewriteCx<'_>, e: Expr, dims: &[Sym]) -> Result<Expr, PassError> {
    let shape = cx.func.shape(dims);
    cx.call(RESHAPE, &[e, shape], Attrs::default())
}
