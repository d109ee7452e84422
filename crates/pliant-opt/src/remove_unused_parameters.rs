//! # What it does
//! Removes parameters of private functions that nothing reads, and the arguments that their callers hand them.
//!
//! # Before
//! ```python
//! @R.function(private=True)
//! def first(a: R.Tensor(("n",), "float32"), b: R.Tensor(("m",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     c = R.exp(a)
//!     return c
//!
//! @R.function
//! def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     cls = Module
//!     z: R.Tensor((n,), "float32") = cls.first(x, y)
//!     return z
//! ```
//!
//! # After
//! ```python
//! @R.function(private=True)
//! def first(a: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     c = R.exp(a)
//!     return c
//!
//! @R.function
//! def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     cls = Module
//!     z: R.Tensor((n,), "float32") = cls.first(x)
//!     return z
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! A parameter that alone tells a size that the function mentions; what computed an argument that is no longer handed
//! over, for [`DeadCodeElimination`](crate::dead_code_elimination).
//!
//! # Never
//! Changes public functions, or functions that are handed on as values.

use std::sync::Arc;

use pliant_ir::relax::derive::{definable_syms, type_syms};
use pliant_ir::relax::visit::{for_each_sym, used_vars};
use pliant_ir::relax::{Expr, Function, Var};
use pliant_ir::{BaseFunc, IRModule, SymVar};
use pliant_pass::rewrite::shape_vars;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::CallGraph;
use crate::analysis::call_graph::called_by_name_only;
use crate::call_sites::{CallSite, rewrite_calls, rewrite_calls_in};

/// See the module's documentation.
pub struct RemoveUnusedParameters;

impl ModulePass for RemoveUnusedParameters {
    fn name(&self) -> &str {
        "RemoveUnusedParameters"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let candidates = called_by_name_only(&module);
        let mut changed: FxHashMap<Arc<str>, Arc<Function>> = FxHashMap::default();
        let mut kept: FxHashMap<Arc<str>, Vec<bool>> = FxHashMap::default();
        // An argument that a callee no longer takes may have been the only use of a parameter of the caller.
        for name in CallGraph::of(&module).callees_first {
            ctx.check_cancelled()?;
            if !candidates.contains(&name) {
                continue;
            }
            let Some(BaseFunc::Relax(func)) = module.get(&name) else { continue };
            let mut new = Function::clone(func);
            let rewritten =
                rewrite_calls_in(&mut new, &changed, |site| remaining_args(site, &kept))?;
            let keep = needed_params(&new);
            let shrinks = keep.contains(&false);
            if shrinks {
                let root = new.root();
                let mut flags = keep.iter();
                new.func_mut(root).params.retain(|_| flags.next() == Some(&true));
            }
            if shrinks || rewritten {
                let new = Arc::new(new);
                module.insert(name.clone(), BaseFunc::Relax(new.clone()));
                if shrinks {
                    changed.insert(name.clone(), new);
                    kept.insert(name, keep);
                }
            }
        }
        rewrite_calls(&mut module, ctx, &changed, |site| remaining_args(site, &kept))?;
        Ok(module)
    }
}

/// The arguments of a call without those that the callee takes no more; nothing if that was done already.
fn remaining_args(site: CallSite<'_>, kept: &FxHashMap<Arc<str>, Vec<bool>>) -> Option<Vec<Expr>> {
    let keep = kept.get(site.callee)?;
    (keep.len() == site.args.len()).then(|| {
        site.args.iter().zip(keep).filter(|(_, keep)| **keep).map(|(&arg, _)| arg).collect()
    })
}

/// Which parameters a function needs: those that it reads, and those that tell sizes that it mentions.
fn needed_params(func: &Function) -> Vec<bool> {
    let used: FxHashSet<Var> = used_vars(func, func.root()).into_iter().collect();
    let shapes = shape_vars(func);
    let params = func.params().to_vec();
    let mut keep: Vec<bool> =
        params.iter().map(|p| used.contains(p) || shapes.contains(p)).collect();
    if !keep.contains(&false) {
        return keep;
    }
    let mut defined: FxHashSet<SymVar> = FxHashSet::default();
    let mut wanted = body_syms(func);
    for (&p, _) in params.iter().zip(&keep).filter(|(_, keep)| **keep) {
        defined.extend(definable_syms(func, func.var(p).ty));
        wanted.extend(type_syms(func, func.var(p).ty));
    }
    // A parameter kept for a size may mention further sizes in its other dims.
    while let Some(i) = (0..params.len()).find(|&i| {
        let told = type_syms(func, func.var(params[i]).ty);
        !keep[i] && told.iter().any(|v| wanted.contains(v) && !defined.contains(v))
    }) {
        let ty = func.var(params[i]).ty;
        keep[i] = true;
        defined.extend(definable_syms(func, ty));
        wanted.extend(type_syms(func, ty));
    }
    keep
}

/// The symbols that a function mentions outside the types of its parameters.
fn body_syms(func: &Function) -> FxHashSet<SymVar> {
    let mut body = func.clone();
    let root = body.root();
    body.func_mut(root).params.clear();
    let mut out = FxHashSet::default();
    for_each_sym(&body, root, |s| out.extend(body.syms.free_vars(s)));
    out
}
