//! # What it does
//! Copies a view if an in-place call may write to the view or to the original value. `R.reshape` creates a new value, so it must
//! not be observable that it shares memory with its operand. In modules with in-place calls, two kinds of constants are also
//! copied: those to which the function or a called function writes, and those that a function returns. Each call must see its own
//! value.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def increase(A: T.Buffer((6,), "float32")):
//!         for i in range(6):
//!             with T.block("increase"):
//!                 vi = T.axis.spatial(6, i)
//!                 A[vi] = A[vi] + T.float32(1)
//!
//!     @R.function(pure=False)
//!     def main(x: R.Tensor((2, 3), "float32")):
//!         cls = Module
//!         y: R.Tensor((6,), "float32") = R.reshape(x, R.shape([6]))
//!         z = R.call_tir_inplace(cls.increase, (y,), inplace_indices=0, out_sinfo=R.Tensor((6,), "float32"))
//!         return (x, z)
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def increase(A: T.Buffer((6,), "float32")):
//!         for i in range(6):
//!             with T.block("increase"):
//!                 vi = T.axis.spatial(6, i)
//!                 A[vi] = A[vi] + T.float32(1)
//!
//!     @R.function(pure=False)
//!     def main(x: R.Tensor((2, 3), "float32")):
//!         cls = Module
//!         y_view: R.Tensor((6,), "float32") = R.reshape(x, R.shape([6]))
//!         y: R.Tensor((6,), "float32") = R.call_pure_packed("vm.builtin.copy_tensor", y_view, sinfo_args=(R.Tensor((6,), dtype="float32"),))
//!         z = R.call_tir_inplace(cls.increase, (y,), inplace_indices=0, out_sinfo=R.Tensor((6,), "float32"))
//!         return (x, z)
//! ```
//!
//! # Requires
//! No local functions: [`LambdaLift`](crate::canonicalize::lambda_lift) runs first.
//!
//! # Keeps
//! Modules without in-place calls, views of values that nothing else reads, and constants that are passed to functions that only
//! read them, such as weights.
//!
//! # Never
//! Analyzes packed functions that are called for their side effects, because it is unknown to which tensors they write.

use std::sync::Arc;

use pliant_ir::attr_names::PRIMITIVE;
use pliant_ir::op::CALL_PURE_PACKED;
use pliant_ir::relax::visit::{Event, operand_vars, walk};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, BaseFunc, IRModule};
use pliant_pass::binding_rewrites::{Namer, reachable_seqs};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::memory_aliases::{MemoryAliases, ParamUses, may_be_view, written_constants};
use crate::common::bind_constants_to_variables::bind_constants;
use crate::memory::copy_aliased_results::COPY_TENSOR;

/// The pass that copies views whose memory an in-place call may write to. See the module documentation.
pub struct CopyWrittenViews;

impl ModulePass for CopyWrittenViews {
    fn name(&self) -> &str {
        "CopyWrittenViews"
    }

    fn run(&self, mut module: IRModule, _: &PassContext) -> Result<IRModule, PassError> {
        let Some(uses) = ParamUses::of_in_place_module(&module) else { return Ok(module) };
        for func in module.functions.values_mut() {
            let BaseFunc::Relax(func) = func else { continue };
            if func.attrs.contains_key(PRIMITIVE) {
                continue;
            }
            if func.has_constants() {
                bind_constants(Arc::make_mut(func), |f, e| uses.shares_or_writes_operands(f, e));
            }
            let mut aliases = MemoryAliases::of_with_results_written(func, &uses);
            let mut views = views_to_copy(func, &mut aliases);
            views.extend(written_constants(func, &mut aliases));
            if !views.is_empty() {
                copy_views(Arc::make_mut(func), &views);
            }
        }
        Ok(module)
    }
}

