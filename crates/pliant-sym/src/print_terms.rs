//! Prints terms as Python expressions with as few parentheses as possible.
//!
//! The order of operands depends only on the structure of the term and the names of its variables. Therefore parsing the printed
//! text and printing the result reproduces the text. The printer uses an explicit stack, so deep terms cannot overflow the
//! thread's stack.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::term_arena::SymArena;
use crate::term_types::{CmpOp, Sym, SymKind, SymVar, Term};

/// Maximum depth to which operands are compared to determine their printed order. Operands that differ only below this depth are
/// printed in the order of their ids.
const MAX_ORDER_DEPTH: u32 = 6;

// Precedence levels of Python's operators.
const COMPARE: u8 = 1;
const ADD: u8 = 2;
const MUL: u8 = 3;
const UNARY: u8 = 4;
const ATOM: u8 = 5;

/// Maps a variable to its printed name.
pub type Naming<'a> = dyn Fn(SymVar) -> Cow<'a, str> + 'a;

enum Job {
    Text(&'static str),
    Int(i64),
    /// A term to print, and the lowest precedence at which the term needs no parentheses.
    Sym(Sym, u8),
}

struct Display<'a> {
    arena: &'a SymArena,
    sym: Sym,
}

impl fmt::Display for Display<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arena = self.arena;
        arena.write(self.sym, f, &|v| Cow::Borrowed(arena.name(v)))
    }
}

impl SymArena {
    /// Displays a term as Python text with the names of its variables.
    pub fn display(&self, sym: Sym) -> impl fmt::Display + '_ {
        Display { arena: self, sym }
    }

    /// Writes a term as Python text. `naming` returns the printed names of variables.
    pub fn write<'n>(
        &self,
        sym: Sym,
        out: &mut dyn fmt::Write,
        naming: &Naming<'n>,
    ) -> fmt::Result {
        let mut printer = Printer { arena: self, naming, jobs: vec![Job::Sym(sym, 0)] };
        while let Some(job) = printer.jobs.pop() {
            match job {
                Job::Text(text) => out.write_str(text)?,
                // The magnitude of `i64::MIN` does not fit 64 bits, so write it as a difference.
                Job::Int(i64::MIN) => write!(out, "({} - 1)", i64::MIN + 1)?,
                Job::Int(v) => write!(out, "{v}")?,
                Job::Sym(s, strength) => match self.kind(s) {
                    SymKind::Var(v) => out.write_str(&naming(v))?,
                    SymKind::Int(v) if v < 0 && strength > UNARY && v != i64::MIN => {
                        write!(out, "({v})")?;
                    }
                    _ => printer.expand(s, strength),
                },
            }
        }
        Ok(())
    }
}

struct Printer<'a, 'n> {
    arena: &'a SymArena,
    naming: &'a Naming<'n>,
    jobs: Vec<Job>,
}

impl Printer<'_, '_> {
    /// Pushes the parts of a term (operands and text) in reverse order, so that the first part is on top of the stack. Adds
    /// parentheses if the precedence of the term is below `strength`.
    fn expand(&mut self, sym: Sym, strength: u8) {
        let mut parts = Vec::new();
        let own = self.parts(sym, &mut parts);
        if own < strength {
            parts.insert(0, Job::Text("("));
            parts.push(Job::Text(")"));
        }
        self.jobs.extend(parts.into_iter().rev());
    }

