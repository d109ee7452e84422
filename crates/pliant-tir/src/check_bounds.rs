//! CheckBounds: an index that cannot be proved to lie inside its buffer is asserted at run time, so
//! that no function reads or writes outside its buffers. A `T.Select` whose sides are only in bounds
//! where they are chosen becomes `T.if_then_else`, and so does a conjunction that guards an access.
//!
//! Proofs are about integers, machine words wrap. A fact is assumed, and an index proved, only where [`Fit`] shows
//! that no part of it overflows: int64 parameters and sizes are at most 2**40, which the entry of a kernel checks
//! (but of parameters that reach no index and no size: [`UNBOUNDED`]), and the dims of buffers are
//! computed with overflow checks there and where memory is allocated. What was loaded from memory has no bounds.
//! Everything else is asserted of the words that the machine has computed.

use std::sync::Arc;

use pliant_ir::AttrValue;
use pliant_ir::tir::sym::SymBridge;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, BlockData, Buffer, BufferData, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty,
    Var, VarTy,
};
use pliant_sym::{Analyzer, Facts, Sym, SymArena, SymKind};
use pliant_tensor::DType;
use pliant_tensor::Failed;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::LowerError;
use crate::fit::{Fact, Fit, Interval, SIZE_LIMIT};
use crate::schedule::reach;
use crate::walk::{for_each_stmt, map_operands, own_exprs, substitute_expr};

/// The attribute that lists the int64 parameters, by position, that may have any value: nothing here relies on their
/// bounds. It is always written here, never taken from a script.
pub const UNBOUNDED: &str = "tir.unbounded_params";

/// The int64 parameters that only go into values and conditions: no index and no size depends on them, so that no proof
/// needs their bounds. A condition over them is assumed only where its arithmetic fits 64 bits whatever they are
/// ([`Fact::exact`]).
fn unbounded_params(f: &PrimFunc) -> Vec<usize> {
    let mut bounded: FxHashSet<Var> = FxHashSet::default();
    let mut note = |e: Expr| {
        for_each_expr(f, e, |e| {
            if let ExprData::Var(v) = f.expr(e) {
                bounded.insert(*v);
            }
        });
    };
    let mut values = Vec::new();
    for_each_stmt(f, f.body, &mut |_, data| match data {
        StmtData::Store { indices, value, .. } => {
            indices.iter().for_each(|&i| note(i));
            values.push(*value);
        }
        StmtData::Evaluate(e) | StmtData::If(e, ..) => values.push(*e),
        _ => own_exprs(data, &mut note),
    });
    for value in values {
        for_each_expr(f, value, |e| {
            if let ExprData::Load(_, indices) = f.expr(e) {
                indices.iter().for_each(|&i| note(i));
            }
        });
    }
    for b in f.buffer_ids() {
        let data = f.buffer(b);
        data.shape.iter().chain(&data.strides).chain(&data.elem_offset).for_each(|&e| note(e));
    }
    let free = |p: &Var| f.var(*p).ty == VarTy::Value(Ty::I64) && !bounded.contains(p);
    f.params.iter().enumerate().filter(|(_, p)| free(p)).map(|(i, _)| i).collect()
}

/// The positions that [`UNBOUNDED`] lists; none where the checks were not made yet.
pub(crate) fn listed_unbounded(f: &PrimFunc) -> Vec<i64> {
    let Some(AttrValue::List(list)) = f.attrs.get(UNBOUNDED) else { return Vec::new() };
    let positions =
        list.iter().filter_map(|v| if let AttrValue::Int(i) = v { Some(*i) } else { None });
    positions.collect()
}

/// Inserts the checks.
///
/// # Errors
/// The size of an allocation depends on memory, which may change while the buffer lives.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let mut c = Checker {
        arena: SymArena::new(),
        bridge: SymBridge::new(),
        facts: Facts::new(),
        known: FxHashMap::default(),
        fit: Fit::default(),
        error: None,
    };
    let unbounded = unbounded_params(f);
    c.sizes(f, &unbounded);
    f.attrs.shift_remove(UNBOUNDED);
    if !unbounded.is_empty() {
        let list = unbounded.iter().map(|&i| AttrValue::Int(i as i64)).collect();
        f.attrs.insert(UNBOUNDED.into(), AttrValue::List(list));
    }
    let body = f.body;
    f.body = c.stmt(f, body);
    c.error.map_or(Ok(()), Err)
}

