//! # What it does
//! Lets tensors share storage. A tensor that only loop functions read and write gives its storage back after its last
//! use, and a later tensor of the same sequence takes it when its size is equal for all values of
//! the symbols (equal in
//! normal form), or when both sizes are constants and the storage is at most 16 times too large.
//!
//! # Before
//! ```python
//! a: R.Tensor((n, 4), dtype="float32") = R.builtin.alloc_tensor(R.shape([n, 4]),
//! R.dtype("float32"), R.prim_value(0))
//! _: R.Tuple = cls.f(x, a)
//! b: R.Tensor((n, 4), dtype="float32") = R.builtin.alloc_tensor(R.shape([n, 4]),
//! R.dtype("float32"), R.prim_value(0))
//! _1: R.Tuple = cls.f(a, b)
//! c: R.Tensor((4, n), dtype="float32") = R.builtin.alloc_tensor(R.shape([4, n]),
//! R.dtype("float32"), R.prim_value(0))
//! _2: R.Tuple = cls.g(b, c)
//! ```
//!
//! # After
//! `c` lies in the storage that `a` was in:
//! ```python
//! storage: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
//! a: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0),
//! R.shape([n, 4]), R.dtype("float32"))
//! ...
//! c: R.Tensor((4, n), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0),
//! R.shape([4, n]), R.dtype("float32"))
//! ```
//!
//! # Requires
//! [`CallTIRRewrite`](crate::call_tir_rewrite).
//!
//! # Keeps
//! The order of all calls.
//!
//! # Never
//! Shares the memory of a tensor that is returned, stored in a tuple, or passed to anything but a
//! loop function of this
//! module: those may keep a reference.

use std::collections::BTreeMap;
use std::sync::Arc;

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Seq, Var};
use pliant_ir::{IRModule, Sym};
use pliant_pass::pass::for_each_relax;
use pliant_pass::rewrite::{
    Namer, for_each_operand_var, reachable_seqs, set_flat_bindings, take_flat_bindings,
};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::liveness::{AT_RESULT, Liveness, plain_alias};
use crate::lower_alloc_tensor::Alloc;
use crate::names::{ALLOC_TENSOR, MEMORY_KILL_TENSOR, RESHAPE};
use crate::to_non_dataflow::flatten;

/// A storage of constant size serves tensors down to this fraction of it.
const MAX_WASTE: i64 = 16;

/// See the module's documentation.
pub struct StaticPlanBlockMemory;

impl ModulePass for StaticPlanBlockMemory {
    fn name(&self) -> &str {
        "StaticPlanBlockMemory"
    }

    fn opt_level(&self) -> u8 {
        1
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let kernels: FxHashSet<Arc<str>> =
            module.prim_funcs().map(|(name, _)| name.clone()).collect();
        for_each_relax(&mut module, ctx, |_, func| plan(func, &kernels))?;
        Ok(module)
    }
}

/// Whether any sequence allocates.
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

fn plan(func: &mut Function, kernels: &FxHashSet<Arc<str>>) -> Result<(), PassError> {
    if !allocates(func) {
        return Ok(());
    }
    flatten(func);
    let live = Liveness::new(func, alias);
    let escaping = escaping(func, kernels, &live);
    let mut namer = Namer::new(func);
    for seq in reachable_seqs(func) {
        let old = take_flat_bindings(func, seq);
        let mut pool = Pool::default();
        let mut new = Vec::with_capacity(old.len());
        for (index, binding) in old.into_iter().enumerate() {
            match Alloc::of(func, &binding)? {
                Some(alloc) if !escaping.contains(&binding.var) => {
                    let bytes = alloc.bytes;
                    let found = pool.take(func, bytes);
                    let (storage, size) = match found {
                        Some(token) => token,
                        None => (alloc.storage(func, &mut namer, &mut new), bytes),
                    };
                    new.push(alloc.tensor(func, storage));
                    let last = live.last_read(binding.var).unwrap_or(index);
                    pool.lend(last, (storage, size));
                }
                _ => new.push(binding),
            }
            pool.release_after(func, index);
        }
        set_flat_bindings(func, seq, new);
    }
    Ok(())
}

/// A reshaped tensor is a view: it lives in the memory of its source.
fn alias(func: &Function, binding: &Binding) -> Option<Var> {
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

/// The variables whose memory something else may keep: everything that is used other than as an operand of a loop
/// function in the sequence that defines it.
fn escaping(func: &Function, kernels: &FxHashSet<Arc<str>>, live: &Liveness) -> FxHashSet<Var> {
    let mut out = FxHashSet::default();
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                let harmless =
                    alias(func, binding).is_some() || is_kernel_call(func, binding.value, kernels);
                for_each_operand_var(func, binding.value, &mut |v| {
                    let root = live.root(v);
                    if !harmless || !defined_in(live, root, seq) {
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
    live.definition(var).is_some_and(|(home, _)| home == seq)
}

fn is_kernel_call(func: &Function, value: Expr, kernels: &FxHashSet<Arc<str>>) -> bool {
    match func.expr(value) {
        ExprData::Call { callee: Callee::Expr(callee), args, .. } => {
            let direct = func.list(*args).iter().all(|&a| func.tuple_fields(a).is_none());
            direct
                && matches!(func.expr(*callee), ExprData::Global(name) if kernels.contains(func.str(*name)))
        }
        ExprData::Call { callee: Callee::Op(MEMORY_KILL_TENSOR), .. } => true,
        _ => false,
    }
}

/// A storage and its size.
type Token = (Expr, Sym);

/// The storages of one sequence that are free, and those that will be.
#[derive(Default)]
struct Pool {
    by_size: FxHashMap<Sym, Vec<Expr>>,
    constants: BTreeMap<i64, Vec<Expr>>,
    constant_syms: FxHashMap<i64, Sym>,
    lent: FxHashMap<usize, Vec<Token>>,
}

impl Pool {
    fn take(&mut self, func: &Function, bytes: Sym) -> Option<Token> {
        let Some(size) = func.syms.as_int(bytes) else {
            return self.by_size.get_mut(&bytes)?.pop().map(|storage| (storage, bytes));
        };
        let (&found, list) =
            self.constants.range_mut(size..=size.saturating_mul(MAX_WASTE)).next()?;
        let storage = list.pop()?;
        if list.is_empty() {
            self.constants.remove(&found);
        }
        // The token keeps its own size, which the next tensor is measured against.
        let size = self.constant_syms.get(&found).copied().unwrap_or(bytes);
        Some((storage, size))
    }

    fn lend(&mut self, until: usize, token: Token) {
        if until != AT_RESULT {
            self.lent.entry(until).or_default().push(token);
        }
    }

    fn release_after(&mut self, func: &Function, index: usize) {
        for (storage, size) in self.lent.remove(&index).into_iter().flatten() {
            match func.syms.as_int(size) {
                Some(bytes) => {
                    self.constant_syms.insert(bytes, size);
                    self.constants.entry(bytes).or_default().push(storage);
                }
                None => self.by_size.entry(size).or_default().push(storage),
            }
        }
    }
}
