//! The code generators, by backend name.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use indexmap::IndexMap;
use pliant_ir::attr_names::COMPOSITE;
use pliant_ir::relax::Function;
use pliant_ir::{AttrValue, IRModule};
use pliant_pass::{PassContext, PassError};

/// A function with the attribute `Codegen`, which a code generator compiles.
pub struct ExternalFunction<'a> {
    /// The name of the function in the module.
    pub name: Arc<str>,
    /// The function. The composite functions that it calls are local functions or functions of the module.
    pub func: Arc<Function>,
    /// The module that contains the function and the functions that it calls.
    pub module: &'a IRModule,
}

impl ExternalFunction<'_> {
    /// The composite functions that the function calls, with the names of their patterns: local functions in order, then functions
    /// of the module.
    pub fn composites(&self) -> Vec<(Arc<str>, Arc<Function>)> {
        let called = pliant_ir::relax::visit::called_globals(&self.func);
        let mut out = super::nest_composite_functions::nested_composites(&self.func);
        for name in called {
            let Some(func) = self.module.get(&name).and_then(|f| f.as_relax()) else { continue };
            if let Some(AttrValue::Str(pattern)) = func.attrs.get(COMPOSITE) {
                out.push((pattern.clone(), func.clone()));
            }
        }
        out
    }
}

/// The packed function by which code generation replaces a function with the attribute `Codegen`. It takes the inputs, then the
/// outputs.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The name under which the packed function is registered at run time.
    pub symbol: String,
    /// The indices of the arguments of the replaced call that the packed function takes, in order. `None` for all arguments.
    pub args: Option<Vec<usize>>,
}

impl Generated {
    /// The packed function with this name, which takes all arguments.
    pub fn symbol(symbol: impl Into<String>) -> Self {
        Generated { symbol: symbol.into(), args: None }
    }
}

/// The options of a backend, as the user set them.
pub type TargetOptions = IndexMap<Arc<str>, AttrValue>;

/// A code generator for functions of one backend.
pub trait ExternalCodegen: Send + Sync {
    /// Whether a function that the generator compiles may contain several composite functions. If not, each composite function
    /// becomes a function of its own.
    fn takes_regions(&self) -> bool {
        true
    }

    /// Compiles functions. Returns one packed function for each, in the same order.
    ///
    /// # Errors
    /// If the backend does not support a function.
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
        table.insert(super::gemm_backend::NAME.into(), Arc::new(super::gemm_backend::GemmCodegen));
        RwLock::new(table)
    });

/// Registers the code generator of a backend. Returns the one that it replaces.
pub fn register_codegen(
    name: impl Into<String>,
    codegen: Arc<dyn ExternalCodegen>,
) -> Option<Arc<dyn ExternalCodegen>> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), codegen)
}

/// The code generator of a backend.
pub fn codegen(name: &str) -> Option<Arc<dyn ExternalCodegen>> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// The backends that have code generators, in the order of their registration.
pub fn codegens() -> Vec<String> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
