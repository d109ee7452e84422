//! Matrix products whose results elementwise stages finish: each block of results ([`super::blocks`]) is computed by a call of the
//! library and finished at once, on the same thread, while it is in the nearest caches. Bias, activation, residual, scale and
//! cast are such stages, and so is any other chain that reads the results at its own place alone.
//!
//! Results that nobody else reads stay in a tile of the thread's. Where stages write into the product's own buffer, as
//! `ReuseOutput` lets them, they change it in place. The function's buffers must share no memory (`tir.noalias`), since stages
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

/// A product with the stages that finish it.
pub(super) struct Finished {
    /// All of it.
    pub stmt: Stmt,
    /// The position after its last stage.
    pub end: usize,
    /// The buffer that is no longer used: blocks of it live in tiles.
    pub gone: Option<Buffer>,
}

/// The product at a position with the elementwise stages that follow it, if there are any.
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

/// A stage in terms of the product's axes.
struct Follower {
    stage: Stage,
    /// What it writes.
    target: Buffer,
}

/// Stages that follow a product.
struct Chain<'a> {
    product: &'a Stage,
    /// The buffers written so far that may be read, and which axes of the product their indices are.
    places: FxHashMap<Buffer, Vec<Var>>,
    /// The buffers that nobody may write any more.
    read: Vec<Buffer>,
    /// The buffers that nobody may read any more.
    written: Vec<Buffer>,
    stages: Vec<Follower>,
}

impl<'a> Chain<'a> {
    fn new(f: &PrimFunc, product: &'a Stage, plan: &Plan) -> Option<Chain<'a>> {
        let (result, indices) = &plan.operands[2];
        let place = plain(f, indices)?;
        let [_, _, columns] = plan.axes();
        // Vectors run along one axis of neighbours.
        let one = matches!(columns, [v] if place.last() == Some(v));
        if !plan.looped.is_empty() || !one {
            return None;
        }
        let read = vec![plan.operands[0].0, plan.operands[1].0];
        let places = FxHashMap::from_iter([(*result, place)]);
        Some(Chain { product, places, read, written: Vec::new(), stages: Vec::new() })
    }

    /// Adds a stage, if it computes each of its points from those results alone that have the same place.
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

    /// How many axes the results have.
    fn spatial(&self) -> usize {
        self.product.axes.iter().filter(|a| !a.reduce).count()
    }

    /// A stage over the product's axes, and what it writes.
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
            // Who writes and who reads at other places must not meet.
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

/// The variables that indices are, where each is one of its own.
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

/// A block's results in memory of the thread's own.
struct Tile {
    /// The whole buffer that it stands for.
    of: Buffer,
    memory: Buffer,
    /// From row to row.
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

/// The call for a block.
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

/// The loops that finish a block, product by product and row by row.
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

/// The stage with results read from the tile: at its row, and at the place of the column in the block.
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
