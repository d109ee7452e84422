//! Statements of the loop level.

use std::sync::Arc;

use cranelift_entity::entity_impl;

use super::buffer::{Buffer, BufferRegion};
use super::expr::{Expr, Var};
use super::func::PrimFunc;
use crate::attrs::AttrValue;

/// A statement of a loop function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stmt(u32);
entity_impl!(Stmt, "stmt");

/// How the iterations of a loop are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForKind {
    /// One after another.
    Serial,
    /// Distributed to the worker team; the iterations must be independent.
    Parallel,
    /// As the lanes of a vector; the extent is constant.
    Vectorized,
    /// Unrolled; the extent is constant.
    Unrolled,
}

impl ForKind {
    /// The name in scripts, without the prefix `T.`.
    pub fn name(self) -> &'static str {
        match self {
            ForKind::Serial => "serial",
            ForKind::Parallel => "parallel",
            ForKind::Vectorized => "vectorized",
            ForKind::Unrolled => "unroll",
        }
    }
}

/// The kind of a block axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// Each value of the axis writes a separate part of the output: `S`.
    Spatial,
    /// A reduction: `R`.
    Reduce,
    /// The order of iterations matters: `O`.
    Opaque,
}

/// An axis of a block, bound to an expression of the enclosing loops.
#[derive(Clone, Debug)]
pub struct IterVar {
    /// The variable inside the block.
    pub var: Var,
    /// The first value.
    pub min: Expr,
    /// The number of values.
    pub extent: Expr,
    /// The kind.
    pub kind: IterKind,
    /// The value, computed from the enclosing loop variables.
    pub binding: Expr,
}

/// A block, the unit of scheduling. Its body only uses the block's axes, not the enclosing loop
/// variables.
#[derive(Clone, Debug)]
pub struct BlockData {
    /// The name.
    pub name: Arc<str>,
    /// The axes.
    pub iters: Vec<IterVar>,
    /// The block is only executed if this condition holds.
    pub predicate: Option<Expr>,
    /// The regions that are read; `None` if not stated.
    pub reads: Option<Vec<BufferRegion>>,
    /// The regions that are written; `None` if not stated.
    pub writes: Option<Vec<BufferRegion>>,
    /// Buffers allocated for the block.
    pub allocs: Vec<Buffer>,
    /// Executed before the body at the first values of all reduction axes. If these have no values
    /// at all, it is executed once for each value of the spatial axes, so that the result of an
    /// empty reduction is the reducer's identity.
    pub init: Option<Stmt>,
    /// The body.
    pub body: Stmt,
    /// The annotations.
    pub annotations: Vec<(Arc<str>, AttrValue)>,
}

impl BlockData {
    /// Moves the init of a block without reduction axes to the start of its body, because it is
    /// executed at every point like the body. Only blocks with reduction axes have an init.
    #[must_use]
    pub fn with_init_for_reductions_only(mut self, f: &mut PrimFunc) -> Self {
        if !self.iters.iter().any(|axis| axis.kind == IterKind::Reduce)
            && let Some(init) = self.init.take()
        {
            self.body = f.seq(vec![init, self.body]);
        }
        self
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum StmtData {
    /// Statements executed in order. The empty sequence does nothing.
    Seq(Vec<Stmt>),
    /// A loop over `min .. min + extent`.
    For {
        /// The loop variable.
        var: Var,
        /// The first value.
        min: Expr,
        /// The number of iterations; there are none if it is negative.
        extent: Expr,
        /// How the iterations are executed.
        kind: ForKind,
        /// The body.
        body: Stmt,
        /// The annotations.
        annotations: Vec<(Arc<str>, AttrValue)>,
    },
    /// Repeats the body while the condition holds.
    While(Expr, Stmt),
    /// A conditional.
    If(Expr, Stmt, Option<Stmt>),
    /// Defines a variable in the body.
    Let(Var, Expr, Stmt),
    /// Stores an element, or a vector if the last index is a ramp.
    Store {
        /// The buffer.
        buffer: Buffer,
        /// One index per dim, or a single linear index.
        indices: Box<[Expr]>,
        /// The value.
        value: Expr,
    },
    /// A buffer that exists during the body.
    Alloc(Buffer, Stmt),
    /// Evaluates an expression for its side effect.
    Evaluate(Expr),
    /// Fails with the message if the condition is false; otherwise executes the body.
    Assert(Expr, Arc<str>, Stmt),
    /// A block.
    Block(Box<BlockData>),
}