    /// Appends the parts of a term (operands and text) to `out`. Returns the precedence of the term.
    fn parts(&self, sym: Sym, out: &mut Vec<Job>) -> u8 {
        match self.arena.kind(sym) {
            SymKind::Int(v) => {
                out.push(Job::Int(v));
                ATOM
            }
            SymKind::Var(_) => {
                out.push(Job::Sym(sym, 0));
                ATOM
            }
            SymKind::Sum { terms, constant } => self.sum(terms, constant, out),
            SymKind::Product(list) => {
                for (i, s) in self.ordered(list).into_iter().enumerate() {
                    if i > 0 {
                        out.push(Job::Text(" * "));
                    }
                    out.push(Job::Sym(s, if i == 0 { MUL } else { UNARY }));
                }
                MUL
            }
            SymKind::FloorDiv(a, b) => infix(a, MUL, " // ", b, UNARY, out),
            SymKind::FloorMod(a, b) => infix(a, MUL, " % ", b, UNARY, out),
            SymKind::Min(list) => self.nested("T.min(", list, out),
            SymKind::Max(list) => self.nested("T.max(", list, out),
            SymKind::And(list) => self.nested("T.And(", list, out),
            SymKind::Or(list) => self.nested("T.Or(", list, out),
            SymKind::Not(a) => {
                out.extend([Job::Text("T.Not("), Job::Sym(a, 0), Job::Text(")")]);
                ATOM
            }
            SymKind::Select(c, a, b) => {
                out.extend([Job::Text("T.Select("), Job::Sym(c, 0), Job::Text(", ")]);
                out.extend([Job::Sym(a, 0), Job::Text(", "), Job::Sym(b, 0), Job::Text(")")]);
                ATOM
            }
            SymKind::Cmp(op, a, b) => self.comparison(op, a, b, out),
            SymKind::BigAdd(a, b) => {
                let (a, b) = self.pair(a, b);
                infix(a, MUL, " + ", b, MUL, out);
                ADD
            }
            SymKind::BigMul(a, b) => {
                let (a, b) = self.pair(a, b);
                infix(a, UNARY, " * ", b, UNARY, out)
            }
        }
    }

    fn comparison(&self, op: CmpOp, a: Sym, b: Sym, out: &mut Vec<Job>) -> u8 {
        let symmetric = matches!(op, CmpOp::Eq | CmpOp::Ne);
        let constant_first = self.arena.as_int(a).is_some() && self.arena.as_int(b).is_none();
        let (a, b, text) = match op {
            _ if symmetric && self.arena.as_int(b).is_none() => {
                let (a, b) = if constant_first { (b, a) } else { self.pair(a, b) };
                (a, b, if op == CmpOp::Eq { " == " } else { " != " })
            }
            CmpOp::Eq => (a, b, " == "),
            CmpOp::Ne => (a, b, " != "),
            CmpOp::Lt => (a, b, " < "),
            CmpOp::Le => (a, b, " <= "),
        };
        infix(a, ADD, text, b, ADD, out);
        COMPARE
    }

    /// Appends the parts of a minimum or maximum as nested calls `f(f(a, b), c)`, because these functions have two parameters in
    /// the script language.
    fn nested(&self, open: &'static str, list: &[Sym], out: &mut Vec<Job>) -> u8 {
        out.extend((1..list.len()).map(|_| Job::Text(open)));
        for (i, s) in self.ordered(list).into_iter().enumerate() {
            if i > 0 {
                out.push(Job::Text(", "));
            }
            out.push(Job::Sym(s, 0));
            if i > 0 {
                out.push(Job::Text(")"));
            }
        }
        ATOM
    }

    /// Appends the parts of a sum: positive terms first, then negative terms. The constant comes last unless it is the only
    /// positive part.
    fn sum(&self, terms: &[Term], constant: i64, out: &mut Vec<Job>) -> u8 {
        let mut terms = terms.to_vec();
        terms.sort_by(|a, b| {
            let sign = (a.0 < 0).cmp(&(b.0 < 0));
            let degree = self.degree(b.1).cmp(&self.degree(a.1));
            sign.then(degree).then_with(|| self.order(a.1, b.1, 0))
        });
        let constant_first = constant > 0 && terms.iter().all(|t| t.0 < 0);
        if constant_first {
            out.push(Job::Int(constant));
        }
        for (i, &(coef, sym)) in terms.iter().enumerate() {
            let first = i == 0 && !constant_first;
            self.addend(coef, sym, first, out);
        }
        if constant != 0 && !constant_first {
            if constant < 0 && constant != i64::MIN {
                out.extend([Job::Text(" - "), Job::Int(-constant)]);
            } else {
                out.extend([Job::Text(" + "), Job::Int(constant)]);
            }
        }
        match terms.as_slice() {
            [(-1, _)] if constant == 0 => UNARY,
            [_] if constant == 0 => MUL,
            _ => ADD,
        }
    }

    fn addend(&self, coef: i64, sym: Sym, first: bool, out: &mut Vec<Job>) {
        let negative = coef < 0 && coef != i64::MIN;
        let shown = match (first, negative) {
            (true, true) if coef == -1 => {
                out.extend([Job::Text("-"), Job::Sym(sym, UNARY)]);
                return;
            }
            (true, _) => coef,
            (false, true) => {
                out.push(Job::Text(" - "));
                -coef
            }
            (false, false) => {
                out.push(Job::Text(" + "));
                coef
            }
        };
        out.push(Job::Sym(sym, MUL));
        if shown != 1 {
            out.extend([Job::Text(" * "), Job::Int(shown)]);
        }
    }

