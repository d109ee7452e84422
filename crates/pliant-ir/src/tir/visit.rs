//! Traversals of loop functions, [`Rewriter`], substitution, and [`TirImporter`], which copies parts of one function into another.
//!
//! Expressions are processed bottom-up in the order of their ids, so long chains do not recurse. Statements recurse into bodies,
//! whose depth the verifier limits.

use rustc_hash::{FxHashMap, FxHashSet};

use super::buffer::{Buffer, BufferData, BufferRegion};
use super::expr::{Expr, ExprData, Var};
use super::func::PrimFunc;
use super::stmt::{BlockData, IterVar, Stmt, StmtData};

/// Calls `visit` with each operand of an expression, in order.
pub fn for_each_operand(data: &ExprData, mut visit: impl FnMut(Expr)) {
    match data {
        ExprData::Int(..) | ExprData::Float(..) | ExprData::Str(_) | ExprData::Var(_) => {}
        ExprData::Cast(_, a) | ExprData::Not(a) | ExprData::Broadcast(a, _) => visit(*a),
        ExprData::Binary(_, a, b) | ExprData::Ramp(a, b, _) => {
            visit(*a);
            visit(*b);
        }
        ExprData::Select(c, a, b) => {
            visit(*c);
            visit(*a);
            visit(*b);
        }
        ExprData::Load(_, args) | ExprData::Call(_, args, _) => {
            args.iter().copied().for_each(visit)
        }
    }
}

/// Applies `map` to each operand of an expression, and returns the resulting expression.
pub fn map_operands(data: &ExprData, mut map: impl FnMut(Expr) -> Expr) -> ExprData {
    match data {
        ExprData::Int(..) | ExprData::Float(..) | ExprData::Str(_) | ExprData::Var(_) => {
            data.clone()
        }
        ExprData::Cast(ty, a) => ExprData::Cast(*ty, map(*a)),
        ExprData::Not(a) => ExprData::Not(map(*a)),
        ExprData::Broadcast(a, n) => ExprData::Broadcast(map(*a), *n),
        ExprData::Binary(op, a, b) => ExprData::Binary(*op, map(*a), map(*b)),
        ExprData::Ramp(a, b, n) => ExprData::Ramp(map(*a), map(*b), *n),
        ExprData::Select(c, a, b) => ExprData::Select(map(*c), map(*a), map(*b)),
        ExprData::Load(b, args) => ExprData::Load(*b, args.iter().map(|&a| map(a)).collect()),
        ExprData::Call(i, args, ty) => {
            ExprData::Call(*i, args.iter().map(|&a| map(a)).collect(), *ty)
        }
    }
}

/// Calls `visit` once with an expression and each of its subexpressions, in the order of the text.
pub fn for_each_expr(f: &PrimFunc, e: Expr, mut visit: impl FnMut(Expr)) {
    let mut seen = FxHashSet::default();
    let mut stack = vec![e];
    let mut operands = Vec::new();
    while let Some(e) = stack.pop() {
        if seen.insert(e) {
            visit(e);
            for_each_operand(f.expr(e), |a| operands.push(a));
            stack.extend(operands.drain(..).rev());
        }
    }
}

/// Calls `visit` with each direct child of a statement, in order.
pub fn for_each_child(data: &StmtData, mut visit: impl FnMut(Stmt)) {
    match data {
        StmtData::Seq(items) => items.iter().copied().for_each(visit),
        StmtData::For { body, .. }
        | StmtData::While(_, body)
        | StmtData::Let(_, _, body)
        | StmtData::Alloc(_, body)
        | StmtData::Assert(_, _, body) => visit(*body),
        StmtData::If(_, then, otherwise) => {
            visit(*then);
            otherwise.iter().copied().for_each(visit);
        }
        StmtData::Block(b) => {
            b.init.iter().copied().for_each(&mut visit);
            visit(b.body);
        }
        StmtData::Store { .. } | StmtData::Evaluate(_) => {}
    }
}

