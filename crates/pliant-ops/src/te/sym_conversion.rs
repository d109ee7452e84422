//! Conversions between tensor expressions and the symbolic integers of a graph function.

use pliant_ir::tir::{BinOp, Intrin, Ty};
use pliant_sym::{CmpOp, Sym, SymArena, SymKind, SymVar, Term};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::expr::{Expr, ExprKind, Var};
use super::expr_builders::*;
use super::expr_traversal::fold;

/// A one-to-one mapping between symbols of a function and variables of tensor expressions. A
/// variable may also represent a whole symbolic term, such as `n // 2`.
#[derive(Clone, Debug, Default)]
pub struct VarMap {
    to_te: FxHashMap<SymVar, Var>,
    to_sym: FxHashMap<Var, SymVar>,
    /// The variables that represent whole terms of symbolic integers.
    named: FxHashMap<Sym, Var>,
    terms: FxHashMap<Var, Sym>,
}

impl VarMap {
    /// Creates a mapping without symbols and variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps the symbol and the variable to each other.
    pub fn bind(&mut self, sym: SymVar, var: Var) {
        self.to_sym.insert(var.clone(), sym);
        self.to_te.insert(sym, var);
    }

    /// The variable of a symbol. It is created if there is none.
    pub fn te_var(&mut self, arena: &SymArena, sym: SymVar) -> Var {
        if let Some(var) = self.to_te.get(&sym) {
            return var.clone();
        }
        let var = Var::size(arena.name(sym));
        self.bind(sym, var.clone());
        var
    }

    /// The symbol of a variable. It is created if there is none.
    pub fn sym_var(&mut self, arena: &mut SymArena, var: &Var) -> SymVar {
        if let Some(&sym) = self.to_sym.get(var) {
            return sym;
        }
        let sym = arena.fresh_var(&**var.name());
        self.bind(sym, var.clone());
        sym
    }

    /// Creates a variable with this name that represents a symbolic term. [`from_sym`] replaces
    /// each occurrence of the term by the variable.
    pub fn name_term(&mut self, term: Sym, name: &str) {
        if !self.named.contains_key(&term) {
            let var = Var::size(name);
            self.terms.insert(var.clone(), term);
            self.named.insert(term, var);
        }
    }

    /// Creates variables that replace the parts of a size that cannot be analyzed
    /// ([`SymArena::unanalyzable_terms`]).
    pub fn name_unanalyzable(&mut self, arena: &SymArena, size: Sym) {
        for term in arena.unanalyzable_terms(size) {
            self.name_term(term, &arena.short_name(term));
        }
    }

    /// Creates variables that replace the conditional terms in a number ([`SymArena::conditional_terms`]).
    pub fn name_conditionals(&mut self, arena: &SymArena, number: Sym) {
        for term in arena.conditional_terms(number) {
            self.name_term(term, &arena.short_name(term));
        }
    }

    /// The symbol or term that a variable represents, if there is one.
    pub fn get_term(&self, arena: &mut SymArena, var: &Var) -> Option<Sym> {
        let symbol = self.get_sym(var).map(|v| arena.var(v));
        symbol.or_else(|| self.terms.get(var).copied())
    }

    /// The symbol that a variable represents, if there is one.
    pub fn get_sym(&self, var: &Var) -> Option<SymVar> {
        self.to_sym.get(var).copied()
    }
}

/// Converts an integer expression over size variables to a symbolic integer. `None` if the expression contains floats, tensor
/// elements or other intrinsics. A new symbol is created for a variable that has none.
pub fn to_sym(arena: &mut SymArena, expr: &Expr, vars: &mut VarMap) -> Option<Sym> {
    let mut memo = FxHashMap::default();
    fold(expr, &mut memo, |e, args: &[Sym]| sym_node(arena, e, args, vars).ok_or(())).ok()
}

fn sym_node(arena: &mut SymArena, e: &Expr, args: &[Sym], vars: &mut VarMap) -> Option<Sym> {
    if e.ty().dtype.is_float() || e.ty().lanes != 1 {
        return None;
    }
    Some(match e.kind() {
        ExprKind::Int(v) => arena.int(*v),
        ExprKind::Var(v) => match vars.terms.get(v) {
            Some(&term) => term,
            None => {
                let sym = vars.sym_var(arena, v);
                arena.var(sym)
            }
        },
        ExprKind::Binary(op, ..) => sym_binary(arena, *op, args[0], args[1])?,
        // Sizes are exact integers, so widening casts preserve them. Narrower types do not occur in shapes.
        ExprKind::Cast(a) if e.ty() == Ty::I64 && DType::Int64.holds_all_of(a.ty().dtype) => {
            args[0]
        }
        ExprKind::Not(_) => arena.not(args[0]),
        ExprKind::Select(..) | ExprKind::Call(Intrin::IfThenElse, _) => {
            arena.select(args[0], args[1], args[2])
        }
        _ => return None,
    })
}

