//! # What it does
//! Renames public functions to the name in their attribute `global_symbol`. A private function that already has this name gets a
//! new one.
//!
//! # Before
//! ```python
//! @R.function(private=True)
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     y = R.exp(x)
//!     return y
//!
//! @R.function
//! def entry(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     R.func_attr({"global_symbol": "main"})
//!     cls = Module
//!     y = cls.main(x)
//!     return y
//! ```
//!
//! # After
//! ```python
//! @R.function(private=True)
//! def main1(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     y = R.exp(x)
//!     return y
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     R.func_attr({"global_symbol": "main"})
//!     cls = Module
//!     y = cls.main1(x)
//!     return y
//! ```
//!
//! # Requires
//! No two public functions may have the same `global_symbol`.
//!
//! # Keeps
//! The order of the functions.
//!
//! # Never
//! Changes an attribute.

use std::sync::Arc;

use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::relax::visit::called_globals;
use pliant_ir::relax::{ExprData, Function};
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::binding_rewrites::{map_leaves, reachable_seqs};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

/// The pass that renames public functions to the name in their attribute `global_symbol`. See the module documentation.
pub struct NormalizeGlobalVar;

impl ModulePass for NormalizeGlobalVar {
    fn name(&self) -> &str {
        "NormalizeGlobalVar"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let renamed = new_names(&module)?;
        rename_functions(&mut module, &renamed, ctx)?;
        Ok(module)
    }
}

/// Renames functions in the module and in all graph functions that refer to them. An attribute `global_symbol` that equals the
/// old name is also changed.
///
/// # Errors
/// If two functions would have the same name, or if the pass is cancelled.
pub fn rename_functions(
    module: &mut IRModule,
    renamed: &FxHashMap<Arc<str>, Arc<str>>,
    ctx: &PassContext,
) -> Result<(), PassError> {
    if renamed.is_empty() {
        return Ok(());
    }
    let new_name = |name: &Arc<str>| renamed.get(name).unwrap_or(name).clone();
    let mut taken: FxHashSet<Arc<str>> = FxHashSet::default();
    if let Some(duplicate) =
        module.functions.keys().map(new_name).find(|name| !taken.insert(name.clone()))
    {
        return Err(PassError::user(format!(
            "the renaming would give two functions of the module the name '{duplicate}'; choose different names"
        )));
    }
    let old_functions = std::mem::take(&mut module.functions);
    module.functions.extend(old_functions.into_iter().map(|(name, mut func)| {
        let symbol = func.attrs().get(GLOBAL_SYMBOL).and_then(AttrValue::as_str);
        if symbol == Some(&*name) && renamed.contains_key(&name) {
            let symbol = AttrValue::Str(new_name(&name));
            match &mut func {
                BaseFunc::Relax(f) => Arc::make_mut(f).attrs.insert(GLOBAL_SYMBOL.into(), symbol),
                BaseFunc::Prim(f) => Arc::make_mut(f).attrs.insert(GLOBAL_SYMBOL.into(), symbol),
            };
        }
        (new_name(&name), func)
    }));
    update_each_relax(module, ctx, |_, func| {
        let mentions = called_globals(func).iter().any(|name| renamed.contains_key(name));
        if mentions {
            rename_globals(func, renamed);
        }
        Ok(mentions)
    })
}

fn is_private(func: &BaseFunc) -> bool {
    match func {
        BaseFunc::Relax(f) => f.private,
        BaseFunc::Prim(f) => f.private,
    }
}

/// Returns a map from the old name to the new name of each function that must be renamed. Fails if two public functions would get
/// the same name.
fn new_names(module: &IRModule) -> Result<FxHashMap<Arc<str>, Arc<str>>, PassError> {
    let mut owners: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
    let mut renamed: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
    for (name, func) in module.functions.iter().filter(|(_, f)| !is_private(f)) {
        let symbol = func.attrs().get(GLOBAL_SYMBOL).and_then(AttrValue::as_str);
        let symbol: Arc<str> = symbol.map_or_else(|| name.clone(), Into::into);
        if let Some(other) = owners.insert(symbol.clone(), name.clone()) {
            let what =
                format!("the public functions '{other}' and '{name}' are both named '{symbol}'");
            let problem = Problem::new(what).with_help(
                "give one of the two functions another name: change its attribute 'global_symbol'",
            );
            return Err(PassError::User(vec![problem]));
        }
        if symbol != *name {
            renamed.insert(name.clone(), symbol);
        }
    }
    let mut taken: FxHashSet<Arc<str>> = owners.keys().cloned().collect();
    taken.extend(module.functions.keys().cloned());
    for (name, _) in module.functions.iter().filter(|(_, f)| is_private(f)) {
        if !owners.contains_key(name) {
            continue;
        }
        let fresh: Arc<str> = (1u64..)
            .map(|i| format!("{name}{i}"))
            .find(|fresh| !taken.contains(fresh.as_str()))
            .expect("a module with finitely many functions leaves a numbered name unused")
            .into();
        taken.insert(fresh.clone());
        renamed.insert(name.clone(), fresh);
    }
    Ok(renamed)
}

fn rename_globals(func: &mut Function, renamed: &FxHashMap<Arc<str>, Arc<str>>) {
    let mut rename = |func: &mut Function, leaf| {
        let ExprData::Global(name) = *func.expr(leaf) else { return leaf };
        match renamed.get(func.str(name)) {
            Some(name) => {
                let ty = func.expr_ty(leaf);
                func.global(name, ty)
            }
            None => leaf,
        }
    };
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            let mut bindings = std::mem::take(&mut func.block_mut(block).bindings);
            for b in &mut bindings {
                b.value = map_leaves(func, b.value, &mut rename);
            }
            func.block_mut(block).bindings = bindings;
        }
        let result = func.seq(seq).result;
        let result = map_leaves(func, result, &mut rename);
        func.seq_mut(seq).result = result;
    }
}
