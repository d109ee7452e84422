//! The graph level: functions in A-normal form over tensors, shapes, tuples and opaque objects.
//!
//! A [`Function`] owns arenas of variables, expressions, binding blocks and sequences. A sequence is a list of binding blocks with
//! a result. A binding assigns to a variable the value of an expression whose operands are variables, constants or tuples of these.
//! The documentation of [`verify`] is the specification.

pub mod builder;
pub mod expr;
pub mod function;
pub mod kernel_call;
pub mod size_origins;
pub mod type_lattice;
pub mod types;
pub mod verify;
pub mod visit;
pub mod while_loop;

pub use builder::FunctionBuilder;
pub use expr::{
    Binding, Block, BlockData, Callee, Const, Expr, ExprData, FuncData, FuncId, Seq, SeqData, Str,
    Var, VarData,
};
pub use function::Function;
pub use types::{TensorShape, Type, TypeData};
