//! Generates the loop functions that compute sizes from other sizes in the shape heap.
//!
//! Arithmetic is checked: before a sum or product is used, an assertion on its floating-point estimate ensures that it fits 64
//! bits. Division by zero is never executed. Intermediate sums and products may wrap: the terms of an expanded product can exceed
//! 64 bits although the product does not. Terms whose value is already in a slot are loaded.

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty};
use pliant_ir::{DType, Sym, SymArena, SymVar};
use pliant_sym::{CmpOp, SymKind};
use pliant_tensor::CheckFailure;
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum floating-point estimate for which a size is accepted as fitting 64 bits. The difference to 2^63 is larger than the
/// rounding error of the estimate.
const MAX_SIZE: f64 = 9.2e18;

/// Maximum magnitude of the terms of a sum. Up to this magnitude, the rounding error of the floating-point estimate of the sum is
/// small enough for the comparison with [`MAX_SIZE`].
const MAX_TERM: f64 = 1e28;

/// The limit below which a coefficient is small. A small coefficient times a size of at most 64 bits is below [`MAX_TERM`].
const SMALL_COEFFICIENT: u64 = 1 << 30;

/// A generated loop function that computes sizes in the shape heap (the tensor that contains symbolic sizes at run time). The
/// number of slots of the shape heap is not known yet.
pub(super) struct PendingShapeFunc(PrimFunc);

impl PendingShapeFunc {
    /// Completes the function for a shape heap of `slots` slots, one for each size.
    pub fn with_heap_size(mut self, slots: u32) -> PrimFunc {
        let size = self.0.int(i64::from(slots));
        let heap = self.0.buffer_map.values().copied().collect::<Vec<_>>();
        for buffer in heap {
            self.0.buffer_mut(buffer).shape = vec![size];
        }
        self.0
    }
}

/// Builds a loop function that reads and writes the shape heap, the tensor that contains symbolic sizes at run time.
pub(super) struct ShapeFunc<'a> {
    syms: &'a SymArena,
    /// A function that returns the slot of the shape heap from which the value of a symbolic term can be loaded; `None` if no
    /// slot contains it yet.
    slots: &'a dyn Fn(Sym) -> Option<u32>,
    /// The prefix of error messages: the name of the function whose sizes are computed.
    message_prefix: &'a str,
    /// The text that describes the tensor whose size is currently computed, for error messages, such as `, for the result of
    /// 'add'`.
    owner_text: String,
    func: PrimFunc,
    heap: Buffer,
    stmts: Vec<Stmt>,
    values: FxHashMap<Sym, Expr>,
    /// Maps each symbolic term to (its value in floating point, the sum of the magnitudes of its parts).
    float_estimates: FxHashMap<Sym, (Expr, Expr)>,
    /// The terms whose operands have been checked. The flag states whether the term was checked only as an intermediate value of
    /// a sum or product.
    checked: FxHashSet<(Sym, bool)>,
}

impl<'a> ShapeFunc<'a> {
    pub fn new(
        syms: &'a SymArena,
        slots: &'a dyn Fn(Sym) -> Option<u32>,
        message_prefix: &'a str,
    ) -> Self {
        let mut func = PrimFunc::new();
        func.private = true;
        let heap = func.compact_buffer("H", Vec::new(), DType::Int64);
        func.add_buffer_param("H", heap);
        ShapeFunc {
            syms,
            slots,
            message_prefix,
            owner_text: String::new(),
            func,
            heap,
            stmts: Vec::new(),
            values: FxHashMap::default(),
            float_estimates: FxHashMap::default(),
            checked: FxHashSet::default(),
        }
    }

