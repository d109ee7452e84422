//! The machine code of a program's bytecode functions, and the memory that contains it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use pliant_exec::native_body_abi::BodyFn;

/// The native bodies (machine code) of a program's bytecode functions, in the order of `Executable::vm_functions`. Dropping the
/// last clone frees the code, so keep a clone while a copied entry point is in use.
#[derive(Clone, Default)]
pub struct CompiledBodies {
    bodies: Vec<Arc<[BodyFn]>>,
    memory: Vec<Arc<dyn Any + Send + Sync>>,
}

impl CompiledBodies {
    /// Creates a list of native bodies (the machine code of bytecode functions). Each body is a list of machine functions, one
    /// for each range of the function's instructions. `memory` owns the code of all bodies.
    pub fn new(bodies: Vec<Arc<[BodyFn]>>, memory: Vec<Arc<dyn Any + Send + Sync>>) -> Self {
        CompiledBodies { bodies, memory }
    }

    /// Iterates over the native bodies (the machine code of bytecode functions). Each body is a list of machine functions, one
    /// for each range of the function's instructions.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<[BodyFn]>> {
        self.bodies.iter()
    }
}

impl fmt::Debug for CompiledBodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bodies, allocations) = (self.bodies.len(), self.memory.len());
        write!(f, "CompiledBodies({bodies} bodies in {allocations} allocations)")
    }
}
