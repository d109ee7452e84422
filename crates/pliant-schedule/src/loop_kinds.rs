//! `parallel`, `vectorize`, `unroll` and `bind`: the way in which the iterations of a loop are executed.

use pliant_ir::tir::{ForKind, PrimFunc, StmtData, Var};

use crate::error::Step;
use crate::loop_tree::{
    blocks_in, find_loop, has_statements_outside_blocks, non_spatial_axis, replace,
};

/// Sets the kind of a loop.
pub(crate) fn set_kind(f: &mut PrimFunc, var: Var, kind: ForKind) -> Step<()> {
    let old = find_loop(f, var)?;
    let name = f.var(var).name.clone();
    if old.kind != ForKind::Serial {
        return Err(format!("the loop '{name}' is {} already", old.kind.name()));
    }
    if kind != ForKind::Unrolled {
        check_independent(f, var, kind)?;
    }
    if kind != ForKind::Parallel && f.as_int(old.extent).is_none() {
        return Err(format!(
            "the loop '{name}' has a symbolic extent; split it with a constant factor, and apply {} to the inner loop",
            if kind == ForKind::Vectorized { "vectorize" } else { "unroll" }
        ));
    }
    let StmtData::For { var, min, extent, body, annotations, .. } = f.stmt(old.stmt).clone() else {
        return Err(format!("'{name}' is not a loop"));
    };
    let new = f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations });
    replace(f, old.stmt, new);
    Ok(())
}

/// Fails unless the iterations of a loop are independent: it only runs over spatial axes of blocks.
fn check_independent(f: &PrimFunc, var: Var, kind: ForKind) -> Step<()> {
    let old = find_loop(f, var)?;
    let name = &f.var(var).name;
    if has_statements_outside_blocks(f, old.body) {
        return Err(format!(
            "the loop '{name}' contains statements outside of blocks, which may depend on each other"
        ));
    }
    for (_, block) in blocks_in(f, old.body) {
        if let Some(axis) = non_spatial_axis(f, &block, var) {
            return Err(format!(
                "the loop '{name}' runs over the axis '{axis}' of the block '{}', which is not spatial; its iterations cannot be {}",
                block.name,
                kind.name()
            ));
        }
    }
    Ok(())
}

/// Rejects the binding of a loop to threads of a GPU.
pub(crate) fn bind(f: &PrimFunc, var: Var, thread: &str) -> Step<()> {
    let name = f.var(find_loop(f, var)?.var).name.clone();
    Err(format!(
        "the loop '{name}' cannot be bound to '{thread}': CPUs have no such threads; use parallel or vectorize"
    ))
}
