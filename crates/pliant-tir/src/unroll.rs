//! UnrollLoop: loops marked `unroll` are written out; those of unknown or large extent become serial.

use pliant_ir::tir::{ForKind, PrimFunc, StmtData};
use rustc_hash::FxHashMap;

use crate::error::LowerError;
use crate::walk::{map_stmts, substitute, unique_vars};

/// Turns that are written out at most.
const MAX_TURNS: i64 = 64;

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
        let Some(turns) = f.as_int(extent).filter(|&n| n <= MAX_TURNS) else {
            let kind = ForKind::Serial;
            return Some(f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations }));
        };
        let mut out = Vec::new();
        for i in 0..turns.max(0) {
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
