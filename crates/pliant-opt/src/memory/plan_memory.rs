//! # What it does
//! `StaticPlanBlockMemory` lets tensors share storages. A tensor that only loop functions read and write releases its storage after
//! its last use. A later tensor of the same sequence, or of a branch in it, reuses the storage if it is provably large enough for
//! all values of the symbols. For constant sizes, a storage may be at most 16 times as large as the tensor.
//!
//! The attribute `tir_var_upper_bound` of a function, such as `{"n": 1024}`, states upper bounds of its symbols. Storages then
//! have the maximum size that their tensors may need.
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
//!     a: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _: R.Tuple = cls.exp(x, a)
//!     b: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _1: R.Tuple = cls.exp(a, b)
//!     c: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _2: R.Tuple = cls.exp(b, c)
//!     d: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _3: R.Tuple = cls.exp(c, d)
//!     return d
//! ```
//!
//! # After
//! `c` shares the storage of `a`; the result keeps its own allocation.
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
//!     storage: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
//!     a: R.Tensor((4,), "float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
//!     _: R.Tuple = cls.exp(x, a)
//!     storage1: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
//!     b: R.Tensor((4,), "float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([4]), R.dtype("float32"))
//!     _1: R.Tuple = cls.exp(a, b)
//!     c: R.Tensor((4,), "float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
//!     _2: R.Tuple = cls.exp(b, c)
//!     d: R.Tensor((4,), "float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
//!     _3: R.Tuple = cls.exp(c, d)
//!     return d
//! ```
//!
//! # Requires
//! [`CallTIRRewrite`](crate::lower::call_tir_rewrite).
//!
//! # Keeps
//! The order of all calls.
//!
//! # Never
//! Shares the memory of a tensor that is returned, stored in a tuple, or passed to anything but a loop function of this module,
//! because a reference to the tensor may outlive its last use.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Seq, Var};
use pliant_pass::binding_rewrites::{
    Namer, for_each_operand_var, reachable_seqs, set_flat_bindings, take_flat_bindings,
};
use pliant_pass::pass::for_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::liveness::{Liveness, plain_alias};
use crate::common::operators_after_lowering::{ALLOC_TENSOR, MEMORY_KILL_TENSOR, RESHAPE};
use crate::common::purity_after_lowering::flatten_blocks;
use crate::common::shapes_and_size_bounds::upper_bounds;
use crate::memory::lower_alloc_tensor::TensorAlloc;
use storage_pool::{SizeOrder, StoragePool};

mod storage_pool;

/// The pass that lets tensors that are never live at the same time share storages. See the module documentation.
pub struct StaticPlanBlockMemory;

impl ModulePass for StaticPlanBlockMemory {
    fn name(&self) -> &str {
        "StaticPlanBlockMemory"
    }

    fn opt_level(&self) -> u8 {
        1
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let prim_funcs: FxHashSet<Arc<str>> =
            module.prim_funcs().map(|(name, _)| name.clone()).collect();
        for_each_relax(&mut module, ctx, |_, func| plan_function(func, &prim_funcs))?;
        Ok(module)
    }
}

/// Whether the function allocates a tensor.
fn allocates(func: &Function) -> bool {
    reachable_seqs(func).into_iter().any(|seq| {
        func.seq(seq).blocks.iter().any(|&block| {
            func.block(block).bindings.iter().any(|b| {
                matches!(
                    func.expr(b.value),
                    ExprData::Call { callee: Callee::Op(ALLOC_TENSOR), .. }
                )
            })
        })
    })
}

