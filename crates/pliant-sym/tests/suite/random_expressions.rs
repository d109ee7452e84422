//! Generators of random expressions for property tests, and a reference evaluator.

use pliant_sym::{Sym, SymArena, SymVar};
use proptest::prelude::*;

/// A random expression before normalization.
#[derive(Clone, Debug)]
pub enum Expr {
    Int(i64),
    Var(usize),
    Two(Op, Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Ceil,
    Min,
    Max,
    Lt,
    Le,
    Eq,
    Ne,
    And,
    Or,
}

pub const VARS: [&str; 3] = ["n", "m", "k"];

impl Expr {
    /// Evaluates the expression with Python's semantics; `None` on a division by 0.
    pub fn value(&self, at: &[i64]) -> Option<i64> {
        Some(match self {
            Expr::Int(v) => *v,
            Expr::Var(i) => at[*i],
            Expr::Not(a) => i64::from(a.value(at)? == 0),
            Expr::Select(c, a, b) => {
                // All operands must have a value, because the normal form may evaluate any of them.
                let (c, a, b) = (c.value(at)?, a.value(at)?, b.value(at)?);
                if c != 0 { a } else { b }
            }
            Expr::Two(op, a, b) => {
                let (a, b) = (a.value(at)?, b.value(at)?);
                let floor = |a: i64, b: i64| (b != 0).then(|| (a as f64 / b as f64).floor() as i64);
                match op {
                    Op::Add => a.checked_add(b)?,
                    Op::Sub => a.checked_sub(b)?,
                    Op::Mul => a.checked_mul(b)?,
                    Op::Div => floor(a, b)?,
                    Op::Mod => a - b * floor(a, b)?,
                    Op::Ceil => -floor(-a, b)?,
                    Op::Min => a.min(b),
                    Op::Max => a.max(b),
                    Op::Lt => i64::from(a < b),
                    Op::Le => i64::from(a <= b),
                    Op::Eq => i64::from(a == b),
                    Op::Ne => i64::from(a != b),
                    Op::And => i64::from(a != 0 && b != 0),
                    Op::Or => i64::from(a != 0 || b != 0),
                }
            }
        })
        .filter(|v: &i64| v.abs() < 1 << 40)
    }

    pub fn build(&self, a: &mut SymArena, vars: &[SymVar]) -> Sym {
        match self {
            Expr::Int(v) => a.int(*v),
            Expr::Var(i) => a.var(vars[*i]),
            Expr::Not(x) => {
                let x = x.build(a, vars);
                a.not(x)
            }
            Expr::Select(c, x, y) => {
                let c = c.build(a, vars);
                let x = x.build(a, vars);
                let y = y.build(a, vars);
                a.select(c, x, y)
            }
            Expr::Two(op, x, y) => {
                let x = x.build(a, vars);
                let y = y.build(a, vars);
                match op {
                    Op::Add => a.add(x, y),
                    Op::Sub => a.sub(x, y),
                    Op::Mul => a.mul(x, y),
                    Op::Div => a.floordiv(x, y),
                    Op::Mod => a.floormod(x, y),
                    Op::Ceil => a.ceildiv(x, y),
                    Op::Min => a.min(x, y),
                    Op::Max => a.max(x, y),
                    Op::Lt => a.lt(x, y),
                    Op::Le => a.le(x, y),
                    Op::Eq => a.eq(x, y),
                    Op::Ne => a.ne(x, y),
                    Op::And => a.and(x, y),
                    Op::Or => a.or(x, y),
                }
            }
        }
    }
}

pub fn two(op: Op, a: Expr, b: Expr) -> Expr {
    Expr::Two(op, Box::new(a), Box::new(b))
}

pub fn arith() -> BoxedStrategy<Expr> {
    arith_over(-9..10i64)
}

/// Generates arithmetic with constants near the limits of `i64`.
pub fn extreme_arith() -> BoxedStrategy<Expr> {
    let large = prop_oneof![Just(i64::MIN), Just(1 << 62), Just(1 << 32), Just(0), Just(i64::MAX)];
    let near = (large, -2..3i64).prop_map(|(large, by)| large.wrapping_add(by));
    arith_over(prop_oneof![near.clone(), near.prop_map(i64::wrapping_neg)])
}

fn arith_over(constants: impl Strategy<Value = i64> + 'static) -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        3 => (0..3usize).prop_map(Expr::Var),
        2 => constants.prop_map(Expr::Int),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        let divisor = prop_oneof![
            4 => (1..9i64).prop_map(Expr::Int),
            1 => (-4..1i64).prop_map(Expr::Int),
            1 => inner.clone(),
        ];
        let op = prop_oneof![
            4 => Just(Op::Add),
            3 => Just(Op::Sub),
            2 => Just(Op::Mul),
            1 => Just(Op::Min),
            1 => Just(Op::Max)
        ];
        let by = prop_oneof![2 => Just(Op::Div), 2 => Just(Op::Mod), 1 => Just(Op::Ceil)];
        prop_oneof![
            5 => (op, pair.clone()).prop_map(|(op, (a, b))| two(op, a, b)),
            3 => (by, inner.clone(), divisor).prop_map(|(op, a, b)| two(op, a, b)),
            // A predicate used as the number 0 or 1.
            1 => predicate_over(inner.clone()),
            1 => (predicate_over(inner.clone()), pair).prop_map(|(c, (a, b))| {
                Expr::Select(Box::new(c), Box::new(a), Box::new(b))
            }),
        ]
    })
    .boxed()
}

pub fn predicate_over(inner: impl Strategy<Value = Expr> + Clone + 'static) -> BoxedStrategy<Expr> {
    let op = prop_oneof![Just(Op::Lt), Just(Op::Le), Just(Op::Eq), Just(Op::Ne)];
    (op, inner.clone(), inner).prop_map(|(op, a, b)| two(op, a, b)).boxed()
}

pub fn predicate() -> BoxedStrategy<Expr> {
    predicate_over(arith())
        .prop_recursive(2, 4, 2, |inner| {
            let op = prop_oneof![Just(Op::And), Just(Op::Or)];
            prop_oneof![
                (op.clone(), inner.clone(), inner.clone()).prop_map(|(op, a, b)| two(op, a, b)),
                // A number used as a predicate: whether it is not 0.
                (op, inner.clone(), arith()).prop_map(|(op, a, b)| two(op, a, b)),
                prop_oneof![3 => inner, 1 => arith()].prop_map(|a| Expr::Not(Box::new(a))),
            ]
        })
        .boxed()
}

/// Creates an arena with the three variables that random expressions use.
pub fn arena() -> (SymArena, Vec<SymVar>) {
    let mut a = SymArena::new();
    let vars = VARS.iter().map(|name| a.fresh_var(*name)).collect();
    (a, vars)
}

/// Lists all combinations of values of the three variables in these ranges.
pub fn points(ranges: &[(i64, i64)]) -> Vec<[i64; 3]> {
    let side = |i: usize| ranges[i].0..=ranges[i].1;
    let mut out = Vec::new();
    for n in side(0) {
        for m in side(1) {
            for k in side(2) {
                out.push([n, m, k]);
            }
        }
    }
    out
}
