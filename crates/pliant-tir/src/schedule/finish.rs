//! Epilogues of matrix products: the elementwise stages that follow a product. Each block of results ([`super::blocks`]) is
//! computed by a kernel call and finished at once, on the same thread, while it is in the nearest caches. Bias, activation,
//! residual, scale and cast are such stages, and so is any other chain that reads the results only at its own position.
//!
//! Results that no other statement reads stay in a thread-local tile. If stages write into the product's own buffer, as
//! `ReuseOutput` lets them, they update it in place. The function's buffers must share no memory (`tir.noalias`), since stages
//! write before the last block reads the product's operands.

use pliant_ir::AttrValue;
use pliant_ir::attr_names::NOALIAS;
use pliant_ir::tir::{Buffer, BufferData, Expr, ExprData, PrimFunc, Scope, Stmt, StmtData, Var};
use rustc_hash::FxHashMap;

use super::blocks::{self, Block, MOST_PANELS, MOST_VARYING_ROWS, Size};
use super::gemm::{self, Part, Plan};
use super::group::{mentions, serial};
use super::stage::{Axis, Body, Item, Stage};
use super::{choose, emit};
use crate::walk::ExprRewriter;

/// Columns of a panel of a product whose right operand is not packed.
const WIDTH: i64 = 64;

/// A product with its epilogue.
pub(super) struct Finished {
    /// The statement that computes both.
    pub stmt: Stmt,
    /// The position after its last stage.
    pub end: usize,
    /// The buffer that is no longer used: its blocks are in tiles.
    pub gone: Option<Buffer>,
}

/// Fuses the product at a position with the elementwise stages that follow it, if there are any.
pub(super) fn product(
    f: &mut PrimFunc,
    items: &[Item],
    at: usize,
    allocs: &[Buffer],
) -> Option<Finished> {
    let Item::Stage(first) = &items[at] else { return None };
    if !matches!(f.attrs.get(NOALIAS), Some(AttrValue::Bool(true))) {
        return None;
    }
    let Some(Item::Stage(_)) = items.get(at + 1) else { return None };
    let plan = gemm::plan(f, first)?;
    let mut chain = Chain::new(f, first, &plan)?;
    for item in &items[at + 1..] {
        let Item::Stage(stage) = item else { break };
        if !chain.take(f, stage) {
            break;
        }
    }
    if chain.stages.is_empty() {
        return None;
    }
    let end = at + 1 + chain.stages.len();
    let result = plan.operands[2].0;
    let elsewhere = |b: Buffer| items[..at].iter().chain(&items[end..]).any(|i| mentions(f, i, b));
    let gone = (allocs.contains(&result)
        && !plan.accumulate
        && !elsewhere(result)
        && chain.stages.iter().all(|s| s.target != result))
    .then_some(result);
    let stmt = emit_blocks(f, first, &plan, &chain.stages, gone);
    Some(Finished { stmt, end, gone })
}

/// A stage of the epilogue, over the product's axes.
struct Follower {
    stage: Stage,
    /// The buffer that it writes.
    target: Buffer,
}

/// The epilogue of a product while it is collected.
struct Chain<'a> {
    product: &'a Stage,
    /// The buffers written so far that may be read, and the axes of the product by which they are indexed.
    places: FxHashMap<Buffer, Vec<Var>>,
    /// The buffers that later stages must not write.
    read: Vec<Buffer>,
    /// The buffers that later stages must not read.
    written: Vec<Buffer>,
    stages: Vec<Follower>,
}

