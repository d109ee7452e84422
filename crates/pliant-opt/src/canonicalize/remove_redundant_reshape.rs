//! # What it does
//! Merges chains of reshapes into one, and removes reshapes to the shape that the tensor already has. Does the same with chains of
//! transposes. The torch exporter writes a slice assignment as three transposes that compose to the identity.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((2, "n", 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.reshape(x, R.shape([n * 4]))
//!         lv1 = R.reshape(lv, R.shape([n, 4]))
//!         lv2 = R.exp(lv1)
//!         lv3 = R.reshape(lv2, R.shape([4, n]))
//!         gv = R.reshape(lv3, R.shape([2, n, 2]))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((2, "n", 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.reshape(x, R.shape([n * 4]))
//!         lv2 = R.exp(x)
//!         lv3 = R.reshape(lv2, R.shape([4, n]))
//!         gv = R.reshape(lv2, R.shape([2, n, 2]))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! Reshapes that are no longer read, for
//! [`DeadCodeElimination`](crate::canonicalize::dead_code_elimination).
//!
//! # Never
//! Removes a reshape whose shapes are not provably equal, or a reshape whose operand a call may write to or free later. Merges
//! transposes in a module with calls that write to their operands.

use pliant_ir::relax::type_lattice::is_subtype;
use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, IRModule};
use pliant_pass::binding_rewrites::{
    Substitution, drop_empty_blocks, mark_outputs, reachable_seqs, shape_vars, substitute_result,
};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::memory_aliases::{MemoryAliases, ParamUses, has_local_functions};
use crate::analysis::result_binding::is_kill;
use crate::common::matmul_and_conv_operands::{PERMUTE_DIMS, call_operands, permute_axes};
use crate::common::operators_after_lowering::RESHAPE;

/// The pass that merges chains of reshapes and removes reshapes that do not change the shape. See the module documentation.
pub struct RemoveRedundantReshape;

impl ModulePass for RemoveRedundantReshape {
    fn name(&self) -> &str {
        "RemoveRedundantReshape"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let uses = ParamUses::of_in_place_module(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let mut pinned = shape_vars(func);
            if let Some(uses) = &uses {
                pinned.extend(views_of_written_operands(func, uses));
            }
            pinned.extend(views_with_separate_lives(func));
            let merges_transposes = uses.is_none();
            let mut reshapes = Reshapes { pinned, merges_transposes, ..Reshapes::default() };
            let mut changed = false;
            for seq in reachable_seqs(func) {
                changed |= reshapes.sequence(func, seq);
            }
            if changed {
                mark_outputs(func);
            }
            Ok(changed)
        })?;
        Ok(module)
    }
}

/// Returns the results of reshapes that must stay separate tensors, because a call may write to the operand of the reshape.
fn views_of_written_operands(func: &Function, uses: &ParamUses) -> Vec<Var> {
    let (mut memory, unknown) =
        (MemoryAliases::of_with_results_written(func, uses), has_local_functions(func));
    let mut out = Vec::new();
    walk(func, func.root(), |event| {
        if let Event::LeaveBinding(_, b) = event
            && reshape_of(func, b.value).is_some()
            && (unknown || memory.view_is_written(b.var))
        {
            out.push(b.var);
        }
    });
    out
}

/// Returns the results of reshapes and transposes that must stay separate tensors, because the function explicitly kills (frees)
/// the result or the operand.
fn views_with_separate_lives(func: &Function) -> Vec<Var> {
    let mut freed = FxHashSet::default();
    walk(func, func.root(), |event| {
        if let Event::LeaveBinding(_, b) = event
            && is_kill(func, &b)
            && let ExprData::Call { args, .. } = func.expr(b.value)
        {
            let vars = func.list(*args).iter().filter_map(|&arg| match func.expr(arg) {
                ExprData::Var(v) => Some(*v),
                _ => None,
            });
            freed.extend(vars);
        }
    });
    let mut out = Vec::new();
    if freed.is_empty() {
        return out;
    }
    walk(func, func.root(), |event| {
        if let Event::LeaveBinding(_, b) = event {
            let reshaped = reshape_of(func, b.value).map(|(operand, _)| operand);
            let transposed = || call_operands(func, b.value, PERMUTE_DIMS).map(|(args, _)| args[0]);
            let operand_is_freed =
                |operand: Expr| matches!(func.expr(operand), ExprData::Var(v) if freed.contains(v));
            if let Some(operand) = reshaped.or_else(transposed)
                && (freed.contains(&b.var) || operand_is_freed(operand))
            {
                out.push(b.var);
            }
        }
    });
    out
}

#[derive(Default)]
struct Reshapes {
    /// Maps the result of each reshape to its operand.
    inputs: FxHashMap<Var, Expr>,
    /// Maps the result of each transpose to its operand and its axes.
    transposes: FxHashMap<Var, (Expr, Vec<usize>)>,
    /// Whether chains of transposes are merged. This is the case if no call of the module writes to its operands.
    merges_transposes: bool,
    subst: Substitution,
    /// Variables that must not become aliases of their operand, for example because a call overwrites them.
    pinned: FxHashSet<Var>,
}

