//! Generates the loop functions that compute sizes from other sizes in the shape heap.
//!
//! Arithmetic is checked: before a sum or product is used, an assertion on its value in floating
//! point makes sure that
//! it fits 64 bits, and no division by zero is ever executed. Terms that already have a slot are loaded.

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty};
use pliant_ir::{DType, Sym, SymArena, SymVar};
use pliant_sym::{CmpOp, SymKind};
use pliant_tensor::Failed;
use rustc_hash::{FxHashMap, FxHashSet};

/// Values up to this count as sizes that fit 64 bits. It is a little below 2^63, more than rounding can add up to.
const LIMIT: f64 = 9.2e18;

/// A loop function over the heap, under construction.
pub(super) struct ShapeFunc<'a> {
    syms: &'a SymArena,
    /// The slot of each term that can be loaded.
    slots: &'a dyn Fn(Sym) -> Option<u32>,
    /// How messages begin: the name of the function whose sizes these are.
    place: &'a str,
    func: PrimFunc,
    heap: Buffer,
    stmts: Vec<Stmt>,
    values: FxHashMap<Sym, Expr>,
    checked: FxHashSet<Sym>,
}

impl<'a> ShapeFunc<'a> {
    pub fn new(syms: &'a SymArena, slots: &'a dyn Fn(Sym) -> Option<u32>, place: &'a str) -> Self {
        let mut func = PrimFunc::new();
        func.private = true;
        let heap = func.compact_buffer("H", Vec::new(), DType::Int64);
        func.add_buffer_param("H", heap);
        ShapeFunc {
            syms,
            slots,
            place,
            func,
            heap,
            stmts: Vec::new(),
            values: FxHashMap::default(),
            checked: FxHashSet::default(),
        }
    }

    /// Computes a term and stores it into a slot. Sums and products in it must fit 64 bits, except in the arms of
    /// selections, of which only one counts. With `check`, the value must not be negative.
    ///
    /// # Errors
    /// The variable that has no slot.
    pub fn store(&mut self, sym: Sym, slot: u32, check: bool) -> Result<(), SymVar> {
        self.check_operands(sym)?;
        let value = self.value(sym)?;
        let value = self.as_int(value);
        if check {
            let zero = self.func.int(0);
            let holds = self.func.binary(BinOp::Ge, value, zero);
            let holds = self.func.call(Intrin::Explain, &[holds, value]);
            let text =
                format!("{}: the size {} = {{0}} is negative", self.place, self.syms.display(sym));
            self.assert(holds, Failed::Shape.mark(&text));
        }
        let index = self.func.int(i64::from(slot));
        let store = self.func.store(self.heap, &[index], value);
        self.stmts.push(store);
        // What follows loads the result instead of computing it again.
        let loaded = self.func.load(self.heap, &[index]);
        self.values.insert(sym, loaded);
        Ok(())
    }

    /// The finished function; its heap has no size yet.
    pub fn finish(mut self) -> PrimFunc {
        self.func.body = self.func.seq(self.stmts);
        self.func
    }

    /// Emits the checks of a term and of everything it needs unconditionally, operands first.
    fn check_operands(&mut self, root: Sym) -> Result<(), SymVar> {
        let mut stack = vec![(root, false)];
        while let Some((sym, seen)) = stack.pop() {
            if self.checked.contains(&sym) || self.is_leaf(sym) {
                continue;
            }
            if seen {
                self.checked.insert(sym);
                self.check(sym)?;
                continue;
            }
            stack.push((sym, true));
            match self.syms.kind(sym) {
                SymKind::Select(cond, ..) => stack.push((cond, false)),
                _ => stack.extend(self.syms.children(sym).into_iter().rev().map(|s| (s, false))),
            }
        }
        Ok(())
    }

    fn is_leaf(&self, sym: Sym) -> bool {
        matches!(self.syms.kind(sym), SymKind::Int(_) | SymKind::Var(_))
            || (self.slots)(sym).is_some()
    }

