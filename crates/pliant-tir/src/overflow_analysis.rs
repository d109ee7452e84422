//! Overflow analysis: finds integer arithmetic that provably does not overflow. Proofs about mathematical integers hold for the
//! machine values of such arithmetic.

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Ty, Var, VarTy};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

/// Maximum magnitude of sizes, dims, and those int64 parameters on which an index or a size depends. Loop functions check this
/// limit on entry, and every allocation checks it.
pub const SIZE_LIMIT: i64 = 1 << 40;

/// The integers from `lo` to `hi`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least integer of the interval.
    pub lo: i128,
    /// The greatest integer of the interval.
    pub hi: i128,
}

impl Interval {
    /// Returns the interval of the integers from `lo` to `hi`, both included.
    pub fn new(lo: impl Into<i128>, hi: impl Into<i128>) -> Self {
        Interval { lo: lo.into(), hi: hi.into() }
    }

    /// Returns the range of an integer type or bool. For other types, returns an interval that contains the ranges of all integer
    /// types.
    pub fn of_type(dtype: DType) -> Self {
        let bits = (dtype.size() * 8) as u32;
        match dtype {
            DType::Bool => Interval::new(0, 1),
            d if d.is_int() => Interval::new(-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            d if d.is_uint() => Interval::new(0, (1i128 << bits) - 1),
            _ => Interval::new(i64::MIN, u64::MAX),
        }
    }

    /// Whether the interval contains all integers of the interval `other`.
    pub fn contains(self, other: Interval) -> bool {
        self.lo <= other.lo && other.hi <= self.hi
    }

    /// Returns the intersection of two intervals; `self` if the intersection is empty.
    fn intersect(self, other: Interval) -> Interval {
        let common = Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) };
        // Contradictory bounds occur only in code that never runs.
        if common.lo <= common.hi { common } else { self }
    }

    /// Returns the smallest interval that contains both intervals.
    fn union(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Returns the smallest interval that contains the results of `op` for all four combinations of the ends of two intervals.
    fn over_corners(self, other: Interval, op: impl Fn(i128, i128) -> i128) -> Interval {
        let all = [
            op(self.lo, other.lo),
            op(self.lo, other.hi),
            op(self.hi, other.lo),
            op(self.hi, other.hi),
        ];
        let (first, rest) = (all[0], &all[1..]);
        rest.iter().fold(Interval::new(first, first), |i, &v| i.union(Interval::new(v, v)))
    }
}

/// The range of the value of an expression, and whether its arithmetic is exact.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// An interval that contains the machine value of the expression.
    pub range: Interval,
    /// Whether the machine value equals the mathematical value. Values that are not computed by arithmetic, such as loads, are
    /// exact.
    pub exact: bool,
    /// Whether the expression depends only on variables, so its value stays the same as long as the variables do.
    pub pure: bool,
    /// Whether the mathematical value and the machine value are congruent modulo 2**64. This holds for 64-bit sums, differences
    /// and products of exact operands.
    pub congruent: bool,
}

/// Determines the ranges of expressions, and whether their arithmetic can overflow, at one point of a function.
/// Contains the known ranges of variables, and the terms that are evaluated with overflow checks.
#[derive(Clone, Debug, Default)]
pub struct OverflowAnalysis {
    vars: FxHashMap<Var, Interval>,
    checked_ranges: FxHashMap<Expr, Interval>,
}

impl OverflowAnalysis {
    /// Assumes that a variable is in a range.
    pub fn assume_range(&mut self, var: Var, range: Interval) {
        let range = self.vars.get(&var).map_or(range, |old| old.intersect(range));
        self.vars.insert(var, range);
    }

    /// Assumes that a dim is between 0 and [`SIZE_LIMIT`], and that none of its sums and products overflows. The code that
    /// creates the buffer checks this.
    pub fn assume_dim(&mut self, f: &PrimFunc, dim: Expr) {
        self.assume_size(f, dim, Interval::new(0, SIZE_LIMIT));
    }