/// Calls `visit` with each expression that is directly in a statement, in order. The shapes, strides and offsets of buffers that
/// the statement allocates are not visited.
pub fn for_each_stmt_expr(data: &StmtData, mut visit: impl FnMut(Expr)) {
    match data {
        StmtData::Seq(_) | StmtData::Alloc(..) => {}
        StmtData::For { min, extent, .. } => {
            visit(*min);
            visit(*extent);
        }
        StmtData::While(e, _)
        | StmtData::If(e, _, _)
        | StmtData::Let(_, e, _)
        | StmtData::Evaluate(e)
        | StmtData::Assert(e, _, _) => visit(*e),
        StmtData::Store { indices, value, .. } => {
            indices.iter().copied().for_each(&mut visit);
            visit(*value);
        }
        StmtData::Block(b) => {
            for it in &b.iters {
                visit(it.min);
                visit(it.extent);
                visit(it.binding);
            }
            b.predicate.iter().copied().for_each(&mut visit);
            for r in b.reads.iter().chain(&b.writes).flatten() {
                for &(start, extent) in &r.region {
                    visit(start);
                    visit(extent);
                }
            }
        }
    }
}

/// Calls `visit` with a statement and all statements nested in it, in pre-order.
pub fn for_each_stmt(f: &PrimFunc, s: Stmt, mut visit: impl FnMut(Stmt)) {
    let mut stack = vec![s];
    let mut children = Vec::new();
    while let Some(s) = stack.pop() {
        visit(s);
        for_each_child(f.stmt(s), |c| children.push(c));
        stack.extend(children.drain(..).rev());
    }
}

/// Calls `visit` once with every expression in a statement.
pub fn for_each_expr_in(f: &PrimFunc, s: Stmt, mut visit: impl FnMut(Expr)) {
    let mut seen = FxHashSet::default();
    let mut stack = Vec::new();
    let mut operands = Vec::new();
    for_each_stmt(f, s, |s| {
        for_each_stmt_expr(f.stmt(s), |e| operands.push(e));
        stack.extend(operands.drain(..).rev());
        while let Some(e) = stack.pop() {
            if seen.insert(e) {
                visit(e);
                for_each_operand(f.expr(e), |a| operands.push(a));
                stack.extend(operands.drain(..).rev());
            }
        }
    });
}

/// The variables that a statement uses but does not define, in the order of the text.
pub fn free_vars(f: &PrimFunc, s: Stmt) -> Vec<Var> {
    let mut defined = FxHashSet::default();
    for_each_stmt(f, s, |s| match f.stmt(s) {
        StmtData::For { var, .. } | StmtData::Let(var, ..) => {
            defined.insert(*var);
        }
        StmtData::Block(b) => defined.extend(b.iters.iter().map(|it| it.var)),
        _ => {}
    });
    let mut out = Vec::new();
    for_each_expr_in(f, s, |e| {
        if let ExprData::Var(v) = f.expr(e)
            && defined.insert(*v)
        {
            out.push(*v);
        }
    });
    out
}

/// A transformation of the statements and expressions of a loop function. The default methods change nothing.
pub trait Rewriter {
    /// Returns the replacement for an expression whose operands have already been rewritten.
    fn expr(&mut self, _f: &mut PrimFunc, e: Expr) -> Expr {
        e
    }

    /// Processes a statement before its parts are rewritten. If the result is a statement, it replaces the original one, and the
    /// parts are not rewritten.
    fn enter(&mut self, _f: &mut PrimFunc, _s: Stmt) -> Option<Stmt> {
        None
    }

    /// Returns the replacement for a statement whose parts have already been rewritten.
    fn stmt(&mut self, _f: &mut PrimFunc, s: Stmt) -> Stmt {
        s
    }
}

/// Rewrites an expression and its subexpressions with `rw`.
pub fn rewrite_expr(f: &mut PrimFunc, e: Expr, rw: &mut dyn Rewriter) -> Expr {
    let mut list = Vec::new();
    for_each_expr(f, e, |e| list.push(e));
    list.sort();
    let mut done: FxHashMap<Expr, Expr> = FxHashMap::default();
    for e in list {
        let old = f.expr(e);
        let data = map_operands(old, |a| done[&a]);
        let new = if data == *old { e } else { f.add_expr(data) };
        let new = rw.expr(f, new);
        done.insert(e, new);
    }
    done[&e]
}