struct Checker {
    arena: SymArena,
    bridge: SymBridge,
    facts: Facts,
    /// Expressions that were found to be in bounds everywhere.
    known: FxHashMap<Expr, ()>,
    /// Which arithmetic cannot overflow here.
    fit: Fit,
    error: Option<LowerError>,
}

/// Conditions to assert before a statement, inner ones first.
type Checks = Vec<(Expr, Arc<str>)>;

impl Checker {
    /// Dims of parameters are sizes; int64 parameters are bounded.
    fn sizes(&mut self, f: &mut PrimFunc, unbounded: &[usize]) {
        let (zero, limit) = (self.arena.int(0), self.arena.int(SIZE_LIMIT));
        for (i, &p) in f.params.clone().iter().enumerate() {
            if f.var(p).ty == VarTy::Value(Ty::I64) && !unbounded.contains(&i) {
                self.fit.bound(p, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
            }
        }
        let buffers: Vec<Buffer> = f.buffer_map.values().copied().collect();
        for &b in &buffers {
            let data = f.buffer(b);
            data.shape.iter().for_each(|&d| self.fit.dim(f, d));
            data.strides.iter().for_each(|&s| self.fit.stride(f, s));
        }
        for &b in &buffers {
            for dim in f.buffer(b).shape.clone() {
                if let Some(s) = self.integer(f, dim) {
                    let (low, high) = (self.arena.le(zero, s), self.arena.le(s, limit));
                    // Each proof about its symbols takes account of a fact: what the form of a size says needs none, and that
                    // the least or greatest of several is at most 2**40 has never proved anything.
                    let known = Analyzer::new(&mut self.arena, &self.facts).const_int_bound(s);
                    if known.lo().is_none_or(|lo| lo < 0) {
                        self.facts.assume(&self.arena, low);
                    }
                    if !matches!(self.arena.kind(s), SymKind::Min(_) | SymKind::Max(_)) {
                        self.facts.assume(&self.arena, high);
                    }
                }
            }
        }
    }

    fn fact(&self, f: &PrimFunc, e: Expr) -> Fact {
        self.fit.fact(f, e, &|v| {
            let range = self.facts.range(self.bridge.known_sym(v)?);
            let (low, high) = (range.lo().unwrap_or(i64::MIN), range.hi().unwrap_or(i64::MAX));
            Some(Interval::new(low, high))
        })
    }

    /// The integer that an expression is whatever happens to memory; `None` where the machine may
    /// have another one.
    fn integer(&mut self, f: &PrimFunc, e: Expr) -> Option<Sym> {
        let fact = self.fact(f, e);
        if !fact.exact || !fact.pure {
            return None;
        }
        self.bridge.to_sym(f, &mut self.arena, e)
    }

    fn range(&mut self, f: &PrimFunc, var: Var, min: Expr, extent: Expr) {
        let VarTy::Value(ty) = f.var(var).ty else { return };
        let (low, turns) = (self.fact(f, min).range, self.fact(f, extent).range);
        // Where the end of the range wraps, the loop does.
        let end = Interval { lo: low.lo + turns.lo, hi: low.hi + turns.hi };
        if !Interval::of_type(ty.dtype).holds(end) {
            return;
        }
        self.fit.bound(var, Interval { lo: low.lo, hi: low.lo.max(end.hi - 1) });
        let v = self.bridge.sym_var(f, &mut self.arena, var);
        let v = self.arena.var(v);
        if let (Some(min), Some(extent)) = (self.integer(f, min), self.integer(f, extent)) {
            let low = self.arena.le(min, v);
            let end = self.arena.add(min, extent);
            let high = self.arena.lt(v, end);
            self.facts.assume(&self.arena, low);
            self.facts.assume(&self.arena, high);
        }
    }

    /// Assumes what a condition says, part by part. Memory may change while it is relied on, so
    /// parts over loads say nothing.
    fn assume(&mut self, f: &mut PrimFunc, condition: Expr, holds: bool) {
        match *f.expr(condition) {
            ExprData::Binary(BinOp::And, a, b) if holds => {
                self.assume(f, a, true);
                return self.assume(f, b, true);
            }
            ExprData::Binary(BinOp::Or, a, b) if !holds => {
                self.assume(f, a, false);
                return self.assume(f, b, false);
            }
            ExprData::Not(a) => return self.assume(f, a, !holds),
            ExprData::Call(Intrin::Explain | Intrin::Likely, ref args, _) if !args.is_empty() => {
                let condition = args[0];
                return self.assume(f, condition, holds);
            }
            _ => {}
        }
        if let Some(mut p) = self.integer(f, condition) {
            if !holds {
                p = self.arena.not(p);
            }
            self.facts.assume(&self.arena, p);
        }
    }

    /// A buffer whose memory is made here: its dims are computed with overflow checks.
    fn allocated(&mut self, f: &PrimFunc, b: Buffer) {
        let data = f.buffer(b);
        if !data.strides.is_empty() || data.elem_offset.is_some() {
            let message = format!("the allocated buffer '{}' has strides or an offset", data.name);
            self.error.get_or_insert(LowerError::new("CheckBounds", message));
        }
        for &dim in &f.buffer(b).shape {
            if !self.fact(f, dim).pure {
                let (dim, name) = (crate::text::expr(f, dim), &f.buffer(b).name);
                let message = format!("the size {dim} of the buffer '{name}' depends on memory");
                self.error.get_or_insert(LowerError::new("CheckBounds", message));
            }
            self.fit.dim(f, dim);
        }
    }

    fn scope<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let (facts, known, fit) = (self.facts.clone(), self.known.clone(), self.fit.clone());
        let out = run(self);
        (self.facts, self.known, self.fit) = (facts, known, fit);
        out
    }

