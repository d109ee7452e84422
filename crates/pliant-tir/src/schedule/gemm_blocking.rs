//! Blocking of matmuls with epilogues: chooses the sizes of the blocks of results, and emits the loop over the blocks.
//!
//! A block consists of some rows and a few panels of columns, which one kernel call computes. The epilogue runs over
//! the results of the block while they are in the L1 or L2 cache. Blocks of the same columns are adjacent, so that a
//! thread reads its part of B from its L2 cache, block after block.
//!
//! - A block has as many rows as the kernels process at once ([`Machine::block_rows`]): 132 on Emerald Rapids. 132 rows
//!   by 256 columns of float32 take 132 KB and fit the second-level cache. With 48 rows, a matmul of 384 by 1152 and
//!   its bias took 8 % longer than the unblocked matmul on one thread, because fewer rows read each slice of a panel.
//! - Adjacent blocks have equally many panels. With 512 rows by 384 columns in blocks of 4 and 2 panels, one of two
//!   threads got more work than the other, and the matmul took a fifth longer.
//! - A right operand that is not packed is packed again for each block. With 48 rows of inner size 32, packing took
//!   twice the time of the matmuls. Such blocks have up to [`MAX_UNPACKED_ROWS`] rows.
//! - If there are fewer than [`target_blocks`] blocks, blocks get fewer panels, down to one, and fewer rows if the
//!   panels cannot be shared evenly. Each block must still take [`MIN_BLOCK_MICROSECONDS`] microseconds: calls of 2 us
//!   (7 by 384 by 384 in six blocks) took a fifth longer than one call.
//! - Several matmuls of a batch share a block if each takes less than a microsecond: a call and its checks take as long
//!   as 64 matmuls of 4 by 4 by 4.
//! - The worker team assumes iterations of a microsecond, so the parallel loop has one iteration per microsecond of a
//!   block.

use pliant_ir::tir::{BinOp, Expr, ForKind, PrimFunc, Stmt, StmtData, Var};
use pliant_machine::Machine;
use pliant_machine::cost_model::BLOCK_DEPTH;

/// Maximum number of rows in a block of a matmul's results: the number of rows that the kernels process at once.
pub(super) fn max_rows() -> i64 {
    Machine::host().block_rows(BLOCK_DEPTH, TILE_ROWS as usize) as i64
}
/// Maximum number of rows in a block of a matmul's results if the right operand is not packed.
pub(super) const MAX_UNPACKED_ROWS: i64 = 192;
/// Maximum number of panels (groups of adjacent columns of the right operand) in a block of a matmul's results.
pub(super) const MAX_PANELS: i64 = 4;
/// The number of rows of the kernels' register tiles. Blocks have a multiple of this number of rows.
const TILE_ROWS: i64 = 6;
/// Minimum duration of a block in microseconds, if a matmul is split into more blocks than their maximum size requires, to share
/// the work between threads.
const MIN_BLOCK_MICROSECONDS: i64 = 4;
/// The limit to which the estimated duration of one matmul, in microseconds, is clamped. The number of blocks depends on the
/// estimate; longer matmuls get no more blocks.
const MAX_PRODUCT_MICROSECONDS: i64 = 1 << 16;

/// The number of blocks into which a matmul is split if it is large enough.
fn target_blocks() -> i64 {
    Machine::host().pieces() as i64
}

/// The number of multiply-adds per microsecond of one thread.
fn multiply_adds_per_microsecond() -> i64 {
    Machine::host().rates.multiply_adds as i64
}

/// The sizes of a batch of matmuls, and the limits for the blocks into which the batch is split.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProductSize {
    pub batch: Expr,
    pub rows: Expr,
    pub columns: Expr,
    pub inner: Expr,
    /// The number of columns of a panel (a group of adjacent columns of the right operand).
    pub width: i64,
    /// Maximum number of rows in a block of results.
    pub max_rows: i64,
}

