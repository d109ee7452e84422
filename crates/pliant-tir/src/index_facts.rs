//! Facts about the integers of a loop function at one point of it: ranges of variables and sizes, conditions that hold, and
//! arithmetic that cannot overflow.
//!
//! Proofs are about mathematical integers, but machine words wrap around. A fact is assumed, and an index proved, only
//! if [`Fit`] shows that no part of it overflows. int64 parameters and sizes are at most 2**40, which the entry of a
//! loop function checks (except for parameters that no index and no size depends on). The dims of buffers are computed
//! with overflow checks there and where memory is allocated. Values loaded from memory have no bounds.

use pliant_ir::tir::sym::SymBridge;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc, Ty, Var, VarTy};
use pliant_sym::{Analyzer, Facts, Sym, SymArena, SymKind};
use pliant_tensor::DType;

use crate::fit::{Fact, Fit, Interval, SIZE_LIMIT};

/// The facts, and the prover over them.
pub(crate) struct IndexFacts {
    arena: SymArena,
    bridge: SymBridge,
    facts: Facts,
    /// Which arithmetic cannot overflow.
    fit: Fit,
}

/// A snapshot of the facts, to restore them later.
#[derive(Clone)]
pub(crate) struct Mark {
    facts: Facts,
    fit: Fit,
}

impl IndexFacts {
    /// The facts at the entry of a function. `unbounded` lists the int64 parameters that may have any value, by position.
    pub fn at_entry(f: &PrimFunc, unbounded: &[usize]) -> IndexFacts {
        let (arena, bridge) = (SymArena::new(), SymBridge::new());
        let mut known = IndexFacts { arena, bridge, facts: Facts::new(), fit: Fit::default() };
        known.sizes(f, unbounded);
        known
    }

    /// A snapshot, taken before facts of an inner scope are added.
    pub fn mark(&self) -> Mark {
        Mark { facts: self.facts.clone(), fit: self.fit.clone() }
    }

    /// Drops the facts that were added after a snapshot.
    pub fn reset(&mut self, mark: Mark) {
        (self.facts, self.fit) = (mark.facts, mark.fit);
    }

