//! The registry of external code generators, by backend name.

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
    /// The function to compile. The composite functions that it calls are local functions or functions of the module.
    pub func: Arc<Function>,
    /// The module that contains the function and the functions that it calls.
    pub module: &'a IRModule,
}

impl ExternalFunction<'_> {
    /// Returns the composite functions (outlined matches of patterns of the backend) that this function calls, each with the name
    /// of its pattern: first local functions in order, then functions of the module.
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

/// The packed function that replaces a function with the attribute `Codegen`. Its parameters are the inputs, followed by the
/// outputs.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The name under which the packed function is registered at run time.
    pub symbol: String,
    /// The indices of those arguments of the replaced call that are passed to the packed function, in order. `None` if all
    /// arguments are passed.
    pub args: Option<Vec<usize>>,
}

impl Generated {
    /// Creates a reference to the packed function with this name, to which all arguments are passed.
    pub fn symbol(symbol: impl Into<String>) -> Self {
        Generated { symbol: symbol.into(), args: None }
    }
}

/// The options for a backend that the user has set, by name.
pub type TargetOptions = IndexMap<Arc<str>, AttrValue>;

/// A code generator for functions of one backend.
pub trait ExternalCodegen: Send + Sync {
    /// Whether the generator compiles regions, which are functions with several composite functions. Otherwise each composite
    /// function is passed to the generator separately.
    fn takes_regions(&self) -> bool {
        true
    }

    /// Compiles functions. Returns one packed function for each of them, in the same order.
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

/// Registers the code generator of a backend. Returns the generator that was registered for this backend before, if any.
pub fn register_codegen(
    name: impl Into<String>,
    codegen: Arc<dyn ExternalCodegen>,
) -> Option<Arc<dyn ExternalCodegen>> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), codegen)
}

/// Returns the code generator of a backend; `None` if none is registered.
pub fn codegen(name: &str) -> Option<Arc<dyn ExternalCodegen>> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// Returns the names of the backends that have code generators, in the order of their registration.
pub fn codegens() -> Vec<String> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
