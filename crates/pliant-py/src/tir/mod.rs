//! The loop level in Python: scalar expressions, axes, and the bodies of loop functions.

pub mod axes;
pub mod build_prim_func;
pub mod prim_expr;
pub mod prim_func_body;
pub mod prim_func_objects;
pub mod scalar_expr_classes;
pub mod scalar_functions;
pub mod schedule;
pub mod vector_exprs;
