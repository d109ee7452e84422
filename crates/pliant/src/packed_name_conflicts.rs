//! Prevents name conflicts between packed functions and the functions of a module. Both share one
//! namespace in an executable, since a program may call its own functions by name. If a pass
//! creates a function with the same name as a packed function that the module calls,
//! [`rename_conflicting`] renames the created function.

use std::collections::BTreeSet;
use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::visit::{bindings, for_each_expr};
use pliant_ir::relax::{ExprData, Function};
use pliant_opt::canonicalize::normalize_global_var::rename_functions;
use pliant_pass::{PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

/// Renames functions that have the same name as a packed function that the module calls. Functions
/// in `original`, which the program contained before the passes ran, keep their names.
///
/// # Errors
/// If the compilation is cancelled.
pub(crate) fn rename_conflicting(
    mut module: IRModule,
    original: &FxHashSet<Arc<str>>,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    let mut called: BTreeSet<Arc<str>> = BTreeSet::new();
    module.relax_funcs().for_each(|(_, func)| packed_names(func, &mut called));
    called.retain(|name| module.functions.contains_key(name) && !original.contains(name));
    let mut renamed: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
    for name in called {
        let is_free = |new: &String| !module.functions.contains_key(new.as_str());
        let new = (1u64..).map(|i| format!("{name}{i}")).find(is_free).unwrap_or_default();
        renamed.insert(name, new.into());
    }
    rename_functions(&mut module, &renamed, ctx)?;
    Ok(module)
}

/// Adds the names of the packed functions that a function calls.
fn packed_names(func: &Function, out: &mut BTreeSet<Arc<str>>) {
    for (_, b) in bindings(func) {
        for_each_expr(func, b.value, |e| {
            if let ExprData::Extern(name) = func.expr(e) {
                out.insert(func.str(*name).clone());
            }
        });
    }
}