    /// Emits statements that compute a symbolic term and store it in a slot of the shape heap. They check that sums and products
    /// in the term fit 64 bits, except in the operands of selections, because only one of them is used. If the value is a dim of
    /// an allocated tensor, which must not be negative, `size` describes the tensor for error messages.
    ///
    /// # Errors
    /// A variable of the term that has no slot.
    pub fn store(&mut self, sym: Sym, slot: u32, size: Option<&str>) -> Result<(), SymVar> {
        self.owner_text = size.unwrap_or_default().to_string();
        self.check_operands(sym)?;
        let value = self.term_value(sym)?;
        let value = self.as_int(value);
        if size.is_some() {
            let zero = self.func.int(0);
            let holds = self.func.binary(BinOp::Ge, value, zero);
            let text = format!("the size {} = {{0}} is negative", self.syms.display(sym));
            self.assert_with_values(holds, CheckFailure::Shape, &text, vec![value], sym)?;
        }
        let index = self.func.int(i64::from(slot));
        let store = self.func.store(self.heap, &[index], value);
        self.stmts.push(store);
        // Later terms load the stored value instead of computing it again.
        let loaded = self.func.load(self.heap, &[index]);
        self.values.insert(sym, loaded);
        Ok(())
    }

    /// Completes the loop function, except for the size of its parameter, the shape heap, which is not known yet.
    pub fn finish(mut self) -> PendingShapeFunc {
        self.func.body = self.func.seq(self.stmts);
        PendingShapeFunc(self.func)
    }

    /// Emits the checks of a symbolic term and of all nested terms that are always evaluated with it. Operands are checked first.
    fn check_operands(&mut self, root: Sym) -> Result<(), SymVar> {
        let mut stack = vec![(root, false, false)];
        while let Some((sym, is_intermediate, operands_done)) = stack.pop() {
            let is_intermediate = is_intermediate && self.is_sum_or_product(sym);
            if self.is_leaf(sym)
                || [is_intermediate, false].iter().any(|&p| self.checked.contains(&(sym, p)))
            {
                continue;
            }
            if operands_done {
                self.checked.insert((sym, is_intermediate));
                if !is_intermediate {
                    self.assert_computable(sym)?;
                }
                continue;
            }
            stack.push((sym, is_intermediate, true));
            let is_arithmetic = self.is_sum_or_product(sym);
            match self.syms.kind(sym) {
                SymKind::Select(cond, ..) => stack.push((cond, false, false)),
                _ => {
                    let children = self.syms.children(sym).into_iter().rev();
                    stack.extend(children.map(|s| (s, is_arithmetic, false)));
                }
            }
        }
        Ok(())
    }

    fn is_leaf(&self, sym: Sym) -> bool {
        matches!(self.syms.kind(sym), SymKind::Int(_) | SymKind::Var(_))
            || (self.slots)(sym).is_some()
    }

    /// Whether a symbolic term is a sum or a product. Intermediate values of a sum or product may wrap around if the final value
    /// fits.
    fn is_sum_or_product(&self, sym: Sym) -> bool {
        !self.is_leaf(sym) && (self.addends(sym).is_some() || self.factors(sym).is_some())
    }

    fn addends(&self, sym: Sym) -> Option<(i64, Vec<(i64, Sym)>)> {
        match self.syms.kind(sym) {
            SymKind::Sum { terms, constant } => Some((constant, terms.to_vec())),
            SymKind::BigAdd(a, b) => Some((0, vec![(1, a), (1, b)])),
            _ => None,
        }
    }

    fn factors(&self, sym: Sym) -> Option<Vec<Sym>> {
        match self.syms.kind(sym) {
            SymKind::Product(list) => Some(list.to_vec()),
            SymKind::BigMul(a, b) => Some(vec![a, b]),
            _ => None,
        }
    }

    /// Emits assertions that a symbolic term can be computed: divisors are not zero, and sums and products fit 64 bits. The
    /// operands of the term are checked separately.
    fn assert_computable(&mut self, sym: Sym) -> Result<(), SymVar> {
        match self.syms.kind(sym) {
            SymKind::FloorDiv(_, b) | SymKind::FloorMod(_, b) => {
                if self.syms.as_int(b).is_some_and(|b| b != 0) {
                    return Ok(());
                }
                let text = format!("{size} divides by zero", size = self.syms.display(sym));
                let divisor = self.term_value(b)?;
                let (divisor, zero) = (self.as_int(divisor), self.func.int(0));
                let holds = self.func.binary(BinOp::Ne, divisor, zero);
                self.assert_with_values(holds, CheckFailure::Division, &text, Vec::new(), sym)
            }
            _ if self.is_sum_or_product(sym) => {
                let text = format!("{size} does not fit 64 bits", size = self.syms.display(sym));
                let (value, terms) = self.float_estimate(sym)?;
                let mut holds = self.magnitude_at_most(value, MAX_SIZE);
                if self.may_cancel(sym) {
                    let exact = self.magnitude_at_most(terms, MAX_TERM);
                    holds = self.func.binary(BinOp::And, holds, exact);
                }
                self.assert_with_values(holds, CheckFailure::Shape, &text, Vec::new(), sym)
            }
            _ => Ok(()),
        }
    }