/// Inserts a copy after each view in `views`. The copy is bound to the variable of the view.
fn copy_views(func: &mut Function, views: &FxHashSet<Var>) {
    let mut namer = Namer::new(func);
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            let dataflow = func.block(block).dataflow;
            let old = std::mem::take(&mut func.block_mut(block).bindings);
            let mut new = Vec::with_capacity(old.len());
            for mut binding in old {
                if views.contains(&binding.var) {
                    let hint = format!("{}_view", func.var(binding.var).name);
                    let view = namer.bind(func, &hint, binding.value, &mut new);
                    if let ExprData::Var(v) = *func.expr(view) {
                        func.var_mut(v).dataflow = dataflow;
                    }
                    let (callee, ty) = (func.extern_func(COPY_TENSOR), func.expr_ty(view));
                    let op = Callee::Op(CALL_PURE_PACKED);
                    binding.value = func.call(op, &[callee, view], Attrs::default(), &[ty], ty);
                    if binding.cast.is_some() {
                        let hint = format!("{}_copy", func.var(binding.var).name);
                        binding.value = namer.bind(func, &hint, binding.value, &mut new);
                        if let ExprData::Var(v) = *func.expr(binding.value) {
                            func.var_mut(v).dataflow = dataflow;
                        }
                    }
                }
                new.push(binding);
            }
            func.block_mut(block).bindings = new;
        }
    }
}

/// Returns the views that must be copied, because a call may write to their memory while another variable refers to the same
/// memory.
fn views_to_copy(func: &Function, aliases: &mut MemoryAliases) -> FxHashSet<Var> {
    let mut views = Vec::new();
    let mut read_counts: FxHashMap<Var, usize> = FxHashMap::default();
    let (mut copied_views, mut last) = (FxHashSet::default(), None);
    walk(func, func.root(), |event| {
        let operand = match event {
            Event::LeaveBinding(_, b) => {
                views.extend(view_source(func, b.value).map(|source| (b.var, source)));
                copied_views.extend(copied_var(func, b.value).filter(|&v| last == Some(v)));
                last = Some(b.var);
                b.value
            }
            Event::Result(seq) => func.seq(seq).result,
            _ => return,
        };
        operand_vars(func, operand)
            .into_iter()
            .for_each(|v| *read_counts.entry(v).or_default() += 1);
    });
    views.retain(|(view, source)| {
        let source_has_no_other_reader =
            aliases.fresh.contains(source) && read_counts.get(source) == Some(&1);
        // If an earlier run copied the view, the copy directly after it is its only reader.
        let already_copied = copied_views.contains(view) && read_counts.get(view) == Some(&1);
        !source_has_no_other_reader && !already_copied && aliases.view_is_written(*view)
    });
    views.into_iter().map(|(view, _)| view).collect()
}

/// Returns the copied variable if a value is a call of the copy builtin, in its form before or after RemovePurityChecking; `None`
/// otherwise.
fn copied_var(func: &Function, value: Expr) -> Option<Var> {
    let ExprData::Call { callee, args, .. } = func.expr(value) else { return None };
    let (callee, source) = match (callee, func.list(*args)) {
        (Callee::Op(CALL_PURE_PACKED), [callee, source]) => (callee, source),
        (Callee::Expr(callee), [source]) => (callee, source),
        _ => return None,
    };
    match (func.expr(*callee), func.expr(*source)) {
        (ExprData::Extern(name), ExprData::Var(v)) if &**func.str(*name) == COPY_TENSOR => Some(*v),
        _ => None,
    }
}

/// Returns the variable whose memory a view shares; `None` if the value is not a view.
fn view_source(func: &Function, value: Expr) -> Option<Var> {
    let ExprData::Call { callee: Callee::Op(op), args, .. } = func.expr(value) else {
        return None;
    };
    if !may_be_view(*op) {
        return None;
    }
    match func.expr(*func.list(*args).first()?) {
        ExprData::Var(v) => Some(*v),
        _ => None,
    }
}
