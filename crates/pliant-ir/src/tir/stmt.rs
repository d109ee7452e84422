//! Statements of the loop level.

use std::sync::Arc;

use cranelift_entity::entity_impl;

use super::buffer::{Buffer, BufferRegion};
use super::expr::{Expr, Var};
use super::func::PrimFunc;
use crate::attrs::AttrValue;

/// A statement of its function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stmt(u32);
entity_impl!(Stmt, "stmt");

/// How a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForKind {
    /// One turn after another.
    Serial,
    /// Turns shared out to the worker team; they must be independent.
    Parallel,
    /// Turns as lanes of a vector; the extent is a constant.
    Vectorized,
    /// Turns written out; the extent is a constant.
    Unrolled,
}

impl ForKind {
    /// Its name in the script, without `T.`.
    pub fn name(self) -> &'static str {
        match self {
            ForKind::Serial => "serial",
            ForKind::Parallel => "parallel",
            ForKind::Vectorized => "vectorized",
            ForKind::Unrolled => "unroll",
        }
    }
}

/// What a block's axis does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// Each value writes its own part of the output: `S`.
    Spatial,
    /// Values are combined: `R`.
    Reduce,
    /// Order matters: `O`.
    Opaque,
}

/// An axis of a block, bound to a value of the surrounding loops.
#[derive(Clone, Debug)]
pub struct IterVar {
    /// The variable inside the block.
    pub var: Var,
    /// First value.
    pub min: Expr,
    /// Number of values.
    pub extent: Expr,
    /// What it does.
    pub kind: IterKind,
    /// Its value, from the surrounding loop variables.
    pub binding: Expr,
}

/// A block: the unit of scheduling. Its body sees only its axes, not the loops around it.
#[derive(Clone, Debug)]
pub struct BlockData {
    /// Its name.
    pub name: Arc<str>,
    /// Its axes.
    pub iters: Vec<IterVar>,
    /// Runs only where this holds.
    pub predicate: Option<Expr>,
    /// What it reads; `None` where nobody said.
    pub reads: Option<Vec<BufferRegion>>,
    /// What it writes; `None` where nobody said.
    pub writes: Option<Vec<BufferRegion>>,
    /// Buffers that live during the block.
    pub allocs: Vec<Buffer>,
    /// Runs before the body at the first values of all reduction axes; where these have no values at all, once for
    /// each value of the spatial axes, so that the result of an empty reduction is the reducer's identity.
    pub init: Option<Stmt>,
    /// The body.
    pub body: Stmt,
    /// Notes.
    pub annotations: Vec<(Arc<str>, AttrValue)>,
}

impl BlockData {
    /// Moves the init of a block without reduction axes to the front of its body, since it runs at every point, as the
    /// body does. Only blocks with reduction axes have an init.
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
    /// One after the other. The empty sequence does nothing.
    Seq(Vec<Stmt>),
    /// A loop over `min .. min + extent`.
    For {
        /// The loop variable.
        var: Var,
        /// First value.
        min: Expr,
        /// Number of turns; none when negative.
        extent: Expr,
        /// How it runs.
        kind: ForKind,
        /// The body.
        body: Stmt,
        /// Notes.
        annotations: Vec<(Arc<str>, AttrValue)>,
    },
    /// Repeats while the condition holds.
    While(Expr, Stmt),
    /// Choice.
    If(Expr, Stmt, Option<Stmt>),
    /// Gives a variable its value for the body.
    Let(Var, Expr, Stmt),
    /// Writes an element, or a vector when the last index is a ramp.
    Store {
        /// The buffer.
        buffer: Buffer,
        /// One index per dim.
        indices: Box<[Expr]>,
        /// The value.
        value: Expr,
    },
    /// A buffer that lives during the body.
    Alloc(Buffer, Stmt),
    /// Evaluates an expression for its effect.
    Evaluate(Expr),
    /// Fails the run with the message where the condition is false.
    Assert(Expr, Arc<str>, Stmt),
    /// A block.
    Block(Box<BlockData>),
}