    fn magnitude_at_most(&mut self, value: Expr, limit: f64) -> Expr {
        let limit = self.float_const(limit);
        let size = self.func.call(Intrin::Abs, &[value]);
        self.func.binary(BinOp::Le, size, limit)
    }

    /// Whether large terms of a sum may cancel. If they do, the rounding error can be large although the sum is small.
    fn may_cancel(&self, root: Sym) -> bool {
        let mut stack = vec![(root, true)];
        let mut visited = FxHashSet::default();
        while let Some((sym, outermost)) = stack.pop() {
            if !self.is_sum_or_product(sym) || !visited.insert(sym) {
                continue;
            }
            if let Some((_, terms)) = self.addends(sym) {
                let small = |&&(k, t): &&(i64, Sym)| {
                    k.unsigned_abs() < SMALL_COEFFICIENT && !self.is_sum_or_product(t)
                };
                let large = terms.len() - terms.iter().filter(small).count();
                if large > 1 || !outermost {
                    return true;
                }
            }
            stack.extend(self.syms.children(sym).into_iter().map(|s| (s, false)));
        }
        false
    }

    /// Emits an assertion. Its message begins with the name of the function and ends with the values of the symbols in `sym`,
    /// unless there are too many.
    fn assert_with_values(
        &mut self,
        holds: Expr,
        failed: CheckFailure,
        text: &str,
        mut values: Vec<Expr>,
        sym: Sym,
    ) -> Result<(), SymVar> {
        let mut message = format!("{}: {text}{}", self.message_prefix, self.owner_text);
        let vars = self.syms.free_vars(sym);
        if values.len() + vars.len() <= CheckFailure::MAX_ASSERT_ARGS {
            for (k, var) in vars.into_iter().enumerate() {
                let slot = (self.slots)(self.syms.var(var)).ok_or(var)?;
                let index = self.func.int(i64::from(slot));
                let value = self.func.load(self.heap, &[index]);
                let start = if k == 0 { "; " } else { ", " };
                message += &format!("{start}{} = {{{}}}", self.syms.name(var), values.len());
                values.push(value);
            }
        }
        values.insert(0, holds);
        let holds = self.func.call(Intrin::Explain, &values);
        self.assert(holds, failed.mark(&message));
        Ok(())
    }

    fn assert(&mut self, holds: Expr, message: String) {
        let nothing = self.func.add_stmt(StmtData::Seq(Vec::new()));
        let stmt = self.func.add_stmt(StmtData::Assert(holds, message.into(), nothing));
        self.stmts.push(stmt);
    }

    fn float_const(&mut self, value: f64) -> Expr {
        self.func.const_of(value, DType::Float64)
    }

    /// Returns (value of a symbolic term in floating point, sum of the magnitudes of its parts). Terms other than sums and
    /// products are exact, because they were checked before.
    fn float_estimate(&mut self, root: Sym) -> Result<(Expr, Expr), SymVar> {
        let mut stack = vec![(root, false)];
        while let Some((sym, operands_done)) = stack.pop() {
            if self.float_estimates.contains_key(&sym) {
                continue;
            }
            if !operands_done && self.is_sum_or_product(sym) {
                stack.push((sym, true));
                stack.extend(self.syms.children(sym).into_iter().map(|s| (s, false)));
                continue;
            }
            let value = self.float_estimate_from_operands(sym)?;
            self.float_estimates.insert(sym, value);
        }
        Ok(self.float_estimates[&root])
    }