    /// Assumes that the dims of parameters are sizes, and that int64 parameters are bounded.
    fn sizes(&mut self, f: &PrimFunc, unbounded: &[usize]) {
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
                    // Each fact slows down proofs about its symbols. A lower bound that follows from the size's own
                    // form is redundant, and an upper bound of a minimum or maximum has never proved anything.
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

    /// The overflow analysis' facts about the machine value of an expression.
    pub fn fact(&self, f: &PrimFunc, e: Expr) -> Fact {
        self.fit.fact(f, e, &|v| {
            let range = self.facts.range(self.bridge.known_sym(v)?);
            let (low, high) = (range.lo().unwrap_or(i64::MIN), range.hi().unwrap_or(i64::MAX));
            Some(Interval::new(low, high))
        })
    }

    /// An expression as a symbolic integer; `None` if it reads memory or may overflow.
    fn integer(&mut self, f: &PrimFunc, e: Expr) -> Option<Sym> {
        let fact = self.fact(f, e);
        if !fact.exact || !fact.pure {
            return None;
        }
        self.bridge.to_sym(f, &mut self.arena, e)
    }

    /// Assumes that a loop variable or axis runs over `min..min + extent`.
    pub fn range(&mut self, f: &PrimFunc, var: Var, min: Expr, extent: Expr) {
        let VarTy::Value(ty) = f.var(var).ty else { return };
        let (low, turns) = (self.fact(f, min).range, self.fact(f, extent).range);
        // If the end of the range wraps around, so may the loop variable.
        let end = Interval { lo: low.lo + turns.lo, hi: low.hi + turns.hi };
        if !Interval::of_type(ty.dtype).holds(end) {
            return;
        }
        self.fit.bound(var, Interval { lo: low.lo, hi: low.lo.max(end.hi - 1) });
        let v = self.bridge.sym_var(f, &mut self.arena, var);
        let v = self.arena.var(v);
        let Some(min) = self.integer(f, min) else { return };
        let low = self.arena.le(min, v);
        self.facts.assume(&self.arena, low);
        for extent in upper_bounds(f, extent) {
            let Some(extent) = self.integer(f, extent) else { continue };
            let end = self.arena.add(min, extent);
            let high = self.arena.lt(v, end);
            self.facts.assume(&self.arena, high);
        }
    }

    /// Assumes that a condition holds, or that it does not, term by term. Terms that read memory are skipped, since the memory may
    /// change later.
    pub fn assume(&mut self, f: &PrimFunc, condition: Expr, holds: bool) {
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

    /// Assumes that a variable equals a value. If the value reads memory, only its sign is assumed: the variable is non-negative if
    /// the range of the value is.
    pub fn bound(&mut self, f: &PrimFunc, var: Var, value: Expr) {
        let range = self.fact(f, value).range;
        self.fit.bound(var, range);
        if f.expr_ty(value) != Ty::I64 {
            return;
        }
        let v = self.bridge.sym_var(f, &mut self.arena, var);
        let v = self.arena.var(v);
        if let Some(s) = self.integer(f, value) {
            let p = self.arena.eq(v, s);
            self.facts.assume(&self.arena, p);
        } else if range.lo >= 0 {
            let zero = self.arena.int(0);
            let p = self.arena.le(zero, v);
            self.facts.assume(&self.arena, p);
        }
    }

    fn proves(&mut self, p: Sym) -> bool {
        Analyzer::new(&mut self.arena, &self.facts).prove(p).is_yes()
    }

    /// The condition that `min <= e < min + extent`, or `None` if it is proved.
    pub fn inside(&mut self, f: &mut PrimFunc, e: Expr, min: Expr, extent: Expr) -> Option<Expr> {
        let [x, lo, n] = [e, min, extent].map(|e| self.bridge.to_sym_opaque(f, &mut self.arena, e));
        let end = self.arena.add(lo, n);
        let (low, high) = (self.arena.le(lo, x), self.arena.lt(x, end));
        let (mut low, mut high) = (self.proves(low), self.proves(high));
        let [fact, start, turns] = [e, min, extent].map(|e| self.fact(f, e));
        let (a, b) = (start.range, turns.range);
        let last = Interval { lo: a.lo + b.lo, hi: a.hi + b.hi };
        let ends = start.exact && turns.exact && Interval::of_type(DType::Int64).holds(last);
        if !fact.exact {
            // Wrapped sums and products equal the exact result if that fits a word, which follows from both proofs.
            let both = low && high && fact.ring;
            (low, high) = (both, both);
        }
        (low, high) = (low && ends, high && ends);
        if !(low && high) && ends && self.is_clamped(f, e, lo, end) {
            // A clamped index is inside if the range is not empty.
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

    /// Whether an expression is `max(min(_, end - 1), lo)`: even if its operand wraps around, it is inside of a range
    /// that is not empty.
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

    /// Assumes that the arithmetic of an allocated buffer's dims does not overflow: otherwise the allocation fails.
    pub fn allocated(&mut self, f: &PrimFunc, buffer: Buffer) {
        f.buffer(buffer).shape.iter().for_each(|&dim| self.fit.dim(f, dim));
    }

    /// Whether two int64 expressions have the same value, also as machine words.
    pub fn equal(&mut self, f: &PrimFunc, a: Expr, b: Expr) -> bool {
        self.integer(f, a).is_some_and(|a| self.integer(f, b) == Some(a))
    }

    /// Whether an int64 expression is proved to be non-negative.
    pub fn never_negative(&mut self, f: &PrimFunc, e: Expr) -> bool {
        if self.fact(f, e).range.lo >= 0 {
            return true;
        }
        let Some(s) = self.integer(f, e) else { return false };
        let zero = self.arena.int(0);
        let low = self.arena.le(zero, s);
        self.proves(low)
    }
}

/// Expressions that are at least as large as an extent if it is positive, which it is inside of its loop: the operands of the
/// minimum in `max(min(a, b), 0)`.
fn upper_bounds(f: &PrimFunc, extent: Expr) -> Vec<Expr> {
    match *f.expr(extent) {
        ExprData::Binary(BinOp::Max, a, b) if f.as_int(b) == Some(0) => upper_bounds(f, a),
        ExprData::Binary(BinOp::Max, a, b) if f.as_int(a) == Some(0) => upper_bounds(f, b),
        ExprData::Binary(BinOp::Min, a, b) => [upper_bounds(f, a), upper_bounds(f, b)].concat(),
        _ => vec![extent],
    }
}
