//! The Python syntax that scripts are written in: lexer, syntax tree, parser.
//!
//! It is the subset that TVMScript uses, with every expression of Python accepted at least as an opaque
//! [`ast::ExprKind::Host`] expression. Depth is bounded while parsing, so nothing that walks a tree can
//! run out of stack.

pub mod ast;
mod expr;
mod lexer;
mod parser;
mod strings;

pub use parser::{SyntaxError, parse_expression, parse_file};

/// How deep expressions may nest: brackets, operators and chains of them.
pub const MAX_EXPR_DEPTH: u16 = 200;
/// How deep blocks of statements may nest, as in CPython.
pub const MAX_INDENT: usize = 100;
/// How many syntax errors are collected before parsing stops.
pub const MAX_SYNTAX_ERRORS: usize = 20;
