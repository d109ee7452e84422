//! Buffers: typed, shaped views of memory.

use std::sync::Arc;

use cranelift_entity::entity_impl;
use pliant_tensor::DType;

use super::expr::Expr;

/// A buffer of its function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Buffer(u32);
entity_impl!(Buffer, "buf");

/// Where a buffer's memory lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Memory of the caller or the heap.
    #[default]
    Global,
    /// Memory of one run of the enclosing loop body: the stack when small.
    Local,
}

impl Scope {
    /// Its name in the script.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Local => "local",
        }
    }

    /// The scope of that name.
    pub fn from_name(name: &str) -> Option<Scope> {
        match name {
            "global" | "" => Some(Scope::Global),
            "local" => Some(Scope::Local),
            _ => None,
        }
    }
}

/// A buffer's facts.
#[derive(Clone, Debug)]
pub struct BufferData {
    /// Its name; printing makes names unique.
    pub name: Arc<str>,
    /// The element type.
    pub dtype: DType,
    /// The dims, in elements.
    pub shape: Vec<Expr>,
    /// The strides, in elements; empty for a compact row-major buffer.
    pub strides: Vec<Expr>,
    /// The offset of the first element, in elements.
    pub elem_offset: Option<Expr>,
    /// Where its memory lives.
    pub scope: Scope,
}

/// A box of a buffer: start and extent per dim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferRegion {
    /// The buffer.
    pub buffer: Buffer,
    /// `(start, extent)` of each dim.
    pub region: Vec<(Expr, Expr)>,
}