/// Rewrites a statement and its parts with `rw`. Returns the same id if nothing has changed, unless the statement contains blocks,
/// which are always copied. The shapes of allocated buffers are rewritten in place.
pub fn rewrite_stmt(f: &mut PrimFunc, s: Stmt, rw: &mut dyn Rewriter) -> Stmt {
    if let Some(new) = rw.enter(f, s) {
        return new;
    }
    let old = f.stmt(s).clone();
    let (new, changed) = match old {
        StmtData::Seq(items) => {
            let new: Vec<Stmt> = items.iter().map(|&s| rewrite_stmt(f, s, rw)).collect();
            let changed = new != items;
            (StmtData::Seq(new), changed)
        }
        StmtData::For { var, min, extent, kind, body, annotations } => {
            let (a, b) = (rewrite_expr(f, min, rw), rewrite_expr(f, extent, rw));
            let c = rewrite_stmt(f, body, rw);
            let changed = (a, b, c) != (min, extent, body);
            (StmtData::For { var, min: a, extent: b, kind, body: c, annotations }, changed)
        }
        StmtData::While(e, body) => {
            let (a, b) = (rewrite_expr(f, e, rw), rewrite_stmt(f, body, rw));
            (StmtData::While(a, b), (a, b) != (e, body))
        }
        StmtData::If(e, then, otherwise) => {
            let (a, b) = (rewrite_expr(f, e, rw), rewrite_stmt(f, then, rw));
            let c = otherwise.map(|s| rewrite_stmt(f, s, rw));
            (StmtData::If(a, b, c), (a, b, c) != (e, then, otherwise))
        }
        StmtData::Let(v, e, body) => {
            let (a, b) = (rewrite_expr(f, e, rw), rewrite_stmt(f, body, rw));
            (StmtData::Let(v, a, b), (a, b) != (e, body))
        }
        StmtData::Store { buffer, indices, value } => {
            let new: Box<[Expr]> = indices.iter().map(|&i| rewrite_expr(f, i, rw)).collect();
            let v = rewrite_expr(f, value, rw);
            let changed = v != value || new != indices;
            (StmtData::Store { buffer, indices: new, value: v }, changed)
        }
        StmtData::Alloc(b, body) => {
            rewrite_buffer(f, b, rw);
            let new = rewrite_stmt(f, body, rw);
            (StmtData::Alloc(b, new), new != body)
        }
        StmtData::Evaluate(e) => {
            let new = rewrite_expr(f, e, rw);
            (StmtData::Evaluate(new), new != e)
        }
        StmtData::Assert(e, message, body) => {
            let (a, b) = (rewrite_expr(f, e, rw), rewrite_stmt(f, body, rw));
            (StmtData::Assert(a, message, b), (a, b) != (e, body))
        }
        StmtData::Block(b) => {
            let new = rewrite_block(f, &b, rw);
            (StmtData::Block(Box::new(new)), true)
        }
    };
    let new = if changed { f.add_stmt(new) } else { s };
    rw.stmt(f, new)
}

fn rewrite_buffer(f: &mut PrimFunc, b: Buffer, rw: &mut dyn Rewriter) {
    let mut data = f.buffer(b).clone();
    for e in data.shape.iter_mut().chain(&mut data.strides).chain(&mut data.elem_offset) {
        *e = rewrite_expr(f, *e, rw);
    }
    *f.buffer_mut(b) = data;
}

fn rewrite_block(f: &mut PrimFunc, b: &BlockData, rw: &mut dyn Rewriter) -> BlockData {
    for &buffer in &b.allocs {
        rewrite_buffer(f, buffer, rw);
    }
    let mut map = |e: Expr| rewrite_expr(f, e, rw);
    let mut new = map_block_exprs(b, &mut map);
    new.init = b.init.map(|s| rewrite_stmt(f, s, rw));
    new.body = rewrite_stmt(f, b.body, rw);
    new
}

