//! The Python syntax of scripts: lexer, syntax tree, parser.
//!
//! The parser supports the subset that TVMScript uses. All other Python expressions are accepted as
//! opaque [`ast::ExprKind::Host`] expressions. The nesting depth is limited, and code that recurses
//! over deep trees runs inside [`with_room`], so no input can overflow the stack.

pub mod ast;
mod expr;
mod lexer;
mod parser;
mod strings;

pub use parser::{File, SyntaxError, parse_expression, parse_file};
use pliant_ir::tir;

/// Maximum nesting depth of expressions: brackets, operators and chains of operators. One level of
/// a verified loop function prints as at most three levels (an operator, its brackets, a
/// subscript). The remainder is for the context of the expression.
pub const MAX_EXPR_DEPTH: u16 = 3 * (tir::verify::MAX_EXPR_DEPTH as u16) + 200;
/// Maximum nesting depth of blocks: the verifier's limit plus the enclosing function, class and
/// dataflow block.
pub const MAX_INDENT: usize = tir::verify::MAX_DEPTH + 8;
/// Maximum number of syntax errors before parsing stops.
pub const MAX_SYNTAX_ERRORS: usize = 20;

/// Maximum stack use for one level of a tree in bytes: several frames of an unoptimised build.
const STACK_PER_LEVEL: usize = 16 << 10;
/// Trees up to this depth can be processed on any thread's stack.
const SHALLOW: usize = 40;

/// Runs `walk` with enough stack for trees of the given depth. Deep trees must also be dropped
/// inside it, because dropping recurses.
pub(crate) fn with_room<T>(depth: usize, walk: impl FnOnce() -> T) -> T {
    if depth <= SHALLOW {
        return walk();
    }
    let size = depth * STACK_PER_LEVEL;
    stacker::maybe_grow(size, size, walk)
}

/// Runs one level of a recursion of unknown depth. If little stack is left, it allocates a new
/// segment.
pub(crate) fn on_stack<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(64 << 10, 2 << 20, step)
}
