//! The graph level in Python: struct infos, expressions, the block builder.

pub mod analysis;
pub mod blocks;
pub mod body;
pub mod builder;
pub mod check;
pub mod classes;
pub mod convert;
pub mod declare;
pub mod dpl;
pub mod function;
pub mod home;
pub mod import;
pub mod infos;
pub mod kept;
pub mod lower;
pub mod node;
pub mod op;
pub mod rewrite;
pub mod seq;
pub mod sinfo;
pub mod user_op;
pub mod views;
pub mod walk;
pub mod wrap;
