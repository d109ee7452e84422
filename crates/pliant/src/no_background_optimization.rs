//! The interface of `background_optimization` in builds with one code generator, in which programs are never optimized in the
//! background.

use std::sync::Arc;
use std::time::Duration;

use pliant_ir::IRModule;
use pliant_vm::LoopFuncTable;

use crate::compile_options::Target;
use crate::error::Error;

/// The optimization of the loop functions of one program. The type has no values, because programs are never optimized in builds
/// with one code generator.
pub(crate) enum Optimization {}

impl Optimization {
    pub(crate) fn wait(&self, _timeout: Duration) -> bool {
        match *self {}
    }

    pub(crate) fn is_finished(&self) -> bool {
        match *self {}
    }

    pub(crate) fn has_succeeded(&self) -> bool {
        match *self {}
    }
}

/// Does nothing, because this build has no background compilation that must be stopped.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, compile, prepare_exit};
///
/// // The main thread only waits for a thread that compiles.
/// prepare_exit();
/// let compiler = std::thread::spawn(|| {
///     let script = "@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    return R.add(x, x)\n";
///     let script = pliant::parse("double.py", script).map_err(|(error, _)| error);
///     compile(script.expect("the script is valid").module, &CompileOptions::default()).is_ok()
/// });
/// assert!(compiler.join().expect("the thread does not panic"));
/// ```
pub fn prepare_exit() {}

/// Returns `None`, because builds with one code generator compile nothing in the background.
///
/// # Errors
/// The environment variable that selects the code generator has an invalid value.
pub(crate) fn start(
    target: Target,
    _module: &IRModule,
    _table: &mut LoopFuncTable,
) -> Result<Option<Arc<Optimization>>, Error> {
    target.resolve().map(|_| None)
}
