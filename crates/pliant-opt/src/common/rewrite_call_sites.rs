//! Rewrites the calls of functions whose parameters a pass has changed.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::type_lattice::{SymMap, import_type};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Type, TypeData};
use pliant_pass::binding_rewrites::{Namer, reachable_seqs, rewrite_bindings};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{PassContext, PassError};
use rustc_hash::FxHashMap;

/// A call that is being rewritten.
pub(crate) struct CallSite<'a> {
    /// The function that contains the call.
    pub func: &'a mut Function,
    /// The name of the callee.
    pub callee: &'a str,
    /// The arguments of the call.
    pub args: Vec<Expr>,
    /// Bindings to insert before the call.
    pub before: &'a mut Vec<Binding>,
    namer: &'a mut Option<Namer>,
}

impl CallSite<'_> {
    /// Binds a value to a new variable before the call. The variable's name is derived from `hint`.
    pub fn bind(&mut self, hint: &str, value: Expr) -> Expr {
        let namer = self.namer.get_or_insert_with(|| Namer::new(self.func));
        namer.bind(self.func, hint, value, self.before)
    }
}

/// Rewrites the arguments of all direct calls of changed functions. `changed` contains the functions after the change. The
/// callback `args` returns the new arguments of a call, or `None` to keep the call unchanged.
///
/// # Errors
/// If the pass is cancelled.
pub(crate) fn rewrite_calls(
    module: &mut IRModule,
    ctx: &PassContext,
    changed: &FxHashMap<Arc<str>, Arc<Function>>,
    args: impl Fn(CallSite<'_>) -> Option<Vec<Expr>> + Sync,
) -> Result<(), PassError> {
    if changed.is_empty() {
        return Ok(());
    }
    update_each_relax(module, ctx, |_, func| rewrite_calls_in(func, changed, &args))
}

/// Rewrites the arguments of all direct calls of the functions `changed` in the function `func`, as [`rewrite_calls`] does for a
/// module. Returns whether a call was rewritten.
pub(crate) fn rewrite_calls_in(
    func: &mut Function,
    changed: &FxHashMap<Arc<str>, Arc<Function>>,
    args: impl Fn(CallSite<'_>) -> Option<Vec<Expr>>,
) -> Result<bool, PassError> {
    let mut changed_any = false;
    let mut namer = None;
    let first = func.num_vars();
    rewrite_bindings(func, |func, mut binding, out| {
        if let ExprData::Call { callee: Callee::Expr(callee), args: old, attrs, ty_args } =
            func.expr(binding.value).clone()
            && let ExprData::Global(name) = *func.expr(callee)
            && let Some((name, target)) = changed.get_key_value(&**func.str(name))
        {
            let (old, attrs) = (func.list(old).to_vec(), func.call_attrs(attrs).clone());
            let ty_args = func.type_list(ty_args).to_vec();
            let site = CallSite {
                func: &mut *func,
                callee: name,
                args: old,
                before: &mut *out,
                namer: &mut namer,
            };
            if let Some(new) = args(site) {
                let ty = func.expr_ty(binding.value);
                let callee = callee_expr(func, name, target);
                binding.value = func.call(Callee::Expr(callee), &new, attrs, &ty_args, ty);
                changed_any = true;
            }
        }
        out.push(binding);
        Ok(())
    })?;
    if func.num_vars() > first {
        mark_dataflow_locals(func, first);
    }
    Ok(changed_any)
}

/// Marks new variables (with an index of at least `first`) that dataflow blocks define as local to these blocks. This is valid
/// because only the rewritten calls in the same block read them.
fn mark_dataflow_locals(func: &mut Function, first: usize) {
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            if func.block(block).dataflow {
                for b in func.block(block).bindings.clone() {
                    func.var_mut(b.var).dataflow |= b.var.as_u32() as usize >= first;
                }
            }
        }
    }
}

/// Creates a reference to the module's function `callee` in the function `func`. The type of the reference is the signature of
/// the callee.
pub(crate) fn callee_expr(func: &mut Function, name: &str, callee: &Function) -> Expr {
    let mut syms = SymMap::default();
    let params: Box<[Type]> = callee
        .params()
        .iter()
        .map(|&p| import_type(func, callee, callee.var(p).ty, &mut syms))
        .collect();
    let ret = import_type(func, callee, callee.ret_ty(), &mut syms);
    let pure = callee.is_pure();
    let ty = func.intern(TypeData::Callable { params: Some(params), ret, pure });
    func.global(name, ty)
}
