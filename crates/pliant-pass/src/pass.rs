//! Passes over modules ([`ModulePass`]), passes over single graph functions ([`FunctionPass`]), and sequences of passes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pliant_ir::{BaseFunc, IRModule, relax};
use pliant_pool::parallel_map;

use crate::pass_context::PassContext;
use crate::pass_error::PassError;
use crate::{module_dump_files, verify_user_passes};

/// The name and properties of a pass, as instruments see them.
#[derive(Clone, Copy, Debug)]
pub struct PassInfo<'a> {
    /// The name of the pass.
    pub name: &'a str,
    /// The minimum optimization level at which the pass runs.
    pub opt_level: u8,
    /// Whether the pass is user-defined; see [`ModulePass::is_user_defined`].
    pub user_defined: bool,
}

/// A pass: a transformation of a module.
///
/// # Example
/// ```
/// use pliant_ir::IRModule;
/// use pliant_pass::{ModulePass, PassContext, PassError};
///
/// /// Rejects modules of more than 1000 functions.
/// struct LimitFunctions;
///
/// impl ModulePass for LimitFunctions {
///     fn name(&self) -> &str {
///         "LimitFunctions"
///     }
///
///     fn run(&self, module: IRModule, _: &PassContext) -> Result<IRModule, PassError> {
///         match module.functions.len() {
///             0..=1000 => Ok(module),
///             n => Err(PassError::user(format!("the module has {n} functions, more than 1000"))),
///         }
///     }
/// }
///
/// let context = PassContext::new(pliant_ops::registry());
/// assert!(LimitFunctions.apply(IRModule::default(), &context).is_ok());
/// ```
pub trait ModulePass: Send + Sync {
    /// The name of the pass, as used in the table of passes and on the command line.
    fn name(&self) -> &str;

    /// The minimum optimization level at which the pass runs; 0 for passes that every compilation needs.
    fn opt_level(&self) -> u8 {
        0
    }

    /// The passes that a [`Sequential`] runs directly before this one.
    fn requires(&self) -> &[Arc<dyn ModulePass>] {
        &[]
    }

    /// Whether the pass is user-defined. If so, its result is verified. A failure or an ill-formed result is reported as an error
    /// of the pass's author, with a file that contains the input module.
    fn is_user_defined(&self) -> bool {
        false
    }

    /// The information about the pass that instruments receive.
    fn info(&self) -> PassInfo<'_> {
        PassInfo {
            name: self.name(),
            opt_level: self.opt_level(),
            user_defined: self.is_user_defined(),
        }
    }

    /// Transforms the module. This is the implementation of the pass; callers use [`apply`](ModulePass::apply), which adds
    /// instruments and error handling.
    ///
    /// # Errors
    /// If the program is invalid or unsupported.
    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError>;

    /// Runs the pass in a context. The context's instruments observe the pass and can skip it, and its token can cancel the pass.
    /// A panic becomes an internal error. The optimization level and the set of disabled passes are ignored, because a pass that
    /// is called directly should run; [`apply_as_step`](ModulePass::apply_as_step) respects them.
    ///
    /// # Errors
    /// If the pass or an instrument fails, or the run is cancelled.
    fn apply(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let info = self.info();
        ctx.check_cancelled()?;
        if !ctx.required.contains(info.name) {
            for instrument in &ctx.instruments {
                if !instrument.should_run(&info, &module, ctx)? {
                    return Ok(module);
                }
            }
        }
        for (i, instrument) in ctx.instruments.iter().enumerate() {
            if let Err(error) = instrument.before(&info, &module, ctx) {
                ctx.instruments[..i].iter().for_each(|begun| begun.failed(&info));
                return Err(error);
            }
        }
        let module = match run_caught(self, module, ctx) {
            Ok(module) => module,
            Err(error) => {
                ctx.instruments.iter().for_each(|i| i.failed(&info));
                return Err(error);
            }
        };
        for (i, instrument) in ctx.instruments.iter().enumerate() {
            if let Err(error) = instrument.after(&info, &module, ctx) {
                ctx.instruments[i + 1..].iter().for_each(|rest| rest.failed(&info));
                return Err(error);
            }
        }
        Ok(module)
    }

    /// Runs the pass as one step of a sequence, if the context enables it. The passes in [`requires`](ModulePass::requires) run
    /// first.
    ///
    /// # Errors
    /// The same errors as [`apply`](ModulePass::apply).
    fn apply_as_step(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.enables(self.name(), self.opt_level()) {
            return Ok(module);
        }
        let module = self.requires().iter().try_fold(module, |m, first| first.apply(m, ctx))?;
        self.apply(module, ctx)
    }
}

