//! The parser: converts TVMScript source to IR with source locations. Files and Python decorators use the same parser.
//!
//! [`parse`] reads a source text that contains a module (`@I.ir_module`) or a single function. Scripts read values of the
//! surrounding Python program through [`HostEnv`]; files use [`NoHost`]. Errors are [`Diagnostic`]s with locations in the user's
//! source, and one parse reports several. No input makes the parser panic or overflow the stack.
//!
//! The Python syntax is parsed by hand-written code. Crates that parse all of Python have dozens of dependencies, and loading an
//! executable also parses loop functions.
//!
//! | module | contents |
//! |---|---|
//! | [`python`] | the syntax: lexer, syntax tree, parser |
//! | [`host_environment`] | the interface to the Python program that contains the script |
//! | `dialect_spellings` | the table of spellings of all dialects |
//! | `parser_context`, `script_errors`, `literals`, `name_visitor` | shared by all functions |
//! | `module_parser` | imports, metadata, the module class, the order of functions |
//! | `relax` | graph functions |
//! | `tir` | loop functions |

mod dialect_spellings;
pub mod host_environment;
mod literals;
mod module_parser;
mod name_visitor;
mod parser_context;
pub mod python;
mod relax;
mod script_errors;
mod tir;

use std::sync::Arc;

pub use host_environment::{HostEnv, HostMacro, HostSym, HostSymOp, HostValue, NoHost};
use pliant_diag::{Diagnostic, FileId};
use pliant_ir::{BaseFunc, IRModule, OpRegistry};

use crate::script_errors::{ErrorKind, Errors, ScriptError};

/// The result of parsing a text.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// The text contains a module.
    Module(IRModule),
    /// The rules of a rewriter (a class decorated with `@R.rewriter`): the name of the class, and the rules as a module.
    Rewriter(Arc<str>, IRModule),
    /// A single function, with its name.
    Function(Arc<str>, BaseFunc),
}

impl Parsed {
    /// Converts the result to a module. A single function becomes a module with one function.
    pub fn into_module(self) -> IRModule {
        match self {
            Parsed::Module(module) | Parsed::Rewriter(_, module) => module,
            Parsed::Function(name, func) => {
                let mut module = IRModule::new();
                module.insert(name, func);
                module
            }
        }
    }
}

/// Parses a source text. `file` is the file that source spans refer to, `env` gives access to the surrounding Python program, and
/// `ops` is the registry of operators. If there is no result, there is at least one error.
pub fn parse(
    text: &str,
    file: FileId,
    env: &dyn HostEnv,
    ops: &dyn OpRegistry,
) -> (Option<Parsed>, Vec<Diagnostic>) {
    parse_with_macros(text, file, &[], env, ops)
}

/// Parses a source text that consists of a script and, after it, the sources of `macros`, which the surrounding Python program
/// defines. The other parameters are those of [`parse`].
pub fn parse_with_macros(
    text: &str,
    file: FileId,
    macros: &[HostMacro<'_>],
    env: &dyn HostEnv,
    ops: &dyn OpRegistry,
) -> (Option<Parsed>, Vec<Diagnostic>) {
    let mut errors = Errors::new(file);
    macros.iter().for_each(|m| errors.add_file(m.start, m.file));
    let python::File { stmts, errors: syntax, depth } = python::parse_file(text);
    python::with_stack_for_depth(depth, move || {
        if !syntax.is_empty() {
            for error in syntax {
                let e = ScriptError::new(ErrorKind::Syntax, error.range, error.message);
                errors.report(e.maybe_help(error.help));
            }
            drop(stmts);
            return (None, errors.finish());
        }
        let mut cx = parser_context::ParseContext::new(text, env, ops, errors);
        let parsed = module_parser::parse_top(&mut cx, &stmts, macros);
        let parsed = parsed.filter(|_| !cx.errors.any());
        (parsed, cx.errors.finish())
    })
}

/// Parses a standalone text that contains a module or a function.
///
/// # Errors
/// All errors, ordered by location.
pub fn parse_module(text: &str, ops: &dyn OpRegistry) -> Result<IRModule, Vec<Diagnostic>> {
    match parse(text, FileId(0), &NoHost, ops) {
        (Some(parsed), _) => Ok(parsed.into_module()),
        (None, errors) => Err(errors),
    }
}
