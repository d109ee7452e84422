//! Blocking of matrix products with epilogues: how a product is cut into blocks, and how the blocks are numbered.
//!
//! A block is a kernel call for some rows and a few panels of columns, after which the epilogue runs over its results while they
//! are in the nearest caches. Blocks of the same columns follow each other, so that a thread reads its part of B from its
//! second-level cache, block after block.
//!
//! - A block has as many rows as the kernels process at once ([`Machine::block_rows`]): 132 on Emerald Rapids. By 256 columns of
//!   float32 they are 132 KB, in the second-level cache. With 48 rows, a product of 384 by 1152 and its bias took 8 % longer than
//!   the product as a whole, on one thread, because fewer rows read each slice of a panel.
//! - Adjacent blocks have equally many panels: with 512 by 384 columns in blocks of 4 and 2 panels, one thread gets more work than
//!   the other, which cost a fifth of the time.
//! - A right operand that is not packed is packed again for each block, so that 48 rows of inner size 32 took twice the time of the
//!   products. Such blocks have up to [`MOST_VARYING_ROWS`] rows.
//! - If this makes fewer than [`most_pieces`] blocks, blocks get fewer panels, down to one, and fewer rows if panels do not make
//!   even shares, as long as each block takes [`LEAST_UNITS`] microseconds: calls of 2 us (7 by 384 by 384 in six blocks) took a
//!   fifth longer than one call.
//! - Products of less than a microsecond share a block: a call and its checks take as long as 64 products of 4 by 4 by 4.
//! - The worker team counts in microseconds, so the parallel loop has one iteration per microsecond of a block.

use pliant_ir::tir::{BinOp, Expr, ForKind, PrimFunc, Stmt, StmtData, Var};
use pliant_machine::Machine;
use pliant_machine::cost::BLOCK_DEPTH;

/// Maximum number of rows of a block: those that the kernels process at once.
pub(super) fn most_rows() -> i64 {
    Machine::host().block_rows(BLOCK_DEPTH, TILE_ROWS as usize) as i64
}
/// Maximum number of rows if B is not packed.
pub(super) const MOST_VARYING_ROWS: i64 = 192;
/// Maximum number of panels of a block.
pub(super) const MOST_PANELS: i64 = 4;
/// Rows of the kernels' tiles.
const TILE_ROWS: i64 = 6;
/// Minimum duration of a block in microseconds if work is split for other threads.
const LEAST_UNITS: i64 = 4;
/// Maximum duration of a product in microseconds, as reported to the worker team.
const MOST_UNITS: i64 = 1 << 16;

/// The number of blocks into which enough work is split.
fn most_pieces() -> i64 {
    Machine::host().pieces() as i64
}

/// Multiply-adds per microsecond.
fn unit() -> i64 {
    Machine::host().rates.multiply_adds as i64
}

/// The sizes of a batch of products, and the columns of a panel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub batch: Expr,
    pub rows: Expr,
    pub columns: Expr,
    pub inner: Expr,
    pub width: i64,
    /// Maximum number of rows of a block.
    pub most_rows: i64,
}

/// One block, in terms of variables that [`each`] defines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The number of the first product.
    pub batch: Expr,
    /// The number of products; several only if each is a single block.
    pub products: Expr,
    /// The first row.
    pub row: Expr,
    /// The number of rows.
    pub rows: Expr,
    /// The first column, where a panel begins.
    pub column: Expr,
    /// The number of columns.
    pub columns: Expr,
}

/// Variables to be defined, in order, around a statement.
#[derive(Default)]
struct Lets(Vec<(Var, Expr)>);

impl Lets {
    /// Binds a value to a variable with this name. A constant is returned as it is.
    fn bind(&mut self, f: &mut PrimFunc, name: &str, value: Expr) -> Expr {
        let value = crate::simplify::fold(f, value).unwrap_or(value);
        if f.as_int(value).is_some() {
            return value;
        }
        let var = f.size_var(name);
        self.0.push((var, value));
        f.var_expr(var)
    }

    fn around(self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        self.0.into_iter().rev().fold(s, |s, (v, e)| f.add_stmt(StmtData::Let(v, e, s)))
    }
}

/// Arithmetic of sizes, with constants folded.
struct Sums<'a>(&'a mut PrimFunc);