    /// Assumes that the magnitude of a stride is at most [`SIZE_LIMIT`], and that none of its sums and products overflows. Unlike
    /// a dim ([`OverflowAnalysis::assume_dim`]), a stride may be negative.
    pub fn assume_stride(&mut self, f: &PrimFunc, stride: Expr) {
        self.assume_size(f, stride, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
    }

    fn assume_size(&mut self, f: &PrimFunc, e: Expr, range: Interval) {
        if f.expr_ty(e) != Ty::I64 {
            return;
        }
        if let ExprData::Var(v) = f.expr(e) {
            return self.assume_range(*v, range);
        }
        checked_terms(f, e, &mut |term| {
            self.checked_ranges.entry(term).or_insert(Interval::of_type(DType::Int64));
        });
        let known = self.checked_ranges.get(&e).map_or(range, |old| old.intersect(range));
        self.checked_ranges.insert(e, known);
    }

    /// Returns the range and exactness of an expression. `extra` returns additional bounds of a variable.
    pub fn fact(&self, f: &PrimFunc, e: Expr, extra: &dyn Fn(Var) -> Option<Interval>) -> Fact {
        self.memoized_fact(f, e, extra, &mut FxHashMap::default())
    }

    fn memoized_fact(
        &self,
        f: &PrimFunc,
        e: Expr,
        extra: &dyn Fn(Var) -> Option<Interval>,
        memo: &mut FxHashMap<Expr, Fact>,
    ) -> Fact {
        if let Some(&known) = memo.get(&e) {
            return known;
        }
        let ty = f.expr_ty(e);
        let all = Interval::of_type(ty.dtype);
        let opaque = Fact { range: all, exact: true, pure: false, congruent: true };
        let mut of = |e: Expr| self.memoized_fact(f, e, extra, memo);
        let symbolic = ty.lanes == 1 && (ty.dtype.is_int() || ty.dtype.is_bool());
        let fact = match f.expr(e) {
            _ if !symbolic => opaque,
            ExprData::Int(v, _) => Fact { range: Interval::new(*v, *v), pure: true, ..opaque },
            ExprData::Var(v) => match f.var(*v).ty {
                VarTy::Value(_) => {
                    let known = self.vars.get(v).map_or(all, |k| all.intersect(*k));
                    let range = extra(*v).map_or(known, |k| known.intersect(k));
                    Fact { range, pure: true, ..opaque }
                }
                VarTy::Handle => opaque,
            },
            ExprData::Cast(to, a) => {
                if to.dtype.holds_all_of(f.expr_ty(*a).dtype) {
                    let a = of(*a);
                    Fact { congruent: a.exact, ..a }
                } else {
                    opaque
                }
            }
            ExprData::Binary(op, a, b) => {
                let operand_dtype = f.expr_ty(*a).dtype;
                let (a, b) = (of(*a), of(*b));
                self.binary_fact(e, *op, operand_dtype, ty, a, b)
            }
            ExprData::Not(a) => {
                let a = of(*a);
                Fact { range: all, congruent: a.exact, ..a }
            }
            ExprData::Select(c, a, b) => conditional_fact(of(*c), of(*a), of(*b)),
            ExprData::Call(Intrin::IfThenElse, args, _) if args.len() == 3 => {
                conditional_fact(of(args[0]), of(args[1]), of(args[2]))
            }
            ExprData::Call(Intrin::Likely, args, _) if args.len() == 1 => of(args[0]),
            ExprData::Call(Intrin::Explain, args, _) if !args.is_empty() => of(args[0]),
            _ => opaque,
        };
        memo.insert(e, fact);
        fact
    }

    fn binary_fact(
        &self,
        e: Expr,
        op: BinOp,
        operand_dtype: DType,
        ty: Ty,
        a: Fact,
        b: Fact,
    ) -> Fact {
        let all = Interval::of_type(ty.dtype);
        let (x, y) = (a.range, b.range);
        let exact_operands = a.exact && b.exact;
        let pure = a.pure && b.pure;
        let range = match op {
            BinOp::Add => Interval { lo: x.lo + y.lo, hi: x.hi + y.hi },
            BinOp::Sub => Interval { lo: x.lo - y.hi, hi: x.hi - y.lo },
            BinOp::Mul => x.over_corners(y, |a, b| a * b),
            BinOp::Min => Interval { lo: x.lo.min(y.lo), hi: x.hi.min(y.hi) },
            BinOp::Max => Interval { lo: x.lo.max(y.lo), hi: x.hi.max(y.hi) },
            // A divisor of 0 makes the loop function fail, so only divisors of at least 1 matter.
            BinOp::FloorDiv if y.lo >= 0 => {
                let y = Interval { lo: y.lo.max(1), hi: y.hi.max(1) };
                x.over_corners(y, i128::div_euclid)
            }
            BinOp::FloorMod if y.lo >= 0 => {
                let hi = (y.hi - 1).max(0);
                Interval::new(0, if x.lo >= 0 { x.hi.min(hi) } else { hi })
            }
            // The quotient of the smallest integer and -1 overflows.
            BinOp::FloorDiv | BinOp::FloorMod => {
                return Fact { range: all, exact: false, pure, congruent: false };
            }
            BinOp::Div | BinOp::Mod => {
                return Fact { range: all, exact: true, pure: false, congruent: true };
            }
            _ => {
                let exact = exact_operands && (operand_dtype.is_int() || operand_dtype.is_bool());
                return Fact { range: all, exact, pure, congruent: exact };
            }
        };
        let arithmetic = matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul);
        let checked_range = self.checked_ranges.get(&e);
        let exact = exact_operands && (all.contains(range) || checked_range.is_some());
        // Only sums, differences and products wrap around. The range of other operators is correct even for inexact operands.
        let range = if exact || !arithmetic { all.intersect(range) } else { all };
        let range = checked_range.map_or(range, |known| range.intersect(*known));
        let congruent = exact || (arithmetic && ty == Ty::I64 && a.congruent && b.congruent);
        Fact { range, exact, pure, congruent }
    }
}

fn conditional_fact(c: Fact, a: Fact, b: Fact) -> Fact {
    let exact = c.exact && a.exact && b.exact;
    Fact {
        range: a.range.union(b.range),
        exact,
        pure: c.pure && a.pure && b.pure,
        congruent: exact,
    }
}

/// Calls `visit` with all int64 sums, differences and products in a size. Generated code checks them for overflow where it
/// evaluates the size.
pub fn checked_terms(f: &PrimFunc, e: Expr, visit: &mut dyn FnMut(Expr)) {
    if let ExprData::Binary(op, a, b) = *f.expr(e) {
        checked_terms(f, a, visit);
        checked_terms(f, b, visit);
        if matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul) && f.expr_ty(e) == Ty::I64 {
            visit(e);
        }
    }
}
