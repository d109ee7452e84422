//! `tensorize`: replaces the computation of a block by the implementation of a tensor intrinsic.
//!
//! An intrinsic consists of two loop functions with the same parameters. The *description* states what the intrinsic computes, the
//! *implementation* computes it. The block must compute the same as the description, on tiles of its buffers. Both are compared
//! after each block in them was replaced by its body, and the indices of the block were made relative to the tiles.

use std::sync::Arc;

use pliant_ir::tir::visit::{TirImporter, copy_prim_func, for_each_expr};
use pliant_ir::tir::{
    BlockData, Buffer, BufferData, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Var,
};
use pliant_tir::convert_blocks_to_loops;
use pliant_tir::index_arithmetic::{product, sum};
use pliant_tir::statement_traversal::{
    ExprRewriter, direct_exprs, for_each_stmt, loads, map_stmts,
};
use rustc_hash::FxHashMap;

use crate::cache::flatten_sequences;
use crate::error::Step;
use crate::loop_tree::{add_block, blocks_in, find_block, fresh_block_name, replace};
use crate::tile_matcher::{Tile, match_tiles};

/// A tensor intrinsic: a computation on tiles of fixed size, with an implementation that replaces it.
#[derive(Clone, Debug)]
pub struct TensorIntrin {
    /// The name of the intrinsic, for error messages.
    pub name: Arc<str>,
    /// The loop function that states what the intrinsic computes. Its blocks must not have an init.
    pub description: PrimFunc,
    /// The loop function that computes the same. It has the same parameters as the description.
    pub implementation: PrimFunc,
}

impl TensorIntrin {
    /// Fails unless description and implementation have parameters of the same data types and shapes, and all of them are tensors.
    ///
    /// # Errors
    /// A description of the difference.
    pub fn check(&self) -> Result<(), String> {
        let (desc, imp) = (&self.description, &self.implementation);
        let fail =
            |why: String| Err(format!("the tensor intrinsic '{}' is invalid: {why}", self.name));
        if desc.params.len() != imp.params.len() {
            return fail(format!(
                "its description has {} parameters, but its implementation has {}",
                desc.params.len(),
                imp.params.len()
            ));
        }
        for (i, (p, q)) in desc.params.iter().zip(&imp.params).enumerate() {
            let (Some(&x), Some(&y)) = (desc.buffer_map.get(p), imp.buffer_map.get(q)) else {
                return fail(format!("parameter {i} must be a tensor in both of its functions"));
            };
            let text = |f: &PrimFunc, b: Buffer| {
                let sizes: Option<Vec<i64>> =
                    f.buffer(b).shape.iter().map(|&e| f.as_int(e)).collect();
                sizes.map(|sizes| format!("{} {sizes:?}", f.buffer(b).dtype))
            };
            let (x, y) = (text(desc, x), text(imp, y));
            if x.is_none() || y.is_none() {
                return fail(format!("the sizes of parameter {i} must be constant"));
            }
            if x != y {
                return fail(format!(
                    "parameter {i} is {} in its description, but {} in its implementation",
                    x.unwrap_or_default(),
                    y.unwrap_or_default()
                ));
            }
        }
        Ok(())
    }
}

/// Replaces the body of the block `name` by the implementation of an intrinsic.
pub(crate) fn tensorize(f: &mut PrimFunc, name: &str, intrin: &TensorIntrin) -> Step<()> {
    intrin.check()?;
    let (stmt, block) = find_block(f, name)?;
    if let Some((_, inner)) =
        blocks_in(f, block.body).into_iter().find(|(_, inner)| inner.predicate.is_some())
    {
        return Err(format!(
            "the block '{}' in the tile has a predicate, because the tile may be incomplete; apply pad_einsum before split, or \
             split with a tail",
            inner.name
        ));
    }
    let mut desc = copy_prim_func(&intrin.description);
    desc.body = without_root(&desc, desc.body);
    if let Some((_, inner)) = blocks_in(&desc, desc.body).iter().find(|(_, b)| b.init.is_some()) {
        return Err(format!(
            "the block '{}' in the description of the intrinsic '{}' has an init, but a description must only update its result; \
             tensorize the update, and decompose_reduction the init",
            inner.name, intrin.name
        ));
    }
    convert_blocks_to_loops::run(&mut desc).map_err(|e| e.to_string())?;
    let tile_body = loops_only(f, block.body)?;
    let tiles = match_tiles(f, tile_body, &mut desc).map_err(|why| {
        format!(
            "the block '{name}' does not match the description of the intrinsic '{}': {why}",
            intrin.name
        )
    })?;
    let body = implementation(f, &tiles, intrin)?;
    let new = add_block(f, BlockData { body, reads: None, writes: None, ..block });
    replace(f, stmt, new);
    flatten_sequences(f);
    Ok(())
}

/// Returns the statement inside of root blocks, which are blocks without axes and allocations.
fn without_root(f: &PrimFunc, s: Stmt) -> Stmt {
    match f.stmt(s) {
        StmtData::Block(b)
            if b.iters.is_empty() && b.allocs.is_empty() && b.predicate.is_none() =>
        {
            without_root(f, b.body)
        }
        _ => s,
    }
}

