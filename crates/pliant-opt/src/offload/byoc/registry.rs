//! Code generators by the name of their backend.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use indexmap::IndexMap;
use pliant_ir::attr_names::COMPOSITE;
use pliant_ir::relax::Function;
use pliant_ir::{AttrValue, IRModule};
use pliant_pass::{PassContext, PassError};

/// A function with the attribute `Codegen`.
pub struct ExternalFunction<'a> {
    /// Its name in the module.
    pub name: Arc<str>,
    /// The function; the composite functions that it calls are local functions in it, or stand in the module.
    pub func: Arc<Function>,
    /// The module, for the functions that it calls.
    pub module: &'a IRModule,
}

impl ExternalFunction<'_> {
    /// The composite functions that it calls, with the names of their patterns: its own in order, then the module's.
    pub fn composites(&self) -> Vec<(Arc<str>, Arc<Function>)> {
        let called = pliant_ir::relax::visit::called_globals(&self.func);
        let mut out = super::nest::nested(&self.func);
        for name in called {
            let Some(func) = self.module.get(&name).and_then(|f| f.as_relax()) else { continue };
            if let Some(AttrValue::Str(pattern)) = func.attrs.get(COMPOSITE) {
                out.push((pattern.clone(), func.clone()));
            }
        }
        out
    }
}

/// What stands for a function after code generation: a packed function that gets the inputs, then the outputs.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The name under which the packed function is registered when the program runs.
    pub symbol: String,
    /// Which arguments of the function it gets, in order; all of them without.
    pub args: Option<Vec<usize>>,
}

impl Generated {
    /// The packed function of that name, with all arguments.
    pub fn symbol(symbol: impl Into<String>) -> Self {
        Generated { symbol: symbol.into(), args: None }
    }
}

/// The options of a backend, as the user gave them.
pub type TargetOptions = IndexMap<Arc<str>, AttrValue>;

/// A code generator.
pub trait ExternalCodegen: Send + Sync {
    /// Whether a function may hold several composite functions; else each gets one of its own.
    fn takes_regions(&self) -> bool {
        true
    }

    /// What stands for each function, in their order.
    ///
    /// # Errors
    /// What it cannot take.
    fn generate(
        &self,
        functions: &[ExternalFunction<'_>],
        options: &TargetOptions,
        ctx: &PassContext,
    ) -> Result<Vec<Generated>, PassError>;
}

static REGISTRY: LazyLock<RwLock<IndexMap<String, Arc<dyn ExternalCodegen>>>> =
    LazyLock::new(|| {
        let mut table: IndexMap<String, Arc<dyn ExternalCodegen>> = IndexMap::new();
        table.insert(super::gemm::NAME.into(), Arc::new(super::gemm::GemmCodegen));
        RwLock::new(table)
    });

/// Registers the code generator of a backend, in the place of the one of that name. Returns that one.
pub fn register_codegen(
    name: impl Into<String>,
    codegen: Arc<dyn ExternalCodegen>,
) -> Option<Arc<dyn ExternalCodegen>> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), codegen)
}

/// The code generator of that backend.
pub fn codegen(name: &str) -> Option<Arc<dyn ExternalCodegen>> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// The backends that have code generators, in the order of their registration.
pub fn codegens() -> Vec<String> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
