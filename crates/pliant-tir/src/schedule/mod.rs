//! DefaultSchedule: rules that turn stages into fast loops at every size, from symbolic facts alone.
//!
//! - Extents that may be negative are clamped to 0 (`extents`).
//! - A matrix product becomes a library call (`gemm`). Elementwise stages that follow run over blocks of its results while these
//!   are in the nearest caches (`finish`, `blocks`).
//! - Adjacent axes of the same kind are fused if all accesses of a stage allow it. The last axis of an elementwise stage is vectorized. The iterations
//!   are split into chunks of about a microsecond that run in parallel (`emit`).
//! - A stage that reads an operand across its last axis, such as a transpose, runs in blocks (`transposed`).
//! - Stages that share leading spatial axes and pass values only along them (softmax, layer normalization) run in one parallel loop
//!   over rows, with their temporaries shrunk to one row (`group`).
//! - A reduction over a contiguous axis uses a vector of partial results. A reduction over another axis uses a vector of adjacent
//!   results. Float sums are therefore computed in another order than written (`reductions`).
//! - A reduction of many values to few results runs in parallel pieces, whose results are combined (`partial`).
//! - Arithmetic on 16-bit floats is rewritten as float32 arithmetic whose results are rounded (`half`).
//! - Elementary functions over a vectorized axis are called on tiles (`tiles`), and so are the functions that accumulate rows into
//!   the maxima or minima of columns (`extremes`).
//! - Stages that broadcast operands whose sizes may be 1 get several versions, one for each outcome of the size comparisons
//!   (`choose`).
//! - If a condition changes along the last axis, or this axis is split by division, it is cut into parts without conditions and
//!   divisions (`split`).
//! - In statements of other forms, loops that only store adjacent elements use vectors (`plain::copies`).
//! - Stages of other forms run point by point (`plain`); all other statements keep their loops and blocks.

mod blocks;
mod choose;
pub mod emit;
mod extents;
pub mod extremes;
mod finish;
pub mod gemm;
pub mod group;
mod half;
mod partial;
mod plain;
pub mod reach;
mod reductions;
mod split;
pub mod stage;
mod tiled;
pub mod tiles;
mod transposed;

use pliant_ir::AttrValue;
use pliant_ir::attr_names::KERNELS;
use pliant_ir::tir::{Buffer, PrimFunc, Stmt, StmtData};

use crate::error::LowerError;
use group::Group;
use stage::Item;

/// Whether a function may call library kernels.
pub fn uses_kernels(f: &PrimFunc) -> bool {
    !matches!(f.attrs.get(KERNELS), Some(AttrValue::Bool(false)))
}

/// Schedules a function.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    extents::clamp(f);
    let (mut allocs, items) = stage::parse(f);
    let mut out: Vec<Stmt> = Vec::new();
    let mut group: Option<Group> = None;
    let mut at = 0;
    while at < items.len() {
        let here = at;
        at += 1;
        match &items[here] {
            Item::Other(s) => {
                flush(f, &mut group, &mut allocs, &items, here, &mut out);
                out.push(plain::copies(f, *s));
            }
            Item::Stage(stage) => {
                let conditions = choose::conditions(f, stage);
                if !conditions.is_empty() {
                    flush(f, &mut group, &mut allocs, &items, here, &mut out);
                    out.push(choose::versions(f, stage, &conditions));
                    continue;
                }
                if let Some(finished) = finish::product(f, &items, here, &allocs) {
                    flush(f, &mut group, &mut allocs, &items, here, &mut out);
                    allocs.retain(|b| Some(*b) != finished.gone);
                    out.push(finished.stmt);
                    at = finished.end;
                    continue;
                }
                if let Some(call) = gemm::tensorize(f, stage) {
                    flush(f, &mut group, &mut allocs, &items, here, &mut out);
                    out.push(call);
                    continue;
                }
                let stage = half::widened(f, stage);
                let stage = emit::with_fused_reductions(f, &stage);
                if !group.as_mut().is_some_and(|g| g.try_add(f, &stage)) {
                    flush(f, &mut group, &mut allocs, &items, here, &mut out);
                    group = Some(Group::new(f, stage, here));
                }
            }
        }
    }
    flush(f, &mut group, &mut allocs, &items, items.len(), &mut out);
    let mut body = f.seq(out);
    for &b in allocs.iter().rev() {
        body = f.add_stmt(StmtData::Alloc(b, body));
    }
    f.body = crate::walk::unique_vars(f, body);
    Ok(())
}

/// Emits the group collected so far. `end` is the position after its last stage.
fn flush(
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
