//! What a pass is: [`ModulePass`], passes over single graph functions, and sequences of passes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pliant_ir::{BaseFunc, IRModule, relax};
use rayon::prelude::*;

use crate::context::PassContext;
use crate::error::PassError;

/// A step of a compilation: a module in, a module out.
pub trait ModulePass: Send + Sync {
    /// Its name, as the table of passes and the command line spell it.
    fn name(&self) -> &str;

    /// The lowest optimisation level that runs it; 0 for passes that the build needs.
    fn opt_level(&self) -> u8 {
        0
    }

    /// Does the work. Call [`apply`](ModulePass::apply) instead, which watches over it.
    ///
    /// # Errors
    /// What the pass finds wrong.
    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError>;

    /// Runs the pass under a context: skipped where the context leaves it out, watched by the instruments,
    /// cancellable. A panic inside becomes an internal error.
    ///
    /// # Errors
    /// What the pass or an instrument finds wrong, or a cancellation.
    fn apply(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.enables(self.name(), self.opt_level()) {
            return Ok(module);
        }
        ctx.check_cancelled()?;
        for instrument in &ctx.instruments {
            instrument.before(self.name(), &module, ctx)?;
        }
        let result = guarded(self, module, ctx);
        match &result {
            Ok(module) => {
                for instrument in &ctx.instruments {
                    instrument.after(self.name(), module, ctx)?;
                }
            }
            Err(_) => ctx.instruments.iter().for_each(|i| i.failed(self.name())),
        }
        result
    }
}

/// Runs the pass, names it in internal errors and attaches the IR where keeping a copy of it is affordable.
fn guarded<P: ModulePass + ?Sized>(
    pass: &P,
    module: IRModule,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    // A kept module makes every function shared, so that the pass must copy what it changes.
    let kept = ctx.flag("keep_ir", cfg!(debug_assertions)).then(|| module.clone());
    let result = catch_unwind(AssertUnwindSafe(|| pass.run(module, ctx)));
    let error = match result {
        Ok(Ok(module)) => return Ok(module),
        Ok(Err(error)) => error,
        Err(panic) => PassError::internal(format!("panicked: {}", panic_text(&*panic))),
    };
    Err(match error {
        PassError::Internal { pass: name, message, ir } => PassError::Internal {
            pass: if name.is_empty() { pass.name().into() } else { name },
            message,
            ir: ir.or_else(|| kept.map(|m| crate::text::module_text(&m, ctx.ops))),
        },
        other => other,
    })
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// A pass that rewrites each graph function alone. Functions are rewritten in parallel.
pub trait FunctionPass: Send + Sync {
    /// Its name, as the table of passes and the command line spell it.
    fn name(&self) -> &str;

    /// See [`ModulePass::opt_level`].
    fn opt_level(&self) -> u8 {
        0
    }

    /// Rewrites one function of that name, which it may change in place.
    ///
    /// # Errors
    /// What the pass finds wrong.
    fn run_on(
        &self,
        name: &str,
        func: &mut relax::Function,
        ctx: &PassContext,
    ) -> Result<(), PassError>;
}

impl<P: FunctionPass> ModulePass for P {
    fn name(&self) -> &str {
        FunctionPass::name(self)
    }

    fn opt_level(&self) -> u8 {
        FunctionPass::opt_level(self)
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        for_each_relax(&mut module, ctx, |name, func| self.run_on(name, func, ctx))?;
        Ok(module)
    }
}

/// Applies `f` to every graph function of a module, in parallel.
///
/// # Errors
/// The errors of all functions joined, in the order of the functions.
pub fn for_each_relax(
    module: &mut IRModule,
    ctx: &PassContext,
    f: impl Fn(&str, &mut relax::Function) -> Result<(), PassError> + Sync,
) -> Result<(), PassError> {
    let functions: Vec<(&Arc<str>, &mut Arc<relax::Function>)> = module
        .functions
        .iter_mut()
        .filter_map(|(name, func)| match func {
            BaseFunc::Relax(func) => Some((name, func)),
            BaseFunc::Prim(_) => None,
        })
        .collect();
    let errors: Vec<PassError> = functions
        .into_par_iter()
        .filter_map(|(name, func)| {
            let result = ctx.check_cancelled().and_then(|()| f(name, Arc::make_mut(func)));
            result.err().map(|e| e.in_function(name))
        })
        .collect();
    PassError::join(errors).map_or(Ok(()), Err)
}

/// Passes one after the other, as one pass.
pub struct Sequential {
    name: String,
    passes: Vec<Box<dyn ModulePass>>,
}

impl Sequential {
    /// A sequence of that name.
    pub fn new(name: impl Into<String>, passes: Vec<Box<dyn ModulePass>>) -> Self {
        Sequential { name: name.into(), passes }
    }

    /// The passes, in order.
    pub fn passes(&self) -> &[Box<dyn ModulePass>] {
        &self.passes
    }

    /// Adds a pass at the end.
    pub fn push(&mut self, pass: Box<dyn ModulePass>) {
        self.passes.push(pass);
    }

    /// Runs the passes without counting the sequence itself as a pass.
    ///
    /// # Errors
    /// That of the first pass that fails.
    pub fn run_each(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        self.passes.iter().try_fold(module, |module, pass| pass.apply(module, ctx))
    }
}

impl ModulePass for Sequential {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        self.run_each(module, ctx)
    }
}