impl Reshapes {
    fn sequence(&mut self, func: &mut Function, seq: pliant_ir::relax::Seq) -> bool {
        let mut changed = false;
        for block in func.seq(seq).blocks.clone() {
            let old_bindings = std::mem::take(&mut func.block_mut(block).bindings);
            let mut new_bindings = Vec::with_capacity(old_bindings.len());
            for mut b in old_bindings {
                let value = self.subst.apply(func, b.value);
                let value = self.merge_reshapes(func, value);
                let value = self.merge_transposes(func, value);
                changed |= value != b.value;
                b.value = value;
                if self.is_identity_reshape(func, b) || self.is_identity_transpose(func, b) {
                    changed = true;
                } else {
                    new_bindings.push(b);
                }
            }
            func.block_mut(block).bindings = new_bindings;
        }
        changed |= substitute_result(func, seq, &self.subst);
        drop_empty_blocks(func, seq);
        changed
    }

    /// Rewrites a reshape of a reshape to one reshape of the original tensor.
    fn merge_reshapes(&self, func: &mut Function, value: Expr) -> Expr {
        let Some((input, shape)) = reshape_of(func, value) else { return value };
        let ExprData::Var(v) = func.expr(input) else { return value };
        let Some(&first) = self.inputs.get(v) else { return value };
        let ExprData::Call { attrs, .. } = *func.expr(value) else { return value };
        let (attrs, ty) = (func.call_attrs(attrs).clone(), func.expr_ty(value));
        func.call(Callee::Op(RESHAPE), &[first, shape], attrs, &[], ty)
    }

    /// Rewrites a transpose of a transpose to one transpose of the original tensor.
    fn merge_transposes(&self, func: &mut Function, value: Expr) -> Expr {
        let Some((input, outer_axes)) = self.transpose_of(func, value) else { return value };
        let ExprData::Var(v) = func.expr(input) else { return value };
        let Some((first, inner_axes)) = self.transposes.get(v) else { return value };
        let axes = outer_axes.iter().map(|&axis| inner_axes[axis] as i64);
        let attrs = Attrs::default().with("axes", AttrValue::ints(axes));
        let ty = func.expr_ty(value);
        func.call(Callee::Op(PERMUTE_DIMS), &[*first], attrs, &[], ty)
    }

    /// Whether a binding transposes a tensor without changing the order of the dims. If so, records the tensor as the replacement
    /// of the variable; otherwise records the transpose in `transposes`.
    fn is_identity_transpose(&mut self, func: &mut Function, b: Binding) -> bool {
        let Some((input, axes)) = self.transpose_of(func, b.value) else { return false };
        if b.cast.is_some() || self.pinned.contains(&b.var) {
            return false;
        }
        let (from, to) = (func.expr_ty(input), func.var(b.var).ty);
        let is_identity =
            axes.iter().copied().eq(0..axes.len()) && is_subtype(func, from, to).is_yes();
        if is_identity {
            self.subst.insert(b.var, input);
        } else {
            self.transposes.insert(b.var, (input, axes));
        }
        is_identity
    }

    /// Returns (operand, axes) of a transpose, with the axes as non-negative numbers; `None` for other expressions, and if
    /// transposes are not merged.
    fn transpose_of(&self, func: &Function, e: Expr) -> Option<(Expr, Vec<usize>)> {
        if !self.merges_transposes {
            return None;
        }
        let (&[input], attrs) = call_operands(func, e, PERMUTE_DIMS)? else { return None };
        let rank = func.ty(e).dims()?.len();
        let axes = permute_axes(attrs, rank)?;
        (axes.len() == rank && axes.iter().all(|&axis| axis < rank)).then_some((input, axes))
    }

    /// Whether a binding reshapes a tensor to its own shape. If so, records the tensor as the replacement of the variable;
    /// otherwise records the operand of the reshape in `inputs`.
    fn is_identity_reshape(&mut self, func: &mut Function, b: Binding) -> bool {
        let Some((input, _)) = reshape_of(func, b.value) else { return false };
        let (from, to) = (func.expr_ty(input), func.var(b.var).ty);
        let has_known_dims = func.types.get(to).dims().is_some();
        if has_known_dims
            && b.cast.is_none()
            && !self.pinned.contains(&b.var)
            && is_subtype(func, from, to).is_yes()
        {
            self.subst.insert(b.var, input);
            return true;
        }
        if b.cast.is_none() && !self.pinned.contains(&b.var) {
            self.inputs.insert(b.var, input);
        }
        false
    }
}

/// Returns the operands (tensor, shape) of a reshape; `None` for other expressions.
fn reshape_of(func: &Function, e: Expr) -> Option<(Expr, Expr)> {
    match func.expr(e) {
        ExprData::Call { callee: Callee::Op(op), args, .. } if *op == RESHAPE => {
            match *func.list(*args) {
                [input, shape] => Some((input, shape)),
                _ => None,
            }
        }
        _ => None,
    }
}
