//! # What it does
//! Replaces symbolic sizes by numbers, or by terms over other sizes. Sizes are identified by name, in one function or in all
//! functions.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n * m",), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     with R.dataflow():
//!         gv = R.reshape(x, R.shape([n * m]))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! With 4 for `m`.
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n * 4",), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.reshape(x, R.shape([n * 4]))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! If a function is named, it must have all sizes. Otherwise, each size must occur in some function. In a term, names refer to
//! the function's sizes with the same names; other names are new sizes.
//!
//! # Keeps
//! The parameters of the function. A call with another size fails on entry to the function.
//!
//! # Never
//! Changes a function that has none of the sizes.

use std::sync::Arc;

use pliant_ir::relax::type_lattice::definable_syms;
use pliant_ir::relax::visit::{Event, called_globals, copy_function_with, free_syms, walk};
use pliant_ir::relax::{Function, Type};
use pliant_ir::verify::verify_module;
use pliant_ir::{BaseFunc, IRModule, Sym, SymArena, SymVar};
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::operators_after_lowering::{format_names, relax_func};

/// The term that replaces a size, with the arena that contains it.
#[derive(Clone, Debug)]
pub struct SizeTerm {
    /// The arena that contains the term.
    pub arena: Arc<SymArena>,
    /// The term, which refers to sizes by the names of its variables.
    pub size: Sym,
}

impl From<i64> for SizeTerm {
    fn from(value: i64) -> Self {
        let mut arena = SymArena::new();
        let size = arena.int(value);
        SizeTerm { arena: arena.into(), size }
    }
}

/// The pass that replaces symbolic sizes by numbers or by terms over other sizes. See the module documentation.
#[derive(Clone, Debug)]
pub struct BindSymbolicVars {
    /// The names of the sizes, each with its replacement.
    pub binding_map: Vec<(Arc<str>, SizeTerm)>,
    /// The name of the function whose sizes are replaced; `None` for all functions.
    pub func_name: Option<Arc<str>>,
}

impl ModulePass for BindSymbolicVars {
    fn name(&self) -> &str {
        "BindSymbolicVars"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let names: Vec<Arc<str>> = match &self.func_name {
            Some(name) => {
                relax_func(&module, name, "BindSymbolicVars")?;
                vec![name.clone()]
            }
            None => module.relax_funcs().map(|(name, _)| name.clone()).collect(),
        };
        let before = module.clone();
        let mut bound_names: FxHashSet<&str> = FxHashSet::default();
        let mut all_names: Vec<String> = Vec::new();
        for name in names {
            let Some(BaseFunc::Relax(func)) = module.functions.get_mut(&name) else { continue };
            let sizes = function_sizes(func);
            all_names.extend(sizes.iter().map(|&v| func.syms.name(v).to_string()));
            let mut bound = Vec::new();
            for (key, value) in &self.binding_map {
                let same_name = sizes.iter().copied().filter(|&v| func.syms.name(v) == &**key);
                bound.extend(same_name.map(|v| (v, value)));
                if bound.last().is_some_and(|(v, _)| func.syms.name(*v) == &**key) {
                    bound_names.insert(key);
                }
            }
            if !bound.is_empty() {
                *func = Arc::new(replace_sizes(func, &sizes, &bound));
            }
        }
        self.check_bindings(&bound_names, all_names)?;
        check_result(&before, module, ctx)
    }
}

/// Checks that the sizes of the changed functions are still defined and that calls in them are still well typed. Returns the
/// module.
///
/// # Errors
/// The verifier errors that the replacement has caused.
fn check_result(
    before: &IRModule,
    module: IRModule,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    let mut problems = Vec::new();
    for (name, func) in module.relax_funcs() {
        if before
            .get(name)
            .and_then(BaseFunc::as_relax)
            .is_some_and(|module_before| Arc::ptr_eq(module_before, func))
        {
            continue;
        }
        let (module_after, module_before) =
            (function_with_callees(&module, name), function_with_callees(before, name));
        let after = verifier_errors(&module_after, ctx);
        if !after.is_empty() && verifier_errors(&module_before, ctx).is_empty() {
            let problem = |why: String| {
                Problem::new(format!("after replacing symbolic sizes, the function would be ill-formed: {why}")).with_help(
                    "the new sizes may contain only symbols that the function defines: each must occur alone as a dim of a \
                     parameter or of an R.match_cast",
                )
            };
            problems.extend(after.into_iter().map(problem));
        }
    }
    if problems.is_empty() { Ok(module) } else { Err(PassError::User(problems)) }
}