/// One block of results. Its expressions use variables that [`for_each_block`] defines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The index of the first matmul that the block computes, within the batch.
    pub batch: Expr,
    /// The number of matmuls that the block computes. It is more than 1 only if each of them fits into one block.
    pub products: Expr,
    /// The index of the first row of results in the block.
    pub row: Expr,
    /// The number of rows of results in the block.
    pub rows: Expr,
    /// The index of the first column of results in the block, where a panel of the right operand begins.
    pub column: Expr,
    /// The number of columns of results in the block.
    pub columns: Expr,
}

/// Variables to be bound around a statement, outermost first.
#[derive(Default)]
struct LetBindings(Vec<(Var, Expr)>);

impl LetBindings {
    /// Binds a value to a new variable `name`, and returns the variable. A constant is returned unchanged.
    fn bind(&mut self, f: &mut PrimFunc, name: &str, value: Expr) -> Expr {
        let value = crate::simplify_loop_functions::fold(f, value).unwrap_or(value);
        if f.as_int(value).is_some() {
            return value;
        }
        let var = f.size_var(name);
        self.0.push((var, value));
        f.var_expr(var)
    }

    /// Returns a statement that binds all variables and then executes `s`.
    fn wrap(self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        self.0.into_iter().rev().fold(s, |s, (v, e)| f.add_stmt(StmtData::Let(v, e, s)))
    }
}

/// Builds arithmetic on sizes with constant folding.
struct SizeArithmetic<'a>(&'a mut PrimFunc);

impl SizeArithmetic<'_> {
    fn op(&mut self, op: BinOp, a: Expr, b: Expr) -> Expr {
        let e = self.0.binary(op, a, b);
        crate::simplify_loop_functions::fold(self.0, e).unwrap_or(e)
    }

    fn max(&mut self, a: Expr, min: i64) -> Expr {
        let min = self.0.int(min);
        self.op(BinOp::Max, a, min)
    }

    fn min(&mut self, a: Expr, max: i64) -> Expr {
        let max = self.0.int(max);
        self.op(BinOp::Min, a, max)
    }

    fn div(&mut self, a: Expr, by: i64) -> Expr {
        let by = self.0.int(by);
        self.op(BinOp::FloorDiv, a, by)
    }

    /// Returns `a / b` rounded up, for a divisor of at least 1.
    fn div_ceil(&mut self, a: Expr, b: Expr) -> Expr {
        let one = self.0.int(1);
        let up = self.op(BinOp::Sub, b, one);
        let up = self.op(BinOp::Add, a, up);
        self.op(BinOp::FloorDiv, up, b)
    }

    fn div_ceil_by(&mut self, a: Expr, by: i64) -> Expr {
        let by = self.0.int(by);
        self.div_ceil(a, by)
    }
}

/// The number of blocks into which a batch of matmuls is split, and their sizes.
struct Blocking {
    /// The number of rows of results in a block.
    rows: Expr,
    /// The number of blocks into which the rows of results are divided.
    row_blocks: Expr,
    /// The number of panels (groups of adjacent columns of the right operand) in a block.
    panels: Expr,
    /// The number of blocks into which the columns of results are divided.
    column_blocks: Expr,
    /// The estimated duration of a block in microseconds, at least 1.
    microseconds: Expr,
    /// The number of matmuls of the batch that share one block.
    products_per_block: Expr,
}

/// Returns the number of matmuls of the batch that share a block: as many as are computed in a microsecond and fit into the rows
/// of a block. 1 if a matmul has more columns than a block.
fn products_per_block(s: &mut SizeArithmetic<'_>, size: &ProductSize, work: Expr) -> Expr {
    if s.0.as_int(size.batch) == Some(1) {
        return size.batch;
    }
    let (work, rows, columns) = (s.max(work, 1), s.max(size.rows, 1), s.max(size.columns, 1));
    let (rate, max_rows) = (s.0.int(multiply_adds_per_microsecond()), s.0.int(size.max_rows));
    let max_columns = s.0.int(MAX_PANELS * size.width);
    let by_work = s.op(BinOp::FloorDiv, rate, work);
    let by_rows = s.op(BinOp::FloorDiv, max_rows, rows);
    let columns_fit = s.op(BinOp::FloorDiv, max_columns, columns);
    let columns_fit = s.min(columns_fit, 1);
    let count = s.op(BinOp::Min, by_work, by_rows);
    let count = s.op(BinOp::Mul, count, columns_fit);
    s.max(count, 1)
}