fn map_block_exprs(b: &BlockData, map: &mut dyn FnMut(Expr) -> Expr) -> BlockData {
    let mut regions = |regions: &Option<Vec<BufferRegion>>| {
        regions.as_ref().map(|list| {
            list.iter()
                .map(|r| BufferRegion {
                    buffer: r.buffer,
                    region: r.region.iter().map(|&(s, e)| (map(s), map(e))).collect(),
                })
                .collect()
        })
    };
    let (reads, writes) = (regions(&b.reads), regions(&b.writes));
    let iters = b.iters.iter().map(|it| IterVar {
        var: it.var,
        min: map(it.min),
        extent: map(it.extent),
        kind: it.kind,
        binding: map(it.binding),
    });
    BlockData {
        iters: iters.collect(),
        reads,
        writes,
        predicate: b.predicate.map(map),
        ..b.clone()
    }
}

/// A rewriter that substitutes expressions for variables.
struct Substitute<'a>(&'a FxHashMap<Var, Expr>);

impl Rewriter for Substitute<'_> {
    fn expr(&mut self, f: &mut PrimFunc, e: Expr) -> Expr {
        match f.expr(e) {
            ExprData::Var(v) => self.0.get(v).copied().unwrap_or(e),
            _ => e,
        }
    }
}

/// Substitutes expressions for variables in an expression.
pub fn substitute_expr(f: &mut PrimFunc, e: Expr, map: &FxHashMap<Var, Expr>) -> Expr {
    rewrite_expr(f, e, &mut Substitute(map))
}

/// Substitutes expressions for variables in a statement. Definitions of these variables inside the statement are not affected.
pub fn substitute(f: &mut PrimFunc, s: Stmt, map: &FxHashMap<Var, Expr>) -> Stmt {
    rewrite_stmt(f, s, &mut Substitute(map))
}

/// Copies parts of `src` into `dst`. Variables in [`vars`](Self::vars) and buffers in [`buffers`](Self::buffers) are
/// replaced by their entries. All other variables and buffers are copied, too.
pub struct TirImporter<'a> {
    /// The loop function from which parts are copied.
    pub src: &'a PrimFunc,
    /// The loop function into which parts are copied.
    pub dst: &'a mut PrimFunc,
    /// Maps variables of `src` to expressions of `dst`.
    pub vars: FxHashMap<Var, Expr>,
    /// Maps buffers of `src` to buffers of `dst`.
    pub buffers: FxHashMap<Buffer, Buffer>,
}

impl<'a> TirImporter<'a> {
    /// Creates an importer that makes no substitutions.
    pub fn new(src: &'a PrimFunc, dst: &'a mut PrimFunc) -> Self {
        TirImporter { src, dst, vars: FxHashMap::default(), buffers: FxHashMap::default() }
    }

    /// Copies a variable to `dst` and adds it to [`vars`](Self::vars).
    pub fn define(&mut self, v: Var) -> Var {
        let data = self.src.var(v);
        let new = self.dst.add_var(data.name.clone(), data.ty);
        let e = self.dst.var_expr(new);
        self.vars.insert(v, e);
        new
    }

    /// Copies an expression from `src` to `dst`.
    pub fn expr(&mut self, e: Expr) -> Expr {
        let src = self.src;
        let mut list = Vec::new();
        for_each_expr(src, e, |e| list.push(e));
        list.sort();
        let mut done: FxHashMap<Expr, Expr> = FxHashMap::default();
        for e in list {
            let new = match src.expr(e) {
                ExprData::Var(v) => match self.vars.get(v) {
                    Some(&e) => e,
                    None => {
                        let v = self.define(*v);
                        self.dst.var_expr(v)
                    }
                },
                data => {
                    let mut data = map_operands(data, |a| done[&a]);
                    if let ExprData::Load(b, _) = &mut data {
                        *b = self.buffer(*b);
                    }
                    self.dst.add_expr(data)
                }
            };
            done.insert(e, new);
        }
        done[&e]
    }

