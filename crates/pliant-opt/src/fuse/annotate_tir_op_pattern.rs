//! # What it does
//! Annotates each loop function with the attribute `op_pattern`, which states how it can be fused and is derived from its blocks: 0
//! elementwise, 1 broadcast, 2 injective, 3 reduction, 4 expensive with fusable outputs, 8 opaque.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
//!         for i in range(4):
//!             with T.block("exp"):
//!                 vi = T.axis.spatial(4, i)
//!                 B[vi] = T.exp(A[vi])
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
//!         T.func_attr({"op_pattern": 0})
//!         for i in range(4):
//!             with T.block("exp"):
//!                 vi = T.axis.spatial(4, i)
//!                 B[vi] = T.exp(A[vi])
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! An existing annotation.
//!
//! # Never
//! Changes the semantics of a function.

use std::sync::Arc;

use pliant_ir::attr_names::OP_PATTERN;
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::{ModulePass, PassContext, PassError};

use crate::analysis::fusion_pattern_kind::op_pattern;

/// The pass that annotates each loop function with its fusion pattern. See the module documentation.
pub struct AnnotateTirOpPattern;

impl ModulePass for AnnotateTirOpPattern {
    fn name(&self) -> &str {
        "AnnotateTIROpPattern"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        for func in module.functions.values_mut() {
            let BaseFunc::Prim(func) = func else { continue };
            ctx.check_cancelled()?;
            if !func.attrs.contains_key(OP_PATTERN) {
                let pattern = op_pattern(func);
                let value = AttrValue::Int(pattern as i64);
                Arc::make_mut(func).attrs.insert(OP_PATTERN.into(), value);
            }
        }
        Ok(module)
    }
}