/// Chooses the number of blocks and their sizes. Appends the variables that the sizes use to `lets`.
fn choose_blocking(f: &mut PrimFunc, size: &ProductSize, lets: &mut LetBindings) -> Blocking {
    let mut s = SizeArithmetic(f);
    let panels = s.div_ceil_by(size.columns, size.width);
    let area = s.op(BinOp::Mul, size.rows, size.columns);
    let work = s.op(BinOp::Mul, area, size.inner);
    // If the work overflows 64 bits, the duration is an arbitrary number in this range, which affects only the sizes of blocks.
    let microseconds = s.div(work, multiply_adds_per_microsecond());
    let microseconds = s.max(microseconds, 1);
    let microseconds = s.min(microseconds, MAX_PRODUCT_MICROSECONDS);
    let microseconds = lets.bind(s.0, "units", microseconds);
    let (pieces, products) = (s.0.int(target_blocks()), s.max(size.batch, 1));
    let pieces = s.div_ceil(pieces, products);
    let max_pieces = s.div(microseconds, MIN_BLOCK_MICROSECONDS);
    let pieces = s.op(BinOp::Min, pieces, max_pieces);
    let pieces = s.max(pieces, 1);
    let pieces = lets.bind(s.0, "pieces", pieces);
    // Blocks have the maximum number of rows, or fewer if there are too few panels to share the work.
    let at_least_one = s.max(panels, 1);
    let shared_evenly = s.0.as_int(panels).is_some_and(|p| p >= target_blocks() / 2 && p % 2 == 0);
    let min_row_blocks = if shared_evenly { s.0.int(1) } else { s.div_ceil(pieces, at_least_one) };
    let row_blocks = s.div_ceil_by(size.rows, size.max_rows);
    let row_blocks = s.op(BinOp::Max, row_blocks, min_row_blocks);
    let rows = s.div_ceil(size.rows, row_blocks);
    let rows = s.div_ceil_by(rows, TILE_ROWS);
    let rows = s.max(rows, 1);
    let tile = s.0.int(TILE_ROWS);
    let rows = s.op(BinOp::Mul, rows, tile);
    let rows = lets.bind(s.0, "block_rows", rows);
    let row_blocks = s.div_ceil(size.rows, rows);
    let row_blocks = lets.bind(s.0, "down", row_blocks);
    let total_panels = s.op(BinOp::Mul, panels, row_blocks);
    let max_panels = s.op(BinOp::FloorDiv, total_panels, pieces);
    let max_panels = s.max(max_panels, 1);
    let max_panels = s.min(max_panels, MAX_PANELS);
    let max_panels = lets.bind(s.0, "most_panels", max_panels);
    let column_blocks = s.div_ceil(panels, max_panels);
    let column_blocks = s.max(column_blocks, 1);
    let column_blocks = lets.bind(s.0, "blocks_across", column_blocks);
    let block_panels = s.div_ceil(panels, column_blocks);
    let block_panels = s.max(block_panels, 1);
    let block_panels = lets.bind(s.0, "block_panels", block_panels);
    let column_blocks = s.div_ceil(panels, block_panels);
    let column_blocks = lets.bind(s.0, "across", column_blocks);
    let blocks = s.op(BinOp::Mul, row_blocks, column_blocks);
    let blocks = s.max(blocks, 1);
    let microseconds = s.op(BinOp::FloorDiv, microseconds, blocks);
    let microseconds = s.max(microseconds, 1);
    let microseconds = lets.bind(s.0, "block_units", microseconds);
    let products_per_block = products_per_block(&mut s, size, work);
    let products_per_block = lets.bind(s.0, "together", products_per_block);
    Blocking {
        rows,
        row_blocks,
        panels: block_panels,
        column_blocks,
        microseconds,
        products_per_block,
    }
}