/// A shared reference to a pass is a pass, so that one pass object can be part of several sequences.
impl ModulePass for Arc<dyn ModulePass> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn opt_level(&self) -> u8 {
        (**self).opt_level()
    }

    fn requires(&self) -> &[Arc<dyn ModulePass>] {
        (**self).requires()
    }

    fn is_user_defined(&self) -> bool {
        (**self).is_user_defined()
    }

    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        (**self).run(module, ctx)
    }
}

/// Runs a pass, turns panics into errors, and adds the name of the pass to errors. With the setting `keep_ir`, or if the pass is
/// user-defined, the input module is written to a file if the pass fails.
fn run_caught<P: ModulePass + ?Sized>(
    pass: &P,
    module: IRModule,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    // If the module is kept, all its functions are shared, so the pass copies each function that it changes.
    let keep = pass.is_user_defined() || ctx.flag("keep_ir", cfg!(debug_assertions));
    let kept = keep.then(|| module.clone());
    let result = catch_unwind(AssertUnwindSafe(|| pass.run(module, ctx)));
    let error = match (result, &kept) {
        (Ok(Ok(module)), Some(before)) if pass.is_user_defined() => {
            return verify_user_passes::verify_result(pass.name(), before, module, ctx);
        }
        (Ok(Ok(module)), _) => return Ok(module),
        (Ok(Err(error)), _) => error,
        (Err(panic), _) => {
            PassError::internal(format!("the pass panicked: {}", panic_text(&*panic)))
        }
    };
    Err(match (error, &kept) {
        (PassError::Internal { pass: name, message, .. }, Some(before))
            if pass.is_user_defined() && name.is_empty() =>
        {
            let source: Box<dyn std::error::Error + Send + Sync> = message.into();
            verify_user_passes::pass_failure(pass.name(), source.into(), before, ctx)
        }
        (PassError::UserCode { origin, source, dump: None }, Some(before)) if origin.is_empty() => {
            verify_user_passes::pass_failure(pass.name(), source, before, ctx)
        }
        (PassError::UserCode { origin, source, dump }, None) if origin.is_empty() => {
            PassError::UserCode { origin: format!("pass '{}'", pass.name()), source, dump }
        }
        (PassError::Internal { pass: name, message, dump }, _) => PassError::Internal {
            pass: if name.is_empty() { pass.name().into() } else { name },
            message,
            dump: dump.or_else(|| module_dump_files::write(pass.name(), "before", &kept?, ctx)),
        },
        (other, _) => other,
    })
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the panic has no message")
}

/// A pass that transforms each graph function separately. Functions are processed in parallel.
///
/// # Example
/// ```
/// use pliant_ir::{AttrValue, relax::Function};
/// use pliant_pass::{FunctionPass, ModulePass, PassContext, PassError};
///
/// /// Records the name of each function in its attribute `original_name`.
/// struct RecordNames;
///
/// impl FunctionPass for RecordNames {
///     fn name(&self) -> &str {
///         "RecordNames"
///     }
///
///     fn run_on(&self, name: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
///         func.attrs.insert("original_name".into(), AttrValue::str(name));
///         Ok(())
///     }
/// }
///
/// let text = "@R.function\ndef f(x: R.Object):\n    return x\n";
/// let module = pliant_script::parse_module(text, pliant_ops::registry()).unwrap();
/// let context = PassContext::new(pliant_ops::registry());
/// let module = RecordNames.apply(module, &context).unwrap();
/// let (_, f) = module.relax_funcs().next().unwrap();
/// assert_eq!(f.attrs.get("original_name").and_then(AttrValue::as_str), Some("f"));
/// ```
pub trait FunctionPass: Send + Sync {
    /// The name of the pass, as used in the table of passes and on the command line.
    fn name(&self) -> &str;