impl<'a> Chain<'a> {
    fn new(f: &PrimFunc, product: &'a Stage, plan: &Plan) -> Option<Chain<'a>> {
        let (result, indices) = &plan.operands[2];
        let place = plain(f, indices)?;
        let [_, _, columns] = plan.axes();
        // Vectors run along one contiguous axis.
        let one = matches!(columns, [v] if place.last() == Some(v));
        if !plan.looped.is_empty() || !one {
            return None;
        }
        let read = vec![plan.operands[0].0, plan.operands[1].0];
        let places = FxHashMap::from_iter([(*result, place)]);
        Some(Chain { product, places, read, written: Vec::new(), stages: Vec::new() })
    }

    /// Adds a stage if it computes each of its points only from results at the same position.
    fn take(&mut self, f: &mut PrimFunc, stage: &Stage) -> bool {
        let Some((mapped, target)) = self.mapped(f, stage) else { return false };
        let Body::Store { indices, .. } = &mapped.body else { return false };
        for (buffer, ..) in mapped.accesses(f).into_iter().filter(|a| !a.2) {
            if !self.places.contains_key(&buffer) {
                self.read.push(buffer);
            }
        }
        match plain(f, indices).filter(|p| p.len() == self.spatial()) {
            Some(place) => drop(self.places.insert(target, place)),
            None => self.written.push(target),
        }
        self.stages.push(Follower { stage: mapped, target });
        true
    }

    /// The number of axes of the results.
    fn spatial(&self) -> usize {
        self.product.axes.iter().filter(|a| !a.reduce).count()
    }

    /// Rewrites a stage to the product's axes. Returns it with the buffer that it writes.
    fn mapped(&self, f: &mut PrimFunc, stage: &Stage) -> Option<(Stage, Buffer)> {
        let Body::Store { buffer: target, indices, .. } = &stage.body else { return None };
        if stage.reduces() || stage.init.is_some() || stage.axes.len() != self.spatial() {
            return None;
        }
        let accesses = stage.accesses(f);
        let mut axes: FxHashMap<Var, Var> = FxHashMap::default();
        for (buffer, at, writes) in &accesses {
            if self.written.contains(buffer) || *writes && self.read.contains(buffer) {
                return None;
            }
            // A stage writes only its target, which it must not access at other positions.
            let other = |a: &super::stage::Access| a.0 == *target && a.1 != *indices;
            if *writes && (*buffer != *target || accesses.iter().any(other)) {
                return None;
            }
            let Some(place) = self.places.get(buffer) else { continue };
            let own = plain(f, at)?;
            if own.len() != place.len() {
                return None;
            }
            for (axis, to) in own.into_iter().zip(place) {
                if axes.insert(axis, *to).is_some_and(|known| known != *to) {
                    return None;
                }
            }
        }
        let extent =
            |stage: &Stage, v: Var| stage.axes.iter().find(|a| a.var == v).map(|a| a.extent);
        let whole = stage.axes.iter().all(|a| {
            axes.get(&a.var).is_some_and(|&to| extent(self.product, to) == Some(a.extent))
        });
        let mut distinct: Vec<Var> = axes.values().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        if !whole || distinct.len() != stage.axes.len() || axes.len() != stage.axes.len() {
            return None;
        }
        let map = axes.into_iter().map(|(from, to)| (from, f.var_expr(to))).collect();
        let mut mapped = stage.substituted(f, &map);
        mapped.axes = self.product.axes.iter().filter(|a| !a.reduce).copied().collect();
        Some((mapped, *target))
    }
}

/// The variables of indices that are distinct variables; `None` for other indices.
fn plain(f: &PrimFunc, indices: &[Expr]) -> Option<Vec<Var>> {
    let mut out = Vec::with_capacity(indices.len());
    for &i in indices {
        match f.expr(i) {
            ExprData::Var(v) if !out.contains(v) => out.push(*v),
            _ => return None,
        }
    }
    Some(out)
}

/// Thread-local memory for the results of a block.
struct Tile {
    /// The buffer that the tile replaces.
    of: Buffer,
    memory: Buffer,
    /// The row stride.
    row: Expr,
}

fn emit_blocks(
    f: &mut PrimFunc,
    product: &Stage,
    plan: &Plan,
    stages: &[Follower],
    gone: Option<Buffer>,
) -> Stmt {
    let width = plan.width.and_then(|w| f.as_int(w)).unwrap_or(WIDTH);
    let most_rows = if plan.width.is_some() { blocks::most_rows() } else { MOST_VARYING_ROWS };
    let tile = gone.map(|of| {
        let columns = MOST_PANELS * width;
        let shape = vec![f.int(most_rows), f.int(columns)];
        let (name, dtype) = ("tile".into(), f.buffer(of).dtype);
        let (strides, elem_offset, scope) = (Vec::new(), None, Scope::Global);
        let memory = f.add_buffer(BufferData { name, dtype, shape, strides, elem_offset, scope });
        Tile { of, memory, row: f.int(columns) }
    });
    let [batch, rows, columns, inner] = plan.extents(f);
    let size = Size { batch, rows, columns, inner, width, most_rows };
    let vars = plan.axes().map(|vars| {
        let extent = |v: Var| product.axes.iter().find(|a| a.var == v).expect("an axis").extent;
        vars.iter().map(|&v| (v, extent(v))).collect::<Vec<_>>()
    });
    let blocks = blocks::each(f, &size, |f, block| {
        let call = part(f, plan, &vars, block, (width, tile.as_ref()));
        let finish = finish(f, &vars, stages, block, tile.as_ref());
        let s = f.seq(vec![call, finish]);
        match &tile {
            Some(tile) => f.add_stmt(StmtData::Alloc(tile.memory, s)),
            None => s,
        }
    });
    plan.around(f, blocks)
}

/// The kernel call for a block.
fn part(
    f: &mut PrimFunc,
    plan: &Plan,
    vars: &[Vec<(Var, Expr)>; 3],
    block: &Block,
    (width, tile): (i64, Option<&Tile>),
) -> Stmt {
    let mut origin = FxHashMap::default();
    for (vars, at) in vars.iter().zip([block.batch, block.row, block.column]) {
        origin.extend(blocks::taken_apart(f, vars, at));
    }
    let by = f.int(width);
    let panel = f.binary(pliant_ir::tir::BinOp::FloorDiv, block.column, by);
    let to = tile.map(|tile| (tile.memory, tile.row));
    let (batch, rows) = (block.products, block.rows);
    let part = Part { origin, batch, rows, columns: block.columns, panel, to };
    plan.call(f, &part)
}

/// The epilogue loops of a block, product by product and row by row.
fn finish(
    f: &mut PrimFunc,
    vars: &[Vec<(Var, Expr)>; 3],
    stages: &[Follower],
    block: &Block,
    tile: Option<&Tile>,
) -> Stmt {
    let (row, column) = (f.size_var("row"), f.size_var("column"));
    let (row_e, column_e) = (f.var_expr(row), f.var_expr(column));
    let at_row = f.add(block.row, row_e);
    let at_column = f.add(block.column, column_e);
    let product = (f.as_int(block.products) != Some(1)).then(|| f.size_var("within"));
    let (mut at_product, mut tile_row) = (block.batch, row_e);
    if let Some(product) = product {
        let product = f.var_expr(product);
        at_product = f.add(block.batch, product);
        let before = f.mul(product, block.rows);
        tile_row = f.add(before, row_e);
    }
    let mut lets = blocks::taken_apart(f, &vars[0], at_product);
    lets.extend(blocks::taken_apart(f, &vars[1], at_row));
    let here: FxHashMap<Var, Expr> = vars[2].iter().map(|&(v, _)| (v, at_column)).collect();
    let mut body = Vec::with_capacity(stages.len());
    for follower in stages {
        let mut stage = in_tile(f, &follower.stage, tile, tile_row, column_e);
        stage = stage.substituted(f, &here);
        stage.axes = vec![Axis { var: column, extent: block.columns, reduce: false }];
        let conditions = choose::conditions(f, &stage);
        body.push(choose::versions_of(f, &stage, &conditions, &mut |f, s| emit::inner(f, s)));
    }
    let mut body = f.seq(body);
    for (v, e) in lets {
        body = f.add_stmt(StmtData::Let(v, e, body));
    }
    let rows = serial(f, row, block.rows, body);
    match product {
        Some(product) => serial(f, product, block.products, rows),
        None => rows,
    }
}

/// The stage with results read from the tile, at a row of the tile and a column of the block.
fn in_tile(f: &mut PrimFunc, stage: &Stage, tile: Option<&Tile>, row: Expr, column: Expr) -> Stage {
    let Some(tile) = tile else { return stage.clone() };
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e) {
        ExprData::Load(b, _) if *b == tile.of => Some(f.load(tile.memory, &[row, column])),
        _ => None,
    };
    let mut rewriter = ExprRewriter::new(&mut rule);
    let mut stage = stage.clone();
    for guard in &mut stage.guards {
        *guard = guard.map(|e| rewriter.expr(f, e));
    }
    if let Body::Store { value, .. } = &mut stage.body {
        *value = rewriter.expr(f, *value);
    }
    stage
}
