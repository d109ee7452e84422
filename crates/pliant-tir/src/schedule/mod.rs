//! DefaultSchedule: emits efficient loops for stages (loop nests around one block) whose sizes may be symbolic.
//!
//! - Extents that may be negative are clamped to 0 (`clamp_extents`).
//! - A stage that only checks conditions, such as those of indices, is fused with the next stage if both have the same axes
//!   (`check_fusion`).
//! - A matmul becomes a kernel call (`gemm`). The elementwise stages that follow it become its epilogue: they run over blocks of
//!   results that are still in the L1 or L2 cache (`matmul_epilogue`, `gemm_blocking`).
//! - Adjacent axes of the same kind are fused if all accesses of a stage allow it. The last axis of an elementwise stage is
//!   vectorized. Its iterations are split into chunks of about a microsecond that run in parallel (`emit_stage_loops`).
//! - A stage that reads an operand across its last axis, such as a transpose, is blocked (`transpose_blocking`).
//! - Stages that share leading spatial axes and pass values only along them (softmax, layer normalization) are fused into one
//!   parallel loop over rows, with a buffer for one row of each temporary (`row_group_fusion`).
//! - A reduction over a contiguous axis uses a vector of partial results. A reduction over another axis uses a vector of adjacent
//!   results. Float sums are therefore computed in another order than written (`reduction_loops`).
//! - A reduction of many values to few results is split into parallel pieces, whose results are combined (`partial_reductions`).
//! - Arithmetic on 16-bit floats is rewritten to float32 arithmetic whose results are rounded (`half_precision`).
//! - Limits in front of saturating conversions to integers are removed (`saturating_casts`).
//! - Elementary functions over a vectorized axis become calls of library functions (`pliant_vec_*`) on tiles of elements
//!   (`vector_math_tiles`, `vector_math_loops`). Reductions of columns or rows to their maxima or minima call such functions, too
//!   (`column_extrema`, `row_extrema`).
//! - Stages that broadcast operands whose sizes may be 1 are multiversioned: there is one version for each outcome of the size
//!   comparisons (`broadcast_multiversioning`).
//! - If a condition changes along the last axis, or this axis is divided, the loop over it is split into parts without conditions
//!   and divisions (`loop_splitting`).
//! - Stages of other forms run point by point (`scalar_stage_loops`).
//! - All other statements keep their loops and blocks. Only loops in them that copy adjacent elements are vectorized
//!   (`scalar_stage_loops::vectorize_copies`).

mod broadcast_multiversioning;
mod check_fusion;
mod clamp_extents;
pub mod column_extrema;
pub mod emit_stage_loops;
pub mod gemm;
mod gemm_blocking;
mod half_precision;
pub mod loop_nest_stages;
mod loop_splitting;
mod matmul_epilogue;
mod partial_reductions;
mod reduction_loops;
mod row_extrema;
pub mod row_group_fusion;
mod saturating_casts;
mod scalar_stage_loops;
mod transpose_blocking;
pub mod vector_math_bounds;
mod vector_math_loops;
pub mod vector_math_tiles;

use pliant_ir::AttrValue;
use pliant_ir::attr_names::KERNELS;
use pliant_ir::tir::{Buffer, PrimFunc, Stmt, StmtData};

use crate::lowering_error::LowerError;
use loop_nest_stages::Item;
use row_group_fusion::Group;

/// Whether a function may call library kernels, that is, its attribute [`KERNELS`] is absent or true.
pub fn uses_kernels(f: &PrimFunc) -> bool {
    !matches!(f.attrs.get(KERNELS), Some(AttrValue::Bool(false)))
}

/// Emits efficient loops for all stages of a function.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    clamp_extents::clamp(f);
    let (mut allocs, items) = loop_nest_stages::parse_body(f);
    let items = check_fusion::fuse_checks(f, items);
    let mut out: Vec<Stmt> = Vec::new();
    let mut group: Option<Group> = None;
    let mut next = 0;
    while next < items.len() {
        let current = next;
        next += 1;
        match &items[current] {
            Item::Other(s) => {
                emit_group(f, &mut group, &mut allocs, &items, current, &mut out);
                out.push(scalar_stage_loops::vectorize_copies(f, *s));
            }
            Item::Stage(stage) => {
                let conditions = broadcast_multiversioning::broadcast_conditions(f, stage);
                if !conditions.is_empty() {
                    emit_group(f, &mut group, &mut allocs, &items, current, &mut out);
                    out.push(broadcast_multiversioning::emit_versions(f, stage, &conditions));
                    continue;
                }
                if let Some(fused) = matmul_epilogue::fuse_epilogue(f, &items, current, &allocs) {
                    emit_group(f, &mut group, &mut allocs, &items, current, &mut out);
                    allocs.retain(|b| Some(*b) != fused.removed);
                    out.push(fused.stmt);
                    next = fused.end;
                    continue;
                }
                if let Some(call) = gemm::tensorize(f, stage) {
                    emit_group(f, &mut group, &mut allocs, &items, current, &mut out);
                    out.push(call);
                    continue;
                }
                let stage = saturating_casts::without_implied_limits(f, stage);
                let stage = half_precision::widen_arithmetic(f, &stage);
                let stage = emit_stage_loops::with_fused_reductions(f, &stage);
                if !group.as_mut().is_some_and(|g| g.try_add(f, &stage)) {
                    emit_group(f, &mut group, &mut allocs, &items, current, &mut out);
                    group = Some(Group::new(f, stage, current));
                }
            }
        }
    }
    emit_group(f, &mut group, &mut allocs, &items, items.len(), &mut out);
    let mut body = f.seq(out);
    for &b in allocs.iter().rev() {
        body = f.add_stmt(StmtData::Alloc(b, body));
    }
    f.body = crate::statement_traversal::unique_vars(f, body);
    Ok(())
}

/// Emits the row group (stages that share one parallel loop over rows) that has been collected so far, if there is one.
/// `end` is the position after its last stage.
fn emit_group(
    f: &mut PrimFunc,
    group: &mut Option<Group>,
    allocs: &mut Vec<Buffer>,
    items: &[Item],
    end: usize,
    out: &mut Vec<Stmt>,
) {
    let Some(g) = group.take() else { return };
    let outside: Vec<&Item> = items[..g.first].iter().chain(&items[end..]).collect();
    let s = g.emit(f, allocs, &outside);
    out.extend(s);
}
