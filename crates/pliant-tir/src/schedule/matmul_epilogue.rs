//! Fuses the elementwise stages that follow a matmul into its epilogue. A kernel call computes a block of results
//! ([`super::gemm_blocking`]), and the epilogue runs over the block immediately, on the same thread, while the block is in the L1
//! or L2 cache. Stages that can be fused are bias, activation, residual, scale, cast and any other stage whose element at each
//! position reads only the result at this position.
//!
//! Results that no other statement reads stay in a thread-local tile. Stages that write to the matmul's own result buffer, which
//! `ReuseOutput` makes possible, update it in place. The function's buffers must not alias (`tir.noalias`), because stages write
//! before the last block reads the operands of the matmul.

use pliant_ir::AttrValue;
use pliant_ir::attr_names::NOALIAS;
use pliant_ir::tir::{Buffer, BufferData, Expr, ExprData, PrimFunc, Scope, Stmt, StmtData, Var};
use rustc_hash::FxHashMap;

use super::gemm::{self, CallRegion, MatmulPlan};
use super::gemm_blocking::{self, Block, MAX_PANELS, MAX_UNPACKED_ROWS, ProductSize};
use super::loop_nest_stages::{Axis, Body, Item, Stage};
use super::row_group_fusion::{accesses_buffer, serial_loop};
use super::{broadcast_multiversioning, emit_stage_loops};
use crate::statement_traversal::ExprRewriter;

/// The number of columns that count as one panel when a matmul is split into blocks, if its right operand is not packed.
const UNPACKED_PANEL_COLUMNS: i64 = 64;

/// A matmul fused with its epilogue.
pub(super) struct FusedProduct {
    /// The statement that computes the matmul and the epilogue.
    pub stmt: Stmt,
    /// The index after the last stage of the epilogue, in the list of the function's stages and other statements.
    pub end: usize,
    /// The buffer that is no longer used, because thread-local tiles contain the results; `None` if there is none.
    pub removed: Option<Buffer>,
}

/// Fuses the matmul at position `at` with the elementwise stages that follow it. `None` if the stage at `at` is not a matmul, or
/// if no elementwise stages follow it.
pub(super) fn fuse_epilogue(
    f: &mut PrimFunc,
    items: &[Item],
    at: usize,
    allocs: &[Buffer],
) -> Option<FusedProduct> {
    let Item::Stage(first) = &items[at] else { return None };
    if !matches!(f.attrs.get(NOALIAS), Some(AttrValue::Bool(true))) {
        return None;
    }
    let Some(Item::Stage(_)) = items.get(at + 1) else { return None };
    let plan = gemm::plan(f, first)?;
    let mut epilogue = EpilogueBuilder::new(f, first, &plan)?;
    for item in &items[at + 1..] {
        let Item::Stage(stage) = item else { break };
        if !epilogue.try_add(f, stage) {
            break;
        }
    }
    if epilogue.stages.is_empty() {
        return None;
    }
    let end = at + 1 + epilogue.stages.len();
    let result = plan.operands[2].0;
    let used_elsewhere =
        |b: Buffer| items[..at].iter().chain(&items[end..]).any(|i| accesses_buffer(f, i, b));
    let removed = (allocs.contains(&result)
        && !plan.accumulate
        && !used_elsewhere(result)
        && epilogue.stages.iter().all(|s| s.target != result))
    .then_some(result);
    let stmt = emit_blocks(f, first, &plan, &epilogue.stages, removed);
    Some(FusedProduct { stmt, end, removed })
}

/// An elementwise stage that is fused into the epilogue of a matmul.
struct EpilogueStage {
    /// The stage, rewritten to the spatial axes of the matmul.
    stage: Stage,
    /// The buffer that the stage writes.
    target: Buffer,
}

/// Collects the stages that become the epilogue of a matmul.
struct EpilogueBuilder<'a> {
    product: &'a Stage,
    /// For each buffer that has been written so far and that later stages may read: the axes of the matmul that index
    /// the buffer.
    result_axes: FxHashMap<Buffer, Vec<Var>>,
    /// The buffers that the matmul and the fused stages read as operands. Later stages must not write to them.
    read: Vec<Buffer>,
    /// The buffers that have been written at indices that are not distinct axes. Later stages must not read them.
    written: Vec<Buffer>,
    stages: Vec<EpilogueStage>,
}