    fn proves(&mut self, p: Sym) -> bool {
        Analyzer::new(&mut self.arena, &self.facts).prove(p).is_yes()
    }

    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        let mut checks = Vec::new();
        let new = match f.stmt(s).clone() {
            StmtData::Seq(list) => self.scope(|c| {
                let mut out = Vec::with_capacity(list.len());
                for s in list {
                    out.push(c.stmt(f, s));
                    c.checked(f, s);
                }
                StmtData::Seq(out)
            }),
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let (min, extent) =
                    (self.expr(f, min, &mut checks), self.expr(f, extent, &mut checks));
                let body = self.scope(|c| {
                    c.range(f, var, min, extent);
                    c.stmt(f, body)
                });
                StmtData::For { var, min, extent, kind, body, annotations }
            }
            StmtData::While(condition, body) => self.while_loop(f, condition, body, &mut checks),
            StmtData::If(condition, then, other) => {
                let condition = self.expr(f, condition, &mut checks);
                let then = self.scope(|c| {
                    c.assume(f, condition, true);
                    c.stmt(f, then)
                });
                let other = other.map(|other| {
                    self.scope(|c| {
                        c.assume(f, condition, false);
                        c.stmt(f, other)
                    })
                });
                StmtData::If(condition, then, other)
            }
            StmtData::Let(var, value, body) => {
                let value = self.expr(f, value, &mut checks);
                let body = self.scope(|c| {
                    c.bound(f, var, value);
                    c.stmt(f, body)
                });
                StmtData::Let(var, value, body)
            }
            StmtData::Store { buffer, indices, value } => {
                let indices: Box<[Expr]> =
                    indices.iter().map(|&i| self.expr(f, i, &mut checks)).collect();
                let value = self.expr(f, value, &mut checks);
                self.access(f, buffer, &indices, &mut checks);
                StmtData::Store { buffer, indices, value }
            }
            StmtData::Alloc(b, body) => {
                let body = self.scope(|c| {
                    c.allocated(f, b);
                    c.stmt(f, body)
                });
                StmtData::Alloc(b, body)
            }
            StmtData::Evaluate(e) => StmtData::Evaluate(self.expr(f, e, &mut checks)),
            StmtData::Assert(condition, message, body) => {
                let condition = self.expr(f, condition, &mut checks);
                let body = self.scope(|c| {
                    c.assume(f, condition, true);
                    c.stmt(f, body)
                });
                StmtData::Assert(condition, message, body)
            }
            StmtData::Block(b) => StmtData::Block(Box::new(self.block(f, *b, &mut checks))),
        };
        let s = f.add_stmt(new);
        wrap(f, s, checks)
    }

    fn while_loop(
        &mut self,
        f: &mut PrimFunc,
        condition: Expr,
        body: Stmt,
        checks: &mut Checks,
    ) -> StmtData {
        let condition = self.expr(f, condition, checks);
        let mut body = self.scope(|c| c.stmt(f, body));
        if !checks.is_empty() {
            // The condition is evaluated again after each turn.
            let empty = f.add_stmt(StmtData::Seq(Vec::new()));
            let again = wrap(f, empty, checks.clone());
            body = f.add_stmt(StmtData::Seq(vec![body, again]));
        }
        StmtData::While(condition, body)
    }

    /// Assumes that a variable has that value.
    fn bound(&mut self, f: &mut PrimFunc, var: Var, value: Expr) {
        let range = self.fact(f, value).range;
        self.fit.bound(var, range);
        if f.expr_ty(value) == Ty::I64
            && let Some(s) = self.integer(f, value)
        {
            let v = self.bridge.sym_var(f, &mut self.arena, var);
            let v = self.arena.var(v);
            let p = self.arena.eq(v, s);
            self.facts.assume(&self.arena, p);
        }
    }

    /// Assumes for what follows what a statement that only checks has checked.
    fn checked(&mut self, f: &mut PrimFunc, mut s: Stmt) {
        loop {
            s = match f.stmt(s).clone() {
                StmtData::Block(b) if b.iters.is_empty() && b.predicate.is_none() => b.body,
                StmtData::Assert(condition, _, body) => {
                    self.assume(f, condition, true);
                    body
                }
                _ => return,
            };
        }
    }

    fn block(&mut self, f: &mut PrimFunc, mut b: BlockData, checks: &mut Checks) -> BlockData {
        let map: FxHashMap<Var, Expr> = b.iters.iter().map(|i| (i.var, i.binding)).collect();
        self.scope(|c| {
            let predicate = b.predicate.map(|p| {
                let outer = substitute_expr(f, p, &map);
                let checked = c.expr(f, outer, checks);
                c.assume(f, outer, true);
                c.assume(f, p, true);
                if checked != outer {
                    b.predicate = Some(checked);
                }
                checked
            });
            for iter in &mut b.iters {
                let binding = c.expr(f, iter.binding, checks);
                iter.min = c.expr(f, iter.min, checks);
                iter.extent = c.expr(f, iter.extent, checks);
                let inside = c.inside(f, binding, iter.min, iter.extent);
                if let Some(inside) = inside {
                    let inside = under(f, predicate, inside);
                    let name = &f.var(iter.var).name;
                    let message = format!("axis {name} of block {} leaves its range", b.name);
                    checks.push((inside, Failed::Index.mark(&message).into()));
                }
                c.range(f, iter.var, iter.min, iter.extent);
            }
            b.allocs.iter().for_each(|&b| c.allocated(f, b));
            b.init = b.init.map(|s| c.stmt(f, s));
            b.body = c.stmt(f, b.body);
        });
        b
    }

    /// The condition that `min <= e < min + extent`, or `None` where it is proved.
    fn inside(&mut self, f: &mut PrimFunc, e: Expr, min: Expr, extent: Expr) -> Option<Expr> {
        let [x, lo, n] = [e, min, extent].map(|e| self.bridge.to_sym_opaque(f, &mut self.arena, e));
        let end = self.arena.add(lo, n);
        let (low, high) = (self.arena.le(lo, x), self.arena.lt(x, end));
        let (mut low, mut high) = (self.proves(low), self.proves(high));
        let [fact, start, turns] = [e, min, extent].map(|e| self.fact(f, e));
        let (a, b) = (start.range, turns.range);
        let last = Interval { lo: a.lo + b.lo, hi: a.hi + b.hi };
        let ends = start.exact && turns.exact && Interval::of_type(DType::Int64).holds(last);
        if !fact.exact {
            // Wrapped sums and products are the integer again where that fits, as both proofs say.
            let both = low && high && fact.ring;
            (low, high) = (both, both);
        }
        (low, high) = (low && ends, high && ends);
        if !(low && high) && ends && self.is_clamped(f, e, lo, end) {
            // Wherever it was before, it is inside if there is an inside at all.
            let some = self.arena.lt(lo, end);
            if self.proves(some) {
                return None;
            }
            let end = if f.as_int(min) == Some(0) { extent } else { f.add(min, extent) };
            return Some(f.binary(BinOp::Lt, min, end));
        }
        let as64 = |f: &mut PrimFunc, e: Expr| f.cast(e, Ty::I64);
        let (e, min, extent) = (as64(f, e), as64(f, min), as64(f, extent));
        let low = (!low).then(|| f.binary(BinOp::Le, min, e));
        let high = (!high).then(|| {
            let end = if f.as_int(min) == Some(0) { extent } else { f.add(min, extent) };
            f.binary(BinOp::Lt, e, end)
        });
        match (low, high) {
            (Some(a), Some(b)) => Some(f.binary(BinOp::And, a, b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether an expression is `max(min(_, end - 1), lo)`: as a machine word, it is never beyond either end of a range
    /// that has an element.
    fn is_clamped(&mut self, f: &PrimFunc, e: Expr, lo: Sym, end: Sym) -> bool {
        if f.expr_ty(e) != Ty::I64 {
            return false;
        }
        let one = self.arena.int(1);
        let last = self.arena.sub(end, one);
        let mut is = |e: Expr, want: Sym| {
            self.integer(f, e).is_some_and(|s| {
                let same = self.arena.eq(s, want);
                self.proves(same)
            })
        };
        let &ExprData::Binary(BinOp::Max, a, b) = f.expr(e) else { return false };
        [(a, b), (b, a)].into_iter().any(|(least, inner)| match *f.expr(inner) {
            ExprData::Binary(BinOp::Min, x, y) => is(least, lo) && (is(x, last) || is(y, last)),
            _ => false,
        })
    }

    /// Checks of the accesses inside an expression. Returns the expression, with selects made lazy
    /// where they must be.
    fn expr(&mut self, f: &mut PrimFunc, e: Expr, checks: &mut Checks) -> Expr {
        if self.known.contains_key(&e) {
            return e;
        }
        let before = checks.len();
        let new = match f.expr(e).clone() {
            ExprData::Load(buffer, _) => {
                let new = map_operands(f, e, |f, a| self.expr(f, a, checks));
                let ExprData::Load(_, indices) = f.expr(new).clone() else {
                    unreachable!("mapping operands keeps the kind");
                };
                self.access(f, buffer, &indices, checks);
                new
            }
            ExprData::Call(Intrin::IfThenElse, args, ty) if args.len() == 3 => {
                let c = self.expr(f, args[0], checks);
                let [a, b] = [(args[1], true), (args[2], false)].map(|(side, holds)| {
                    let (side, inner) = self.side(f, c, holds, side);
                    checks.extend(inner);
                    side
                });
                f.add_expr(ExprData::Call(Intrin::IfThenElse, [c, a, b].into(), ty))
            }
            ExprData::Select(c, a, b) => {
                let c = self.expr(f, c, checks);
                let mut plain = Vec::new();
                let sides = [a, b].map(|side| self.expr(f, side, &mut plain));
                if plain.is_empty() || f.expr_ty(c).lanes != 1 {
                    checks.extend(plain);
                    f.add_expr(ExprData::Select(c, sides[0], sides[1]))
                } else {
                    let [a, b] = [(a, true), (b, false)].map(|(side, holds)| {
                        let (side, inner) = self.side(f, c, holds, side);
                        checks.extend(inner);
                        side
                    });
                    f.add_expr(ExprData::Call(Intrin::IfThenElse, [c, a, b].into(), Ty::I64))
                }
            }
            ExprData::Binary(op @ (BinOp::And | BinOp::Or), a, b)
                if f.expr_ty(e).lanes == 1 && reads(f, b) =>
            {
                self.logic(f, op, a, b, checks)
            }
            ExprData::Call(intrin @ (Intrin::CallExtern | Intrin::CallPacked), ..) => {
                let new = map_operands(f, e, |f, a| self.argument(f, a, checks));
                if let (ExprData::Call(_, args, _), Intrin::CallExtern) =
                    (f.expr(new).clone(), intrin)
                {
                    self.call_extern(f, &args, checks);
                }
                new
            }
            _ => map_operands(f, e, |f, a| self.expr(f, a, checks)),
        };
        if checks.len() == before {
            self.known.insert(new, ());
        }
        new
    }

    /// A conjunction or disjunction whose second operand reads memory, perhaps only where the first one allows it.
    fn logic(
        &mut self,
        f: &mut PrimFunc,
        op: BinOp,
        a: Expr,
        b: Expr,
        checks: &mut Checks,
    ) -> Expr {
        let a = self.expr(f, a, checks);
        let (b, inner) = self.side(f, a, op == BinOp::And, b);
        if inner.is_empty() {
            return f.binary(op, a, b);
        }
        checks.extend(inner);
        let decided = f.add_expr(ExprData::Int(i64::from(op == BinOp::Or), Ty::BOOL));
        let (then, other) = if op == BinOp::And { (b, decided) } else { (decided, b) };
        f.call(Intrin::IfThenElse, &[a, then, other])
    }

    /// An argument of a call. Of an address only what it is computed from is read here: a whole buffer is handed over as
    /// the tensor that it is, which knows its bounds, and how far kernels reach from an address is checked for itself.
    fn argument(&mut self, f: &mut PrimFunc, a: Expr, checks: &mut Checks) -> Expr {
        if !matches!(f.expr(a), ExprData::Call(Intrin::AddressOf, ..)) {
            return self.expr(f, a, checks);
        }
        map_operands(f, a, |f, place| map_operands(f, place, |f, i| self.expr(f, i, checks)))
    }

    /// A call of a linked function: addresses may go to kernels of the library only, whose reach is checked.
    fn call_extern(&mut self, f: &mut PrimFunc, args: &[Expr], checks: &mut Checks) {
        let address =
            |f: &PrimFunc, e: Expr| matches!(f.expr(e), ExprData::Call(Intrin::AddressOf, ..));
        let kind = reach::kind(f, args);
        if kind.is_none() && !args.iter().any(|&a| address(f, a)) {
            return;
        }
        match reach::reach(f, args).zip(kind) {
            Some((inside, kind)) => {
                let message = format!("{kind} reaches outside its buffers");
                let message: Arc<str> = Failed::Index.mark(&message).into();
                checks.extend(inside.into_iter().map(|p| (p, message.clone())));
            }
            None => {
                let no = f.add_expr(ExprData::Int(0, Ty::BOOL));
                checks.push((no, "a linked function is not given the addresses it takes".into()));
            }
        }
    }

    /// One side of a choice: its checks hold only where it is chosen.
    fn side(&mut self, f: &mut PrimFunc, c: Expr, holds: bool, side: Expr) -> (Expr, Checks) {
        let mut inner = Vec::new();
        let side = self.scope(|this| {
            this.assume(f, c, holds);
            this.expr(f, side, &mut inner)
        });
        let chosen = if holds { c } else { f.add_expr(ExprData::Not(c)) };
        let inner = inner.into_iter().map(|(p, m)| (under(f, Some(chosen), p), m)).collect();
        (side, inner)
    }

    fn access(&mut self, f: &mut PrimFunc, buffer: Buffer, indices: &[Expr], checks: &mut Checks) {
        let data = f.buffer(buffer).clone();
        let zero = f.int(0);
        if let [i] = indices
            && !data.strides.is_empty()
            && (f.is_flat() || data.shape.len() != 1)
        {
            let (span, conditions) = span(f, &data);
            let message: Arc<str> = flat_message(&data.name);
            checks.extend(conditions.into_iter().map(|p| (p, message.clone())));
            self.check_index(f, *i, zero, span, message, checks);
        } else if indices.len() == data.shape.len() {
            for (dim, (&i, &n)) in indices.iter().zip(&data.shape).enumerate() {
                let message = || index_message(f, &data.name, dim, n);
                let message: Arc<str> = message().into();
                self.check_index(f, i, zero, n, message, checks);
            }
        } else if let [i] = indices {
            // A flat access: inside the whole buffer.
            let total = data.shape.iter().fold(f.int(1), |acc, &d| f.mul(acc, d));
            self.check_index(f, *i, zero, total, flat_message(&data.name), checks);
        }
    }

    fn check_index(
        &mut self,
        f: &mut PrimFunc,
        i: Expr,
        zero: Expr,
        n: Expr,
        message: Arc<str>,
        checks: &mut Checks,
    ) {
        let ends = match f.expr(i).clone() {
            // A vector is inside when its first and last lanes are.
            ExprData::Ramp(base, stride, lanes) => {
                let last = f.int(i64::from(lanes) - 1);
                let reach = f.mul(stride, last);
                vec![base, f.add(base, reach)]
            }
            _ => vec![i],
        };
        for e in ends {
            if let Some(inside) = self.inside(f, e, zero, n) {
                checks.push((inside, message.clone()));
            }
        }
    }
}

/// The elements from the first to the last of a strided buffer, and what must hold for that: it is
/// not empty, and no stride is negative.
fn span(f: &mut PrimFunc, data: &BufferData) -> (Expr, Vec<Expr>) {
    let (zero, one) = (f.int(0), f.int(1));
    let (mut span, mut conditions) = (one, Vec::new());
    for (&dim, &stride) in data.shape.iter().zip(&data.strides) {
        conditions.push(f.binary(BinOp::Le, one, dim));
        conditions.push(f.binary(BinOp::Le, zero, stride));
        let steps = f.binary(BinOp::Sub, dim, one);
        let reach = f.mul(steps, stride);
        span = f.add(span, reach);
    }
    (span, conditions)
}

/// Whether an expression reads memory.
fn reads(f: &PrimFunc, e: Expr) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(..)));
    found
}

fn index_message(f: &PrimFunc, name: &str, dim: usize, n: Expr) -> String {
    let n = crate::text::expr(f, n);
    Failed::Index.mark(&format!("index out of bounds: dim {dim} of '{name}' has {n} elements"))
}

fn flat_message(name: &str) -> Arc<str> {
    Failed::Index.mark(&format!("index out of bounds: flat access of '{name}'")).into()
}

/// `p` where `c` holds, else true; `p` is not evaluated where `c` does not hold.
fn under(f: &mut PrimFunc, c: Option<Expr>, p: Expr) -> Expr {
    let Some(c) = c else { return p };
    let yes = f.add_expr(ExprData::Int(1, Ty::BOOL));
    f.call(Intrin::IfThenElse, &[c, p, yes])
}

fn wrap(f: &mut PrimFunc, s: Stmt, checks: Checks) -> Stmt {
    let mut seen = rustc_hash::FxHashSet::default();
    let checks: Vec<_> = checks.into_iter().filter(|(p, _)| seen.insert(*p)).collect();
    checks.into_iter().rev().fold(s, |s, (p, m)| f.add_stmt(StmtData::Assert(p, m, s)))
}
