//! Functions that select, add and remove the buffers of a loop function.

use std::sync::Arc;

use pliant_ir::tir::{BlockData, Buffer, BufferData, Expr, PrimFunc, Scope, StmtData};
use pliant_tir::statement_traversal::map_stmts;

use crate::error::Step;
use crate::loop_tree::{add_block, read_buffers, written_buffers};

/// A buffer that a block reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferSelector {
    /// The buffer at this position among those that the block only reads.
    Read(usize),
    /// The buffer at this position among those that the block writes.
    Write(usize),
    /// The buffer with this name.
    Name(Arc<str>),
}

impl BufferSelector {
    /// Returns the selected buffer of a block.
    ///
    /// # Errors
    /// If the block reads or writes no such buffer, or several buffers with the name.
    pub(crate) fn resolve(&self, f: &PrimFunc, block: &BlockData) -> Step<Buffer> {
        match self {
            BufferSelector::Read(i) => {
                buffer_at(f, &read_buffers(f, block), *i, "reads", &block.name)
            }
            BufferSelector::Write(i) => {
                buffer_at(f, &written_buffers(f, block), *i, "writes", &block.name)
            }
            BufferSelector::Name(name) => {
                let mut all = read_buffers(f, block);
                all.extend(written_buffers(f, block));
                let same = |b: &&Buffer| f.buffer(**b).name == *name;
                match all.iter().filter(same).collect::<Vec<_>>()[..] {
                    [one] => Ok(*one),
                    [] => Err(format!(
                        "the block '{}' neither reads nor writes a buffer '{name}'; its buffers are {}",
                        block.name,
                        names(f, &all)
                    )),
                    _ => Err(format!(
                        "several buffers of the block '{}' have the name '{name}'; select one by its index",
                        block.name
                    )),
                }
            }
        }
    }
}

fn names(f: &PrimFunc, buffers: &[Buffer]) -> String {
    buffers.iter().map(|&b| &*f.buffer(b).name).collect::<Vec<_>>().join(", ")
}

/// Returns the buffer at position `index` of `buffers`, the list of the buffers that a block reads or writes (`what`). Fails if the
/// list is shorter.
pub(crate) fn buffer_at(
    f: &PrimFunc,
    buffers: &[Buffer],
    index: usize,
    what: &str,
    block: &str,
) -> Step<Buffer> {
    buffers.get(index).copied().ok_or_else(|| {
        format!(
            "the buffer index {index} is out of range: the block '{block}' {what} {} buffers ({})",
            buffers.len(),
            names(f, buffers)
        )
    })
}

/// Whether a buffer is a parameter of the function.
pub(crate) fn is_parameter(f: &PrimFunc, buffer: Buffer) -> bool {
    f.buffer_map.values().any(|&b| b == buffer)
}

/// Adds a compact temporary buffer with the shape and data type of the buffer `like`, and allocates it around the whole body.
pub(crate) fn add_temporary(f: &mut PrimFunc, like: Buffer, name: String, scope: Scope) -> Buffer {
    let shape = f.buffer(like).shape.clone();
    add_temporary_of_shape(f, like, name, scope, shape)
}

/// Adds a compact temporary buffer with this shape and the data type of the buffer `like`, and allocates it around the whole body.
pub(crate) fn add_temporary_of_shape(
    f: &mut PrimFunc,
    like: Buffer,
    name: String,
    scope: Scope,
    shape: Vec<Expr>,
) -> Buffer {
    let buffer = f.add_buffer(BufferData {
        name: name.into(),
        dtype: f.buffer(like).dtype,
        shape,
        strides: Vec::new(),
        elem_offset: None,
        scope,
    });
    allocate(f, buffer);
    buffer
}

/// Allocates a buffer around the whole body of a function.
pub(crate) fn allocate(f: &mut PrimFunc, buffer: Buffer) {
    let body = f.body;
    f.body = f.add_stmt(StmtData::Alloc(buffer, body));
}

/// Removes the allocation of a buffer.
pub(crate) fn remove_allocation(f: &mut PrimFunc, buffer: Buffer) {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Alloc(b, body) if b == buffer => Some(body),
        StmtData::Block(mut block) if block.allocs.contains(&buffer) => {
            block.allocs.retain(|&b| b != buffer);
            Some(add_block(f, *block))
        }
        _ => None,
    });
}

/// Returns the memory scope with this name. Fails if a CPU has no such scope.
pub(crate) fn scope(name: &str) -> Step<Scope> {
    Scope::from_name(name).ok_or_else(|| {
        format!("there is no memory scope '{name}' on a CPU; use \"global\" or \"local\"")
    })
}
