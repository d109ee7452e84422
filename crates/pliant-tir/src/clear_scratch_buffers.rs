//! ClearScratch: zero-fills allocated buffers from which a function may read elements that it has not written. The memory of
//! buffers is recycled, so these elements would expose data of other programs.

use std::sync::Arc;

use pliant_ir::tir::{BlockData, Buffer, ForKind, IterKind, IterVar, PrimFunc, Stmt, StmtData, Ty};

use crate::fully_written_buffers::stmt_fully_writes;
use crate::lowering_error::LowerError;
use crate::statement_traversal::map_stmts;

/// Zero-fills the allocated buffers that are not provably written completely before they are read.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Alloc(buffer, body) if !stmt_fully_writes(f, body, buffer) => {
            let clear = zero_fill(f, buffer);
            let body = f.seq(vec![clear, body]);
            Some(f.add_stmt(StmtData::Alloc(buffer, body)))
        }
        StmtData::Block(b) => {
            let mut b: BlockData = *b;
            let unproved: Vec<Buffer> =
                b.allocs.iter().copied().filter(|&a| !stmt_fully_writes(f, b.body, a)).collect();
            if unproved.is_empty() {
                return None;
            }
            let mut stmts: Vec<Stmt> = unproved.into_iter().map(|a| zero_fill(f, a)).collect();
            stmts.push(b.body);
            b.body = f.seq(stmts);
            Some(f.add_stmt(StmtData::Block(Box::new(b))))
        }
        _ => None,
    });
    Ok(())
}

/// Returns a loop nest around a block that stores 0 to each element of a buffer.
fn zero_fill(f: &mut PrimFunc, buffer: Buffer) -> Stmt {
    let data = f.buffer(buffer);
    let (name, dtype, mut shape) = (data.name.clone(), data.dtype, data.shape.clone());
    if f.is_flat() {
        // In flat functions, each access has one index, whatever the rank.
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
