//! The graph level in Python: struct infos, expressions, the block builder.

pub mod builder;
pub mod classes;
pub mod convert;
pub mod home;
pub mod infos;
pub mod node;
pub mod op;
pub mod sinfo;
pub mod views;
pub mod wrap;