    /// Copies a buffer from `src` to `dst` when it is first used. Later uses return the same copy.
    pub fn buffer(&mut self, b: Buffer) -> Buffer {
        if let Some(&new) = self.buffers.get(&b) {
            return new;
        }
        let old = self.src.buffer(b);
        let data = BufferData {
            name: old.name.clone(),
            dtype: old.dtype,
            shape: old.shape.iter().map(|&e| self.expr(e)).collect(),
            strides: old.strides.iter().map(|&e| self.expr(e)).collect(),
            elem_offset: old.elem_offset.map(|e| self.expr(e)),
            scope: old.scope,
        };
        let new = self.dst.add_buffer(data);
        self.buffers.insert(b, new);
        new
    }

    /// Copies a statement from `src` to `dst`.
    pub fn stmt(&mut self, s: Stmt) -> Stmt {
        let src = self.src;
        let data = match src.stmt(s) {
            StmtData::Seq(items) => StmtData::Seq(items.iter().map(|&s| self.stmt(s)).collect()),
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let (min, extent) = (self.expr(*min), self.expr(*extent));
                let var = self.define(*var);
                let body = self.stmt(*body);
                StmtData::For {
                    var,
                    min,
                    extent,
                    kind: *kind,
                    body,
                    annotations: annotations.clone(),
                }
            }
            StmtData::While(e, body) => StmtData::While(self.expr(*e), self.stmt(*body)),
            StmtData::If(e, then, otherwise) => {
                StmtData::If(self.expr(*e), self.stmt(*then), otherwise.map(|s| self.stmt(s)))
            }
            StmtData::Let(v, e, body) => {
                let e = self.expr(*e);
                StmtData::Let(self.define(*v), e, self.stmt(*body))
            }
            StmtData::Store { buffer, indices, value } => StmtData::Store {
                buffer: self.buffer(*buffer),
                indices: indices.iter().map(|&i| self.expr(i)).collect(),
                value: self.expr(*value),
            },
            StmtData::Alloc(b, body) => {
                self.buffers.remove(b);
                StmtData::Alloc(self.buffer(*b), self.stmt(*body))
            }
            StmtData::Evaluate(e) => StmtData::Evaluate(self.expr(*e)),
            StmtData::Assert(e, message, body) => {
                StmtData::Assert(self.expr(*e), message.clone(), self.stmt(*body))
            }
            StmtData::Block(b) => StmtData::Block(Box::new(self.block(b))),
        };
        self.dst.add_stmt(data)
    }

    fn block(&mut self, b: &BlockData) -> BlockData {
        // Bindings are evaluated outside of the block, so they are imported before the axes are defined.
        let bindings: Vec<Expr> = b.iters.iter().map(|it| self.expr(it.binding)).collect();
        let allocs = b.allocs.iter().map(|&b| {
            self.buffers.remove(&b);
            self.buffer(b)
        });
        let allocs = allocs.collect();
        let vars: Vec<Var> = b.iters.iter().map(|it| self.define(it.var)).collect();
        let mut new = map_block_exprs(b, &mut |e| self.expr(e));
        for ((it, var), binding) in new.iters.iter_mut().zip(vars).zip(bindings) {
            it.var = var;
            it.binding = binding;
        }
        for r in new.reads.iter_mut().chain(&mut new.writes).flatten() {
            r.buffer = self.buffer(r.buffer);
        }
        new.allocs = allocs;
        new.init = b.init.map(|s| self.stmt(s));
        new.body = self.stmt(b.body);
        new
    }
}

/// Copies the parts of a loop function that are reachable from its parameters and its body.
pub fn copy_prim_func(src: &PrimFunc) -> PrimFunc {
    let mut dst = PrimFunc::new();
    dst.attrs = src.attrs.clone();
    dst.private = src.private;
    dst.span = src.span;
    let mut importer = TirImporter::new(src, &mut dst);
    let params: Vec<Var> = src.params.iter().map(|&p| importer.define(p)).collect();
    let mut map = Vec::new();
    for (old, &new) in src.params.iter().zip(&params) {
        if let Some(&b) = src.buffer_map.get(old) {
            map.push((new, importer.buffer(b)));
        }
    }
    let body = importer.stmt(src.body);
    dst.params = params;
    dst.buffer_map.extend(map);
    dst.body = body;
    dst
}
