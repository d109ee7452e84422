//! Facts about the integers at one point of a loop function, from which accesses are proved to be in bounds: ranges of variables
//! and sizes, conditions that hold, and arithmetic that cannot overflow.
//!
//! Proofs are about mathematical integers, but machine arithmetic wraps around. Therefore a fact is assumed, and an index proved,
//! only if [`OverflowAnalysis`] shows that no part of it overflows. The entry of a loop function checks that sizes and int64
//! parameters are at most 2**40, except for parameters on which no index and no size depends. The dims of parameters and of
//! allocated buffers are computed with overflow checks. Values that are loaded from memory have no bounds.

use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc, Ty, Var, VarTy};
use pliant_sym::{Analyzer, Facts, Sym, SymArena, SymKind};
use pliant_tensor::DType;

use crate::overflow_analysis::{Fact, Interval, OverflowAnalysis, SIZE_LIMIT};

/// What is known about integers at one point of a loop function, such as ranges of variables and conditions that hold, and a prover
/// that uses these facts.
pub(crate) struct IndexFacts {
    arena: SymArena,
    bridge: SymBridge,
    facts: Facts,
    /// The overflow analysis, which finds arithmetic that cannot overflow.
    overflow: OverflowAnalysis,
}

/// A snapshot of the facts that [`IndexFacts`] contains, to restore them later.
#[derive(Clone)]
pub(crate) struct Snapshot {
    facts: Facts,
    overflow: OverflowAnalysis,
}

impl IndexFacts {
    /// Returns the facts at the entry of a function. `unbounded` lists the positions of int64 parameters that may have any value.
    pub fn at_entry(f: &PrimFunc, unbounded: &[usize]) -> IndexFacts {
        let (arena, bridge) = (SymArena::new(), SymBridge::new());
        let overflow = OverflowAnalysis::default();
        let mut facts = IndexFacts { arena, bridge, facts: Facts::new(), overflow };
        facts.assume_sizes(f, unbounded);
        facts
    }

