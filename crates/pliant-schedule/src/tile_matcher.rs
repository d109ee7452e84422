//! Finds the tiles of buffers that a loop nest uses in the same way as the description of a tensor intrinsic uses its parameters.
//!
//! In both, the indices of each buffer are divided into the start of the tile, which all accesses have in common, and the rest,
//! which depends on the loops of the tile. Without the starts, both must be structurally equal.

use pliant_ir::structural_equality::equal_prim_funcs;
use pliant_ir::tir::visit::{TirImporter, for_each_expr, for_each_operand};
use pliant_ir::tir::{Buffer, BufferData, Expr, ExprData, PrimFunc, Stmt, StmtData, Var};
use pliant_tir::access_guards::reads_memory;
use pliant_tir::index_arithmetic::{LinearIndex, linear_index, product, sum};
use pliant_tir::statement_traversal::{ExprRewriter, direct_exprs, for_each_stmt, map_stmts};
use rustc_hash::FxHashMap;

use crate::error::Step;

/// A tile of a buffer: the part that corresponds to a parameter of an intrinsic.
pub(crate) struct Tile {
    /// The buffer that contains the tile.
    pub buffer: Buffer,
    /// The index of the first element of the tile in each dim of the buffer.
    pub start: Vec<Expr>,
}

impl Tile {
    /// Returns the index in the buffer of the element with the index `indices` in the tile. The tile has the last dims of the
    /// buffer.
    pub fn index(&self, f: &mut PrimFunc, indices: &[Expr]) -> Vec<Expr> {
        let skipped = self.start.len() - indices.len();
        let mut all = self.start.clone();
        for (start, &index) in all[skipped..].iter_mut().zip(indices) {
            *start = sum(f, *start, index);
        }
        all
    }
}

/// Returns the tile of each parameter of an intrinsic. Fails unless the statement `tile` computes the same as the description
/// `desc`. Neither of them may contain blocks. Changes the body of the description.
pub(crate) fn match_tiles(f: &mut PrimFunc, tile: Stmt, desc: &mut PrimFunc) -> Step<Vec<Tile>> {
    let (ours, theirs) = (buffers_in_order(f, tile), buffers_in_order(desc, desc.body));
    if ours.len() != theirs.len() {
        return Err(format!(
            "it uses {} buffers, but the description uses {}",
            ours.len(),
            theirs.len()
        ));
    }
    let mut relative = tile;
    let mut found: FxHashMap<Buffer, Tile> = FxHashMap::default();
    for (&buffer, &parameter) in ours.iter().zip(&theirs) {
        let rank = desc.buffer(parameter).shape.len();
        let starts = common_start(f, tile, buffer)?;
        let desc_body = desc.body;
        let desc_starts = common_start(desc, desc_body, parameter)?;
        if starts.len() < rank {
            return Err(format!(
                "'{}' has {} dims, but '{}' in the description has {rank}",
                f.buffer(buffer).name,
                starts.len(),
                desc.buffer(parameter).name
            ));
        }
        let skipped = starts.len() - rank;
        let mut starts = starts;
        for (ours, theirs) in starts[skipped..].iter_mut().zip(&desc_starts) {
            ours.constant = ours.constant.wrapping_sub(theirs.constant);
        }
        relative = relative_accesses(f, relative, buffer, &starts, skipped)?;
        let zero: Vec<Start> = vec![Start::default(); rank];
        desc.body = relative_accesses(desc, desc_body, parameter, &zero, 0)?;
        // The tile has the shape of the parameter, so that the comparison of the two functions compares the data types.
        let start = starts.iter().map(|start| start.to_expr(f)).collect();
        found.insert(parameter, Tile { buffer, start });
    }
    let left = comparable(f, relative, &ours, (desc, &theirs));
    let right = comparable(desc, desc.body, &theirs, (desc, &theirs));
    equal_prim_funcs(&left, &right)
        .map_err(|difference| format!("{difference} (left: the block, right: the description)"))?;
    let parameters = desc.params.iter().map(|p| {
        let buffer = desc.buffer_map[p];
        found
            .remove(&buffer)
            .ok_or_else(|| format!("the description does not use '{}'", desc.buffer(buffer).name))
    });
    parameters.collect()
}

/// Returns the buffers that a statement accesses, in the order of their first use.
fn buffers_in_order(f: &PrimFunc, s: Stmt) -> Vec<Buffer> {
    fn of_expr(f: &PrimFunc, e: Expr, add: &mut dyn FnMut(Buffer)) {
        if let ExprData::Load(b, _) = f.expr(e) {
            add(*b);
        }
        for_each_operand(f.expr(e), |operand| of_expr(f, operand, add));
    }
    let mut all = Vec::new();
    let mut add = |b: Buffer| {
        if !all.contains(&b) {
            all.push(b);
        }
    };
    for_each_stmt(f, s, &mut |_, data| {
        if let StmtData::Store { buffer, .. } = data {
            add(*buffer);
        }
        direct_exprs(data, |e| of_expr(f, e, &mut add));
    });
    all
}

/// The part of an index that all accesses of a tile have in common: a sum of terms without the loops of the tile, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Start {
    terms: Vec<(Expr, i64)>,
    constant: i64,
}

impl Start {
    /// Returns the start of an index and the rest, which consists of multiples of loops of the tile. `None` if the index is not
    /// linear in these loops.
    fn of(
        f: &PrimFunc,
        index: Expr,
        is_inner: &dyn Fn(Var) -> bool,
    ) -> Option<(Start, LinearIndex)> {
        let linear = linear_index(f, index, is_inner)?;
        let mut start = Start::default();
        for &(e, factor) in &linear.rest {
            match f.as_int(e) {
                Some(value) => {
                    start.constant = start.constant.checked_add(value.checked_mul(factor)?)?;
                }
                None => start.terms.push((e, factor)),
            }
        }
        start.terms.sort();
        Some((start, linear))
    }

