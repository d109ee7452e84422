//! Scalar expressions of the loop level: `PrimExpr` and its functions.

pub mod axes;
pub mod body;
pub mod classes;
pub mod expr;
pub mod functions;
pub mod objects;
pub mod rebuild;
pub mod vector;
