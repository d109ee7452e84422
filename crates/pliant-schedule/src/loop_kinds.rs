//! `parallel`, `vectorize`, `unroll` and `bind`: set how the iterations of a loop are executed.

use pliant_ir::tir::{BlockData, ForKind, PrimFunc, StmtData, Var};
use pliant_tir::statement_traversal::uses_any;

use crate::buffers::is_parameter;
use crate::dependences::check_iterations_independent;
use crate::error::Step;
use crate::loop_tree::{
    find_loop, has_statements_outside_blocks, loads_of, non_spatial_axis, outermost_blocks_in,
    replace, written_buffers,
};

/// Sets the kind of a serial loop: parallel, vectorized or unrolled.
pub(crate) fn set_kind(f: &mut PrimFunc, var: Var, kind: ForKind) -> Step<()> {
    let old = find_loop(f, var)?;
    let name = f.var(var).name.clone();
    if old.kind != ForKind::Serial {
        return Err(format!(
            "only serial loops can be made {}, but the loop '{name}' is {}",
            kind.name(),
            old.kind.name()
        ));
    }
    if kind != ForKind::Unrolled {
        check_independent(f, var, kind)?;
        check_iterations_independent(f, old.body, Some(var))?;
    }
    if kind != ForKind::Parallel && f.as_int(old.extent).is_none() {
        return Err(format!(
            "the loop '{name}' has a symbolic extent; split it with a constant factor, and apply {} to the inner loop",
            if kind == ForKind::Vectorized { "vectorize" } else { "unroll" }
        ));
    }
    let StmtData::For { var, min, extent, body, annotations, .. } = f.stmt(old.stmt).clone() else {
        return Err(format!("internal error: the statement of the loop '{name}' is not a loop"));
    };
    let new = f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations });
    replace(f, old.stmt, new);
    Ok(())
}

/// Fails unless the loop over `var` runs only over spatial axes of the blocks in it. Its iterations then compute different
/// elements. `kind` is the new kind of the loop, for error messages.
fn check_independent(f: &PrimFunc, var: Var, kind: ForKind) -> Step<()> {
    let old = find_loop(f, var)?;
    let name = &f.var(var).name;
    if has_statements_outside_blocks(f, old.body) {
        return Err(format!(
            "the loop '{name}' contains statements outside of blocks, so its iterations may depend on each other and the loop \
             cannot be {}",
            kind.name()
        ));
    }
    for (_, block) in outermost_blocks_in(f, old.body) {
        let uses = |e| uses_any(f, e, &|v| v == var);
        if !block.iters.iter().any(|it| uses(it.binding)) && !recomputes_only(f, &block) {
            return Err(format!(
                "no axis of the block '{}' uses the loop '{name}', so the iterations of the loop may depend on each other and the \
                 loop cannot be {}",
                block.name,
                kind.name()
            ));
        }
        if let Some(axis) = non_spatial_axis(f, &block, var) {
            return Err(format!(
                "the loop '{name}' runs over '{axis}', an axis of the block '{}' that is not spatial, so the loop cannot be {}",
                block.name,
                kind.name()
            ));
        }
    }
    Ok(())
}

/// Whether repeated execution of a block has no effect: the block writes only temporary buffers, and reads none of them except the
/// result of its own reduction.
fn recomputes_only(f: &PrimFunc, block: &BlockData) -> bool {
    let reads_result =
        written_buffers(f, block).into_iter().any(|b| !loads_of(f, block, b).is_empty());
    (!reads_result || block.init.is_some())
        && written_buffers(f, block).iter().all(|&b| !is_parameter(f, b))
}

/// Fails with the message that a loop cannot be bound to threads of a GPU.
pub(crate) fn bind(f: &PrimFunc, var: Var, thread: &str) -> Step<()> {
    let name = f.var(find_loop(f, var)?.var).name.clone();
    Err(format!(
        "the loop '{name}' cannot be bound to '{thread}': CPUs have no such threads; use parallel or vectorize"
    ))
}