impl Sums<'_> {
    fn op(&mut self, op: BinOp, a: Expr, b: Expr) -> Expr {
        let e = self.0.binary(op, a, b);
        crate::simplify::fold(self.0, e).unwrap_or(e)
    }

    fn max(&mut self, a: Expr, least: i64) -> Expr {
        let least = self.0.int(least);
        self.op(BinOp::Max, a, least)
    }

    fn min(&mut self, a: Expr, most: i64) -> Expr {
        let most = self.0.int(most);
        self.op(BinOp::Min, a, most)
    }

    fn div(&mut self, a: Expr, by: i64) -> Expr {
        let by = self.0.int(by);
        self.op(BinOp::FloorDiv, a, by)
    }

    /// `a / b` rounded up, for a divisor of at least 1.
    fn ceil(&mut self, a: Expr, b: Expr) -> Expr {
        let one = self.0.int(1);
        let up = self.op(BinOp::Sub, b, one);
        let up = self.op(BinOp::Add, a, up);
        self.op(BinOp::FloorDiv, up, b)
    }

    fn ceil_by(&mut self, a: Expr, by: i64) -> Expr {
        let by = self.0.int(by);
        self.ceil(a, by)
    }
}

/// The number and the size of the blocks.
struct Cut {
    /// Rows of a block.
    rows: Expr,
    /// The number of blocks along the rows.
    down: Expr,
    /// Panels of a block.
    panels: Expr,
    /// The number of blocks along the columns.
    across: Expr,
    /// The duration of a block in microseconds.
    units: Expr,
    /// Products of a block.
    together: Expr,
}

/// The number of products that share a block: as many as a microsecond computes and the rows of a block hold, if each product is a
/// single block.
fn together(s: &mut Sums<'_>, size: &Size, work: Expr) -> Expr {
    if s.0.as_int(size.batch) == Some(1) {
        return size.batch;
    }
    let (work, rows, columns) = (s.max(work, 1), s.max(size.rows, 1), s.max(size.columns, 1));
    let (unit, most_rows) = (s.0.int(unit()), s.0.int(size.most_rows));
    let most_columns = s.0.int(MOST_PANELS * size.width);
    let by_work = s.op(BinOp::FloorDiv, unit, work);
    let by_rows = s.op(BinOp::FloorDiv, most_rows, rows);
    let fits = s.op(BinOp::FloorDiv, most_columns, columns);
    let fits = s.min(fits, 1);
    let most = s.op(BinOp::Min, by_work, by_rows);
    let most = s.op(BinOp::Mul, most, fits);
    s.max(most, 1)
}

fn cut(f: &mut PrimFunc, size: &Size, lets: &mut Lets) -> Cut {
    let mut s = Sums(f);
    let panels = s.ceil_by(size.columns, size.width);
    let area = s.op(BinOp::Mul, size.rows, size.columns);
    let work = s.op(BinOp::Mul, area, size.inner);
    // Work that overflows 64 bits becomes an arbitrary number in this range, which affects only how it is shared.
    let units = s.div(work, unit());
    let units = s.max(units, 1);
    let units = s.min(units, MOST_UNITS);
    let units = lets.bind(s.0, "units", units);
    let (pieces, products) = (s.0.int(most_pieces()), s.max(size.batch, 1));
    let pieces = s.ceil(pieces, products);
    let enough = s.div(units, LEAST_UNITS);
    let pieces = s.op(BinOp::Min, pieces, enough);
    let pieces = s.max(pieces, 1);
    let pieces = lets.bind(s.0, "pieces", pieces);
    // Blocks have as many rows as the rule states, or fewer if there are few panels.
    let some = s.max(panels, 1);
    let even = s.0.as_int(panels).is_some_and(|p| p >= most_pieces() / 2 && p % 2 == 0);
    let least = if even { s.0.int(1) } else { s.ceil(pieces, some) };
    let down = s.ceil_by(size.rows, size.most_rows);
    let down = s.op(BinOp::Max, down, least);
    let rows = s.ceil(size.rows, down);
    let rows = s.ceil_by(rows, TILE_ROWS);
    let rows = s.max(rows, 1);
    let tile = s.0.int(TILE_ROWS);
    let rows = s.op(BinOp::Mul, rows, tile);
    let rows = lets.bind(s.0, "block_rows", rows);
    let down = s.ceil(size.rows, rows);
    let down = lets.bind(s.0, "down", down);
    let all = s.op(BinOp::Mul, panels, down);
    let each = s.op(BinOp::FloorDiv, all, pieces);
    let each = s.max(each, 1);
    let each = s.min(each, MOST_PANELS);
    let each = lets.bind(s.0, "most_panels", each);
    let across = s.ceil(panels, each);
    let across = s.max(across, 1);
    let across = lets.bind(s.0, "blocks_across", across);
    let each = s.ceil(panels, across);
    let each = s.max(each, 1);
    let each = lets.bind(s.0, "block_panels", each);
    let across = s.ceil(panels, each);
    let across = lets.bind(s.0, "across", across);
    let blocks = s.op(BinOp::Mul, down, across);
    let blocks = s.max(blocks, 1);
    let units = s.op(BinOp::FloorDiv, units, blocks);
    let units = s.max(units, 1);
    let units = lets.bind(s.0, "block_units", units);
    let together = together(&mut s, size, work);
    let together = lets.bind(s.0, "together", together);
    Cut { rows, down, panels: each, across, units, together }
}

