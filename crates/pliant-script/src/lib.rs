//! TVMScript text to IR, with spans: the only parser, for files and for Python's decorators.
//!
//! [`parse`] reads a text: a module (`@I.ir_module`), or a function on its own. What a script takes from the
//! Python program around it comes through [`HostEnv`]; a file has [`NoHost`]. Errors are
//! [`Diagnostic`]s at the user's own lines, several at once, and nothing that is read can make the parser
//! panic or run out of stack.
//!
//! | module | owns |
//! |---|---|
//! | [`python`] | the syntax: lexer, tree, parser. Ours, since the crates that parse all of Python bring dozens of others with them, and the virtual machine reads kernels through this parser |
//! | [`env`] | what a script sees of the program around it |
//! | `dialect` | the one table of spellings, for all dialects |
//! | `context`, `errors`, `literal`, `walk` | what all functions share |
//! | `module` | imports, metadata, the module's class, the order of functions |
//! | `relax` | graph functions |
//! | `tir` | loop functions |

mod context;
mod dialect;
pub mod env;
mod errors;
mod literal;
mod module;
pub mod python;
mod relax;
mod tir;
mod walk;

use std::sync::Arc;

pub use env::{HostEnv, HostMacro, HostSym, HostSymOp, HostValue, NoHost};
use pliant_diag::{Diagnostic, FileId};
use pliant_ir::{BaseFunc, IRModule, OpRegistry};

use crate::errors::{Errors, Kind, ScriptError};

/// What a text contains.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// A module.
    Module(IRModule),
    /// The rules of a rewriter, and its name.
    Rewriter(Arc<str>, IRModule),
    /// One function on its own, and its name.
    Function(Arc<str>, BaseFunc),
}

impl Parsed {
    /// The module; a function on its own as a module of one function.
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

/// Parses a text. `file` is the file that spans point into, `env` the program around the script, `ops` the
/// operators. Without a result there is at least one error.
pub fn parse(
    text: &str,
    file: FileId,
    env: &dyn HostEnv,
    ops: &dyn OpRegistry,
) -> (Option<Parsed>, Vec<Diagnostic>) {
    parse_with_macros(text, file, &[], env, ops)
}

/// As [`parse`], of a text behind which macros of the surrounding program stand, in order.
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
    python::with_room(depth, move || {
        if !syntax.is_empty() {
            for error in syntax {
                let e = ScriptError::new(Kind::Syntax, error.range, error.message);
                errors.report(e.maybe_help(error.help));
            }
            drop(stmts);
            return (None, errors.finish());
        }
        let mut cx = context::Cx::new(text, env, ops, errors);
        let parsed = module::parse_top(&mut cx, &stmts, macros);
        let parsed = parsed.filter(|_| !cx.errors.any());
        (parsed, cx.errors.finish())
    })
}

/// Parses a text that stands alone and holds a module or a function.
///
/// # Errors
/// All that is wrong with it, in the order of the text.
pub fn parse_module(text: &str, ops: &dyn OpRegistry) -> Result<IRModule, Vec<Diagnostic>> {
    match parse(text, FileId(0), &NoHost, ops) {
        (Some(parsed), _) => Ok(parsed.into_module()),
        (None, errors) => Err(errors),
    }
}
