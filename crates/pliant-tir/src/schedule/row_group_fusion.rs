//! Fuses stages that share leading axes, such as those of a softmax, into one parallel loop over these axes. The fused stages are
//! called a row group. Stages without shared axes, and groups without reductions, get separate loops, whose parallel axes
//! `emit_stage_loops` chooses. Both files emit parallel loops over rows with `parallel_row_loop`, which divides the rows into
//! chunks of about a microsecond.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, ForKind, PrimFunc, Scope, Stmt, StmtData, Var,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::emit_stage_loops;
use super::loop_nest_stages::{Access, Item, Stage, is_var};
use crate::statement_traversal::{ExprRewriter, direct_exprs, for_each_stmt, map_stmts};

/// An access to a buffer by a row group: (index of the stage in the group, indices of the element).
type BufferAccess = (usize, Box<[Expr]>);

/// A row group: stages that are fused into one parallel loop over rows.
pub struct Group {
    stages: Vec<Stage>,
    /// The buffers that the stages of the group write.
    written: FxHashSet<Buffer>,
    /// The reads and writes of each buffer by the stages of the group.
    users: FxHashMap<Buffer, Vec<BufferAccess>>,
    /// The number of leading axes that all stages of the group share. The parallel loop of the group runs over these axes.
    shared: usize,
    /// The index of the group's first stage, in the list of the function's stages and other statements.
    pub first: usize,
}

/// Returns the number of leading axes of a stage that may become axes of the row loop (the parallel loop of a row group).
fn shareable_axes(f: &PrimFunc, s: &Stage) -> usize {
    let spatial = s.leading_spatial();
    // A reduction that is vectorized over its results keeps its last spatial axis.
    if s.reduces()
        && spatial > 0
        && emit_stage_loops::vector_axis(f, s).is_some_and(|a| a < spatial)
    {
        spatial - 1
    } else {
        spatial
    }
}

impl Group {
    /// Creates a row group of one stage. `first` is the index of the stage in the list of the function's stages and other
    /// statements.
    pub fn new(f: &PrimFunc, stage: Stage, first: usize) -> Group {
        let shared = shareable_axes(f, &stage);
        let (written, users) = Default::default();
        let mut group = Group { stages: Vec::new(), written, users, shared, first };
        let accesses = stage.accesses(f);
        group.push(stage, accesses);
        group
    }

    fn push(&mut self, stage: Stage, accesses: Vec<Access>) {
        let at = self.stages.len();
        self.stages.push(stage);
        for (buffer, indices, writes) in accesses {
            if writes {
                self.written.insert(buffer);
            }
            self.users.entry(buffer).or_default().push((at, indices));
        }
    }

    /// Adds a stage to the group if it can run in the same row loop as the other stages. Returns whether the stage was added.
    pub fn try_add(&mut self, f: &PrimFunc, stage: &Stage) -> bool {
        let rows = self.shared.min(shareable_axes(f, stage));
        if rows == 0 {
            return false;
        }
        let first = &self.stages[0];
        let same_extents =
            first.axes.iter().zip(&stage.axes).take(rows).all(|(a, b)| a.extent == b.extent);
        if !same_extents {
            return false;
        }
        let accesses = stage.accesses(f);
        // The buffers whose accesses by the stages of the group must be checked.
        let mut to_check: FxHashSet<Buffer> =
            accesses.iter().filter(|a| a.2).map(|a| a.0).collect();
        let stage_is_aligned = accesses.iter().all(|(b, i, _)| {
            let shared = self.written.contains(b) || to_check.contains(b);
            !shared || is_indexed_by_rows(f, stage, i, rows)
        });
        // In a group of several stages, all accesses to the buffers written so far are known to be indexed by rows.
        match &self.stages[..] {
            [_] => to_check.extend(&self.written),
            _ => to_check.retain(|b| !self.written.contains(b)),
        }
        let group_is_aligned = |b: &Buffer| {
            let users = self.users.get(b).into_iter().flatten();
            users.into_iter().all(|(s, i)| is_indexed_by_rows(f, &self.stages[*s], i, rows))
        };
        let aligned = stage_is_aligned && to_check.iter().all(group_is_aligned);
        if aligned {
            self.push(stage.clone(), accesses);
            self.shared = rows;
        }
        aligned
    }

