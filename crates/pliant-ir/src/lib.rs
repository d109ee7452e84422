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