    fn to_expr(&self, f: &mut PrimFunc) -> Expr {
        let mut total = f.int(0);
        for &(e, factor) in &self.terms {
            let factor = f.int(factor);
            let term = product(f, e, factor);
            total = sum(f, total, term);
        }
        let constant = f.int(self.constant);
        sum(f, total, constant)
    }
}

/// Returns the variables of the loops in a statement.
fn loop_vars(f: &PrimFunc, s: Stmt) -> Vec<Var> {
    let mut vars = Vec::new();
    for_each_stmt(f, s, &mut |_, data| {
        if let StmtData::For { var, .. } = data {
            vars.push(*var);
        }
    });
    vars
}

/// Returns, for each dim of a buffer, the common start of the indices of all its accesses in a statement.
fn common_start(f: &PrimFunc, s: Stmt, buffer: Buffer) -> Step<Vec<Start>> {
    let inner = loop_vars(f, s);
    let name = &f.buffer(buffer).name;
    let mut common: Option<Vec<Start>> = None;
    for indices in accesses_of(f, s, buffer) {
        let starts: Option<Vec<Start>> = indices
            .iter()
            .map(|&i| Start::of(f, i, &|v| inner.contains(&v)).map(|(start, _)| start))
            .collect();
        let is_fixed = |start: &Start| start.terms.iter().all(|&(e, _)| !reads_memory(f, e));
        let Some(starts) = starts.filter(|starts| starts.iter().all(is_fixed)) else {
            return Err(format!("an index of '{name}' is not affine in the loops of the tile"));
        };
        let Some(common) = &mut common else {
            common = Some(starts);
            continue;
        };
        for (old, new) in common.iter_mut().zip(starts) {
            if old.terms != new.terms {
                return Err(format!("the accesses of '{name}' belong to several tiles"));
            }
            old.constant = old.constant.min(new.constant);
        }
    }
    Ok(common.unwrap_or_default())
}

/// Returns the indices of all accesses of a buffer in a statement.
fn accesses_of(f: &PrimFunc, s: Stmt, buffer: Buffer) -> Vec<Box<[Expr]>> {
    let mut all = Vec::new();
    for_each_stmt(f, s, &mut |_, data| {
        if let StmtData::Store { buffer: b, indices, .. } = data
            && *b == buffer
        {
            all.push(indices.clone());
        }
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| {
                if let ExprData::Load(b, indices) = f.expr(e)
                    && *b == buffer
                {
                    all.push(indices.clone());
                }
            });
        });
    });
    all
}

/// Returns a statement in which the indices of a buffer are relative to `starts`, without the first `skipped` dims. Fails if an
/// index of a skipped dim depends on a loop of the tile.
fn relative_accesses(
    f: &mut PrimFunc,
    s: Stmt,
    buffer: Buffer,
    starts: &[Start],
    skipped: usize,
) -> Step<Stmt> {
    let inner = loop_vars(f, s);
    let mut problem = None;
    let mut relative = |f: &mut PrimFunc, indices: &[Expr]| -> Vec<Expr> {
        let mut new = Vec::new();
        for (dim, (&index, start)) in indices.iter().zip(starts).enumerate() {
            let Some((own, linear)) = Start::of(f, index, &|v| inner.contains(&v)) else {
                continue;
            };
            let rest = Start { terms: Vec::new(), constant: own.constant - start.constant };
            let mut total = f.int(0);
            for (var, factor) in linear.terms {
                let (var, factor) = (f.var_expr(var), f.int(factor));
                let term = product(f, var, factor);
                total = sum(f, total, term);
            }
            let constant = rest.to_expr(f);
            total = sum(f, total, constant);
            if dim >= skipped {
                new.push(total);
            } else if f.as_int(total) != Some(0) {
                problem = Some(format!(
                    "'{}' has {skipped} more dims than in the description, but the loops of the tile index one of these",
                    f.buffer(buffer).name
                ));
            }
        }
        new
    };
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) if b == buffer => {
            let indices = relative(f, &indices);
            Some(f.load(b, &indices))
        }
        _ => None,
    };
    let s = ExprRewriter::new(&mut rule).stmt(f, s);
    let s = map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Store { buffer: b, indices, value } if b == buffer => {
            let indices = relative(f, &indices);
            Some(f.store(b, &indices, value))
        }
        _ => None,
    });
    problem.map_or(Ok(s), Err)
}

/// Returns a function without parameters with the body `s`. Its buffers have the data types of `buffers` and the shapes of the
/// parameters in `shapes`.
fn comparable(
    f: &PrimFunc,
    s: Stmt,
    buffers: &[Buffer],
    (desc, shapes): (&PrimFunc, &[Buffer]),
) -> PrimFunc {
    let mut g = PrimFunc::new();
    let mut tiles = FxHashMap::default();
    for (&buffer, &parameter) in buffers.iter().zip(shapes) {
        let sizes = desc.buffer(parameter).shape.iter();
        let shape = sizes.map(|&size| g.int(desc.as_int(size).unwrap_or(0))).collect();
        let data = f.buffer(buffer);
        let data = BufferData {
            name: data.name.clone(),
            dtype: data.dtype,
            shape,
            strides: Vec::new(),
            elem_offset: None,
            scope: Default::default(),
        };
        tiles.insert(buffer, g.add_buffer(data));
    }
    let mut importer = TirImporter::new(f, &mut g);
    importer.buffers = tiles;
    let body = importer.stmt(s);
    g.body = body;
    g
}
