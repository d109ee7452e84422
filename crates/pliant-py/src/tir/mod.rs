//! The loop level in Python: scalar expressions, axes, and the bodies of loop functions.

pub mod axes;
pub mod body;
pub mod classes;
pub mod expr;
pub mod functions;
pub mod objects;
pub mod rebuild;
pub mod vector;
