//! The graph level in Python: struct infos, expressions, the block builder.

pub mod accessors;
pub mod analysis;
pub mod block_rewriter;
pub mod blocks;
pub mod build_order;
pub mod builder;
pub mod check_call;
pub mod classes;
pub mod convert;
pub mod dpl;
pub mod func_owner;
pub mod function;
pub mod import;
pub mod lower;
pub mod lower_func;
pub mod node;
pub mod op;
pub mod retained_owners;
pub mod seq;
pub mod sinfo;
pub mod user_op;
pub mod walk;