    /// Returns the [`float_estimate`](Self::float_estimate) of a term whose operands already have estimates.
    fn float_estimate_from_operands(&mut self, sym: Sym) -> Result<(Expr, Expr), SymVar> {
        if !self.is_sum_or_product(sym) {
            let value = self.term_value(sym)?;
            let value = self.as_int(value);
            let value = self.func.cast(value, Ty::scalar(DType::Float64));
            let size = self.func.call(Intrin::Abs, &[value]);
            return Ok((value, size));
        }
        if let Some(factors) = self.factors(sym) {
            let pairs = factors.iter().map(|s| self.float_estimates[s]).collect::<Vec<_>>();
            let product = pairs
                .into_iter()
                .reduce(|(a, x), (b, y)| (self.func.mul(a, b), self.func.mul(x, y)));
            return Ok(product.expect("a product term has at least two factors"));
        }
        let (constant, terms) = self
            .addends(sym)
            .expect("a term that is neither a product nor a leaf is a sum of terms");
        let mut total = (constant != 0).then(|| {
            (self.float_const(constant as f64), self.float_const((constant as f64).abs()))
        });
        for (k, s) in terms {
            let (mut value, mut size) = self.float_estimates[&s];
            if k != 1 {
                let (coef, positive) =
                    (self.float_const(k as f64), self.float_const((k as f64).abs()));
                (value, size) = (self.func.mul(value, coef), self.func.mul(size, positive));
            }
            total = Some(match total {
                None => (value, size),
                Some((v, t)) => (self.func.add(v, value), self.func.add(t, size)),
            });
        }
        Ok(total.unwrap_or_else(|| (self.float_const(0.0), self.float_const(0.0))))
    }

    /// Returns an expression for the value of a symbolic term. Operands are processed first, without recursion.
    fn term_value(&mut self, root: Sym) -> Result<Expr, SymVar> {
        let mut stack = vec![(root, false)];
        while let Some((sym, operands_done)) = stack.pop() {
            if self.values.contains_key(&sym) {
                continue;
            }
            if self.is_leaf(sym) || operands_done {
                let value = self.value_from_operands(sym)?;
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

    /// Returns an expression for the value of a symbolic term whose operands have already been processed.
    fn value_from_operands(&mut self, sym: Sym) -> Result<Expr, SymVar> {
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
            SymKind::FloorDiv(a, b) => self.guarded_division(BinOp::FloorDiv, a, b),
            SymKind::FloorMod(a, b) => self.guarded_division(BinOp::FloorMod, a, b),
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
        folded.expect("a minimum or maximum has at least two operands")
    }

    fn fold_bool(&mut self, op: BinOp, list: &[Sym]) -> Expr {
        let values: Vec<Expr> = list.iter().map(|&s| self.bool_of(s)).collect();
        let folded = values.into_iter().reduce(|a, b| self.func.binary(op, a, b));
        folded.expect("a conjunction or disjunction has at least two operands")
    }

    /// Returns a division that cannot trap. If the divisor is not provably positive, divisors of 0 and -1 are replaced by 1. For
    /// 0, an earlier check has failed or the result is unused. For -1, the quotient is computed by negating the dividend.
    fn guarded_division(&mut self, op: BinOp, a: Sym, b: Sym) -> Expr {
        let (x, y) = (self.int_of(a), self.int_of(b));
        if self.syms.as_int(b).is_some_and(|b| b > 0) {
            return self.func.binary(op, x, y);
        }
        let (zero, one, minus_one) = (self.func.int(0), self.func.int(1), self.func.int(-1));
        let is_zero = self.func.binary(BinOp::Eq, y, zero);
        let is_minus_one = self.func.binary(BinOp::Eq, y, minus_one);
        let special = self.func.binary(BinOp::Or, is_zero, is_minus_one);
        let safe = self.func.add_expr(ExprData::Select(special, one, y));
        let quotient = self.func.binary(op, x, safe);
        if op == BinOp::FloorMod {
            return quotient;
        }
        let negated = self.func.binary(BinOp::Sub, zero, quotient);
        self.func.add_expr(ExprData::Select(is_minus_one, negated, quotient))
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