    fn check(&mut self, sym: Sym) -> Result<(), SymVar> {
        let text = || self.syms.display(sym);
        match self.syms.kind(sym) {
            SymKind::FloorDiv(_, b) | SymKind::FloorMod(_, b) => {
                if self.syms.as_int(b).is_some_and(|b| b != 0) {
                    return Ok(());
                }
                let message = format!("{}: {} divides by zero", self.place, text());
                let message = Failed::Division.mark(&message);
                let divisor = self.value(b)?;
                let (divisor, zero) = (self.as_int(divisor), self.func.int(0));
                let holds = self.func.binary(BinOp::Ne, divisor, zero);
                self.assert(holds, message);
            }
            SymKind::Sum { .. }
            | SymKind::Product(_)
            | SymKind::BigAdd(..)
            | SymKind::BigMul(..) => {
                let message = format!("{}: {} does not fit 64 bits", self.place, text());
                let message = Failed::Shape.mark(&message);
                let float = self.float_value(sym)?;
                let limit = self.float(LIMIT);
                let size = self.func.call(Intrin::Abs, &[float]);
                let holds = self.func.binary(BinOp::Le, size, limit);
                self.assert(holds, message);
            }
            _ => {}
        }
        Ok(())
    }

    fn assert(&mut self, holds: Expr, message: String) {
        let nothing = self.func.add_stmt(StmtData::Seq(Vec::new()));
        let stmt = self.func.add_stmt(StmtData::Assert(holds, message.into(), nothing));
        self.stmts.push(stmt);
    }

    fn float(&mut self, value: f64) -> Expr {
        self.func.const_of(value, DType::Float64)
    }

    /// A sum or product in floating point; its operands are exact, because they were checked before.
    fn float_value(&mut self, sym: Sym) -> Result<Expr, SymVar> {
        let (mut total, factors): (Option<Expr>, Vec<(i64, Sym)>) = match self.syms.kind(sym) {
            SymKind::Sum { terms, constant } => {
                let start =
                    (constant != 0).then(|| self.func.const_of(constant as f64, DType::Float64));
                (start, terms.to_vec())
            }
            SymKind::Product(list) => (None, list.iter().map(|&s| (1, s)).collect()),
            SymKind::BigAdd(a, b) | SymKind::BigMul(a, b) => (None, vec![(1, a), (1, b)]),
            _ => unreachable!("only sums and products are computed in floating point"),
        };
        let product = matches!(self.syms.kind(sym), SymKind::Product(_) | SymKind::BigMul(..));
        for (coef, s) in factors {
            let value = self.value(s)?;
            let value = self.as_int(value);
            let mut value = self.func.cast(value, Ty::scalar(DType::Float64));
            if coef != 1 {
                let coef = self.float(coef as f64);
                value = self.func.mul(value, coef);
            }
            total = Some(match total {
                None => value,
                Some(t) if product => self.func.mul(t, value),
                Some(t) => self.func.add(t, value),
            });
        }
        Ok(total.unwrap_or_else(|| self.float(0.0)))
    }

    /// The value of a term, operands first, without recursion.
    fn value(&mut self, root: Sym) -> Result<Expr, SymVar> {
        let mut stack = vec![(root, false)];
        while let Some((sym, seen)) = stack.pop() {
            if self.values.contains_key(&sym) {
                continue;
            }
            if self.is_leaf(sym) || seen {
                let value = self.combine(sym)?;
                self.values.insert(sym, value);
                continue;
            }
            stack.push((sym, true));
            stack.extend(self.syms.children(sym).into_iter().map(|s| (s, false)));
        }
        Ok(self.values[&root])
    }

    fn int_of(&mut self, sym: Sym) -> Expr {
        let value = self.values[&sym];
        self.as_int(value)
    }

    fn bool_of(&mut self, sym: Sym) -> Expr {
        let value = self.values[&sym];
        self.as_bool(value)
    }

