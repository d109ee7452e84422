//! The Python syntax that scripts are written in: lexer, syntax tree, parser.
//!
//! It is the subset that TVMScript uses, with every expression of Python accepted at least as an opaque
//! [`ast::ExprKind::Host`] expression. Depth is bounded while parsing, and whatever walks a deep tree does so
//! inside [`with_room`], so nothing that is read can run out of stack.

pub mod ast;
mod expr;
mod lexer;
mod parser;
mod strings;

pub use parser::{File, SyntaxError, parse_expression, parse_file};
use pliant_ir::tir;

/// How deep expressions may nest: brackets, operators and chains of them. One level of a verified loop
/// function prints as at most three (an operator, its brackets, a subscript), with the rest to spare for
/// what stands around it.
pub const MAX_EXPR_DEPTH: u16 = 3 * (tir::verify::MAX_EXPR_DEPTH as u16) + 200;
/// How deep blocks of statements may nest: what the verifier allows, and the function, class and
/// dataflow block around it.
pub const MAX_INDENT: usize = tir::verify::MAX_DEPTH + 8;
/// How many syntax errors are collected before parsing stops.
pub const MAX_SYNTAX_ERRORS: usize = 20;

/// What one level of a tree takes at most when it is walked: several frames, in a build without optimisation.
const STACK_PER_LEVEL: usize = 16 << 10;
/// Trees below this depth fit any thread's stack.
const SHALLOW: usize = 40;

/// Runs `walk` over trees of at most that depth, on a stack that is large enough. A tree is also dropped
/// in here, since dropping one recurses.
pub(crate) fn with_room<T>(depth: usize, walk: impl FnOnce() -> T) -> T {
    if depth <= SHALLOW {
        return walk();
    }
    let size = depth * STACK_PER_LEVEL;
    stacker::maybe_grow(size, size, walk)
}

/// Runs one level of a recursion whose depth is not known beforehand, on a further stretch of stack where
/// little is left.
pub(crate) fn on_stack<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(64 << 10, 2 << 20, step)
}
