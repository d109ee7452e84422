//! EstimateParallelWork: estimates the work of an iteration of each parallel loop of a function that a user has scheduled
//! (`tir.is_scheduled`). From this estimate, the worker team decides whether to run the loop in parallel
//! (`pliant-pool/src/worker_threads.rs`). The parallel loops that DefaultSchedule emits in other functions need no estimate: each
//! of their iterations takes about a microsecond.

use pliant_ir::AttrValue;
use pliant_ir::tir::{ForKind, PrimFunc, Stmt, StmtData};

use crate::buffer_accesses::PARALLEL_GRAIN;
use crate::lowering_error::LowerError;
use crate::lowering_pipeline::is_scheduled;
use crate::statement_traversal::{children, map_stmts};

/// The assumed number of iterations of a loop with a symbolic extent.
const SYMBOLIC_ITERATIONS: i64 = 64;
/// The number of stores, each of a scalar or a vector, that take about a microsecond.
const STORES_PER_GRAIN: i64 = 500;
/// Maximum estimated work of one iteration of a parallel loop, in grains of about a microsecond. Larger estimates are clamped.
const MAX_GRAINS: i64 = 1 << 20;

/// Adds the annotation [`PARALLEL_GRAIN`] to parallel loops without it, if a user has scheduled the function.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    if !is_scheduled(f) {
        return Ok(());
    }
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| {
        let StmtData::For { var, min, extent, kind: ForKind::Parallel, body, mut annotations } =
            f.stmt(s).clone()
        else {
            return None;
        };
        if annotations.iter().any(|(key, _)| &**key == PARALLEL_GRAIN) {
            return None;
        }
        let stores = stores(f, body).max(1);
        // A negative number is minus the number of grains of an iteration.
        let grain = match stores / STORES_PER_GRAIN {
            0 => STORES_PER_GRAIN / stores,
            grains => -grains.min(MAX_GRAINS),
        };
        annotations.push((PARALLEL_GRAIN.into(), AttrValue::Int(grain)));
        let kind = ForKind::Parallel;
        Some(f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations }))
    });
    Ok(())
}

/// Estimates the number of stores that a statement executes. The lanes of a vectorized loop count once.
fn stores(f: &PrimFunc, s: Stmt) -> i64 {
    match f.stmt(s) {
        StmtData::Store { .. } | StmtData::Evaluate(_) => 1,
        StmtData::For { extent, kind, body, .. } => {
            let iterations = match kind {
                ForKind::Vectorized => 1,
                _ => f.as_int(*extent).unwrap_or(SYMBOLIC_ITERATIONS),
            };
            iterations.max(0).saturating_mul(stores(f, *body))
        }
        data => children(data).into_iter().fold(0, |all, c| all.saturating_add(stores(f, c))),
    }
}