    /// The value of a term whose operands have values.
    fn combine(&mut self, sym: Sym) -> Result<Expr, SymVar> {
        if let Some(slot) = (self.slots)(sym) {
            let index = self.func.int(i64::from(slot));
            return Ok(self.func.load(self.heap, &[index]));
        }
        Ok(match self.syms.kind(sym) {
            SymKind::Int(v) => self.func.int(v),
            SymKind::Var(v) => return Err(v),
            SymKind::Sum { terms, constant } => self.sum(terms, constant),
            SymKind::Product(list) => self.fold(BinOp::Mul, list),
            SymKind::Min(list) => self.fold(BinOp::Min, list),
            SymKind::Max(list) => self.fold(BinOp::Max, list),
            SymKind::BigAdd(a, b) => self.fold(BinOp::Add, &[a, b]),
            SymKind::BigMul(a, b) => self.fold(BinOp::Mul, &[a, b]),
            SymKind::FloorDiv(a, b) => self.divide(BinOp::FloorDiv, a, b),
            SymKind::FloorMod(a, b) => self.divide(BinOp::FloorMod, a, b),
            SymKind::Cmp(op, a, b) => {
                let op = match op {
                    CmpOp::Lt => BinOp::Lt,
                    CmpOp::Le => BinOp::Le,
                    CmpOp::Eq => BinOp::Eq,
                    CmpOp::Ne => BinOp::Ne,
                };
                self.fold(op, &[a, b])
            }
            SymKind::And(list) => self.fold_bool(BinOp::And, list),
            SymKind::Or(list) => self.fold_bool(BinOp::Or, list),
            SymKind::Not(a) => {
                let a = self.bool_of(a);
                self.func.add_expr(ExprData::Not(a))
            }
            SymKind::Select(c, a, b) => {
                let (c, a, b) = (self.bool_of(c), self.int_of(a), self.int_of(b));
                self.func.add_expr(ExprData::Select(c, a, b))
            }
        })
    }

    fn sum(&mut self, terms: &[(i64, Sym)], constant: i64) -> Expr {
        let mut total = None;
        for &(coef, s) in terms {
            let mut value = self.int_of(s);
            if coef != 1 {
                let coef = self.func.int(coef);
                value = self.func.mul(value, coef);
            }
            total = Some(match total {
                None => value,
                Some(t) => self.func.add(t, value),
            });
        }
        match (total, constant) {
            (Some(t), 0) => t,
            (Some(t), c) => {
                let c = self.func.int(c);
                self.func.add(t, c)
            }
            (None, c) => self.func.int(c),
        }
    }

    fn fold(&mut self, op: BinOp, list: &[Sym]) -> Expr {
        let values: Vec<Expr> = list.iter().map(|&s| self.int_of(s)).collect();
        let folded = values.into_iter().reduce(|a, b| self.func.binary(op, a, b));
        folded.expect("an operator of two or more operands")
    }

    fn fold_bool(&mut self, op: BinOp, list: &[Sym]) -> Expr {
        let values: Vec<Expr> = list.iter().map(|&s| self.bool_of(s)).collect();
        let folded = values.into_iter().reduce(|a, b| self.func.binary(op, a, b));
        folded.expect("a connective of two or more operands")
    }

    /// A division that cannot trap: where the divisor is not positive for certain, 0 and -1 are replaced, the one
    /// because of its check or because the result is not used, the other because negating is the same.
    fn divide(&mut self, op: BinOp, a: Sym, b: Sym) -> Expr {
        let (x, y) = (self.int_of(a), self.int_of(b));
        if self.syms.as_int(b).is_some_and(|b| b > 0) {
            return self.func.binary(op, x, y);
        }
        let (zero, one, minus) = (self.func.int(0), self.func.int(1), self.func.int(-1));
        let is_zero = self.func.binary(BinOp::Eq, y, zero);
        let is_minus = self.func.binary(BinOp::Eq, y, minus);
        let special = self.func.binary(BinOp::Or, is_zero, is_minus);
        let safe = self.func.add_expr(ExprData::Select(special, one, y));
        let quotient = self.func.binary(op, x, safe);
        if op == BinOp::FloorMod {
            return quotient;
        }
        let negated = self.func.binary(BinOp::Sub, zero, quotient);
        self.func.add_expr(ExprData::Select(is_minus, negated, quotient))
    }

    fn as_int(&mut self, e: Expr) -> Expr {
        self.func.cast(e, Ty::I64)
    }

    fn as_bool(&mut self, e: Expr) -> Expr {
        if self.func.expr_ty(e) == Ty::BOOL {
            return e;
        }
        let zero = self.func.int(0);
        self.func.binary(BinOp::Ne, e, zero)
    }
}