    /// Returns a snapshot of the facts, to be taken before the facts of an inner scope are added.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { facts: self.facts.clone(), overflow: self.overflow.clone() }
    }

    /// Drops the facts that were added after a snapshot.
    pub fn restore(&mut self, snapshot: Snapshot) {
        (self.facts, self.overflow) = (snapshot.facts, snapshot.overflow);
    }

    /// Assumes the bounds that the function checks on entry: bounds of the dims of its parameters, and of int64 parameters that
    /// are not in `unbounded`.
    fn assume_sizes(&mut self, f: &PrimFunc, unbounded: &[usize]) {
        let (zero, limit) = (self.arena.int(0), self.arena.int(SIZE_LIMIT));
        for (i, &p) in f.params.clone().iter().enumerate() {
            if f.var(p).ty == VarTy::Value(Ty::I64) && !unbounded.contains(&i) {
                self.overflow.assume_range(p, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
            }
        }
        let buffers: Vec<Buffer> = f.buffer_map.values().copied().collect();
        for &b in &buffers {
            let data = f.buffer(b);
            data.shape.iter().for_each(|&d| self.overflow.assume_dim(f, d));
            data.strides.iter().for_each(|&s| self.overflow.assume_stride(f, s));
        }
        for &b in &buffers {
            for dim in f.buffer(b).shape.clone() {
                if let Some(s) = self.exact_sym(f, dim) {
                    let (low, high) = (self.arena.le(zero, s), self.arena.le(s, limit));
                    // Each fact slows down proofs about its symbols. A lower bound that follows from the form of the size is
                    // redundant, and upper bounds of minima and maxima have not helped in any proof.
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

    /// Returns what the overflow analysis knows about an expression: its range, and whether its arithmetic can overflow.
    pub fn fact(&self, f: &PrimFunc, e: Expr) -> Fact {
        self.overflow.fact(f, e, &|v| {
            let range = self.facts.range(self.bridge.known_sym(v)?);
            let (low, high) = (range.lo().unwrap_or(i64::MIN), range.hi().unwrap_or(i64::MAX));
            Some(Interval::new(low, high))
        })
    }

    /// Converts an expression to a symbolic integer; `None` if it reads memory or may overflow.
    fn exact_sym(&mut self, f: &PrimFunc, e: Expr) -> Option<Sym> {
        let fact = self.fact(f, e);
        if !fact.exact || !fact.pure {
            return None;
        }
        self.bridge.to_sym(f, &mut self.arena, e)
    }

    /// Assumes that a loop variable or axis runs over `min..min + extent`.
    pub fn assume_range(&mut self, f: &PrimFunc, var: Var, min: Expr, extent: Expr) {
        let VarTy::Value(ty) = f.var(var).ty else { return };
        let (low, iterations) = (self.fact(f, min).range, self.fact(f, extent).range);
        // If the end of the range wraps around, so may the loop variable.
        let end = Interval { lo: low.lo + iterations.lo, hi: low.hi + iterations.hi };
        if !Interval::of_type(ty.dtype).contains(end) {
            return;
        }
        self.overflow.assume_range(var, Interval { lo: low.lo, hi: low.lo.max(end.hi - 1) });
        let v = self.bridge.sym_var(f, &mut self.arena, var);
        let v = self.arena.var(v);
        let Some(min) = self.exact_sym(f, min) else { return };
        let low = self.arena.le(min, v);
        self.facts.assume(&self.arena, low);
        for extent in upper_bounds(f, extent) {
            let Some(extent) = self.exact_sym(f, extent) else { continue };
            let end = self.arena.add(min, extent);
            let high = self.arena.lt(v, end);
            self.facts.assume(&self.arena, high);
        }
    }

    /// Assumes that a condition is true (`holds`) or false. Conjunctions are assumed operand by operand. Operands that read
    /// memory are skipped, because the memory may change later.
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
        if let Some(mut p) = self.exact_sym(f, condition) {
            if !holds {
                p = self.arena.not(p);
            }
            self.facts.assume(&self.arena, p);
        }
    }

    /// Assumes that a variable equals a value. If the value reads memory or may overflow, only its range is assumed.
    pub fn assume_binding(&mut self, f: &PrimFunc, var: Var, value: Expr) {
        let range = self.fact(f, value).range;
        self.overflow.assume_range(var, range);
        if f.expr_ty(value) != Ty::I64 {
            return;
        }
        let v = self.bridge.sym_var(f, &mut self.arena, var);
        let v = self.arena.var(v);
        if let Some(s) = self.exact_sym(f, value) {
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

    /// Returns the parts of the condition `min <= e < min + extent` that are not proved; `None` if the whole condition is proved.
    pub fn range_check(
        &mut self,
        f: &mut PrimFunc,
        e: Expr,
        min: Expr,
        extent: Expr,
    ) -> Option<Expr> {
        let [x, lo, n] = [e, min, extent].map(|e| self.bridge.to_sym_opaque(f, &mut self.arena, e));
        let end = self.arena.add(lo, n);
        let (low, high) = (self.arena.le(lo, x), self.arena.lt(x, end));
        let (mut low, mut high) = (self.proves(low), self.proves(high));
        let [fact, start, iterations] = [e, min, extent].map(|e| self.fact(f, e));
        let (a, b) = (start.range, iterations.range);
        let last = Interval { lo: a.lo + b.lo, hi: a.hi + b.hi };
        let ends =
            start.exact && iterations.exact && Interval::of_type(DType::Int64).contains(last);
        if !fact.exact {
            // A wrapped sum or product equals the exact result if that fits 64 bits, which follows from both proofs.
            let both = low && high && fact.congruent;
            (low, high) = (both, both);
        }
        (low, high) = (low && ends, high && ends);
        if !(low && high) && ends && self.is_clamped(f, e, lo, end) {
            // A clamped index is in the range if the range is not empty.
            let not_empty = self.arena.lt(lo, end);
            if self.proves(not_empty) {
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

    /// Whether an expression has the form `max(min(_, end - 1), lo)`. If the range `lo..end` is not empty, such an expression is
    /// in it, even if its operand wraps around.
    fn is_clamped(&mut self, f: &PrimFunc, e: Expr, lo: Sym, end: Sym) -> bool {
        if f.expr_ty(e) != Ty::I64 {
            return false;
        }
        let one = self.arena.int(1);
        let last = self.arena.sub(end, one);
        let mut equals = |e: Expr, want: Sym| {
            self.exact_sym(f, e).is_some_and(|s| {
                let same = self.arena.eq(s, want);
                self.proves(same)
            })
        };
        let &ExprData::Binary(BinOp::Max, a, b) = f.expr(e) else { return false };
        [(a, b), (b, a)].into_iter().any(|(least, inner)| match *f.expr(inner) {
            ExprData::Binary(BinOp::Min, x, y) => {
                equals(least, lo) && (equals(x, last) || equals(y, last))
            }
            _ => false,
        })
    }

    /// Assumes that the arithmetic in the dims of an allocated buffer does not overflow, because the allocation fails otherwise.
    pub fn assume_allocation(&mut self, f: &PrimFunc, buffer: Buffer) {
        f.buffer(buffer).shape.iter().for_each(|&dim| self.overflow.assume_dim(f, dim));
    }

    /// Whether two int64 expressions are proved to have the same machine value.
    pub fn equal(&mut self, f: &PrimFunc, a: Expr, b: Expr) -> bool {
        self.exact_sym(f, a).is_some_and(|a| self.exact_sym(f, b) == Some(a))
    }

    /// Whether an int64 expression is proved to be non-negative.
    pub fn is_non_negative(&mut self, f: &PrimFunc, e: Expr) -> bool {
        if self.fact(f, e).range.lo >= 0 {
            return true;
        }
        let Some(s) = self.exact_sym(f, e) else { return false };
        let zero = self.arena.int(0);
        let low = self.arena.le(zero, s);
        self.proves(low)
    }
}

/// Returns upper bounds of a loop extent that hold inside the loop, where the extent is positive. For `max(min(a, b), 0)`, these
/// are `a` and `b`.
fn upper_bounds(f: &PrimFunc, extent: Expr) -> Vec<Expr> {
    match *f.expr(extent) {
        ExprData::Binary(BinOp::Max, a, b) if f.as_int(b) == Some(0) => upper_bounds(f, a),
        ExprData::Binary(BinOp::Max, a, b) if f.as_int(a) == Some(0) => upper_bounds(f, b),
        ExprData::Binary(BinOp::Min, a, b) => [upper_bounds(f, a), upper_bounds(f, b)].concat(),
        _ => vec![extent],
    }
}
