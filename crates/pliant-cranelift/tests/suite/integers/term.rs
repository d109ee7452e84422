//! Random integer expressions with a reference evaluator.

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Ty};
use pliant_tensor::DType;

/// The element types of the expressions.
pub const TYPES: [DType; 5] = [DType::Bool, DType::Int8, DType::UInt8, DType::Int16, DType::Int64];

/// An expression as written. `Leaf(i)` has the type `TYPES[i]`.
#[derive(Clone, Debug)]
pub enum Term {
    Leaf(usize),
    Int(i64, DType),
    Cast(DType, Box<Term>),
    Two(BinOp, Box<Term>, Box<Term>),
    Not(Box<Term>),
    Select(Box<Term>, Box<Term>, Box<Term>),
    IfThenElse(Box<Term>, Box<Term>, Box<Term>),
    Likely(Box<Term>),
}

/// An integer wrapped to this type.
pub fn wrapped(v: i128, dtype: DType) -> i128 {
    match dtype {
        DType::Bool => i128::from(v != 0),
        DType::Int8 => i128::from(v as i8),
        DType::UInt8 => i128::from(v as u8),
        DType::Int16 => i128::from(v as i16),
        _ => i128::from(v as i64),
    }
}

/// Whether a cast preserves every value of `from`, determined by testing values.
fn keeps_values(from: DType, to: DType) -> bool {
    let edges = [0, 1, -1, 127, 128, -128, 255, 256, 32767, -32768, i64::MAX, i64::MIN];
    let values = (-300i128..300).chain(edges.map(i128::from));
    values.map(|v| wrapped(v, from)).all(|v| wrapped(v, to) == v)
}

/// The exact result of an operator; `None` for a division by zero.
fn two(op: BinOp, a: i128, b: i128) -> Option<i128> {
    let floor = |a: i128, b: i128| a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0);
    Some(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a.checked_mul(b)?,
        BinOp::Div => a.checked_div(b)?,
        BinOp::Mod => a.checked_rem(b)?,
        BinOp::FloorDiv => (b != 0).then(|| floor(a, b))?,
        BinOp::FloorMod => (b != 0).then(|| a - b * floor(a, b))?,
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::Eq => (a == b).into(),
        BinOp::Ne => (a != b).into(),
        BinOp::Lt => (a < b).into(),
        BinOp::Le => (a <= b).into(),
        BinOp::Gt => (a > b).into(),
        BinOp::Ge => (a >= b).into(),
        BinOp::And => (a != 0 && b != 0).into(),
        BinOp::Or => (a != 0 || b != 0).into(),
    })
}

impl Term {
    pub fn dtype(&self) -> DType {
        match self {
            Term::Leaf(i) => TYPES[*i],
            Term::Int(_, dtype) | Term::Cast(dtype, _) => *dtype,
            Term::Two(op, ..) if op.is_predicate() => DType::Bool,
            Term::Two(_, a, _) | Term::Select(_, a, _) | Term::IfThenElse(_, a, _) => a.dtype(),
            Term::Not(_) | Term::Likely(_) => DType::Bool,
        }
    }

    /// The machine value: every operator wraps to its type. `None` for a division by zero.
    pub fn machine(&self, at: &[i64]) -> Option<i128> {
        let value = match self {
            Term::Leaf(i) => at[*i].into(),
            Term::Int(v, _) => (*v).into(),
            Term::Cast(_, a) | Term::Likely(a) => a.machine(at)?,
            Term::Two(op, a, b) => two(*op, a.machine(at)?, b.machine(at)?)?,
            Term::Not(a) => (a.machine(at)? == 0).into(),
            Term::Select(c, a, b) | Term::IfThenElse(c, a, b) => {
                let (c, a, b) = (c.machine(at)?, a.machine(at)?, b.machine(at)?);
                if c != 0 { a } else { b }
            }
        };
        Some(wrapped(value, self.dtype()))
    }

    /// The symbolic value: without wrapping, except that parts other than arithmetic on signed integers and bools have
    /// their machine value. `None` for a division by zero or an overflow of 128 bits.
    pub fn spelled(&self, at: &[i64]) -> Option<i128> {
        let symbolic = |t: &Term| t.dtype() != DType::UInt8;
        if !symbolic(self) {
            return self.machine(at);
        }
        Some(match self {
            Term::Cast(to, a) if keeps_values(a.dtype(), *to) => a.spelled(at)?,
            Term::Two(BinOp::Div | BinOp::Mod, ..) | Term::Cast(..) => self.machine(at)?,
            Term::Two(_, a, _) if !symbolic(a) => self.machine(at)?,
            Term::Two(op, a, b) => two(*op, a.spelled(at)?, b.spelled(at)?)?,
            Term::Not(a) => (a.spelled(at)? == 0).into(),
            Term::Select(c, a, b) | Term::IfThenElse(c, a, b) => {
                let (c, a, b) = (c.spelled(at)?, a.spelled(at)?, b.spelled(at)?);
                if c != 0 { a } else { b }
            }
            Term::Likely(a) => a.spelled(at)?,
            Term::Leaf(_) | Term::Int(..) => self.machine(at)?,
        })
    }