fn plan_function(func: &mut Function, prim_funcs: &FxHashSet<Arc<str>>) -> Result<(), PassError> {
    if !allocates(func) {
        return Ok(());
    }
    flatten_blocks(func);
    let live = Liveness::new(func, alias_source);
    let escaping_vars = escaping_vars(func, prim_funcs, &live);
    let mut namer = Namer::new(func);
    let bounds = upper_bounds(func);
    let bounds: FxHashMap<&str, i64> = bounds.iter().map(|(n, b)| (&**n, *b)).collect();
    let mut size_order = SizeOrder::of(func, &bounds);
    // Storages that are free at a branch are free inside of it. Sequences are visited after the sequence that contains them.
    let mut branches: FxHashMap<Seq, StoragePool> = FxHashMap::default();
    for seq in reachable_seqs(func) {
        let old = take_flat_bindings(func, seq);
        let mut pool = branches.remove(&seq).unwrap_or_default();
        let mut new = Vec::with_capacity(old.len());
        for (index, binding) in old.into_iter().enumerate() {
            match TensorAlloc::of(func, &binding)? {
                Some(mut alloc) if !escaping_vars.contains(&binding.var) => {
                    let bytes = size_order.max_size(func, alloc.bytes);
                    alloc.bytes = bytes;
                    let reused = pool.take(func, &mut size_order, bytes);
                    let (storage, size) = match reused {
                        Some(sized_storage) => sized_storage,
                        None => (alloc.bind_storage(func, &mut namer, &mut new), bytes),
                    };
                    new.push(alloc.tensor_binding(func, storage));
                    let last = live.last_read(binding.var).unwrap_or(index);
                    pool.reserve(last, (storage, size));
                }
                _ => {
                    if let ExprData::If { then_seq, else_seq, .. } = *func.expr(binding.value) {
                        branches.insert(then_seq, pool.for_branch());
                        branches.insert(else_seq, pool.for_branch());
                    }
                    new.push(binding);
                }
            }
            pool.release_after(func, index);
        }
        set_flat_bindings(func, seq, new);
    }
    Ok(())
}

/// If the value of a binding is an alias (`y = x`) or a reshaped view of a variable, returns this variable.
fn alias_source(func: &Function, binding: &Binding) -> Option<Var> {
    match func.expr(binding.value) {
        ExprData::Call { callee: Callee::Op(RESHAPE), args, .. } => match func.list(*args) {
            [x, ..] => match func.expr(*x) {
                ExprData::Var(v) => Some(*v),
                _ => None,
            },
            [] => None,
        },
        _ => plain_alias(func, binding),
    }
}

/// Returns the variables whose memory may be referenced after their last use: those with a use other than as an operand of a loop
/// function, an alias or a view in the sequence that defines them.
fn escaping_vars(
    func: &Function,
    prim_funcs: &FxHashSet<Arc<str>>,
    live: &Liveness,
) -> FxHashSet<Var> {
    let mut out = FxHashSet::default();
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                let keeps_no_reference = alias_source(func, binding).is_some()
                    || is_loop_function_call(func, binding.value, prim_funcs);
                for_each_operand_var(func, binding.value, &mut |v| {
                    let root = live.root(v);
                    if !keeps_no_reference || !defined_in(live, root, seq) {
                        out.insert(root);
                    }
                });
            }
        }
        for_each_operand_var(func, func.seq(seq).result, &mut |v| {
            out.insert(live.root(v));
        });
    }
    out
}

fn defined_in(live: &Liveness, var: Var, seq: Seq) -> bool {
    live.definition(var).is_some_and(|(defining_seq, _)| defining_seq == seq)
}

fn is_loop_function_call(func: &Function, value: Expr, prim_funcs: &FxHashSet<Arc<str>>) -> bool {
    match func.expr(value) {
        ExprData::Call { callee: Callee::Expr(callee), args, .. } => {
            let has_no_tuples = func.list(*args).iter().all(|&a| func.tuple_fields(a).is_none());
            has_no_tuples
                && matches!(func.expr(*callee), ExprData::Global(name) if prim_funcs.contains(func.str(*name)))
        }
        ExprData::Call { callee: Callee::Op(MEMORY_KILL_TENSOR), .. } => true,
        _ => false,
    }
}
