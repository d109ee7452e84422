//! # What it does
//! Changes the types of parameters, and infers all types that depend on them again.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 2), "float32")) -> R.Tensor((4, 2), "float32"):
//!     with R.dataflow():
//!         lv = R.matmul(x, w)
//!         gv = R.exp(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! With `R.Tensor(("n", 8), "float32")` for `x`.
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 2), "float32")) -> R.Tensor(("n", 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(x, w)
//!         gv = R.exp(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! The body must be well typed with the new types, and must not use sizes that the new types do not define.
//!
//! # Keeps
//! The types in `match_cast` bindings.
//!
//! # Never
//! Changes functions whose parameters keep their types.

use std::sync::Arc;

use pliant_ir::relax::visit::free_syms;
use pliant_ir::relax::{Function, Type, Var};
use pliant_ir::{BaseFunc, IRModule, SymVar};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::repeat_type_inference::reinfer;

/// A callback that receives the name of a function and the function, and returns new types of its parameters. It creates the
/// types in the function's arenas. Parameters that it does not return keep their types.
pub type ParamTypesFn =
    dyn Fn(&str, &mut Function) -> Result<Vec<(Var, Type)>, PassError> + Send + Sync;

/// The pass that changes the types of parameters and infers all types that depend on them again. See the module documentation.
#[derive(Clone)]
pub struct UpdateParamStructInfo {
    /// The callback that returns the new types. It is called once for each function, in order.
    pub sinfo_func: Arc<ParamTypesFn>,
}

impl ModulePass for UpdateParamStructInfo {
    fn name(&self) -> &str {
        "UpdateParamStructInfo"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        // The undefined sizes of each changed function before the change.
        let mut free_before: FxHashMap<Arc<str>, FxHashSet<SymVar>> = FxHashMap::default();
        for (name, func) in &mut module.functions {
            ctx.check_cancelled()?;
            let BaseFunc::Relax(func) = func else { continue };
            let mut new = Function::clone(func);
            let types = (self.sinfo_func)(name, &mut new).map_err(|e| e.in_function(name))?;
            let mut changed = false;
            for (param, ty) in types {
                changed |= new.var(param).ty != ty;
                new.var_mut(param).ty = ty;
            }
            if changed {
                free_before
                    .insert(name.clone(), free_syms(func, func.root()).into_iter().collect());
                *func = Arc::new(new);
            }
        }
        if free_before.is_empty() {
            return Ok(module);
        }
        // The types of calls follow from the new signatures of the callees.
        let signatures = module.clone();
        update_each_relax(&mut module, ctx, |name, func| {
            let Some(before) = free_before.get(name) else { return Ok(false) };
            reinfer(func, &signatures, ctx.ops, true)?;
            let undefined = free_syms(func, func.root()).into_iter().find(|v| !before.contains(v));
            undefined.map_or(Ok(true), |v| Err(undefined_size_error(func, v)))
        })?;
        Ok(module)
    }
}

fn undefined_size_error(func: &Function, v: SymVar) -> PassError {
    let name = func.syms.name(v);
    let what = format!(
        "the body of the function uses the size '{name}', which the new parameter types no longer define"
    );
    let help = "keep the size in a parameter's type, or bind it with BindSymbolicVars";
    PassError::User(vec![Problem::new(what).with_help(help)])
}
