//! `blockize`: makes a loop with the block in it an outer block. The axes of the block are divided into those of the outer block,
//! which count tiles, and the loops inside, which run over the elements of a tile.
//!
//! An axis bound to `i_0 * 8 + i_1`, for example, becomes the axis `vi_o = i_0` of the outer block and the axis `vi_o * 8 + i_1` of
//! the block in it. If the block has an init, the init of the outer block initializes the whole tile.

use pliant_ir::tir::{BinOp, BlockData, Expr, ExprData, IterVar, PrimFunc, Stmt, Var};
use pliant_tir::accessed_region::{EnclosingLoop, inside_condition};
use pliant_tir::index_arithmetic::{
    ceil_div, conjuncts, exact_quotient, linear_index, product, sum,
};
use pliant_tir::statement_traversal::{ExprRewriter, uses_any};
use rustc_hash::FxHashMap;

use crate::error::Step;
use crate::loop_tree::{
    Loop, add_block, check_int64_axis, find_loop, fresh_block_name, loops_of_block,
    outermost_blocks_in, replace,
};
use crate::reductions::init_nest;
use crate::reorder::with_body;

/// Makes the loop over `var`, with all statements in it, a block. Returns the name of the block. Axes of the new block with only
/// one value are removed unless `preserve_unit_iters` is set.
pub(crate) fn blockize(f: &mut PrimFunc, var: Var, preserve_unit_iters: bool) -> Step<String> {
    let target = find_loop(f, var)?;
    let (stmt, block) = only_block(f, &target)?;
    let all = loops_of_block(f, &block.name)?;
    let position = all.iter().position(|l| l.var == var).unwrap_or(0);
    let (outer, inner) = all.split_at(position);
    check_loops(f, outer, inner, stmt)?;
    let mut tile = Tile { outer, inner, replaced: FxHashMap::default(), tile_indices: Vec::new() };
    let (mut outer_iters, mut inner_iters) = (Vec::new(), Vec::new());
    for it in &block.iters {
        let (outer, inner) = tile.divide(f, it, &block.name, preserve_unit_iters)?;
        tile.tile_indices.push(outer.is_some().then_some(outer_iters.len()));
        outer_iters.extend(outer);
        inner_iters.push(inner);
    }
    let (outer_predicate, inner_predicate) = tile.divide_predicate(f, &block, &outer_iters)?;
    let inner_block = BlockData {
        iters: inner_iters,
        predicate: inner_predicate,
        reads: None,
        writes: None,
        ..block.clone()
    };
    let init = match block.init {
        Some(_) => Some(init_nest(f, &inner_block, inner)?.1),
        None => None,
    };
    let inner_block = add_block(f, BlockData { init: None, ..inner_block });
    let body = inner.iter().rev().fold(inner_block, |body, l| with_body(f, l.stmt, body));
    let name = fresh_block_name(f, &format!("{}_o", block.name));
    let outer_block = BlockData {
        name: name.clone(),
        iters: outer_iters,
        predicate: outer_predicate,
        reads: None,
        writes: None,
        allocs: Vec::new(),
        init,
        body,
        annotations: Vec::new(),
    };
    let outer_block = outer_block.with_init_for_reductions_only(f);
    let outer_block = add_block(f, outer_block);
    replace(f, target.stmt, outer_block);
    Ok(name.to_string())
}

/// Returns the block in a loop. Fails unless there is exactly one.
fn only_block(f: &PrimFunc, target: &Loop) -> Step<(Stmt, BlockData)> {
    let name = &f.var(target.var).name;
    let blocks = outermost_blocks_in(f, target.body);
    match <[_; 1]>::try_from(blocks) {
        Ok([only]) => Ok(only),
        Err(blocks) => {
            let names: Vec<String> = blocks.iter().map(|(_, b)| format!("'{}'", b.name)).collect();
            Err(format!(
                "the loop '{name}' must contain exactly one block, but it contains {} ({})",
                blocks.len(),
                names.join(", ")
            ))
        }
    }
}

/// Fails unless the loops `inner` contain only one another and the block `stmt`, start at 0, and do not depend on the loops
/// `outer`.
fn check_loops(f: &PrimFunc, outer: &[Loop], inner: &[Loop], stmt: Stmt) -> Step<()> {
    let bodies = inner.iter().skip(1).map(|l| l.stmt).chain([stmt]);
    for (l, body) in inner.iter().zip(bodies) {
        let name = &f.var(l.var).name;
        if l.body != body {
            return Err(format!(
                "the loop '{name}' contains other statements besides its block, so it cannot become a block"
            ));
        }
        let depends = |e: Expr| uses_any(f, e, &|v| outer.iter().any(|o| o.var == v));
        if depends(l.extent) || f.as_int(l.min) != Some(0) {
            return Err(format!(
                "the loop '{name}' cannot become part of a block, because its range does not start at 0 or depends on an outer loop"
            ));
        }
    }
    Ok(())
}

/// The loops around a block, divided into those outside and those inside of a new block.
struct Tile<'a> {
    outer: &'a [Loop],
    inner: &'a [Loop],
    /// The new binding of each old binding of an axis.
    replaced: FxHashMap<Expr, Expr>,
    /// For each axis of the old block, the position of the axis of the new block that is its tile index; `None` if there is none.
    tile_indices: Vec<Option<usize>>,
}