/// Verifies a module, and returns the messages of all errors.
fn verifier_errors(module: &IRModule, ctx: &PassContext) -> Vec<String> {
    let findings = verify_module(module, ctx.ops);
    findings.iter().filter(|d| d.is_error()).map(|d| d.message.clone()).collect()
}

/// Creates a module of a function and everything that it calls, directly or through other functions.
fn function_with_callees(module: &IRModule, name: &str) -> IRModule {
    let mut out = IRModule::new();
    let mut pending: Vec<Arc<str>> = vec![name.into()];
    while let Some(name) = pending.pop() {
        if let Some(func) = module.get(&name).filter(|_| out.get(&name).is_none()) {
            if let BaseFunc::Relax(func) = func {
                pending.extend(called_globals(func));
            }
            out.insert(name, func.clone());
        }
    }
    out
}

impl BindSymbolicVars {
    /// Reports negative sizes, sizes that are bound twice, and sizes that no function has.
    fn check_bindings(
        &self,
        bound_names: &FxHashSet<&str>,
        mut all_names: Vec<String>,
    ) -> Result<(), PassError> {
        let mut problems = Vec::new();
        let subject = match &self.func_name {
            Some(name) => format!("function '{name}' has"),
            None => "the module's functions have".into(),
        };
        for (i, (key, value)) in self.binding_map.iter().enumerate() {
            if let Some(value) = value.arena.as_int(value.size).filter(|&v| v < 0) {
                problems.push(Problem::new(format!(
                    "the size '{key}' cannot be negative, but is {value}"
                )));
            } else if self.binding_map[..i].iter().any(|(other, _)| other == key) {
                problems.push(Problem::new(format!("the size '{key}' is bound twice")));
            } else if !bound_names.contains(&**key) {
                all_names.sort();
                all_names.dedup();
                let names = all_names.iter().map(String::as_str);
                problems.push(
                    Problem::new(format!("{subject} no symbolic size '{key}'"))
                        .with_help(format_names("the symbolic sizes are:", names)),
                );
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(PassError::User(problems)) }
    }
}

/// Returns the sizes of a function: those that its parameters and casts define, and sizes that it uses without defining them.
/// Sizes that local functions or loop iterations define are not included.
fn function_sizes(func: &Function) -> Vec<SymVar> {
    let root = func.root();
    let mut out: Vec<SymVar> = Vec::new();
    let mut define = |ty: Type| {
        for v in definable_syms(func, ty) {
            if !out.contains(&v) {
                out.push(v);
            }
        }
    };
    let mut depth = 0;
    walk(func, root, |event| match event {
        Event::EnterFunc(id) => {
            depth += 1;
            if depth == 1 {
                func.func(id).params.iter().for_each(|&p| define(func.var(p).ty));
            }
        }
        Event::LeaveFunc(_) => depth -= 1,
        Event::EnterBinding(_, b) if depth == 1 => {
            b.cast.expand().into_iter().for_each(&mut define)
        }
        _ => {}
    });
    out.extend(free_syms(func, root));
    out
}

/// Returns the function with all sizes in `bound` replaced simultaneously. Names in the replacing terms refer to the remaining
/// sizes of the function.
fn replace_sizes(func: &Function, sizes: &[SymVar], bound: &[(SymVar, &SizeTerm)]) -> Function {
    copy_function_with(func, |importer| {
        let mut sizes_by_name: FxHashMap<String, Sym> = FxHashMap::default();
        for &v in sizes.iter().filter(|&&v| bound.iter().all(|&(b, _)| b != v)) {
            let unbound = importer.src.syms.var(v);
            let unbound = importer.sym(unbound);
            sizes_by_name.insert(func.syms.name(v).to_string(), unbound);
        }
        for &(v, value) in bound {
            let names = &value.arena;
            let term = importer.dst.syms.import(names, value.size, &mut |arena, var| {
                let name = names.name(var);
                *sizes_by_name.entry(name.to_string()).or_insert_with(|| {
                    let new = arena.fresh_var(name.to_string());
                    arena.var(new)
                })
            });
            importer.syms.insert(v, term);
        }
    })
}
