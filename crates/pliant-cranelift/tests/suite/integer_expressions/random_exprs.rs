//! Random integer expressions with a reference evaluator.

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Ty};
use pliant_tensor::DType;

/// The element types of the expressions.
pub const TYPES: [DType; 5] = [DType::Bool, DType::Int8, DType::UInt8, DType::Int16, DType::Int64];

/// An integer expression. `Leaf(i)` is a variable of the type `TYPES[i]`.
#[derive(Clone, Debug)]
pub enum Term {
    Leaf(usize),
    Int(i64, DType),
    Cast(DType, Box<Term>),
    Binary(BinOp, Box<Term>, Box<Term>),
    Not(Box<Term>),
    Select(Box<Term>, Box<Term>, Box<Term>),
    IfThenElse(Box<Term>, Box<Term>, Box<Term>),
    Likely(Box<Term>),
}

/// Wraps an integer to the range of a type.
pub fn wrap_to(v: i128, dtype: DType) -> i128 {
    match dtype {
        DType::Bool => i128::from(v != 0),
        DType::Int8 => i128::from(v as i8),
        DType::UInt8 => i128::from(v as u8),
        DType::Int16 => i128::from(v as i16),
        _ => i128::from(v as i64),
    }
}

/// Whether a cast preserves every value of `from`. Determined by casting the values.
fn keeps_values(from: DType, to: DType) -> bool {
    let edges = [0, 1, -1, 127, 128, -128, 255, 256, 32767, -32768, i64::MAX, i64::MIN];
    let values = (-300i128..300).chain(edges.map(i128::from));
    values.map(|v| wrap_to(v, from)).all(|v| wrap_to(v, to) == v)
}

