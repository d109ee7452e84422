//! [`PackedFuncs`]: the packed functions that the host, the program that runs the interpreter, provides.

use std::collections::BTreeMap;

use pliant_tensor::Tensor;

use crate::{InterpError, Value};

/// A collection of packed functions by name. The interpreter calls them on its own thread, one at a time.
pub trait PackedFuncs: Sync {
    /// Calls the function with the given name; `None` if there is none. A destination-passing call passes the outputs after the
    /// inputs, and the function writes the outputs with [`assign`].
    fn call(&self, name: &str, args: &[Value]) -> Option<Result<Value, String>>;
}

/// A collection that contains no packed functions.
pub struct NoPacked;

impl PackedFuncs for NoPacked {
    fn call(&self, _name: &str, _args: &[Value]) -> Option<Result<Value, String>> {
        None
    }
}

type PackedFn = Box<dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync>;

/// A table of packed functions, to which the program that embeds the interpreter adds functions.
#[derive(Default)]
pub struct PackedTable {
    functions: BTreeMap<String, PackedFn>,
}

impl PackedTable {
    /// Creates a table without packed functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function, or replaces the one with the same name.
    pub fn with(
        mut self,
        name: &str,
        function: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        self.functions.insert(name.to_string(), Box::new(function));
        self
    }
}

impl PackedFuncs for PackedTable {
    fn call(&self, name: &str, args: &[Value]) -> Option<Result<Value, String>> {
        self.functions.get(name).map(|function| function(args))
    }
}

/// Copies the elements of `source` to `dest`, which must be row-major and have the same shape and data type.
///
/// # Errors
/// If shapes or data types differ, or `dest` is read-only or not row-major.
pub fn assign(dest: &Tensor, source: &Tensor) -> Result<(), InterpError> {
    // The source is copied first, because it may overlap the destination.
    let source = source.copy()?;
    // SAFETY: the interpreter runs sequentially, so nothing else accesses the destination meanwhile, and the copy has its own
    // memory.
    unsafe { dest.copy_from(&source)? };
    Ok(())
}