    fn degree(&self, sym: Sym) -> usize {
        match self.arena.kind(sym) {
            SymKind::Product(list) => list.len(),
            _ => 1,
        }
    }

    fn pair(&self, a: Sym, b: Sym) -> (Sym, Sym) {
        if self.order(a, b, 0) == Ordering::Greater { (b, a) } else { (a, b) }
    }

    fn ordered(&self, list: &[Sym]) -> Vec<Sym> {
        let mut list = list.to_vec();
        list.sort_by(|&a, &b| self.order(a, b, 0));
        list
    }

    /// Compares two operands to determine their order in the text: by kind, then by name, then by operands.
    fn order(&self, a: Sym, b: Sym, depth: u32) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        if depth > MAX_ORDER_DEPTH {
            return a.cmp(&b);
        }
        let (ka, kb) = (self.arena.kind(a), self.arena.kind(b));
        let by_parts = match (ka, kb) {
            (SymKind::Var(x), SymKind::Var(y)) => {
                return (self.naming)(x).cmp(&(self.naming)(y)).then(x.cmp(&y));
            }
            (SymKind::Int(x), SymKind::Int(y)) => return x.cmp(&y),
            (SymKind::Cmp(x, ..), SymKind::Cmp(y, ..)) if x != y => return x.cmp(&y),
            (SymKind::Sum { terms: s, constant: j }, SymKind::Sum { terms: t, constant: k }) => {
                let by_terms = self.order_lists(&syms_of(s), &syms_of(t), depth);
                let by_coefs = || {
                    let coefs = |l: &[Term]| {
                        let order = self.ordered(&syms_of(l));
                        order
                            .iter()
                            .filter_map(|o| l.iter().find(|t| t.1 == *o).map(|t| t.0))
                            .collect::<Vec<_>>()
                    };
                    coefs(s).cmp(&coefs(t))
                };
                by_terms.then_with(by_coefs).then(j.cmp(&k))
            }
            (
                SymKind::FloorDiv(..)
                | SymKind::FloorMod(..)
                | SymKind::Select(..)
                | SymKind::Cmp(CmpOp::Lt | CmpOp::Le, ..),
                _,
            ) if rank(ka) == rank(kb) => {
                let (x, y) = (self.arena.children(a), self.arena.children(b));
                let mut parts = x.iter().zip(&y).map(|(&x, &y)| self.order(x, y, depth + 1));
                parts.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            }
            _ if rank(ka) == rank(kb) => {
                self.order_lists(&self.arena.children(a), &self.arena.children(b), depth)
            }
            _ => rank(ka).cmp(&rank(kb)),
        };
        by_parts.then(a.cmp(&b))
    }

    fn order_lists(&self, a: &[Sym], b: &[Sym], depth: u32) -> Ordering {
        let sorted = |list: &[Sym]| {
            let mut list = list.to_vec();
            list.sort_by(|&x, &y| self.order(x, y, depth + 1));
            list
        };
        let (a, b) = (sorted(a), sorted(b));
        let mut parts = a.iter().zip(&b).map(|(&x, &y)| self.order(x, y, depth + 1));
        parts.find(|o| o.is_ne()).unwrap_or(Ordering::Equal).then(a.len().cmp(&b.len()))
    }
}

fn syms_of(terms: &[Term]) -> Vec<Sym> {
    terms.iter().map(|t| t.1).collect()
}

fn infix(a: Sym, left: u8, op: &'static str, b: Sym, right: u8, out: &mut Vec<Job>) -> u8 {
    out.extend([Job::Sym(a, left), Job::Text(op), Job::Sym(b, right)]);
    MUL
}

fn rank(kind: SymKind<'_>) -> u8 {
    match kind {
        SymKind::Var(_) => 0,
        SymKind::Product(_) => 1,
        SymKind::FloorDiv(..) => 2,
        SymKind::FloorMod(..) => 3,
        SymKind::Min(_) => 4,
        SymKind::Max(_) => 5,
        SymKind::Select(..) => 6,
        SymKind::Sum { .. } => 7,
        SymKind::Cmp(..) => 8,
        SymKind::And(_) => 9,
        SymKind::Or(_) => 10,
        SymKind::Not(_) => 11,
        SymKind::BigAdd(..) => 12,
        SymKind::BigMul(..) => 13,
        SymKind::Int(_) => 14,
    }
}
