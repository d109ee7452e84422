//! ClearScratch: zero-fills allocated buffers that a function may read before it has written all of them. Their memory
//! is recycled and must not expose data of other programs.

use std::sync::Arc;

use pliant_ir::tir::{BlockData, Buffer, ForKind, IterKind, IterVar, PrimFunc, Stmt, StmtData, Ty};

use crate::error::LowerError;
use crate::full_writes::body_writes_whole;
use crate::walk::map_stmts;

/// Clears the allocated buffers that are not provably written before they are read.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Alloc(buffer, body) if !body_writes_whole(f, body, buffer) => {
            let clear = zeros(f, buffer);
            let body = f.seq(vec![clear, body]);
            Some(f.add_stmt(StmtData::Alloc(buffer, body)))
        }
        StmtData::Block(b) => {
            let mut b: BlockData = *b;
            let unproved: Vec<Buffer> =
                b.allocs.iter().copied().filter(|&a| !body_writes_whole(f, b.body, a)).collect();
            if unproved.is_empty() {
                return None;
            }
            let mut parts: Vec<Stmt> = unproved.into_iter().map(|a| zeros(f, a)).collect();
            parts.push(b.body);
            b.body = f.seq(parts);
            Some(f.add_stmt(StmtData::Block(Box::new(b))))
        }
        _ => None,
    });
    Ok(())
}

/// A block that stores 0 to each element of a buffer.
fn zeros(f: &mut PrimFunc, buffer: Buffer) -> Stmt {
    let data = f.buffer(buffer);
    let (name, dtype, mut shape) = (data.name.clone(), data.dtype, data.shape.clone());
    if f.is_flat() {
        // Accesses have one index, whatever the rank.
        shape = vec![shape.into_iter().fold(f.int(1), |all, dim| f.mul(all, dim))];
    }
    let min = f.int(0);
    let (mut iters, mut indices, mut loops) = (Vec::new(), Vec::new(), Vec::new());
    for (k, &dim) in shape.iter().enumerate() {
        let extent = f.cast(dim, Ty::I64);
        let (outer, var) = (f.size_var(format!("i{k}")), f.size_var(format!("v{k}")));
        let binding = f.var_expr(outer);
        iters.push(IterVar { var, min, extent, kind: IterKind::Spatial, binding });
        indices.push(f.var_expr(var));
        loops.push((outer, extent));
    }
    let zero = f.const_of(0.0, dtype);
    let body = f.store(buffer, &indices, zero);
    let block = BlockData {
        name: Arc::from(format!("{name}_clear")),
        iters,
        predicate: None,
        reads: None,
        writes: None,
        allocs: Vec::new(),
        init: None,
        body,
        annotations: Vec::new(),
    };
    let block = f.add_stmt(StmtData::Block(Box::new(block)));
    loops.into_iter().rev().fold(block, |body, (var, extent)| {
        let kind = ForKind::Serial;
        f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations: Vec::new() })
    })
}