fn sym_binary(arena: &mut SymArena, op: BinOp, a: Sym, b: Sym) -> Option<Sym> {
    use BinOp::*;
    Some(match op {
        Add => arena.add(a, b),
        Sub => arena.sub(a, b),
        Mul => arena.mul(a, b),
        FloorDiv => arena.floordiv(a, b),
        FloorMod => arena.floormod(a, b),
        Min => arena.min(a, b),
        Max => arena.max(a, b),
        Eq => arena.eq(a, b),
        Ne => arena.ne(a, b),
        Lt => arena.lt(a, b),
        Le => arena.le(a, b),
        Gt => arena.gt(a, b),
        Ge => arena.ge(a, b),
        And => arena.and(a, b),
        Or => arena.or(a, b),
        Div | Mod => return None,
    })
}

/// A symbolic integer as an expression of type int64, or bool for a predicate.
pub fn from_sym(arena: &SymArena, sym: Sym, vars: &mut VarMap) -> Expr {
    let mut memo: FxHashMap<Sym, Expr> = FxHashMap::default();
    let mut stack = vec![(sym, false)];
    while let Some((s, expanded)) = stack.pop() {
        if memo.contains_key(&s) {
            continue;
        }
        if let Some(var) = vars.named.get(&s) {
            memo.insert(s, var.expr());
            continue;
        }
        let children = arena.children(s);
        if !expanded && !children.is_empty() {
            stack.push((s, true));
            stack.extend(children.iter().rev().map(|&c| (c, false)));
            continue;
        }
        let e = te_node(arena, s, &memo, vars);
        memo.insert(s, e);
    }
    memo[&sym].clone()
}

fn te_node(arena: &SymArena, sym: Sym, memo: &FxHashMap<Sym, Expr>, vars: &mut VarMap) -> Expr {
    let chain = |list: &[Sym], op: BinOp| {
        let mut items = list.iter().map(|s| memo[s].clone());
        let first = items.next().expect("lists of terms are never empty");
        items.fold(first, |acc, e| binary(op, &acc, &e))
    };
    match arena.kind(sym) {
        SymKind::Int(v) => int(v),
        SymKind::Var(v) => vars.te_var(arena, v).expr(),
        SymKind::Sum { terms, constant } => {
            let scaled = |&(coef, s): &(i64, Sym)| &memo[&s] * &int(coef);
            let (positive, negative): (Vec<Term>, Vec<Term>) = terms.iter().partition(|t| t.0 > 0);
            let mut acc = positive.iter().map(scaled).reduce(|a, b| a + b);
            if acc.is_none() && constant != 0 {
                acc = Some(int(constant));
            } else if constant != 0 {
                acc = acc
                    .map(|a| if constant > 0 { a + constant } else { a - constant.wrapping_neg() });
            }
            for (coef, s) in negative {
                let e = &memo[&s];
                acc = Some(match acc {
                    Some(a) => a - e * &int(coef.wrapping_neg()),
                    None => e * &int(coef),
                });
            }
            acc.unwrap_or_else(|| int(constant))
        }
        SymKind::Product(list) => chain(list, BinOp::Mul),
        SymKind::FloorDiv(a, b) => floordiv(&memo[&a], &memo[&b]),
        SymKind::FloorMod(a, b) => floormod(&memo[&a], &memo[&b]),
        SymKind::Min(list) => chain(list, BinOp::Min),
        SymKind::Max(list) => chain(list, BinOp::Max),
        SymKind::Select(c, a, b) => select(&cast(&memo[&c], Ty::BOOL), &memo[&a], &memo[&b]),
        SymKind::Cmp(op, a, b) => {
            let op = match op {
                CmpOp::Lt => BinOp::Lt,
                CmpOp::Le => BinOp::Le,
                CmpOp::Eq => BinOp::Eq,
                CmpOp::Ne => BinOp::Ne,
            };
            binary(op, &memo[&a], &memo[&b])
        }
        SymKind::And(list) => chain(list, BinOp::And),
        SymKind::Or(list) => chain(list, BinOp::Or),
        SymKind::Not(a) => not(&memo[&a]),
        SymKind::BigAdd(a, b) => &memo[&a] + &memo[&b],
        SymKind::BigMul(a, b) => &memo[&a] * &memo[&b],
    }
}

/// Simplifies an integer expression by converting it to the normal form of symbolic integers. Other
/// expressions are returned unchanged.
pub fn simplify(expr: &Expr) -> Expr {
    let (mut arena, mut vars) = (SymArena::new(), VarMap::new());
    match to_sym(&mut arena, expr, &mut vars) {
        Some(sym) => cast(&from_sym(&arena, sym, &mut vars), expr.ty()),
        None => expr.clone(),
    }
}
