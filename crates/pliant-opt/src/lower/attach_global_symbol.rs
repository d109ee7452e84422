//! # What it does
//! Gives every public function the attribute `global_symbol`: the name of the function, which is also its name in the executable.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
//!     return x
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
//!     R.func_attr({"global_symbol": "main"})
//!     return x
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! An existing attribute.
//!
//! # Never
//! Changes a private function.

use std::sync::Arc;

use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::{ModulePass, PassContext, PassError};

/// The pass that gives public functions the attribute `global_symbol`. See the module documentation.
pub struct AttachGlobalSymbol;

impl ModulePass for AttachGlobalSymbol {
    fn name(&self) -> &str {
        "AttachGlobalSymbol"
    }

    fn run(&self, mut module: IRModule, _: &PassContext) -> Result<IRModule, PassError> {
        for (name, func) in &mut module.functions {
            if func.attrs().contains_key(GLOBAL_SYMBOL) {
                continue;
            }
            let value = AttrValue::Str(name.clone());
            match func {
                BaseFunc::Relax(f) if !f.private => {
                    Arc::make_mut(f).attrs.insert(GLOBAL_SYMBOL.into(), value);
                }
                BaseFunc::Prim(f) if !f.private => {
                    Arc::make_mut(f).attrs.insert(GLOBAL_SYMBOL.into(), value);
                }
                _ => {}
            }
        }
        Ok(module)
    }
}