    pub fn build(&self, f: &mut PrimFunc, leaves: &[Expr]) -> Expr {
        let data = match self {
            Term::Leaf(i) => return leaves[*i],
            Term::Int(v, dtype) => ExprData::Int(*v, Ty::scalar(*dtype)),
            Term::Cast(to, a) => ExprData::Cast(Ty::scalar(*to), a.build(f, leaves)),
            Term::Two(op, a, b) => {
                let (a, b) = (a.build(f, leaves), b.build(f, leaves));
                ExprData::Binary(*op, a, b)
            }
            Term::Not(a) => ExprData::Not(a.build(f, leaves)),
            Term::Select(c, a, b) => {
                let (c, a, b) = (c.build(f, leaves), a.build(f, leaves), b.build(f, leaves));
                ExprData::Select(c, a, b)
            }
            Term::IfThenElse(c, a, b) => {
                let args = [c, a, b].map(|t| t.build(f, leaves));
                return f.call(Intrin::IfThenElse, &args);
            }
            Term::Likely(a) => {
                let a = a.build(f, leaves);
                return f.call(Intrin::Likely, &[a]);
            }
        };
        f.add_expr(data)
    }
}

/// Random numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() % list.len() as u64) as usize]
    }

    /// A value of the type, mostly near its limits or 0.
    pub fn value(&mut self, dtype: DType) -> i64 {
        let (low, high) = dtype.int_range();
        let near = (self.next() % 7) as i64 - 3;
        let v = match self.next() % 4 {
            0 => low.saturating_add(near.abs()),
            1 => high.saturating_sub(near.abs()),
            2 => near,
            _ => self.next() as i64,
        };
        wrapped(v.into(), dtype) as i64
    }

    /// An expression of that type.
    pub fn term(&mut self, dtype: DType, depth: u32) -> Term {
        let leaf = TYPES.iter().position(|d| *d == dtype).expect("it is one of the types");
        if depth == 0 || self.next().is_multiple_of(6) {
            return match self.next() % 3 {
                0 => Term::Int(self.value(dtype), dtype),
                _ => Term::Leaf(leaf),
            };
        }
        let below = depth - 1;
        match self.next() % 8 {
            0 | 1 => {
                let from = self.of(&TYPES);
                Term::Cast(dtype, Box::new(self.term(from, below)))
            }
            2 => self.choice(dtype, below),
            _ if dtype.is_bool() => self.condition(below),
            _ => self.arithmetic(dtype, below),
        }
    }

    fn choice(&mut self, dtype: DType, depth: u32) -> Term {
        let lazy = self.next().is_multiple_of(2);
        let c = Box::new(self.term(DType::Bool, depth));
        let (a, b) = (Box::new(self.term(dtype, depth)), Box::new(self.term(dtype, depth)));
        if lazy { Term::IfThenElse(c, a, b) } else { Term::Select(c, a, b) }
    }

    fn condition(&mut self, depth: u32) -> Term {
        use BinOp::*;
        match self.next() % 6 {
            0 => Term::Not(Box::new(self.term(DType::Bool, depth))),
            1 => Term::Likely(Box::new(self.term(DType::Bool, depth))),
            2 => {
                let op = self.of(&[And, Or, Min, Max]);
                let (a, b) = (self.term(DType::Bool, depth), self.term(DType::Bool, depth));
                Term::Two(op, Box::new(a), Box::new(b))
            }
            _ => {
                let (op, of) = (self.of(&[Eq, Ne, Lt, Le, Gt, Ge]), self.of(&TYPES));
                Term::Two(op, Box::new(self.term(of, depth)), Box::new(self.term(of, depth)))
            }
        }
    }

    fn arithmetic(&mut self, dtype: DType, depth: u32) -> Term {
        use BinOp::*;
        let op = self.of(&[Add, Sub, Mul, Add, Sub, Mul, Min, Max, Div, Mod, FloorDiv, FloorMod]);
        let (a, mut b) = (self.term(dtype, depth), self.term(dtype, depth));
        if matches!(op, Div | Mod | FloorDiv | FloorMod) {
            let int = |v: i64| Box::new(Term::Int(v, dtype));
            b = match self.next() % 3 {
                0 => Term::Int(self.value(dtype).saturating_abs().clamp(1, 100), dtype),
                1 => Term::Two(Max, Box::new(b), int(1)),
                _ => {
                    let zero = Term::Two(Eq, Box::new(b.clone()), int(0));
                    Term::Select(Box::new(zero), int(1), Box::new(b))
                }
            };
        }
        Term::Two(op, Box::new(a), Box::new(b))
    }
}
