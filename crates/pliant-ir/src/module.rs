//! [`IRModule`]: named functions of both levels. Every pass is `IRModule -> IRModule`.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::attrs::FuncAttrs;
use crate::{relax, tir};

/// A function of either level. Shared and copied on write.
#[derive(Clone, Debug)]
pub enum BaseFunc {
    /// A graph function.
    Relax(Arc<relax::Function>),
    /// A loop function.
    Prim(Arc<tir::PrimFunc>),
}

impl BaseFunc {
    /// The graph function, if it is one.
    pub fn as_relax(&self) -> Option<&Arc<relax::Function>> {
        match self {
            BaseFunc::Relax(f) => Some(f),
            BaseFunc::Prim(_) => None,
        }
    }

    /// The loop function, if it is one.
    pub fn as_prim(&self) -> Option<&Arc<tir::PrimFunc>> {
        match self {
            BaseFunc::Prim(f) => Some(f),
            BaseFunc::Relax(_) => None,
        }
    }

    /// The function's attributes.
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

/// A module: functions by global name, in the order of their definition. Cloning shares the functions.
#[derive(Clone, Debug, Default)]
pub struct IRModule {
    /// The functions.
    pub functions: IndexMap<Arc<str>, BaseFunc>,
    /// Notes on the whole module.
    pub attrs: FuncAttrs,
}

impl IRModule {
    /// An empty module.
    pub fn new() -> Self {
        Self::default()
    }

    /// The function of that name.
    pub fn get(&self, name: &str) -> Option<&BaseFunc> {
        self.functions.get(name)
    }

    /// Adds a function, or replaces the one of the same name in its place.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, func: impl Into<BaseFunc>) {
        self.functions.insert(name.into(), func.into());
    }

    /// Removes a function, keeping the order of the others.
    pub fn remove(&mut self, name: &str) -> Option<BaseFunc> {
        self.functions.shift_remove(name)
    }

    /// A name not yet taken: `hint`, else `hint1`, `hint2`, ...
    pub fn fresh_name(&self, hint: &str) -> Arc<str> {
        if !self.functions.contains_key(hint) {
            return hint.into();
        }
        (1u64..)
            .map(|i| format!("{hint}{i}"))
            .find(|name| !self.functions.contains_key(name.as_str()))
            .expect("a finite module leaves a name free")
            .into()
    }

    /// The graph functions, in order.
    pub fn relax_funcs(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<relax::Function>)> {
        self.functions.iter().filter_map(|(n, f)| f.as_relax().map(|f| (n, f)))
    }

    /// Whether a call of some graph function says that it works in place.
    pub fn works_in_place(&self) -> bool {
        self.relax_funcs().any(|(_, f)| relax::visit::works_in_place(f))
    }

    /// The loop functions, in order.
    pub fn prim_funcs(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<tir::PrimFunc>)> {
        self.functions.iter().filter_map(|(n, f)| f.as_prim().map(|f| (n, f)))
    }
}
