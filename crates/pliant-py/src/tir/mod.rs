//! Scalar expressions of the loop level: `PrimExpr` and its functions.

pub mod expr;
pub mod functions;
