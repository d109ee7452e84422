//! # What it does
//! Removes unread parameters of private functions and the corresponding arguments of their calls.
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
//! Sizes that only a removed parameter defines: they become parameters (`param_n: R.Prim(value="n")`), and callers pass them. If
//! the dims of the argument are unknown at a call, the parameter is kept. Computations of arguments that are no longer passed are
//! also kept, for [`DeadCodeElimination`](crate::canonicalize::dead_code_elimination).
//!
//! # Never
//! Changes public functions, or functions that are used as values. (The check of a removed parameter's type is removed, too.)

use std::sync::Arc;

use pliant_ir::relax::type_lattice::{definable_syms, type_syms};
use pliant_ir::relax::visit::{for_each_sym, post_order, used_vars};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_ir::{BaseFunc, DType, IRModule, Span, SymVar};
use pliant_pass::binding_rewrites::{Namer, shape_vars};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::CallGraph;
use crate::analysis::call_graph::called_by_name_only;
use crate::common::rewrite_call_sites::{CallSite, rewrite_calls, rewrite_calls_in};

/// The pass that removes unread parameters of private functions. See the module documentation.
pub struct RemoveUnusedParameters;

impl ModulePass for RemoveUnusedParameters {
    fn name(&self) -> &str {
        "RemoveUnusedParameters"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let candidates = called_by_name_only(&module);
        let known_dims = args_with_known_dims(&module);
        let mut changed: FxHashMap<Arc<str>, Arc<Function>> = FxHashMap::default();
        let mut remaining: FxHashMap<Arc<str>, RemainingArgs> = FxHashMap::default();
        // Removing an argument of a callee may remove the only use of a parameter of the caller, so callees come first.
        for name in CallGraph::of(&module).callees_first {
            ctx.check_cancelled()?;
            if !candidates.contains(&name) {
                continue;
            }
            let Some(BaseFunc::Relax(func)) = module.get(&name) else { continue };
            let mut rewritten = Function::clone(func);
            rewrite_calls_in(&mut rewritten, &changed, |site| remaining_args(site, &remaining))?;
            let plan = RemainingArgs::of(&rewritten, known_dims.get(&name));
            if plan.keep.contains(&false) {
                let mut new = Function::clone(func);
                plan.apply(&mut new);
                let new = Arc::new(new);
                module.insert(name.clone(), BaseFunc::Relax(new.clone()));
                changed.insert(name.clone(), new);
                remaining.insert(name, plan);
            }
        }
        rewrite_calls(&mut module, ctx, &changed, |site| remaining_args(site, &remaining))?;
        Ok(module)
    }
}

/// Returns, for each called function, a flag per parameter: whether the dims of the argument are known at all calls.
fn args_with_known_dims(module: &IRModule) -> FxHashMap<Arc<str>, Vec<bool>> {
    let mut out: FxHashMap<Arc<str>, Vec<bool>> = FxHashMap::default();
    for (_, func) in module.relax_funcs() {
        post_order(func, |e| {
            if let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(e)
                && let ExprData::Global(name) = *func.expr(*callee)
            {
                let args = func.list(*args);
                let known_dims =
                    out.entry(func.str(name).clone()).or_insert_with(|| vec![true; args.len()]);
                for (known_dims, &arg) in known_dims.iter_mut().zip(args) {
                    *known_dims &= func.types.get(func.expr_ty(arg)).dims().is_some();
                }
            }
        });
    }
    out
}

/// The arguments that calls of a function pass after the removal: the kept arguments, then sizes, which are dims of removed
/// arguments.
struct RemainingArgs {
    /// For each parameter of the function, whether it is kept.
    keep: Vec<bool>,
    sizes: Vec<SizeSource>,
}

/// A size that becomes a parameter, and the dim of a removed parameter that defines it.
struct SizeSource {
    size: SymVar,
    param: usize,
    dim: usize,
}

