//! Buffers: typed, shaped views of memory.

use std::sync::Arc;

use cranelift_entity::entity_impl;
use pliant_tensor::DType;

use super::expr::Expr;

/// The id of a buffer of a loop function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Buffer(u32);
entity_impl!(Buffer, "buf");

/// The memory scope of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Memory of the caller, or heap memory.
    #[default]
    Global,
    /// Memory local to one execution of the enclosing loop body; on the stack if it is small.
    Local,
}

impl Scope {
    /// The name of the scope in scripts.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Local => "local",
        }
    }

    /// The scope with the given name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Scope> {
        match name {
            "global" | "" => Some(Scope::Global),
            "local" => Some(Scope::Local),
            _ => None,
        }
    }
}

/// The properties of a buffer of a loop function.
#[derive(Clone, Debug)]
pub struct BufferData {
    /// The name of the buffer. The printer makes names unique.
    pub name: Arc<str>,
    /// The type of the buffer's elements.
    pub dtype: DType,
    /// The sizes of the buffer's dims, in elements.
    pub shape: Vec<Expr>,
    /// The strides, in elements; empty for a compact row-major buffer.
    pub strides: Vec<Expr>,
    /// The offset of the buffer's first element from the start of its memory, in elements; `None` if it is 0.
    pub elem_offset: Option<Expr>,
    /// The memory scope in which the buffer is allocated.
    pub scope: Scope,
}

/// A rectangular region of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferRegion {
    /// The buffer of which this is a region.
    pub buffer: Buffer,
    /// The start and the extent of the region in each dim.
    pub region: Vec<(Expr, Expr)>,
}
