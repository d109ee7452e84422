//! Functions that add and remove the temporary buffers of a loop function.

use pliant_ir::tir::{Buffer, BufferData, PrimFunc, Scope, StmtData};
use pliant_tir::statement_traversal::map_stmts;

use crate::error::Step;
use crate::loop_tree::add_block;

/// Whether a buffer is a parameter of the function.
pub(crate) fn is_parameter(f: &PrimFunc, buffer: Buffer) -> bool {
    f.buffer_map.values().any(|&b| b == buffer)
}

/// Adds a compact temporary buffer with the shape and data type of the buffer `like`, and allocates it around the whole body.
pub(crate) fn add_temporary(f: &mut PrimFunc, like: Buffer, name: String, scope: Scope) -> Buffer {
    let BufferData { dtype, shape, .. } = f.buffer(like).clone();
    let buffer = f.add_buffer(BufferData {
        name: name.into(),
        dtype,
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