/// Returns a statement of the function in which each block is replaced by its body.
fn loops_only(f: &mut PrimFunc, s: Stmt) -> Step<Stmt> {
    let body = std::mem::replace(&mut f.body, s);
    let result = convert_blocks_to_loops::run(f).map_err(|e| e.to_string());
    let converted = std::mem::replace(&mut f.body, body);
    result.map(|()| converted)
}

/// Returns the body of the implementation of an intrinsic, applied to these tiles.
fn implementation(f: &mut PrimFunc, tiles: &[Tile], intrin: &TensorIntrin) -> Step<Stmt> {
    let imp = &intrin.implementation;
    check_calls(intrin)?;
    let mut vars: FxHashMap<Var, Expr> = FxHashMap::default();
    for (p, tile) in imp.params.iter().zip(tiles) {
        let data = imp.buffer(imp.buffer_map[p]);
        let strides = strides_of(f, tile.buffer);
        let skipped = strides.len() - data.shape.len();
        for (&e, &stride) in data.strides.iter().zip(&strides[skipped..]) {
            if let ExprData::Var(v) = imp.expr(e) {
                vars.insert(*v, stride);
            }
        }
        if let Some(ExprData::Var(v)) = data.elem_offset.map(|e| imp.expr(e)) {
            let mut offset = f.buffer(tile.buffer).elem_offset.unwrap_or_else(|| f.int(0));
            for (&start, &stride) in tile.start.iter().zip(&strides) {
                let term = product(f, start, stride);
                offset = sum(f, offset, term);
            }
            vars.insert(*v, offset);
        }
    }
    let mut importer = TirImporter::new(imp, f);
    importer.vars = vars;
    let s = importer.stmt(without_root(imp, imp.body));
    let parameters: Vec<Option<Buffer>> =
        imp.params.iter().map(|p| importer.buffers.get(&imp.buffer_map[p]).copied()).collect();
    let s = with_fresh_blocks(f, s);
    let tile_of = |b: Buffer| parameters.iter().position(|&p| p == Some(b)).map(|i| &tiles[i]);
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) => tile_of(b).map(|tile| {
            let indices = tile.index(f, &indices);
            f.load(tile.buffer, &indices)
        }),
        _ => None,
    };
    let s = ExprRewriter::new(&mut rule).stmt(f, s);
    Ok(map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Store { buffer, indices, value } => tile_of(buffer).map(|tile| {
            let indices = tile.index(f, &indices);
            f.store(tile.buffer, &indices, value)
        }),
        _ => None,
    }))
}

/// Fails if the implementation passes a whole parameter to a kernel: the kernel would use the whole buffer instead of a tile.
fn check_calls(intrin: &TensorIntrin) -> Step<()> {
    let imp = &intrin.implementation;
    let mut problem = None;
    for_each_stmt(imp, imp.body, &mut |_, data| {
        direct_exprs(data, |e| {
            for_each_expr(imp, e, |e| {
                let ExprData::Call(Intrin::CallKernel, args, _) = imp.expr(e) else { return };
                let passed = |b: &&Buffer| args.iter().any(|&arg| loads(imp, arg, **b));
                problem = imp.buffer_map.values().find(passed).or(problem);
            });
        });
    });
    match problem {
        Some(&buffer) => Err(format!(
            "the implementation of the intrinsic '{}' passes its parameter '{}' to a kernel, but a kernel call cannot use a tile \
             of a buffer",
            intrin.name,
            imp.buffer(buffer).name
        )),
        None => Ok(()),
    }
}

/// Returns the strides of a buffer, in elements.
fn strides_of(f: &mut PrimFunc, buffer: Buffer) -> Vec<Expr> {
    let BufferData { shape, strides, .. } = f.buffer(buffer).clone();
    if !strides.is_empty() {
        return strides;
    }
    let mut stride = f.int(1);
    let mut all = Vec::new();
    for &size in shape.iter().rev() {
        all.push(stride);
        stride = product(f, stride, size);
    }
    all.reverse();
    all
}

/// Gives each block in a statement a name that no other block of the function has. Root blocks that only allocate buffers become
/// allocations.
fn with_fresh_blocks(f: &mut PrimFunc, s: Stmt) -> Stmt {
    let mut names: Vec<Arc<str>> = Vec::new();
    map_stmts(f, s, &mut |f, s| {
        let StmtData::Block(mut block) = f.stmt(s).clone() else { return None };
        if block.iters.is_empty() && block.predicate.is_none() {
            let allocs = block.allocs.iter().rev();
            return Some(allocs.fold(block.body, |body, &b| f.add_stmt(StmtData::Alloc(b, body))));
        }
        let mut name = fresh_block_name(f, &block.name);
        let mut number = 1;
        while names.contains(&name) {
            name = fresh_block_name(f, &format!("{}_{number}", block.name));
            number += 1;
        }
        names.push(name.clone());
        block.name = name;
        Some(add_block(f, *block))
    })
}
