//! [`IRModule`]: named graph functions and loop functions. Every pass maps an `IRModule` to an `IRModule`.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::attr_values::FuncAttrs;
use crate::{relax, tir};

/// A function of a module: a graph function or a loop function. It is shared and copied on write.
#[derive(Clone, Debug)]
pub enum BaseFunc {
    /// A graph function (Relax).
    Relax(Arc<relax::Function>),
    /// A loop function (TIR).
    Prim(Arc<tir::PrimFunc>),
}

impl BaseFunc {
    /// The graph function; `None` for a loop function.
    pub fn as_relax(&self) -> Option<&Arc<relax::Function>> {
        match self {
            BaseFunc::Relax(f) => Some(f),
            BaseFunc::Prim(_) => None,
        }
    }

    /// The loop function; `None` for a graph function.
    pub fn as_prim(&self) -> Option<&Arc<tir::PrimFunc>> {
        match self {
            BaseFunc::Prim(f) => Some(f),
            BaseFunc::Relax(_) => None,
        }
    }

    /// The attributes of the function.
    pub fn attrs(&self) -> &FuncAttrs {
        match self {
            BaseFunc::Relax(f) => &f.attrs,
            BaseFunc::Prim(f) => &f.attrs,
        }
    }
}

impl From<relax::Function> for BaseFunc {
    fn from(f: relax::Function) -> Self {
        BaseFunc::Relax(Arc::new(f))
    }
}

impl From<tir::PrimFunc> for BaseFunc {
    fn from(f: tir::PrimFunc) -> Self {
        BaseFunc::Prim(Arc::new(f))
    }
}

/// A module: functions by their global names, in the order of their definition. Clones share the functions.
///
/// # Examples
/// ```
/// use pliant_ir::IRModule;
/// use pliant_ir::tir::PrimFunc;
///
/// let mut module = IRModule::new();
/// module.insert("scale", PrimFunc::new());
/// assert!(module.get("scale").is_some_and(|f| f.as_prim().is_some()));
/// assert_eq!((module.relax_funcs().count(), module.prim_funcs().count()), (0, 1));
/// assert_eq!(&*module.fresh_name("scale"), "scale1");
/// ```
#[derive(Clone, Debug, Default)]
pub struct IRModule {
    /// The functions of the module, by name.
    pub functions: IndexMap<Arc<str>, BaseFunc>,
    /// The attributes of the whole module.
    pub attrs: FuncAttrs,
}

impl IRModule {
    /// Creates a module without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// The function with the given name; `None` if it does not exist.
    pub fn get(&self, name: &str) -> Option<&BaseFunc> {
        self.functions.get(name)
    }

    /// Adds a function, or replaces the existing one with the same name, keeping its position.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, func: impl Into<BaseFunc>) {
        self.functions.insert(name.into(), func.into());
    }

    /// Removes a function and returns it. The order of the other functions does not change.
    pub fn remove(&mut self, name: &str) -> Option<BaseFunc> {
        self.functions.shift_remove(name)
    }

    /// An unused function name: the first of `hint`, `hint1`, `hint2`, ...
    pub fn fresh_name(&self, hint: &str) -> Arc<str> {
        if !self.functions.contains_key(hint) {
            return hint.into();
        }
        (1u64..)
            .map(|i| format!("{hint}{i}"))
            .find(|name| !self.functions.contains_key(name.as_str()))
            .expect("a module has finitely many functions, so some name is unused")
            .into()
    }

    /// The graph functions of the module, in the order of definition.
    pub fn relax_funcs(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<relax::Function>)> {
        self.functions.iter().filter_map(|(n, f)| f.as_relax().map(|f| (n, f)))
    }

    /// Whether any graph function contains an in-place call ([`Op::writes_operands`](crate::Op::writes_operands)).
    pub fn has_inplace_calls(&self) -> bool {
        self.relax_funcs().any(|(_, f)| relax::visit::has_inplace_calls(f))
    }

    /// The loop functions of the module, in the order of definition.
    pub fn prim_funcs(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<tir::PrimFunc>)> {
        self.functions.iter().filter_map(|(n, f)| f.as_prim().map(|f| (n, f)))
    }
}
