//! Overflow analysis: which integer arithmetic provably does not overflow, so that proofs about integers hold for machine words.

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Ty, Var, VarTy};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

/// Maximum magnitude of sizes, dims, and those int64 parameters that reach an index or a size. The entry of a loop function and its
/// allocations check it.
pub const SIZE_LIMIT: i64 = 1 << 40;

/// The integers from `lo` to `hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least integer.
    pub lo: i128,
    /// The greatest integer.
    pub hi: i128,
}

impl Interval {
    /// The integers from `lo` to `hi`.
    pub fn new(lo: impl Into<i128>, hi: impl Into<i128>) -> Self {
        Interval { lo: lo.into(), hi: hi.into() }
    }

    /// The values of an integer type. For floats, the interval that contains the values of all integer types.
    pub fn of_type(dtype: DType) -> Self {
        let bits = (dtype.size() * 8) as u32;
        match dtype {
            DType::Bool => Interval::new(0, 1),
            d if d.is_int() => Interval::new(-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            d if d.is_uint() => Interval::new(0, (1i128 << bits) - 1),
            _ => Interval::new(i64::MIN, u64::MAX),
        }
    }

    /// Whether the interval contains all of `other`.
    pub fn holds(self, other: Interval) -> bool {
        self.lo <= other.lo && other.hi <= self.hi
    }

    fn meet(self, other: Interval) -> Interval {
        let both = Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) };
        // Contradictory bounds occur only in code that never runs.
        if both.lo <= both.hi { both } else { self }
    }

    fn union(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    fn corners(self, other: Interval, op: impl Fn(i128, i128) -> i128) -> Interval {
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

/// What is known about the value of an expression.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// The range of the machine value.
    pub range: Interval,
    /// Whether the machine value equals the mathematical value, in which parts that are not arithmetic have their machine values.
    pub exact: bool,
    /// Whether the expression depends only on variables, so that its value does not change.
    pub pure: bool,
    /// Whether the expression consists of 64-bit sums and products of exact parts. Its mathematical and machine values then differ
    /// by a multiple of 2**64, which may be 0.
    pub ring: bool,
}

/// The bounds of variables, and the terms that are evaluated with overflow checks.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    vars: FxHashMap<Var, Interval>,
    checked: FxHashMap<Expr, Interval>,
}

impl Fit {
    /// Assumes that a variable is in a range.
    pub fn bound(&mut self, var: Var, range: Interval) {
        let range = self.vars.get(&var).map_or(range, |old| old.meet(range));
        self.vars.insert(var, range);
    }

    /// Assumes that a dim is between 0 and [`SIZE_LIMIT`] and that none of its sums and products overflows. The code that creates
    /// the buffer checks this.
    pub fn dim(&mut self, f: &PrimFunc, dim: Expr) {
        self.size(f, dim, Interval::new(0, SIZE_LIMIT));
    }