impl Tile<'_> {
    /// Divides an axis into an axis of the new block and one of the old block. The former is `None` if it has only one value and
    /// unit axes are not preserved.
    fn divide(
        &mut self,
        f: &mut PrimFunc,
        it: &IterVar,
        block: &str,
        preserve_unit_iters: bool,
    ) -> Step<(Option<IterVar>, IterVar)> {
        check_int64_axis(f, it, block)?;
        let name = f.var(it.var).name.clone();
        let not_affine = |f: &PrimFunc| {
            format!(
                "the axis '{name}' of the block '{block}' is bound to '{}', which is not affine: it must be the sum of a tile index \
                 times the size of the tile, and an index in the tile that the loops inside of '{}' compute",
                pliant_ir::print::tir_expr_text(f, it.binding),
                self.inner.first().map_or("", |l| &f.var(l.var).name)
            )
        };
        let is_inner = |v: Var| self.inner.iter().any(|l| l.var == v);
        let linear = linear_index(f, it.binding, &is_inner).ok_or_else(|| not_affine(f))?;
        let size = self.tile_size(f, &linear.terms).ok_or_else(|| not_affine(f))?;
        if f.as_int(it.min) != Some(0) {
            return Err(format!("the axis '{name}' of the block '{block}' must start at 0"));
        }
        let mut index = f.int(0);
        for &(e, factor) in &linear.rest {
            let factor = f.int(factor);
            let term = product(f, e, factor);
            if f.as_int(term) == Some(0) {
                continue;
            }
            let quotient = exact_quotient(f, term, size).ok_or_else(|| not_affine(f))?;
            index = sum(f, index, quotient);
        }
        let count = match f.as_int(size) {
            Some(size) => Some(ceil_div(f, it.extent, size)),
            None => exact_quotient(f, it.extent, size),
        };
        let count = count.ok_or_else(|| not_affine(f))?;
        let (min, mut binding) = (f.int(0), f.int(0));
        let is_unit = f.as_int(index) == Some(0) && f.as_int(count) == Some(1);
        let outer = (preserve_unit_iters || !is_unit).then(|| {
            let var = f.add_var(format!("{name}_o"), f.var(it.var).ty);
            let start = f.var_expr(var);
            binding = product(f, start, size);
            IterVar { var, min, extent: count, kind: it.kind, binding: index }
        });
        for &(v, factor) in &linear.terms {
            let (v, factor) = (f.var_expr(v), f.int(factor));
            let term = product(f, v, factor);
            binding = sum(f, binding, term);
        }
        self.replaced.insert(it.binding, binding);
        Ok((outer, IterVar { binding, ..it.clone() }))
    }

    /// Returns the number of values of a sum of multiples of the inner loops. `None` unless the factors are the numbers of values
    /// of the terms with smaller factors.
    fn tile_size(&self, f: &mut PrimFunc, terms: &[(Var, i64)]) -> Option<Expr> {
        let mut size = f.int(1);
        let mut rest = terms.to_vec();
        rest.sort_by_key(|&(_, factor)| factor);
        for (var, factor) in rest {
            if f.as_int(size) != Some(factor) {
                return None;
            }
            let extent = self.inner.iter().find(|l| l.var == var)?.extent;
            size = product(f, size, extent);
        }
        Some(size)
    }

    /// Divides the conditions of a block's predicate into those of the new block, which do not depend on the loops inside, and
    /// those of the old block.
    fn divide_predicate(
        &self,
        f: &mut PrimFunc,
        block: &BlockData,
        outer_iters: &[IterVar],
    ) -> Step<(Option<Expr>, Option<Expr>)> {
        let mut conditions = Vec::new();
        if let Some(predicate) = block.predicate {
            conjuncts(f, predicate, &mut conditions);
        }
        let mut outside = self.tile_bounds(f, block, &conditions, outer_iters);
        let mut inside = Vec::new();
        for condition in conditions {
            if !uses_any(f, condition, &|v| self.inner.iter().any(|l| l.var == v)) {
                if !outside.contains(&condition) {
                    outside.push(condition);
                }
                continue;
            }
            let mut rule = |_: &mut PrimFunc, e: Expr| self.replaced.get(&e).copied();
            let new = ExprRewriter::new(&mut rule).expr(f, condition);
            if uses_any(f, new, &|v| self.outer.iter().any(|l| l.var == v)) {
                return Err(format!(
                    "the predicate of the block '{}' has the condition '{}', which uses loops outside and inside of the new block",
                    block.name,
                    pliant_ir::print::tir_expr_text(f, condition)
                ));
            }
            inside.push(new);
        }
        let mut all = |list: Vec<Expr>| list.into_iter().reduce(|a, b| f.binary(BinOp::And, a, b));
        Ok((all(outside), all(inside)))
    }

    /// Returns the conditions that the indices of a tile are in range, for those axes of the old block whose bounds are among the
    /// conditions of its predicate. If several loops compute the index of a tile, it may exceed the range.
    fn tile_bounds(
        &self,
        f: &mut PrimFunc,
        block: &BlockData,
        conditions: &[Expr],
        outer_iters: &[IterVar],
    ) -> Vec<Expr> {
        let enclosing = |l: &Loop| EnclosingLoop { var: l.var, min: l.min, extent: l.extent };
        let loops: Vec<EnclosingLoop> = self.outer.iter().map(enclosing).collect();
        let mut bounds = Vec::new();
        for (it, tile) in block.iters.iter().zip(&self.tile_indices) {
            let bound = f.binary(BinOp::Lt, it.binding, it.extent);
            let Some(tile) = tile.and_then(|i| outer_iters.get(i)) else { continue };
            let is_loop = |l: &Loop| {
                l.extent == tile.extent
                    && matches!(f.expr(tile.binding), ExprData::Var(v) if *v == l.var)
            };
            if conditions.contains(&bound) && !self.outer.iter().any(is_loop) {
                bounds.extend(inside_condition(f, tile.binding, tile.extent, &loops));
            }
        }
        bounds
    }
}
