//! # What it does
//! Inserts `R.memory.kill_tensor(t)` and `R.memory.kill_storage(s)` after the last use of every tensor and storage that the
//! function creates, so that the VM frees the memory immediately.
//!
//! # Before
//! ```python
//! @T.prim_func(private=True)
//! def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
//!     for i in range(4):
//!         with T.block("exp"):
//!             vi = T.axis.spatial(4, i)
//!             B[vi] = T.exp(A[vi])
//!
//! @R.function(pure=False)
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     s: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
//!     a: R.Tensor((4,), "float32") = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
//!     _: R.Tuple = cls.exp(x, a)
//!     b: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _1: R.Tuple = cls.exp(a, b)
//!     return b
//! ```
//!
//! # After
//! ```python
//! @T.prim_func(private=True)
//! def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
//!     for i in range(4):
//!         with T.block("exp"):
//!             vi = T.axis.spatial(4, i)
//!             B[vi] = T.exp(A[vi])
//!
//! @R.function(pure=False)
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     s: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
//!     a: R.Tensor((4,), "float32") = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
//!     _2: R.Tuple = R.memory.kill_storage(s)
//!     _: R.Tuple = cls.exp(x, a)
//!     b: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _1: R.Tuple = cls.exp(a, b)
//!     _3: R.Tuple = R.memory.kill_tensor(a)
//!     return b
//! ```
//!
//! # Requires
//! Nothing. Dataflow blocks become plain blocks first.
//!
//! # Keeps
//! All bindings and their order. Values that are already killed are not killed again.
//!
//! # Never
//! Kills a parameter, a value that the function returns, a variable before its last use in a nested sequence, or an operand or
//! result of an in-place call, because operand and result are two names of one value.

use pliant_ir::Op;
use pliant_ir::relax::visit::operand_vars;
use pliant_ir::relax::{Binding, Callee, ExprData, Function, TypeData, Var};
use pliant_pass::binding_rewrites::{Namer, reachable_seqs, set_flat_bindings, take_flat_bindings};
use pliant_pass::{FunctionPass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::liveness::{AT_RESULT, Liveness, plain_alias};
use crate::analysis::memory_aliases::overwritten_operands;
use crate::common::operators_after_lowering::{
    MEMORY_ALLOC_STORAGE, MEMORY_KILL_STORAGE, MEMORY_KILL_TENSOR, VM_ALLOC_STORAGE,
    VM_KILL_OBJECT, op_call, unit_ty,
};
use crate::common::purity_after_lowering::allow_hidden_effects;

/// The pass that frees tensors and storages after their last use. See the module documentation.
pub struct KillAfterLastUse;

impl FunctionPass for KillAfterLastUse {
    fn name(&self) -> &str {
        "KillAfterLastUse"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        allow_hidden_effects(func);
        let live = Liveness::new(func, plain_alias);
        let mut excluded = already_killed(func, &live);
        excluded.extend(values_kept_alive(func, &live));
        let mut namer = None;
        for seq in reachable_seqs(func) {
            let old = take_flat_bindings(func, seq);
            let kills = kills_by_index(func, &old, &live, &excluded);
            let mut new = Vec::with_capacity(old.len());
            for (index, binding) in old.into_iter().enumerate() {
                new.push(binding);
                for &(var, op) in kills.get(&index).into_iter().flatten() {
                    let namer = namer.get_or_insert_with(|| Namer::new(func));
                    let (target, unit) = (func.var_expr(var), unit_ty(func));
                    let call = op_call(func, op, &[target], unit);
                    namer.bind(func, "_", call, &mut new);
                }
            }
            set_flat_bindings(func, seq, new);
        }
        Ok(())
    }
}

/// Returns the kills to insert into a sequence, by the index of the binding that they follow. Variables in `excluded` are not
/// killed.
fn kills_by_index(
    func: &Function,
    bindings: &[Binding],
    live: &Liveness,
    excluded: &FxHashSet<Var>,
) -> FxHashMap<usize, Vec<(Var, Op)>> {
    let mut kills: FxHashMap<usize, Vec<(Var, Op)>> = FxHashMap::default();
    for (index, binding) in bindings.iter().enumerate() {
        let Some(op) = kill_op(func, binding) else { continue };
        if excluded.contains(&binding.var) {
            continue;
        }
        match live.last_read(binding.var).unwrap_or(index) {
            AT_RESULT => {}
            last => kills.entry(last).or_default().push((binding.var, op)),
        }
    }
    kills
}

/// Returns the variables whose values must not be killed: the fields of tuples that a sequence returns, and the operands and
/// results of in-place calls. Later passes expand the returned tuples and refer to their fields. The operand and the result of an
/// in-place call are two names of one value.
fn values_kept_alive(func: &Function, live: &Liveness) -> FxHashSet<Var> {
    let mut kept_alive = FxHashSet::default();
    // A nested sequence may return a tuple that the enclosing sequence creates.
    for seq in reachable_seqs(func).into_iter().rev() {
        for &block in func.seq(seq).blocks.iter().rev() {
            for binding in func.block(block).bindings.iter().rev() {
                record_kept_alive(func, binding, live, &mut kept_alive);
            }
        }
    }
    kept_alive
}

/// Adds to `kept_alive` the variables that must not be killed because of this binding: the fields of a returned tuple, or the
/// operands and the result of an in-place call. Must be called for the last binding first, so that nested tuples are known to be
/// returned.
fn record_kept_alive(
    func: &Function,
    binding: &Binding,
    live: &Liveness,
    kept_alive: &mut FxHashSet<Var>,
) {
    let is_returned = live.last_read(binding.var) == Some(AT_RESULT);
    match func.expr(binding.value) {
        ExprData::Tuple(_) if is_returned || kept_alive.contains(&binding.var) => {
            let fields = operand_vars(func, binding.value);
            kept_alive.extend(fields.into_iter().flat_map(|v| [v, live.root(v)]));
        }
        ExprData::Call { callee: Callee::Op(op), .. } if op.writes_operands() => {
            let operands = overwritten_operands(func, binding.value);
            kept_alive.extend(operands.into_iter().flat_map(|v| [v, live.root(v)]));
            kept_alive.insert(binding.var);
        }
        _ => {}
    }
}

/// Returns the operator that kills the value of a binding; `None` if the binding allocates neither a tensor nor a storage.
fn kill_op(func: &Function, binding: &Binding) -> Option<Op> {
    let ExprData::Call { callee, .. } = func.expr(binding.value) else { return None };
    if let Callee::Op(MEMORY_ALLOC_STORAGE | VM_ALLOC_STORAGE) = callee {
        return Some(MEMORY_KILL_STORAGE);
    }
    matches!(func.var_ty(binding.var), TypeData::Tensor { .. }).then_some(MEMORY_KILL_TENSOR)
}

/// Returns the variables that the function already kills. Aliases are replaced by the original variables.
fn already_killed(func: &Function, live: &Liveness) -> FxHashSet<Var> {
    let mut killed = FxHashSet::default();
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                if let ExprData::Call {
                    callee: Callee::Op(MEMORY_KILL_TENSOR | MEMORY_KILL_STORAGE | VM_KILL_OBJECT),
                    args,
                    ..
                } = func.expr(binding.value)
                    && let [target] = func.list(*args)
                    && let ExprData::Var(v) = func.expr(*target)
                {
                    killed.insert(live.root(*v));
                }
            }
        }
    }
    killed
}