    /// As [`Fit::dim`], for a stride, which may be negative.
    pub fn stride(&mut self, f: &PrimFunc, stride: Expr) {
        self.size(f, stride, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
    }

    fn size(&mut self, f: &PrimFunc, e: Expr, range: Interval) {
        if f.expr_ty(e) != Ty::I64 {
            return;
        }
        if let ExprData::Var(v) = f.expr(e) {
            return self.bound(*v, range);
        }
        checked_terms(f, e, &mut |term| {
            self.checked.entry(term).or_insert(Interval::of_type(DType::Int64));
        });
        let known = self.checked.get(&e).map_or(range, |old| old.meet(range));
        self.checked.insert(e, known);
    }

    /// What is known about an expression. `extra` returns further bounds of variables.
    pub fn fact(&self, f: &PrimFunc, e: Expr, extra: &dyn Fn(Var) -> Option<Interval>) -> Fact {
        self.walk(f, e, extra, &mut FxHashMap::default())
    }

    fn walk(
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
        let opaque = Fact { range: all, exact: true, pure: false, ring: true };
        let mut of = |e: Expr| self.walk(f, e, extra, memo);
        let symbolic = ty.lanes == 1 && (ty.dtype.is_int() || ty.dtype.is_bool());
        let fact = match f.expr(e) {
            _ if !symbolic => opaque,
            ExprData::Int(v, _) => Fact { range: Interval::new(*v, *v), pure: true, ..opaque },
            ExprData::Var(v) => match f.var(*v).ty {
                VarTy::Value(_) => {
                    let known = self.vars.get(v).map_or(all, |k| all.meet(*k));
                    let range = extra(*v).map_or(known, |k| known.meet(k));
                    Fact { range, pure: true, ..opaque }
                }
                VarTy::Handle => opaque,
            },
            ExprData::Cast(to, a) => {
                if to.dtype.holds_all_of(f.expr_ty(*a).dtype) {
                    let a = of(*a);
                    Fact { ring: a.exact, ..a }
                } else {
                    opaque
                }
            }
            ExprData::Binary(op, a, b) => {
                let number = f.expr_ty(*a).dtype;
                let (a, b) = (of(*a), of(*b));
                self.binary(e, *op, number, ty, a, b)
            }
            ExprData::Not(a) => {
                let a = of(*a);
                Fact { range: all, ring: a.exact, ..a }
            }
            ExprData::Select(c, a, b) => choice(of(*c), of(*a), of(*b)),
            ExprData::Call(Intrin::IfThenElse, args, _) if args.len() == 3 => {
                choice(of(args[0]), of(args[1]), of(args[2]))
            }
            ExprData::Call(Intrin::Likely, args, _) if args.len() == 1 => of(args[0]),
            ExprData::Call(Intrin::Explain, args, _) if !args.is_empty() => of(args[0]),
            _ => opaque,
        };
        memo.insert(e, fact);
        fact
    }

    fn binary(&self, e: Expr, op: BinOp, number: DType, ty: Ty, a: Fact, b: Fact) -> Fact {
        let all = Interval::of_type(ty.dtype);
        let (x, y) = (a.range, b.range);
        let both = a.exact && b.exact;
        let pure = a.pure && b.pure;
        let range = match op {
            BinOp::Add => Interval { lo: x.lo + y.lo, hi: x.hi + y.hi },
            BinOp::Sub => Interval { lo: x.lo - y.hi, hi: x.hi - y.lo },
            BinOp::Mul => x.corners(y, |a, b| a * b),
            BinOp::Min => Interval { lo: x.lo.min(y.lo), hi: x.hi.min(y.hi) },
            BinOp::Max => Interval { lo: x.lo.max(y.lo), hi: x.hi.max(y.hi) },
            // A divisor of 0 makes the loop function fail, so only divisors of at least 1 matter.
            BinOp::FloorDiv if y.lo >= 0 => {
                let y = Interval { lo: y.lo.max(1), hi: y.hi.max(1) };
                x.corners(y, i128::div_euclid)
            }
            BinOp::FloorMod if y.lo >= 0 => {
                let hi = (y.hi - 1).max(0);
                Interval::new(0, if x.lo >= 0 { x.hi.min(hi) } else { hi })
            }
            // The quotient of the least integer by -1 overflows.
            BinOp::FloorDiv | BinOp::FloorMod => {
                return Fact { range: all, exact: false, pure, ring: false };
            }
            BinOp::Div | BinOp::Mod => {
                return Fact { range: all, exact: true, pure: false, ring: true };
            }
            _ => {
                let exact = both && (number.is_int() || number.is_bool());
                return Fact { range: all, exact, pure, ring: exact };
            }
        };
        let arithmetic = matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul);
        let checked = self.checked.get(&e);
        let exact = both && (all.holds(range) || checked.is_some());
        // Only sums, differences and products wrap around.
        let range = if exact || !arithmetic { all.meet(range) } else { all };
        let range = checked.map_or(range, |known| range.meet(*known));
        let ring = exact || (arithmetic && ty == Ty::I64 && a.ring && b.ring);
        Fact { range, exact, pure, ring }
    }
}

fn choice(c: Fact, a: Fact, b: Fact) -> Fact {
    let exact = c.exact && a.exact && b.exact;
    Fact { range: a.range.union(b.range), exact, pure: c.pure && a.pure && b.pure, ring: exact }
}

/// Visits the int64 sums and products of which a size consists, through all binary operators. Their overflow is checked where the
/// size is evaluated.
pub fn checked_terms(f: &PrimFunc, e: Expr, visit: &mut dyn FnMut(Expr)) {
    if let ExprData::Binary(op, a, b) = *f.expr(e) {
        checked_terms(f, a, visit);
        checked_terms(f, b, visit);
        if matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul) && f.expr_ty(e) == Ty::I64 {
            visit(e);
        }
    }
}
