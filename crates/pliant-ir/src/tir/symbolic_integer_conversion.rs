//! [`SymBridge`]: converts integer expressions of a loop function to symbolic integers and back.

use pliant_sym::{CmpOp, Sym, SymArena, SymKind, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::{BinOp, Expr, ExprData, Ty, Var, VarTy};
use super::func::PrimFunc;
use super::intrin::Intrin;
use super::visit::for_each_operand;

/// A mapping between the variables of a loop function and the symbols of a symbol arena.
///
/// Symbolic integers are unbounded, but run-time integers wrap around. They agree only if no subexpression overflows, which the
/// bridge does not check. Code that draws conclusions about run-time values must first prove that nothing overflows.
#[derive(Clone, Debug, Default)]
pub struct SymBridge {
    to_sym: FxHashMap<Var, SymVar>,
    to_var: FxHashMap<SymVar, Var>,
    /// The expressions that are not integer arithmetic, such as loads. Each is represented by a
    /// symbol.
    opaque: FxHashMap<Expr, SymVar>,
    from_opaque: FxHashMap<SymVar, Expr>,
    /// Cache: the symbolic integers for converted expressions; `None` if an expression is not integer arithmetic.
    memo: FxHashMap<Expr, Option<Sym>>,
    /// Cache: the expressions built for symbolic integers.
    built: FxHashMap<Sym, Expr>,
}

impl SymBridge {
    /// Creates a mapping without variables and symbols.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a variable of the loop function and a symbol of the arena correspond to each other.
    pub fn bind(&mut self, var: Var, sym: SymVar) {
        self.to_sym.insert(var, sym);
        if self.to_var.insert(sym, var) != Some(var) {
            self.built.clear();
        }
    }

    /// The symbol for a variable. It is created if there is none yet.
    pub fn sym_var(&mut self, f: &PrimFunc, arena: &mut SymArena, var: Var) -> SymVar {
        if let Some(&s) = self.to_sym.get(&var) {
            return s;
        }
        let s = arena.fresh_var(f.var(var).name.to_string());
        self.bind(var, s);
        s
    }

    /// The symbol for a variable; `None` if there is none.
    pub fn known_sym(&self, var: Var) -> Option<SymVar> {
        self.to_sym.get(&var).copied()
    }

    /// The variable for a symbol; `None` if there is none.
    pub fn var_of(&self, sym: SymVar) -> Option<Var> {
        self.to_var.get(&sym).copied()
    }

    /// Converts an expression to a symbolic integer; `None` if it is not integer arithmetic (loads, floats, vectors, division
    /// rounding towards zero).
    pub fn to_sym(&mut self, f: &PrimFunc, arena: &mut SymArena, e: Expr) -> Option<Sym> {
        for e in self.unconverted(f, e, |sym| sym.is_some()) {
            let sym = self.convert(f, arena, e);
            self.memo.insert(e, sym);
        }
        self.memo[&e]
    }

    /// Converts an expression to a symbolic integer. Every part that is not integer arithmetic is represented by a separate symbol.
    pub fn to_sym_opaque(&mut self, f: &PrimFunc, arena: &mut SymArena, e: Expr) -> Sym {
        for e in self.unconverted(f, e, |sym| sym.is_some_and(|s| s.is_some())) {
            let sym = self.convert(f, arena, e).unwrap_or_else(|| {
                let var = *self.opaque.entry(e).or_insert_with(|| arena.fresh_var("opaque"));
                self.from_opaque.insert(var, e);
                arena.var(var)
            });
            self.memo.insert(e, Some(sym));
        }
        self.memo[&e].expect("every part of the expression was converted before")
    }

    /// The subexpressions of an expression that have not been converted yet, operands before their users.
    fn unconverted(
        &self,
        f: &PrimFunc,
        e: Expr,
        known: impl Fn(Option<&Option<Sym>>) -> bool,
    ) -> Vec<Expr> {
        let mut list = Vec::new();
        let (mut stack, mut seen) = (vec![e], FxHashSet::default());
        while let Some(e) = stack.pop() {
            if !known(self.memo.get(&e)) && seen.insert(e) {
                list.push(e);
                for_each_operand(f.expr(e), |a| stack.push(a));
            }
        }
        // Operands are interned before their users, so they have smaller ids.
        list.sort();
        list
    }

    fn convert(&mut self, f: &PrimFunc, arena: &mut SymArena, e: Expr) -> Option<Sym> {
        let ty = f.expr_ty(e);
        let integral = ty.lanes == 1 && (ty.dtype.is_int() || ty.dtype.is_bool());
        if !integral {
            return None;
        }
        let of = |e: Expr| self.memo.get(&e).copied().flatten();
        match f.expr(e) {
            ExprData::Int(v, _) => Some(arena.int(*v)),
            ExprData::Var(v) => match f.var(*v).ty {
                VarTy::Value(_) => {
                    let s = self.sym_var(f, arena, *v);
                    Some(arena.var(s))
                }
                VarTy::Handle => None,
            },
            ExprData::Cast(to, a) => {
                let keeps = to.dtype.holds_all_of(f.expr_ty(*a).dtype);
                of(*a).filter(|_| keeps)
            }
            ExprData::Binary(op, a, b) => {
                let (a, b) = (of(*a)?, of(*b)?);
                binary(arena, *op, a, b)
            }
            ExprData::Not(a) => {
                let a = of(*a)?;
                Some(arena.not(a))
            }
            ExprData::Select(c, a, b) => {
                let (c, a, b) = (of(*c)?, of(*a)?, of(*b)?);
                Some(arena.select(c, a, b))
            }
            ExprData::Call(Intrin::IfThenElse, args, _) => {
                let (c, a, b) = (of(*args.first()?)?, of(*args.get(1)?)?, of(*args.get(2)?)?);
                Some(arena.select(c, a, b))
            }
            ExprData::Call(Intrin::Likely | Intrin::Explain, args, _) => of(*args.first()?),
            _ => None,
        }
    }

    /// Converts a symbolic integer to an expression: int64, or bool for a predicate. A symbol without a variable gets a new int64
    /// variable with its name.
    pub fn to_expr(&mut self, arena: &SymArena, f: &mut PrimFunc, sym: Sym) -> Expr {
        let (mut stack, mut list, mut seen) = (vec![sym], Vec::new(), FxHashSet::default());
        while let Some(s) = stack.pop() {
            if !self.built.contains_key(&s) && seen.insert(s) {
                list.push(s);
                stack.extend(arena.children(s));
            }
        }
        // Operands are interned before their users, so they have smaller ids.
        list.sort();
        let mut done = std::mem::take(&mut self.built);
        for s in list {
            let e = self.build(arena, f, s, &done);
            done.insert(s, e);
        }
        let result = done[&sym];
        self.built = done;
        result
    }

    /// Converts a symbolic integer to an int64 expression. A predicate is converted to 0 or 1. A symbol without a
    /// variable gets a new int64 variable with its name.
    pub fn to_size(&mut self, arena: &SymArena, f: &mut PrimFunc, sym: Sym) -> Expr {
        let e = self.to_expr(arena, f, sym);
        f.cast(e, Ty::I64)
    }

    fn build(
        &mut self,
        arena: &SymArena,
        f: &mut PrimFunc,
        s: Sym,
        done: &FxHashMap<Sym, Expr>,
    ) -> Expr {
        let of = |f: &mut PrimFunc, s: Sym| f.cast(done[&s], Ty::I64);
        let cond = |f: &mut PrimFunc, s: Sym| {
            let e = done[&s];
            if f.expr_ty(e) == Ty::BOOL {
                return e;
            }
            let zero = f.int(0);
            f.binary(BinOp::Ne, e, zero)
        };
        match arena.kind(s) {
            SymKind::Int(v) => f.int(v),
            SymKind::Var(v) => self.var_expr(arena, f, v),
            SymKind::Sum { terms, constant } => sum(f, terms, constant, done),
            SymKind::Product(list) => fold(f, list, of, BinOp::Mul),
            SymKind::Min(list) => fold(f, list, of, BinOp::Min),
            SymKind::Max(list) => fold(f, list, of, BinOp::Max),
            SymKind::And(list) => fold(f, list, cond, BinOp::And),
            SymKind::Or(list) => fold(f, list, cond, BinOp::Or),
            SymKind::FloorDiv(a, b) => fold(f, &[a, b], of, BinOp::FloorDiv),
            SymKind::FloorMod(a, b) => fold(f, &[a, b], of, BinOp::FloorMod),
            SymKind::BigAdd(a, b) => fold(f, &[a, b], of, BinOp::Add),
            SymKind::BigMul(a, b) => fold(f, &[a, b], of, BinOp::Mul),
            SymKind::Cmp(op, a, b) => {
                let op = match op {
                    CmpOp::Lt => BinOp::Lt,
                    CmpOp::Le => BinOp::Le,
                    CmpOp::Eq => BinOp::Eq,
                    CmpOp::Ne => BinOp::Ne,
                };
                fold(f, &[a, b], of, op)
            }
            SymKind::Select(c, a, b) => {
                let (c, a, b) = (cond(f, c), of(f, a), of(f, b));
                f.call(Intrin::IfThenElse, &[c, a, b])
            }
            SymKind::Not(a) => {
                let a = cond(f, a);
                f.add_expr(ExprData::Not(a))
            }
        }
    }

    fn var_expr(&mut self, arena: &SymArena, f: &mut PrimFunc, v: SymVar) -> Expr {
        if let Some(&e) = self.from_opaque.get(&v) {
            return f.cast(e, Ty::I64);
        }
        let var = match self.to_var.get(&v) {
            Some(&var) => var,
            None => {
                let var = f.size_var(arena.name(v));
                self.bind(var, v);
                var
            }
        };
        let e = f.var_expr(var);
        f.cast(e, Ty::I64)
    }
}

fn fold(
    f: &mut PrimFunc,
    list: &[Sym],
    of: impl Fn(&mut PrimFunc, Sym) -> Expr,
    op: BinOp,
) -> Expr {
    let mut acc = of(f, list[0]);
    for &s in &list[1..] {
        let e = of(f, s);
        acc = f.binary(op, acc, e);
    }
    acc
}

/// Creates the sum of the products `coefficient * term` and a constant. Positive terms come first, to minimize the number of
/// operations.
fn sum(f: &mut PrimFunc, terms: &[(i64, Sym)], constant: i64, done: &FxHashMap<Sym, Expr>) -> Expr {
    let mut acc: Option<Expr> = None;
    let positive = terms.iter().filter(|t| t.0 > 0);
    let negative = terms.iter().filter(|t| t.0 <= 0);
    for &(coef, s) in positive.chain(negative) {
        let e = f.cast(done[&s], Ty::I64);
        let subtract = acc.is_some() && coef < 0 && coef != i64::MIN;
        let factor = if subtract { -coef } else { coef };
        let term = if factor == 1 {
            e
        } else {
            let c = f.int(factor);
            f.mul(e, c)
        };
        acc = Some(match acc {
            None => term,
            Some(a) => f.binary(if subtract { BinOp::Sub } else { BinOp::Add }, a, term),
        });
    }
    let Some(acc) = acc else { return f.int(constant) };
    match constant {
        0 => acc,
        c if c < 0 && c != i64::MIN => {
            let c = f.int(-c);
            f.binary(BinOp::Sub, acc, c)
        }
        c => {
            let c = f.int(c);
            f.add(acc, c)
        }
    }
}

fn binary(arena: &mut SymArena, op: BinOp, a: Sym, b: Sym) -> Option<Sym> {
    Some(match op {
        BinOp::Add => arena.add(a, b),
        BinOp::Sub => arena.sub(a, b),
        BinOp::Mul => arena.mul(a, b),
        BinOp::FloorDiv => arena.floordiv(a, b),
        BinOp::FloorMod => arena.floormod(a, b),
        BinOp::Min => arena.min(a, b),
        BinOp::Max => arena.max(a, b),
        BinOp::Eq => arena.eq(a, b),
        BinOp::Ne => arena.ne(a, b),
        BinOp::Lt => arena.lt(a, b),
        BinOp::Le => arena.le(a, b),
        BinOp::Gt => arena.gt(a, b),
        BinOp::Ge => arena.ge(a, b),
        BinOp::And => arena.and(a, b),
        BinOp::Or => arena.or(a, b),
        BinOp::Div | BinOp::Mod => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_to_symbols_and_back_preserves_expressions() {
        let mut f = PrimFunc::new();
        let mut arena = SymArena::new();
        let mut bridge = SymBridge::new();
        let (n, i) = (f.size_var("n"), f.size_var("i"));
        let (n, i) = (f.var_expr(n), f.var_expr(i));
        let four = f.int(4);
        let x = f.mul(i, four);
        let x = f.add(x, n);
        let x = f.binary(BinOp::Sub, x, i);
        let sym = bridge.to_sym(&f, &mut arena, x).unwrap();
        assert_eq!(arena.display(sym).to_string(), "i * 3 + n");
        let back = bridge.to_expr(&arena, &mut f, sym);
        assert_eq!(bridge.to_sym(&f, &mut arena, back), Some(sym));
        let cond = f.binary(BinOp::Lt, x, n);
        let sym = bridge.to_sym(&f, &mut arena, cond).unwrap();
        let back = bridge.to_expr(&arena, &mut f, sym);
        assert_eq!(f.expr_ty(back), Ty::BOOL);
    }

    #[test]
    fn loads_are_opaque() {
        let mut f = PrimFunc::new();
        let mut arena = SymArena::new();
        let mut bridge = SymBridge::new();
        let one = f.int(1);
        let b = f.compact_buffer("B", vec![one], crate::DType::Int64);
        let load = f.load(b, &[one]);
        let sum = f.add(load, one);
        assert_eq!(bridge.to_sym(&f, &mut arena, sum), None);
        let sym = bridge.to_sym_opaque(&f, &mut arena, sum);
        let back = bridge.to_expr(&arena, &mut f, sym);
        assert_eq!(back, sum);
    }
}
