//! # What it does
//! Removes private graph functions and loop functions that no public function reaches.
//!
//! # Before
//! ```python
//! @R.function(private=True)
//! def unused(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
//!     return x
//!
//! @R.function
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
//!     return x
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
//!     return x
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The order of the functions.
//!
//! # Never
//! Removes a public function.

use std::sync::Arc;

use pliant_ir::relax::{Callee, ExprData, Function};
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashSet;

/// The pass that removes private functions that no public function reaches. See the module documentation.
pub struct EliminateUnused;

impl ModulePass for EliminateUnused {
    fn name(&self) -> &str {
        "EliminateUnused"
    }

    fn run(&self, mut module: IRModule, _: &PassContext) -> Result<IRModule, PassError> {
        let public = public_functions(&module);
        remove_unreachable(&mut module, public);
        Ok(module)
    }
}

/// Returns the names of the public functions, which can be called from outside of the module.
pub(crate) fn public_functions(module: &IRModule) -> Vec<Arc<str>> {
    let private = |f: &BaseFunc| match f {
        BaseFunc::Relax(f) => f.private,
        BaseFunc::Prim(f) => f.private,
    };
    module.functions.iter().filter(|(_, f)| !private(f)).map(|(name, _)| name.clone()).collect()
}

/// Removes the functions of a module that are not reachable from the functions `roots`.
pub(crate) fn remove_unreachable(module: &mut IRModule, roots: Vec<Arc<str>>) {
    let mut reachable: FxHashSet<Arc<str>> = FxHashSet::default();
    let mut pending = roots;
    while let Some(name) = pending.pop() {
        let Some(func) = module.get(&name) else { continue };
        if reachable.insert(name)
            && let BaseFunc::Relax(func) = func
        {
            collect_globals(func, &mut pending);
        }
    }
    if reachable.len() < module.functions.len() {
        module.functions.retain(|name, _| reachable.contains(name));
    }
}

/// Appends to `out` the names of the module's functions to which `func` refers.
pub(crate) fn collect_globals(func: &Function, out: &mut Vec<Arc<str>>) {
    for seq in reachable_seqs(func) {
        let values = func.seq(seq).blocks.iter().flat_map(|&b| &func.block(b).bindings);
        let mut stack: Vec<_> = values.map(|b| b.value).collect();
        stack.push(func.seq(seq).result);
        while let Some(e) = stack.pop() {
            match func.expr(e) {
                ExprData::Global(name) => out.push(func.str(*name).clone()),
                ExprData::Tuple(list) => stack.extend(func.list(*list)),
                ExprData::TupleGetItem(tuple, _) => stack.push(*tuple),
                ExprData::Call { callee, args, .. } => {
                    stack.extend(func.list(*args));
                    if let Callee::Expr(callee) = callee {
                        stack.push(*callee);
                    }
                }
                ExprData::If { cond, .. } => stack.push(*cond),
                _ => {}
            }
        }
    }
}