    /// The minimum optimization level at which the pass runs; see [`ModulePass::opt_level`].
    fn opt_level(&self) -> u8 {
        0
    }

    /// Whether the pass is user-defined; see [`ModulePass::is_user_defined`].
    fn is_user_defined(&self) -> bool {
        false
    }

    /// Transforms one function in place.
    ///
    /// # Errors
    /// If the function is invalid or unsupported.
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

    fn is_user_defined(&self) -> bool {
        FunctionPass::is_user_defined(self)
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        for_each_relax(&mut module, ctx, |name, func| self.run_on(name, func, ctx))?;
        Ok(module)
    }
}

/// Applies `f` to every graph function of a module in parallel.
///
/// # Errors
/// The errors of all functions, in the order of the functions.
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
    let apply = |(name, func): (&Arc<str>, &mut Arc<relax::Function>)| {
        let result = ctx.check_cancelled().and_then(|()| f(name, Arc::make_mut(func)));
        result.err().map(|e| e.in_function(name))
    };
    let errors = parallel_map(functions, apply).into_iter().flatten().collect();
    PassError::join(errors).map_or(Ok(()), Err)
}

/// Applies `f` to every graph function of a module in parallel. `f` returns whether it changed the function. An unchanged function
/// is not copied and remains shared.
///
/// # Errors
/// The errors of all functions, in the order of the functions.
pub fn update_each_relax(
    module: &mut IRModule,
    ctx: &PassContext,
    f: impl Fn(&str, &mut relax::Function) -> Result<bool, PassError> + Sync,
) -> Result<(), PassError> {
    let functions: Vec<(&Arc<str>, &mut Arc<relax::Function>)> = module
        .functions
        .iter_mut()
        .filter_map(|(name, func)| match func {
            BaseFunc::Relax(func) => Some((name, func)),
            BaseFunc::Prim(_) => None,
        })
        .collect();
    let update = |name: &str, func: &mut Arc<relax::Function>| {
        ctx.check_cancelled()?;
        if let Some(func) = Arc::get_mut(func) {
            return f(name, func).map(drop);
        }
        let mut copy = relax::Function::clone(func);
        if f(name, &mut copy)? {
            *func = Arc::new(copy);
        }
        Ok(())
    };
    let apply = |(name, func): (&Arc<str>, &mut Arc<relax::Function>)| {
        update(name, func).err().map(|e: PassError| e.in_function(name))
    };
    let errors = parallel_map(functions, apply).into_iter().flatten().collect();
    PassError::join(errors).map_or(Ok(()), Err)
}

/// A sequence of passes, which is itself a pass.
pub struct Sequential {
    name: String,
    opt_level: u8,
    passes: Vec<Box<dyn ModulePass>>,
}

impl Sequential {
    /// Creates a sequence with the given name.
    pub fn new(name: impl Into<String>, passes: Vec<Box<dyn ModulePass>>) -> Self {
        Sequential { name: name.into(), opt_level: 0, passes }
    }

    /// Sets the minimum optimization level at which the sequence runs.
    pub fn with_opt_level(mut self, opt_level: u8) -> Self {
        self.opt_level = opt_level;
        self
    }

    /// The passes of the sequence, in the order in which they run.
    pub fn passes(&self) -> &[Box<dyn ModulePass>] {
        &self.passes
    }

    /// Appends a pass to the sequence.
    pub fn push(&mut self, pass: Box<dyn ModulePass>) {
        self.passes.push(pass);
    }

    /// Runs the passes. Unlike [`apply`](ModulePass::apply), this does not report the sequence itself to instruments.
    ///
    /// # Errors
    /// The error of the first pass that fails.
    pub fn run_each(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        self.passes.iter().try_fold(module, |module, pass| pass.apply_as_step(module, ctx))
    }
}

impl ModulePass for Sequential {
    fn name(&self) -> &str {
        &self.name
    }

    fn opt_level(&self) -> u8 {
        self.opt_level
    }

    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        self.run_each(module, ctx)
    }
}
