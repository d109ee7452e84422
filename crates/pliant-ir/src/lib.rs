//! The IR: one module with functions of two levels.
//!
//! | module | contains |
//! |---|---|
//! | [`ir_module`] | [`IRModule`]: named functions of both levels, side by side |
//! | [`relax`] | the graph level: functions in A-normal form over tensors, shapes, tuples and objects |
//! | [`tir`] | the loop level: loop functions over buffers |
//! | [`attr_values`] | attribute values of operators and functions |
//! | [`attr_names`] | the names of attributes that the compiler interprets |
//! | [`op`] | operator names, and the interface to the operator library |
//! | [`print`] | the printer: script text of modules, functions, types and expressions |
//! | [`structural_equality`] | structural equality up to renaming, and a compatible hash |
//! | [`verify`] | the rules of well-formed modules |
//!
//! A function owns its arenas, so an id is only valid in its own function. Functions are cloned, transformed in parallel and
//! dropped as a whole. The crate has no global state and no locks.
//!
//! # Examples
//! ```
//! use pliant_ir::DType;
//! use pliant_ir::print::{PrintOptions, print_prim_func};
//! use pliant_ir::tir::{ForKind, PrimFunc, StmtData};
//!
//! // A loop function that doubles the elements of a buffer of n elements.
//! let mut f = PrimFunc::new();
//! let (n, i) = (f.size_var("n"), f.size_var("i"));
//! let (extent, index, min) = (f.var_expr(n), f.var_expr(i), f.int(0));
//! let a = f.compact_buffer("A", vec![extent], DType::Float32);
//! f.add_buffer_param("var_A", a);
//! let x = f.load(a, &[index]);
//! let doubled = f.add(x, x);
//! let (body, kind, annotations) = (f.store(a, &[index], doubled), ForKind::Serial, Vec::new());
//! f.body = f.add_stmt(StmtData::For { var: i, min, extent, kind, body, annotations });
//! let text = print_prim_func("double", &f, &PrintOptions::default());
//! assert!(text.contains("A[i] = A[i] + A[i]"));
//! ```

pub mod attr_names;
pub mod attr_values;
pub mod ir_module;
pub mod op;
pub mod print;
pub mod relax;
pub mod structural_equality;
pub mod tir;
pub mod verify;

pub use attr_values::{AttrValue, Attrs};
pub use ir_module::{BaseFunc, IRModule};
pub use op::{Op, OpRegistry, OpSignature};
pub use pliant_diag::Span;
pub use pliant_sym::{Sym, SymArena, SymVar};
pub use pliant_tensor::DType;