/// A parallel loop over all blocks; `body` makes the statements of one.
pub(super) fn each(
    f: &mut PrimFunc,
    size: &Size,
    body: impl FnOnce(&mut PrimFunc, &Block) -> Stmt,
) -> Stmt {
    let mut outside = Lets::default();
    let cut = cut(f, size, &mut outside);
    let mut inside = Lets::default();
    let turn = f.size_var("turn");
    let turn_e = f.var_expr(turn);
    let mut s = Sums(f);
    let number = s.op(BinOp::FloorDiv, turn_e, cut.units);
    // If a count is 0, there are no blocks; the divisors stay positive.
    let (down, across) = (s.max(cut.down, 1), s.max(cut.across, 1));
    let below = s.op(BinOp::FloorMod, number, down);
    let rest = s.op(BinOp::FloorDiv, number, down);
    let beside = s.op(BinOp::FloorMod, rest, across);
    let group = s.op(BinOp::FloorDiv, rest, across);
    let batch = s.op(BinOp::Mul, group, cut.together);
    let row = s.op(BinOp::Mul, below, cut.rows);
    let width = s.0.int(size.width);
    let columns = s.op(BinOp::Mul, cut.panels, width);
    let column = s.op(BinOp::Mul, beside, columns);
    let batch = inside.bind(f, "product", batch);
    let left = f.binary(BinOp::Sub, size.batch, batch);
    let products = match f.as_int(cut.together) {
        Some(1) => cut.together,
        _ => f.binary(BinOp::Min, cut.together, left),
    };
    let products = inside.bind(f, "products", products);
    let row = inside.bind(f, "first_row", row);
    let column = inside.bind(f, "first_column", column);
    let left = f.binary(BinOp::Sub, size.rows, row);
    let rows = f.binary(BinOp::Min, cut.rows, left);
    let rows = inside.bind(f, "rows", rows);
    let left = f.binary(BinOp::Sub, size.columns, column);
    let columns = f.binary(BinOp::Min, columns, left);
    let columns = inside.bind(f, "columns", columns);
    let body = body(f, &Block { batch, products, row, rows, column, columns });
    let body = inside.around(f, body);
    let zero = f.int(0);
    let body = match f.as_int(cut.units) {
        Some(1) => body,
        _ => {
            let rest = f.binary(BinOp::FloorMod, turn_e, cut.units);
            let first = f.binary(BinOp::Eq, rest, zero);
            f.add_stmt(StmtData::If(first, body, None))
        }
    };
    let mut s = Sums(f);
    let groups = s.ceil(size.batch, cut.together);
    let turns = s.op(BinOp::Mul, groups, cut.down);
    let turns = s.op(BinOp::Mul, turns, cut.across);
    let turns = s.op(BinOp::Mul, turns, cut.units);
    let (kind, annotations) = (ForKind::Parallel, Vec::new());
    let s =
        f.add_stmt(StmtData::For { var: turn, min: zero, extent: turns, kind, body, annotations });
    outside.around(f, s)
}

/// The values of fused variables at a position. The last variable changes fastest.
pub(super) fn taken_apart(
    f: &mut PrimFunc,
    vars: &[(Var, Expr)],
    position: Expr,
) -> Vec<(Var, Expr)> {
    let (mut rest, mut out) = (position, Vec::with_capacity(vars.len()));
    for (k, &(var, extent)) in vars.iter().enumerate().rev() {
        if k == 0 {
            out.push((var, rest));
        } else {
            out.push((var, super::group::divide(f, BinOp::FloorMod, rest, extent)));
            rest = super::group::divide(f, BinOp::FloorDiv, rest, extent);
        }
    }
    out
}
