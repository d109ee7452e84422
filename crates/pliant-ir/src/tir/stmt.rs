//! Statements of the loop level.

use std::sync::Arc;

use cranelift_entity::entity_impl;

use super::buffer::{Buffer, BufferRegion};
use super::expr::{Expr, Var};
use super::func::PrimFunc;
use crate::attr_values::AttrValue;

/// The id of a statement of a loop function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stmt(u32);
entity_impl!(Stmt, "stmt");

/// The way in which the iterations of a loop are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForKind {
    /// The iterations run one after another.
    Serial,
    /// The iterations are distributed to worker threads. They must be independent.
    Parallel,
    /// The iterations become the lanes of a vector. The extent must be constant.
    Vectorized,
    /// The loop is unrolled. The extent must be constant.
    Unrolled,
}

impl ForKind {
    /// The name of the loop kind in scripts, without the prefix `T.`.
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
    /// A spatial axis: different values of the axis write different parts of the output. `S` in scripts.
    Spatial,
    /// A reduction axis: different values of the axis contribute to the same part of the output. `R` in scripts.
    Reduce,
    /// An axis whose iterations must be executed in order. `O` in scripts.
    Opaque,
}

/// An axis of a block, bound to an expression of the enclosing loops.
#[derive(Clone, Debug)]
pub struct IterVar {
    /// The variable that represents the axis inside the block.
    pub var: Var,
    /// The first value of the axis.
    pub min: Expr,
    /// The number of values of the axis.
    pub extent: Expr,
    /// Whether the axis is spatial, a reduction axis or opaque.
    pub kind: IterKind,
    /// The value of the axis in an iteration, computed from the enclosing loop variables.
    pub binding: Expr,
}

/// A block, the unit of scheduling. Its body only uses the block's axes, not the enclosing loop variables.
#[derive(Clone, Debug)]
pub struct BlockData {
    /// The name of the block.
    pub name: Arc<str>,
    /// The axes of the block, outermost first.
    pub iters: Vec<IterVar>,
    /// The condition under which the block is executed in an iteration; `None` for always.
    pub predicate: Option<Expr>,
    /// The regions that the block reads; `None` if not declared.
    pub reads: Option<Vec<BufferRegion>>,
    /// The regions that the block writes; `None` if not declared.
    pub writes: Option<Vec<BufferRegion>>,
    /// The buffers that exist during one execution of the block.
    pub allocs: Vec<Buffer>,
    /// The initialization of a reduction. It is executed before the body in the iterations in which all reduction axes have their
    /// first values. If a reduction axis is empty, it is executed once for each value of the spatial axes, so that the result of an
    /// empty reduction is the reducer's identity.
    pub init: Option<Stmt>,
    /// The statement that the block executes.
    pub body: Stmt,
    /// Annotations of the block, as names and values.
    pub annotations: Vec<(Arc<str>, AttrValue)>,
}

impl BlockData {
    /// Moves the init of a block without reduction axes to the start of the body, where it is executed in every iteration. Only
    /// blocks with reduction axes may have an init.
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

/// A statement of the loop level.
#[derive(Clone, Debug)]
pub enum StmtData {
    /// Statements executed in order. The empty sequence does nothing.
    Seq(Vec<Stmt>),
    /// A loop over `min .. min + extent`.
    For {
        /// The loop variable, which is defined in the body.
        var: Var,
        /// The first value of the loop variable.
        min: Expr,
        /// The number of iterations; a negative number counts as 0.
        extent: Expr,
        /// The way in which the iterations are executed.
        kind: ForKind,
        /// The statement that every iteration executes.
        body: Stmt,
        /// Annotations of the loop, as names and values.
        annotations: Vec<(Arc<str>, AttrValue)>,
    },
    /// Repeats the body while the condition is true.
    While(Expr, Stmt),
    /// A conditional: the condition, and the statements for true and false.
    If(Expr, Stmt, Option<Stmt>),
    /// Defines a variable whose scope is the given statement.
    Let(Var, Expr, Stmt),
    /// Stores an element, or a vector if the last index is a ramp.
    Store {
        /// The buffer to which the value is stored.
        buffer: Buffer,
        /// One index per dim, or a single linear index in flat functions.
        indices: Box<[Expr]>,
        /// The value that is stored.
        value: Expr,
    },
    /// Creates a buffer that exists during the execution of the given statement.
    Alloc(Buffer, Stmt),
    /// Evaluates an expression for its side effect.
    Evaluate(Expr),
    /// Fails with the message if the condition is false; otherwise executes the body.
    Assert(Expr, Arc<str>, Stmt),
    /// A block, the unit of scheduling.
    Block(Box<BlockData>),
}