    /// Emits the statements of the group. Removes the allocations of temporaries that become local to the row loop from `allocs`.
    /// `outside` lists all stages and statements of the function that are not in the group.
    pub fn emit(self, f: &mut PrimFunc, allocs: &mut Vec<Buffer>, outside: &[&Item]) -> Vec<Stmt> {
        // Without reductions, separate loops are faster, because all axes of a stage can be fused.
        if !self.stages.iter().any(Stage::reduces) {
            return self.stages.iter().map(|s| emit_stage_loops::emit_spatial(f, s)).collect();
        }
        if self.shared == 0 {
            return self.stages.iter().map(|s| emit_stage_loops::emit_standalone(f, s)).collect();
        }
        let temporaries = self.temporaries(f, allocs, outside);
        allocs.retain(|b| !temporaries.contains(b));
        vec![self.emit_rows(f, &temporaries)]
    }

    /// Returns the temporaries that can become local to the row loop: only this group uses them, and the leading indices of all
    /// accesses are the axes of the row loop.
    fn temporaries(&self, f: &PrimFunc, allocs: &[Buffer], outside: &[&Item]) -> Vec<Buffer> {
        let is_row_temporary = |b: Buffer| {
            f.buffer(b).strides.is_empty()
                && f.buffer(b).shape.len() >= self.shared
                && !outside.iter().any(|i| accesses_buffer(f, i, b))
                && self.stages.iter().all(|s| {
                    s.accesses(f)
                        .iter()
                        .all(|(a, i, _)| *a != b || is_indexed_by_rows(f, s, i, self.shared))
                })
        };
        allocs.iter().copied().filter(|&b| is_row_temporary(b)).collect()
    }

    /// Emits the row loop. Each of the temporaries is replaced by a buffer for one row.
    fn emit_rows(&self, f: &mut PrimFunc, temporaries: &[Buffer]) -> Stmt {
        let extents: Vec<Expr> =
            self.stages[0].axes[..self.shared].iter().map(|a| a.extent).collect();
        let row_vars: Vec<Var> = self.stages[0].axes[..self.shared].iter().map(|a| a.var).collect();
        let row_exprs: Vec<Expr> = row_vars.iter().map(|&v| f.var_expr(v)).collect();
        let (mut body, mut work) = (Vec::new(), Vec::new());
        for s in &self.stages {
            let map: FxHashMap<Var, Expr> =
                s.axes.iter().zip(&row_exprs).map(|(a, &e)| (a.var, e)).collect();
            let mut inner = s.substituted(f, &map);
            inner.axes.drain(..self.shared);
            let inner = emit_stage_loops::with_fused_axes(f, &inner);
            work.push(emit_stage_loops::estimated_work(f, &inner));
            body.push(emit_stage_loops::serial_loops(f, &inner));
        }
        let mut body = f.seq(body);
        let mut per_chunk = Vec::new();
        for &b in temporaries {
            let small = row_buffer(f, b, self.shared);
            body = replace_with_row_buffer(f, body, b, small, self.shared);
            if f.buffer(small).scope == Scope::Local {
                body = f.add_stmt(StmtData::Alloc(small, body));
            } else {
                per_chunk.push(small);
            }
        }
        let work = sum_of(f, work);
        parallel_row_loop(f, &row_vars, &extents, work, body, &per_chunk)
    }
}

/// Whether the first `rows` indices of an access are the first `rows` axes of the stage, in the same order.
fn is_indexed_by_rows(f: &PrimFunc, s: &Stage, indices: &[Expr], rows: usize) -> bool {
    indices.len() >= rows
        && indices.iter().zip(&s.axes).take(rows).all(|(&i, a)| is_var(f, i, a.var))
}

/// Whether a stage or statement reads or writes a buffer.
pub(super) fn accesses_buffer(f: &PrimFunc, item: &Item, b: Buffer) -> bool {
    match item {
        Item::Stage(s) => s.accesses(f).iter().any(|a| a.0 == b),
        Item::Other(s) => {
            let mut found = false;
            for_each_stmt(f, *s, &mut |_, data| {
                found |= matches!(data, StmtData::Store { buffer, .. } if *buffer == b);
                direct_exprs(data, |e| {
                    for_each_expr(f, e, |e| {
                        found |= matches!(f.expr(e), ExprData::Load(x, _) if *x == b);
                    });
                });
            });
            found
        }
    }
}

/// Creates the buffer for one row of a temporary. A single element is kept in a register.
fn row_buffer(f: &mut PrimFunc, b: Buffer, rows: usize) -> Buffer {
    let mut data = f.buffer(b).clone();
    data.shape.drain(..rows);
    if data.shape.is_empty() {
        data.shape.push(f.int(1));
        data.scope = Scope::Local;
    }
    data.name = format!("{}_row", data.name).into();
    f.add_buffer(data)
}