impl RemainingArgs {
    /// Determines the parameters and sizes that a function uses. A used size is passed as a separate argument if all callers know
    /// it; otherwise the parameter that defines it is kept.
    fn of(func: &Function, known_dims: Option<&Vec<bool>>) -> RemainingArgs {
        let used: FxHashSet<Var> = used_vars(func, func.root()).into_iter().collect();
        let shapes = shape_vars(func);
        let params = func.params().to_vec();
        let mut keep: Vec<bool> =
            params.iter().map(|p| used.contains(p) || shapes.contains(p)).collect();
        let mut sizes = Vec::new();
        let mut defined: FxHashSet<SymVar> = FxHashSet::default();
        let mut needed_syms = match keep.contains(&false) {
            true => body_syms(func),
            false => FxHashSet::default(),
        };
        for (&p, _) in params.iter().zip(&keep).filter(|(_, keep)| **keep) {
            defined.extend(definable_syms(func, func.var(p).ty));
            needed_syms.extend(type_syms(func, func.var(p).ty));
        }
        let param_syms = |p: Var| type_syms(func, func.var(p).ty);
        // A parameter that is kept for one size may mention further sizes in its other dims.
        while let Some((i, size)) = (0..params.len()).filter(|&i| !keep[i]).find_map(|i| {
            let is_undefined = |v: &SymVar| needed_syms.contains(v) && !defined.contains(v);
            Some((i, param_syms(params[i]).into_iter().find(is_undefined)?))
        }) {
            let is_known = known_dims.and_then(|known_dims| known_dims.get(i)) == Some(&true);
            match is_known.then(|| dim_of(func, params[i], size)).flatten() {
                Some(dim) => {
                    sizes.push(SizeSource { size, param: i, dim });
                    defined.insert(size);
                }
                None => {
                    keep[i] = true;
                    defined.extend(definable_syms(func, func.var(params[i]).ty));
                    needed_syms.extend(param_syms(params[i]));
                }
            }
        }
        RemainingArgs { keep, sizes }
    }

    /// Replaces the parameters of the function by the kept parameters and the sizes.
    fn apply(&self, func: &mut Function) {
        let mut namer = Namer::new(func);
        let mut params: Vec<Var> = func.params().to_vec();
        let mut flags = self.keep.iter();
        params.retain(|_| flags.next() == Some(&true));
        for source in &self.sizes {
            let value = func.syms.var(source.size);
            let ty = func.intern(TypeData::Prim { dtype: DType::Int64, value: Some(value) });
            let name = namer.fresh(&format!("param_{}", func.syms.name(source.size)));
            params.push(func.add_var(name, ty, false, Span::default()));
        }
        let root = func.root();
        func.func_mut(root).params = params;
    }
}

/// Returns the index of the dim of a parameter that equals `size`; `None` if there is none.
fn dim_of(func: &Function, param: Var, size: SymVar) -> Option<usize> {
    let dims = func.var_ty(param).dims()?;
    dims.iter().position(|&d| func.syms.as_var(d) == Some(size))
}

/// Returns the arguments of a call without the removed ones, followed by the sizes that replace them.
fn remaining_args(
    site: CallSite<'_>,
    remaining: &FxHashMap<Arc<str>, RemainingArgs>,
) -> Option<Vec<Expr>> {
    let plan = remaining.get(site.callee)?;
    let kept = site.args.iter().zip(&plan.keep).filter(|(_, keep)| **keep);
    let mut args: Vec<Expr> = kept.map(|(&arg, _)| arg).collect();
    for source in &plan.sizes {
        let ty = site.func.expr_ty(site.args[source.param]);
        let size = site.func.types.get(ty).dims()?[source.dim];
        args.push(site.func.int_value(size, DType::Int64));
    }
    Some(args)
}

/// Returns the symbols that a function uses outside of its parameter types.
fn body_syms(func: &Function) -> FxHashSet<SymVar> {
    let mut body = func.clone();
    let root = body.root();
    body.func_mut(root).params.clear();
    let mut out = FxHashSet::default();
    for_each_sym(&body, root, |s| out.extend(body.syms.free_vars(s)));
    out
}
