//! UnrollLoop: unrolls loops of the kind `unroll`. Loops of this kind with a non-constant or large extent or a large body become
//! serial.

use pliant_ir::tir::{ForKind, PrimFunc, StmtData};
use rustc_hash::FxHashMap;

use crate::lowering_error::LowerError;
use crate::statement_traversal::{for_each_stmt, map_stmts, substitute, unique_vars};

/// Maximum number of iterations of a loop that is unrolled.
const MAX_ITERATIONS: i64 = 64;
/// Maximum number of statements to which a loop is unrolled, including statements of unrolled loops inside it.
const MAX_STATEMENTS: i64 = 4096;

/// Unrolls the loops of the kind `unroll`, or makes them serial if they are too large.
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
        let mut statements = 0;
        for_each_stmt(f, body, &mut |_, _| statements += 1);
        let is_small = |n: &i64| *n <= MAX_ITERATIONS && *n * statements <= MAX_STATEMENTS;
        let Some(iterations) = f.as_int(extent).filter(is_small) else {
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
    // The copies bind the same loop variables, whose ranges may differ between copies, so the variables are renamed.
    let body = f.body;
    f.body = unique_vars(f, body);
    Ok(())
}
