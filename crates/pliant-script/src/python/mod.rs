//! The Python syntax of scripts: lexer, syntax tree, parser.
//!
//! The parser supports the subset of Python that TVMScript uses. All other Python expressions are opaque ([`ast::ExprKind::Host`]).
//! The nesting depth is limited, and code that recurses over deep trees runs inside [`with_stack_for_depth`], so no input can
//! overflow the stack.

pub mod ast;
mod expression_parser;
mod lexer;
mod literals;
mod statement_parser;

use pliant_ir::tir;
pub use statement_parser::{File, SyntaxError, parse_expression, parse_file};

/// Maximum nesting depth of expressions: brackets, operators and chains of operators. The limit
/// must accept all printed loop functions. One level of a valid expression is printed as at most
/// three levels: an operator, its brackets, a subscript. The remaining levels are for the code
/// around the expression.
pub const MAX_EXPR_DEPTH: u16 = 3 * (tir::verify::MAX_EXPR_DEPTH as u16) + 200;
/// Maximum nesting depth of blocks: the maximum for valid loop functions, plus the enclosing function, class and dataflow block.
pub const MAX_INDENT: usize = tir::verify::MAX_DEPTH + 8;
/// Maximum number of syntax errors, after which parsing stops.
pub const MAX_SYNTAX_ERRORS: usize = 20;

/// Maximum stack use per level of a tree, in bytes: several stack frames of an unoptimized build.
const STACK_PER_LEVEL: usize = 16 << 10;
/// Maximum depth of a tree for which recursion fits on the stack of any thread. Deeper trees need an allocated stack segment.
const SHALLOW_DEPTH: usize = 40;

/// Runs `walk` with enough stack to recurse over a tree of the given depth. Deep trees must also be dropped inside `walk`, because
/// dropping recurses too.
pub(crate) fn with_stack_for_depth<T>(depth: usize, walk: impl FnOnce() -> T) -> T {
    if depth <= SHALLOW_DEPTH {
        return walk();
    }
    let size = depth * STACK_PER_LEVEL;
    stacker::maybe_grow(size, size, walk)
}

/// Runs one level of a recursion of unknown depth. Allocates a new stack segment if little stack is left.
pub(crate) fn with_stack_segment<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(64 << 10, 2 << 20, step)
}
