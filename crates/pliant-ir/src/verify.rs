//! Checks modules against the specification. The rules for functions are in
//! [`relax::verify`](crate::relax::verify) and [`tir::verify`](crate::tir::verify). The rules for
//! whole modules are:
//!
//! - Graph functions only refer to functions of the module (PL0210, reported with the function).
//! - No two functions have the same `global_symbol` (PL0222). For a public function without this
//!   attribute, its name counts.

use pliant_diag::{Diagnostic, error_codes};
use rustc_hash::FxHashMap;

use crate::attr_names::GLOBAL_SYMBOL;
use crate::ir_module::{BaseFunc, IRModule};
use crate::op::OpRegistry;

/// Maximum number of violations that are reported for one function.
pub(crate) const MAX_PER_FUNCTION: usize = 200;

/// Finds all violations of the specification in a module, in the order of the text. The result is empty if the module is
/// well-formed.
///
/// # Examples
/// ```
/// use pliant_ir::attr_names::GLOBAL_SYMBOL;
/// use pliant_ir::op::NoOps;
/// use pliant_ir::tir::PrimFunc;
/// use pliant_ir::verify::verify_module;
/// use pliant_ir::{AttrValue, IRModule};
///
/// let mut module = IRModule::new();
/// for name in ["f", "g"] {
///     let mut f = PrimFunc::new();
///     f.attrs.insert(GLOBAL_SYMBOL.into(), AttrValue::str("f"));
///     module.insert(name, f);
/// }
/// assert_eq!(verify_module(&module, &NoOps)[0].code, "PL0222");
/// ```
pub fn verify_module(module: &IRModule, ops: &dyn OpRegistry) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let mut symbols: FxHashMap<&str, &str> = FxHashMap::default();
    for (name, func) in &module.functions {
        let private = match func {
            BaseFunc::Relax(f) => f.private,
            BaseFunc::Prim(f) => f.private,
        };
        let symbol = func.attrs().get(GLOBAL_SYMBOL).and_then(|a| a.as_str());
        if let Some(symbol) = symbol.or((!private).then_some(&**name))
            && let Some(other) = symbols.insert(symbol, name)
        {
            let message =
                format!("functions '{other}' and '{name}' have the same global symbol '{symbol}'");
            out.push(Diagnostic::error(error_codes::PL0222, message).in_function(&**name));
        }
        let violations = match func {
            BaseFunc::Relax(f) => crate::relax::verify::verify_function(f, Some(module), ops),
            BaseFunc::Prim(f) => crate::tir::verify::verify_prim_func(f),
        };
        out.extend(violations.into_iter().map(|d| d.in_function(&**name)));
    }
    out
}