/// Emits a parallel loop over all blocks. `body` emits the statements of one block.
pub(super) fn for_each_block(
    f: &mut PrimFunc,
    size: &ProductSize,
    body: impl FnOnce(&mut PrimFunc, &Block) -> Stmt,
) -> Stmt {
    let mut outside = LetBindings::default();
    let blocking = choose_blocking(f, size, &mut outside);
    let mut inside = LetBindings::default();
    let iteration = f.size_var("turn");
    let iteration_e = f.var_expr(iteration);
    let mut s = SizeArithmetic(f);
    let number = s.op(BinOp::FloorDiv, iteration_e, blocking.microseconds);
    // If a count is 0, there are no blocks, but divisors must be positive.
    let (row_blocks, column_blocks) =
        (s.max(blocking.row_blocks, 1), s.max(blocking.column_blocks, 1));
    let row_block = s.op(BinOp::FloorMod, number, row_blocks);
    let rest = s.op(BinOp::FloorDiv, number, row_blocks);
    let column_block = s.op(BinOp::FloorMod, rest, column_blocks);
    let group = s.op(BinOp::FloorDiv, rest, column_blocks);
    let batch = s.op(BinOp::Mul, group, blocking.products_per_block);
    let row = s.op(BinOp::Mul, row_block, blocking.rows);
    let width = s.0.int(size.width);
    let columns = s.op(BinOp::Mul, blocking.panels, width);
    let column = s.op(BinOp::Mul, column_block, columns);
    let batch = inside.bind(f, "product", batch);
    let left = f.binary(BinOp::Sub, size.batch, batch);
    let products = match f.as_int(blocking.products_per_block) {
        Some(1) => blocking.products_per_block,
        _ => f.binary(BinOp::Min, blocking.products_per_block, left),
    };
    let products = inside.bind(f, "products", products);
    let row = inside.bind(f, "first_row", row);
    let column = inside.bind(f, "first_column", column);
    let left = f.binary(BinOp::Sub, size.rows, row);
    let rows = f.binary(BinOp::Min, blocking.rows, left);
    let rows = inside.bind(f, "rows", rows);
    let left = f.binary(BinOp::Sub, size.columns, column);
    let columns = f.binary(BinOp::Min, columns, left);
    let columns = inside.bind(f, "columns", columns);
    let body = body(f, &Block { batch, products, row, rows, column, columns });
    let body = inside.wrap(f, body);
    let zero = f.int(0);
    let body = match f.as_int(blocking.microseconds) {
        Some(1) => body,
        _ => {
            let rest = f.binary(BinOp::FloorMod, iteration_e, blocking.microseconds);
            let first = f.binary(BinOp::Eq, rest, zero);
            f.add_stmt(StmtData::If(first, body, None))
        }
    };
    let mut s = SizeArithmetic(f);
    let groups = s.div_ceil(size.batch, blocking.products_per_block);
    let iterations = s.op(BinOp::Mul, groups, blocking.row_blocks);
    let iterations = s.op(BinOp::Mul, iterations, blocking.column_blocks);
    let iterations = s.op(BinOp::Mul, iterations, blocking.microseconds);
    let (kind, annotations) = (ForKind::Parallel, Vec::new());
    let s = f.add_stmt(StmtData::For {
        var: iteration,
        min: zero,
        extent: iterations,
        kind,
        body,
        annotations,
    });
    outside.wrap(f, s)
}

/// Splits a position in a fused loop into the values of the fused variables, in row-major order: the last variable changes
/// fastest.
pub(super) fn delinearize(
    f: &mut PrimFunc,
    vars: &[(Var, Expr)],
    position: Expr,
) -> Vec<(Var, Expr)> {
    let (mut rest, mut out) = (position, Vec::with_capacity(vars.len()));
    for (k, &(var, extent)) in vars.iter().enumerate().rev() {
        if k == 0 {
            out.push((var, rest));
        } else {
            out.push((
                var,
                super::row_group_fusion::divide_position(f, BinOp::FloorMod, rest, extent),
            ));
            rest = super::row_group_fusion::divide_position(f, BinOp::FloorDiv, rest, extent);
        }
    }
    out
}
