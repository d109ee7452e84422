//! The loop level in Python: scalar expressions, axes, and the bodies of loop functions.

pub mod axes;
pub mod build_prim_func;
pub mod classes;
pub mod expr;
pub mod functions;
pub mod prim_func_body;
pub mod prim_func_objects;
pub mod vector;