/// Replaces a temporary `from` by the buffer `to`, which contains only one row of it. The first `rows` indices are dropped.
fn replace_with_row_buffer(
    f: &mut PrimFunc,
    s: Stmt,
    from: Buffer,
    to: Buffer,
    rows: usize,
) -> Stmt {
    let zero = f.int(0);
    let row_indices = |indices: &[Expr]| -> Box<[Expr]> {
        if indices.len() == rows { [zero].into() } else { indices[rows..].into() }
    };
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, i) if b == from => Some(f.load(to, &row_indices(&i))),
        _ => None,
    };
    let s = ExprRewriter::new(&mut rule).stmt(f, s);
    map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Store { buffer, indices, value } if buffer == from => {
            Some(f.store(to, &row_indices(&indices), value))
        }
        _ => None,
    })
}

pub(super) fn sum_of(f: &mut PrimFunc, terms: Vec<Expr>) -> Expr {
    let mut acc = f.int(0);
    for t in terms {
        acc = f.add(acc, t);
    }
    acc
}

pub(super) fn product_of(f: &mut PrimFunc, factors: &[Expr]) -> Expr {
    let one = f.int(1);
    factors.iter().copied().reduce(|a, b| f.mul(a, b)).unwrap_or(one)
}

/// Returns the quotient or remainder of a position in a fused axis by an extent. If the extent is the constant 0, returns 0:
/// there are no positions, and scripts must not contain divisions by a constant 0.
pub(super) fn divide_position(f: &mut PrimFunc, op: BinOp, a: Expr, extent: Expr) -> Expr {
    if f.as_int(extent) == Some(0) { f.int(0) } else { f.binary(op, a, extent) }
}

/// Emits a parallel loop over chunks of rows. A row is a combination of values of the axes `vars`, which have the extents
/// `extents`. `body` computes one row, which takes about `work` operations. A chunk takes about a microsecond. Small inputs form
/// one chunk, which runs on the calling thread. The buffers `per_chunk` are allocated once per chunk.
pub(super) fn parallel_row_loop(
    f: &mut PrimFunc,
    vars: &[Var],
    extents: &[Expr],
    work: Expr,
    body: Stmt,
    per_chunk: &[Buffer],
) -> Stmt {
    let (zero, one) = (f.int(0), f.int(1));
    let total = product_of(f, extents);
    let (chunk, first, row) = (f.size_var("chunk"), f.size_var("first"), f.size_var("row"));
    let size = f.size_var("rows");
    let [chunk_e, first_e, row_e, size_e] = [chunk, first, row, size].map(|v| f.var_expr(v));
    // Delinearizes the index of the row.
    let mut body = body;
    let mut rest = f.add(first_e, row_e);
    let mut axes = Vec::new();
    for (i, (&v, &extent)) in vars.iter().zip(extents).enumerate().rev() {
        if i == 0 {
            axes.push((v, rest));
        } else {
            axes.push((v, divide_position(f, BinOp::FloorMod, rest, extent)));
            rest = divide_position(f, BinOp::FloorDiv, rest, extent);
        }
    }
    for (v, e) in axes {
        body = f.add_stmt(StmtData::Let(v, e, body));
    }
    let left = f.binary(BinOp::Sub, total, first_e);
    let iterations = f.binary(BinOp::Min, size_e, left);
    let mut s = serial_loop(f, row, iterations, body);
    for &b in per_chunk.iter().rev() {
        s = f.add_stmt(StmtData::Alloc(b, s));
    }
    let start = f.mul(chunk_e, size_e);
    s = f.add_stmt(StmtData::Let(first, start, s));
    let up = f.binary(BinOp::Sub, size_e, one);
    let up = f.add(total, up);
    let chunks = f.binary(BinOp::FloorDiv, up, size_e);
    s = f.add_stmt(StmtData::For {
        var: chunk,
        min: zero,
        extent: chunks,
        kind: ForKind::Parallel,
        body: s,
        annotations: Vec::new(),
    });
    let grain = f.int(emit_stage_loops::grain());
    let work = f.binary(BinOp::Max, work, one);
    let rows_per_chunk = f.binary(BinOp::FloorDiv, grain, work);
    let rows_per_chunk = f.binary(BinOp::Max, rows_per_chunk, one);
    f.add_stmt(StmtData::Let(size, rows_per_chunk, s))
}

/// Emits a serial loop over `0..extent`.
pub(super) fn serial_loop(f: &mut PrimFunc, var: Var, extent: Expr, body: Stmt) -> Stmt {
    let (min, kind) = (f.int(0), ForKind::Serial);
    f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations: Vec::new() })
}