/// Computes the exact result of an operator; `None` for a division by zero.
fn binary(op: BinOp, a: i128, b: i128) -> Option<i128> {
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
            Term::Binary(op, ..) if op.is_predicate() => DType::Bool,
            Term::Binary(_, a, _) | Term::Select(_, a, _) | Term::IfThenElse(_, a, _) => a.dtype(),
            Term::Not(_) | Term::Likely(_) => DType::Bool,
        }
    }

    /// Evaluates the expression for the variable values `at` in machine arithmetic: the result of
    /// every operator wraps to its type. Returns `None` for a division by zero.
    pub fn machine_value(&self, at: &[i64]) -> Option<i128> {
        let value = match self {
            Term::Leaf(i) => at[*i].into(),
            Term::Int(v, _) => (*v).into(),
            Term::Cast(_, a) | Term::Likely(a) => a.machine_value(at)?,
            Term::Binary(op, a, b) => binary(*op, a.machine_value(at)?, b.machine_value(at)?)?,
            Term::Not(a) => (a.machine_value(at)? == 0).into(),
            Term::Select(c, a, b) | Term::IfThenElse(c, a, b) => {
                let (c, a, b) = (c.machine_value(at)?, a.machine_value(at)?, b.machine_value(at)?);
                if c != 0 { a } else { b }
            }
        };
        Some(wrap_to(value, self.dtype()))
    }

    /// Evaluates the expression in exact arithmetic: operators on signed integers and bools do not
    /// wrap. Operators on unsigned integers wrap, as in machine arithmetic. Returns `None` for a
    /// division by zero or an overflow of 128 bits.
    pub fn exact_value(&self, at: &[i64]) -> Option<i128> {
        let symbolic = |t: &Term| t.dtype() != DType::UInt8;
        if !symbolic(self) {
            return self.machine_value(at);
        }
        Some(match self {
            Term::Cast(to, a) if keeps_values(a.dtype(), *to) => a.exact_value(at)?,
            Term::Binary(BinOp::Div | BinOp::Mod, ..) | Term::Cast(..) => self.machine_value(at)?,
            Term::Binary(_, a, _) if !symbolic(a) => self.machine_value(at)?,
            Term::Binary(op, a, b) => binary(*op, a.exact_value(at)?, b.exact_value(at)?)?,
            Term::Not(a) => (a.exact_value(at)? == 0).into(),
            Term::Select(c, a, b) | Term::IfThenElse(c, a, b) => {
                let (c, a, b) = (c.exact_value(at)?, a.exact_value(at)?, b.exact_value(at)?);
                if c != 0 { a } else { b }
            }
            Term::Likely(a) => a.exact_value(at)?,
            Term::Leaf(_) | Term::Int(..) => self.machine_value(at)?,
        })
    }

    /// Adds the expression to a loop function, with `leaves` as its variables.
    pub fn build(&self, f: &mut PrimFunc, leaves: &[Expr]) -> Expr {
        let data = match self {
            Term::Leaf(i) => return leaves[*i],
            Term::Int(v, dtype) => ExprData::Int(*v, Ty::scalar(*dtype)),
            Term::Cast(to, a) => ExprData::Cast(Ty::scalar(*to), a.build(f, leaves)),
            Term::Binary(op, a, b) => {
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

/// A generator of random numbers and expressions.
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

    /// Returns a random element of the list.
    pub fn element_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() % list.len() as u64) as usize]
    }

    /// Returns a random value of a type, mostly near its limits or near 0.
    pub fn value(&mut self, dtype: DType) -> i64 {
        let (low, high) = dtype.int_range();
        let near = (self.next() % 7) as i64 - 3;
        let v = match self.next() % 4 {
            0 => low.saturating_add(near.abs()),
            1 => high.saturating_sub(near.abs()),
            2 => near,
            _ => self.next() as i64,
        };
        wrap_to(v.into(), dtype) as i64
    }

    /// Returns a random integer expression of type `dtype`, nested at most `depth` levels deep.
    pub fn term(&mut self, dtype: DType, depth: u32) -> Term {
        let leaf = TYPES.iter().position(|d| *d == dtype).expect("it is one of the types");
        if depth == 0 || self.next().is_multiple_of(6) {
            return match self.next() % 3 {
                0 => Term::Int(self.value(dtype), dtype),
                _ => Term::Leaf(leaf),
            };
        }
        let operand_depth = depth - 1;
        match self.next() % 8 {
            0 | 1 => {
                let from = self.element_of(&TYPES);
                Term::Cast(dtype, Box::new(self.term(from, operand_depth)))
            }
            2 => self.selection(dtype, operand_depth),
            _ if dtype.is_bool() => self.condition(operand_depth),
            _ => self.arithmetic(dtype, operand_depth),
        }
    }

    fn selection(&mut self, dtype: DType, depth: u32) -> Term {
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
                let op = self.element_of(&[And, Or, Min, Max]);
                let (a, b) = (self.term(DType::Bool, depth), self.term(DType::Bool, depth));
                Term::Binary(op, Box::new(a), Box::new(b))
            }
            _ => {
                let (op, operand_type) =
                    (self.element_of(&[Eq, Ne, Lt, Le, Gt, Ge]), self.element_of(&TYPES));
                Term::Binary(
                    op,
                    Box::new(self.term(operand_type, depth)),
                    Box::new(self.term(operand_type, depth)),
                )
            }
        }
    }

    fn arithmetic(&mut self, dtype: DType, depth: u32) -> Term {
        use BinOp::*;
        let op = self
            .element_of(&[Add, Sub, Mul, Add, Sub, Mul, Min, Max, Div, Mod, FloorDiv, FloorMod]);
        let (a, mut b) = (self.term(dtype, depth), self.term(dtype, depth));
        if matches!(op, Div | Mod | FloorDiv | FloorMod) {
            let int = |v: i64| Box::new(Term::Int(v, dtype));
            b = match self.next() % 3 {
                0 => Term::Int(self.value(dtype).saturating_abs().clamp(1, 100), dtype),
                1 => Term::Binary(Max, Box::new(b), int(1)),
                _ => {
                    let zero = Term::Binary(Eq, Box::new(b.clone()), int(0));
                    Term::Select(Box::new(zero), int(1), Box::new(b))
                }
            };
        }
        Term::Binary(op, Box::new(a), Box::new(b))
    }
}
