//! `transform_block_layout`: replaces the axes of a block by those that an index map computes from them, and the loops around it by
//! one loop for each new axis.

use pliant_ir::tir::{BlockData, Expr, IterKind, PrimFunc, Var};
use pliant_tir::statement_traversal::substitute;
use rustc_hash::FxHashMap;

use crate::error::Step;
use crate::index_map::IndexMap;
use crate::loop_tree::{replace, simple_nest};
use crate::new_nest::NewNest;
use crate::reductions::accumulation;

/// Replaces the axes of the block `name` by the outputs of a map of these axes, and the loops around it by loops over the new axes.
pub(crate) fn transform_block_layout(f: &mut PrimFunc, name: &str, map: &IndexMap) -> Step<()> {
    let nest = simple_nest(f, name)?;
    let block = nest.block;
    let names: Vec<String> = block.iters.iter().map(|it| f.var(it.var).name.to_string()).collect();
    let extents: Vec<Expr> = block.iters.iter().map(|it| it.extent).collect();
    let bound = map.bind(f, &extents, &names)?;
    if let Some(&axis) = bound.padded.first() {
        return Err(format!(
            "the index map is not bijective: the new axes of the block '{name}' have more combinations than the old ones, because \
             the extent '{}' of the axis '{}' may be no multiple of its tile; apply pad_einsum first",
            pliant_ir::print::tir_expr_text(f, extents[axis]),
            names[axis]
        ));
    }
    check_order(f, &block)?;
    let mut new = NewNest::new(f, &bound.extents);
    for (dim, sources) in bound.sources.iter().enumerate() {
        new.set_kind(dim, new_kind(f, &block, dim, sources)?);
    }
    let old = bound.inverse(f, &new.axes);
    let values: FxHashMap<Var, Expr> = block.iters.iter().map(|it| it.var).zip(old).collect();
    let init = block.init.map(|s| substitute(f, s, &values));
    let body = substitute(f, block.body, &values);
    let new = new.wrap(f, BlockData { init, body, reads: None, writes: None, ..block });
    replace(f, nest.outermost, new);
    Ok(())
}

/// Fails if the result of a block may depend on the order of its iterations.
fn check_order(f: &PrimFunc, block: &BlockData) -> Step<()> {
    if let Some(axis) = block.iters.iter().find(|it| it.kind == IterKind::Opaque) {
        return Err(format!(
            "the axis '{}' of the block '{}' is opaque, so the order of its loops must not change",
            f.var(axis.var).name,
            block.name
        ));
    }
    let reduces = block.iters.iter().any(|it| it.kind == IterKind::Reduce);
    match reduces && accumulation(f, block).is_none() {
        true => Err(format!(
            "the result of the block '{}' may depend on the order of its reduction loops, so its axes cannot be replaced",
            block.name
        )),
        false => Ok(()),
    }
}

/// Returns the kind of the new axis `dim`, which is computed from the old axes `sources`. Fails if these have different kinds.
fn new_kind(f: &PrimFunc, block: &BlockData, dim: usize, sources: &[usize]) -> Step<IterKind> {
    let mut kinds = sources.iter().map(|&i| block.iters[i].kind);
    let first = kinds.next().unwrap_or(IterKind::Spatial);
    if kinds.all(|kind| kind == first) {
        return Ok(first);
    }
    let names: Vec<String> =
        sources.iter().map(|&i| format!("'{}'", f.var(block.iters[i].var).name)).collect();
    Err(format!(
        "the output {dim} of the index map combines spatial and reduction axes of the block '{}' ({}), but a new axis must be \
         either spatial or a reduction axis",
        block.name,
        names.join(", ")
    ))
}
