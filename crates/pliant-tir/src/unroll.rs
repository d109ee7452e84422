//! UnrollLoop: loops marked `unroll` are written out; those of unknown or large extent, or with large bodies, become serial.

use pliant_ir::tir::{ForKind, PrimFunc, StmtData};
use rustc_hash::FxHashMap;

use crate::error::LowerError;
use crate::walk::{for_each_stmt, map_stmts, substitute, unique_vars};

/// Maximum number of iterations that are written out.
const MAX_ITERATIONS: i64 = 64;
/// Maximum number of statements that a loop, with the unrolled loops in it, becomes.
const MAX_STATEMENTS: i64 = 4096;

/// Writes out unrolled loops.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| {
        let StmtData::For { var, min, extent, kind: ForKind::Unrolled, body, annotations } =
            f.stmt(s).clone()
        else {
            return None;
        };
        let mut size = 0;
        for_each_stmt(f, body, &mut |_, _| size += 1);
        let fits = |n: &i64| *n <= MAX_ITERATIONS && *n * size <= MAX_STATEMENTS;
        let Some(iterations) = f.as_int(extent).filter(fits) else {
            let kind = ForKind::Serial;
            return Some(f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations }));
        };
        let mut out = Vec::new();
        for i in 0..iterations.max(0) {
            let i = f.int(i);
            let i = f.add(min, i);
            let i = f.cast(i, f.expr_ty(min));
            out.push(substitute(f, body, &FxHashMap::from_iter([(var, i)])));
        }
        Some(f.seq(out))
    });
    // Each copy has loops of its own, whose ranges may differ.
    let body = f.body;
    f.body = unique_vars(f, body);
    Ok(())
}
