//! The loop level: functions over buffers, with loops, blocks and scalar expressions.
//!
//! A [`PrimFunc`] owns arenas of variables, buffers, expressions and statements. Expressions are hash-consed (equal expressions
//! have equal ids) and are evaluated where the statement that uses them is executed. The function is in destination-passing style:
//! it writes its results to buffers that the caller provides.

pub mod bind_calls;
pub mod buffer;
pub mod expr;
pub mod func;
pub mod intrin;
pub mod kernel_call;
pub mod stmt;
pub mod symbolic_integer_conversion;
pub mod verify;
pub mod visit;

pub use buffer::{Buffer, BufferData, BufferRegion, Scope};
pub use expr::{BinOp, Expr, ExprData, Ty, Var, VarData, VarTy};
pub use func::{Param, PrimFunc};
pub use intrin::Intrin;
pub use kernel_call::{BufferView, KernelCall, KernelOperand, NewOperand, WHOLE_BUFFER};
pub use stmt::{BlockData, ForKind, IterKind, IterVar, Stmt, StmtData};