impl<'a> EpilogueBuilder<'a> {
    fn new(f: &PrimFunc, product: &'a Stage, plan: &MatmulPlan) -> Option<EpilogueBuilder<'a>> {
        let (result, indices) = &plan.operands[2];
        let result_vars = distinct_vars(f, indices)?;
        let [_, _, columns] = plan.axes();
        // Epilogues are vectorized along one contiguous axis.
        let one_contiguous = matches!(columns, [v] if result_vars.last() == Some(v));
        if !plan.loop_reductions.is_empty() || !one_contiguous {
            return None;
        }
        let read = vec![plan.operands[0].0, plan.operands[1].0];
        let result_axes = FxHashMap::from_iter([(*result, result_vars)]);
        Some(EpilogueBuilder {
            product,
            result_axes,
            read,
            written: Vec::new(),
            stages: Vec::new(),
        })
    }

    /// Adds a stage to the epilogue if each of its points reads earlier results only at its own position. Returns whether the
    /// stage was added.
    fn try_add(&mut self, f: &mut PrimFunc, stage: &Stage) -> bool {
        let Some((mapped, target)) = self.map_to_product(f, stage) else { return false };
        let Body::Store { indices, .. } = &mapped.body else { return false };
        for (buffer, ..) in mapped.accesses(f).into_iter().filter(|a| !a.2) {
            if !self.result_axes.contains_key(&buffer) {
                self.read.push(buffer);
            }
        }
        match distinct_vars(f, indices).filter(|p| p.len() == self.result_rank()) {
            Some(result_vars) => drop(self.result_axes.insert(target, result_vars)),
            None => self.written.push(target),
        }
        self.stages.push(EpilogueStage { stage: mapped, target });
        true
    }

    /// Returns the number of spatial axes of the matmul, which is the rank of its result.
    fn result_rank(&self) -> usize {
        self.product.axes.iter().filter(|a| !a.reduce).count()
    }

    /// Rewrites a stage from its own axes to the axes of the matmul. Returns the stage and the buffer that it writes; `None` if
    /// the stage cannot be fused.
    fn map_to_product(&self, f: &mut PrimFunc, stage: &Stage) -> Option<(Stage, Buffer)> {
        let Body::Store { buffer: target, indices, .. } = &stage.body else { return None };
        if stage.reduces() || stage.init.is_some() || stage.axes.len() != self.result_rank() {
            return None;
        }
        let accesses = stage.accesses(f);
        let mut axes: FxHashMap<Var, Var> = FxHashMap::default();
        for (buffer, at, writes) in &accesses {
            if self.written.contains(buffer) || *writes && self.read.contains(buffer) {
                return None;
            }
            // A stage may write only its target, and must not access the target at other positions.
            let at_other_position =
                |a: &super::loop_nest_stages::Access| a.0 == *target && a.1 != *indices;
            if *writes && (*buffer != *target || accesses.iter().any(at_other_position)) {
                return None;
            }
            let Some(result_vars) = self.result_axes.get(buffer) else { continue };
            let vars = distinct_vars(f, at)?;
            if vars.len() != result_vars.len() {
                return None;
            }
            for (axis, to) in vars.into_iter().zip(result_vars) {
                if axes.insert(axis, *to).is_some_and(|known| known != *to) {
                    return None;
                }
            }
        }
        let extent =
            |stage: &Stage, v: Var| stage.axes.iter().find(|a| a.var == v).map(|a| a.extent);
        let same_extents = stage.axes.iter().all(|a| {
            axes.get(&a.var).is_some_and(|&to| extent(self.product, to) == Some(a.extent))
        });
        let mut distinct: Vec<Var> = axes.values().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        if !same_extents || distinct.len() != stage.axes.len() || axes.len() != stage.axes.len() {
            return None;
        }
        let map = axes.into_iter().map(|(from, to)| (from, f.var_expr(to))).collect();
        let mut mapped = stage.substituted(f, &map);
        mapped.axes = self.product.axes.iter().filter(|a| !a.reduce).copied().collect();
        Some((mapped, *target))
    }
}

/// Returns the variables that are used as indices; `None` if an index is not a variable or if a variable occurs twice.
fn distinct_vars(f: &PrimFunc, indices: &[Expr]) -> Option<Vec<Var>> {
    let mut out = Vec::with_capacity(indices.len());
    for &i in indices {
        match f.expr(i) {
            ExprData::Var(v) if !out.contains(v) => out.push(*v),
            _ => return None,
        }
    }
    Some(out)
}

/// A thread-local buffer that contains the matmul results of one block.
struct Tile {
    /// The result buffer of the matmul, which the tile replaces within the block.
    replaced: Buffer,
    memory: Buffer,
    /// The distance between adjacent rows of the tile, in elements.
    row_stride: Expr,
}

/// Emits the loop over the blocks of a matmul with its epilogue. Thread-local tiles replace the buffer `removed`.
fn emit_blocks(
    f: &mut PrimFunc,
    product: &Stage,
    plan: &MatmulPlan,
    stages: &[EpilogueStage],
    removed: Option<Buffer>,
) -> Stmt {
    let width = plan.width.and_then(|w| f.as_int(w)).unwrap_or(UNPACKED_PANEL_COLUMNS);
    let max_rows = if plan.width.is_some() { gemm_blocking::max_rows() } else { MAX_UNPACKED_ROWS };
    let tile = removed.map(|replaced| {
        let columns = MAX_PANELS * width;
        let shape = vec![f.int(max_rows), f.int(columns)];
        let (name, dtype) = ("tile".into(), f.buffer(replaced).dtype);
        let (strides, elem_offset, scope) = (Vec::new(), None, Scope::Global);
        let memory = f.add_buffer(BufferData { name, dtype, shape, strides, elem_offset, scope });
        Tile { replaced, memory, row_stride: f.int(columns) }
    });
    let [batch, rows, columns, inner] = plan.extents(f);
    let size = ProductSize { batch, rows, columns, inner, width, max_rows };
    let vars = plan.axes().map(|vars| {
        let extent = |v: Var| product.axes.iter().find(|a| a.var == v).expect("an axis").extent;
        vars.iter().map(|&v| (v, extent(v))).collect::<Vec<_>>()
    });
    let blocks = gemm_blocking::for_each_block(f, &size, |f, block| {
        let call = block_call(f, plan, &vars, block, (width, tile.as_ref()));
        let loops = epilogue_loops(f, &vars, stages, block, tile.as_ref());
        let s = f.seq(vec![call, loops]);
        match &tile {
            Some(tile) => f.add_stmt(StmtData::Alloc(tile.memory, s)),
            None => s,
        }
    });
    plan.wrap_in_outer_loops(f, blocks)
}

/// Emits the kernel call that computes the matmul results of a block.
fn block_call(
    f: &mut PrimFunc,
    plan: &MatmulPlan,
    vars: &[Vec<(Var, Expr)>; 3],
    block: &Block,
    (width, tile): (i64, Option<&Tile>),
) -> Stmt {
    let mut origin = FxHashMap::default();
    for (vars, at) in vars.iter().zip([block.batch, block.row, block.column]) {
        origin.extend(gemm_blocking::delinearize(f, vars, at));
    }
    let by = f.int(width);
    let panel = f.binary(pliant_ir::tir::BinOp::FloorDiv, block.column, by);
    let output = tile.map(|tile| (tile.memory, tile.row_stride));
    let (batch, rows) = (block.products, block.rows);
    let region = CallRegion { origin, batch, rows, columns: block.columns, panel, output };
    plan.call(f, &region)
}

/// Emits the epilogue loops of a block: a loop over the matmuls of the batch in the block around a loop over their rows.
fn epilogue_loops(
    f: &mut PrimFunc,
    vars: &[Vec<(Var, Expr)>; 3],
    stages: &[EpilogueStage],
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
    let mut lets = gemm_blocking::delinearize(f, &vars[0], at_product);
    lets.extend(gemm_blocking::delinearize(f, &vars[1], at_row));
    let column_values: FxHashMap<Var, Expr> =
        vars[2].iter().map(|&(v, _)| (v, at_column)).collect();
    let mut body = Vec::with_capacity(stages.len());
    for stage in stages {
        let mut stage = read_from_tile(f, &stage.stage, tile, tile_row, column_e);
        stage = stage.substituted(f, &column_values);
        stage.axes = vec![Axis { var: column, extent: block.columns, reduce: false }];
        let conditions = broadcast_multiversioning::broadcast_conditions(f, &stage);
        body.push(broadcast_multiversioning::emit_versions_with(
            f,
            &stage,
            &conditions,
            &mut |f, s| emit_stage_loops::serial_loops(f, s),
        ));
    }
    let mut body = f.seq(body);
    for (v, e) in lets {
        body = f.add_stmt(StmtData::Let(v, e, body));
    }
    let rows = serial_loop(f, row, block.rows, body);
    match product {
        Some(product) => serial_loop(f, product, block.products, rows),
        None => rows,
    }
}

/// Replaces the loads of results in a stage by loads from the tile, at a row and a column of the tile.
fn read_from_tile(
    f: &mut PrimFunc,
    stage: &Stage,
    tile: Option<&Tile>,
    row: Expr,
    column: Expr,
) -> Stage {
    let Some(tile) = tile else { return stage.clone() };
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e) {
        ExprData::Load(b, _) if *b == tile.replaced => Some(f.load(tile.memory, &[row, column])),
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
