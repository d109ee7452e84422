//! CheckBounds for expressions: guards their accesses, and rewrites indices to variables that the guards bind.

use std::sync::Arc;

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Buffer, BufferData, Expr, ExprData, Intrin, PrimFunc, Ty};
use pliant_tensor::{CheckFailure, DType};

use super::Checker;
use crate::fit::SIZE_LIMIT;
use crate::guards::{Guard, reads};
use crate::schedule::reach;
use crate::walk::map_operands;

impl Checker {
    /// Guards the accesses inside an expression. Returns the expression over variables that the guards bind, with
    /// `T.Select` replaced by `T.if_then_else` if only the chosen side is in bounds.
    pub(super) fn expr(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        if self.known.contains(&e) {
            return e;
        }
        if let Some(guarded) = self.bindings.guarded(e) {
            self.guarded_uses += 1;
            return guarded;
        }
        let (before, uses) = (guards.len(), self.guarded_uses);
        let new = self.guarded_expr(f, e, guards);
        self.guarded_uses += usize::from(guards.len() != before);
        // A part may have guards of this statement already, or guards that the caller drops.
        if self.guarded_uses == uses {
            self.known.insert(new);
        } else {
            self.bindings.set_guarded(e, new);
        }
        new
    }

    fn guarded_expr(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        match f.expr(e).clone() {
            ExprData::Load(buffer, indices) => {
                let new: Vec<Expr> = indices.iter().map(|&i| self.expr(f, i, guards)).collect();
                let new = self.access(f, buffer, &new, guards);
                if new == indices { e } else { f.add_expr(ExprData::Load(buffer, new)) }
            }
            ExprData::Call(Intrin::IfThenElse, args, _) if args.len() == 3 => {
                let c = self.expr(f, args[0], guards);
                let [c, a, b] = self.choice(f, c, [args[1], args[2]], guards);
                f.call(Intrin::IfThenElse, &[c, a, b])
            }
            ExprData::Select(c, a, b) => self.select(f, [c, a, b], guards),
            ExprData::Binary(op @ (BinOp::And | BinOp::Or), a, b)
                if f.expr_ty(e).lanes == 1 && reads(f, b) =>
            {
                self.logic(f, op, a, b, guards)
            }
            ExprData::Call(Intrin::CallExtern, args, _) if takes_addresses(f, &args) => {
                let new = map_operands(f, e, |f, a| self.kernel_argument(f, a, guards));
                if let ExprData::Call(_, args, _) = f.expr(new).clone() {
                    self.kernel_call(f, &args, guards);
                }
                new
            }
            ExprData::Call(Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel, ..) => {
                map_operands(f, e, |f, a| self.argument(f, a, guards))
            }
            _ => map_operands(f, e, |f, a| self.expr(f, a, guards)),
        }
    }

    /// Guards the sides of a conditional that evaluates only one side. Guards of a side apply if it is chosen. A
    /// condition that reads memory is bound, so that guards and accesses agree on the chosen side.
    fn choice(
        &mut self,
        f: &mut PrimFunc,
        c: Expr,
        sides: [Expr; 2],
        guards: &mut Vec<Guard>,
    ) -> [Expr; 3] {
        let [(a, of_a), (b, of_b)] =
            [(sides[0], true), (sides[1], false)].map(|(side, holds)| self.side(f, c, holds, side));
        let none = of_a.is_empty() && of_b.is_empty();
        let c = if none || !reads(f, c) { c } else { self.bindings.whole(f, c, guards) };
        for (holds, inner) in [(true, of_a), (false, of_b)] {
            let chosen = if holds { c } else { f.add_expr(ExprData::Not(c)) };
            guards.extend(inner.into_iter().map(|guard| guarded_by(f, chosen, guard)));
        }
        [c, a, b]
    }

    /// One side of a conditional, and its guards for when it is chosen.
    fn side(&mut self, f: &mut PrimFunc, c: Expr, holds: bool, side: Expr) -> (Expr, Vec<Guard>) {
        let mut inner = Vec::new();
        // Variables that are bound only if this side is chosen must not be reused after it.
        let outer = self.bindings.clone();
        let side = self.scope(|this| {
            this.facts.assume(f, c, holds);
            this.expr(f, side, &mut inner)
        });
        self.bindings = outer;
        (side, inner)
    }

    /// Keeps a `T.Select`, which evaluates both sides, if both are in bounds for either value of the condition, or if the
    /// condition is a vector. Otherwise only the chosen side is evaluated.
    fn select(&mut self, f: &mut PrimFunc, [c, a, b]: [Expr; 3], guards: &mut Vec<Guard>) -> Expr {
        let c = self.expr(f, c, guards);
        if f.expr_ty(c).lanes != 1 || [a, b].into_iter().all(|side| self.is_proved(f, side)) {
            let [a, b] = [a, b].map(|side| self.expr(f, side, guards));
            return f.add_expr(ExprData::Select(c, a, b));
        }
        let lazy = self.choice(f, c, [a, b], guards);
        f.call(Intrin::IfThenElse, &lazy)
    }

    /// A conjunction or disjunction whose second operand reads memory. Both operands are evaluated only if the second one is in
    /// bounds regardless of the first one; otherwise it becomes `T.if_then_else`.
    fn logic(
        &mut self,
        f: &mut PrimFunc,
        op: BinOp,
        a: Expr,
        b: Expr,
        guards: &mut Vec<Guard>,
    ) -> Expr {
        let a = self.expr(f, a, guards);
        if self.is_proved(f, b) {
            let b = self.expr(f, b, guards);
            return f.binary(op, a, b);
        }
        let decided = f.add_expr(ExprData::Int(i64::from(op == BinOp::Or), Ty::BOOL));
        let sides = if op == BinOp::And { [b, decided] } else { [decided, b] };
        let lazy = self.choice(f, a, sides, guards);
        f.call(Intrin::IfThenElse, &lazy)
    }

    /// An argument of a call. Taking an address reads only its indices. A whole buffer is passed as a tensor with its
    /// bounds, and the range that a kernel accesses from an address is checked separately.
    fn argument(&mut self, f: &mut PrimFunc, a: Expr, guards: &mut Vec<Guard>) -> Expr {
        if !matches!(f.expr(a), ExprData::Call(Intrin::AddressOf, ..)) {
            return self.expr(f, a, guards);
        }
        map_operands(f, a, |f, element| map_operands(f, element, |f, i| self.expr(f, i, guards)))
    }

    /// As [`Checker::argument`], for calls whose arguments are checked: arguments from memory are loaded once.
    fn kernel_argument(&mut self, f: &mut PrimFunc, a: Expr, guards: &mut Vec<Guard>) -> Expr {
        if !matches!(f.expr(a), ExprData::Call(Intrin::AddressOf, ..)) {
            return self.bound(f, a, guards);
        }
        map_operands(f, a, |f, element| map_operands(f, element, |f, i| self.bound(f, i, guards)))
    }

    /// Guards a call that takes addresses. Only library kernels may take them; the range that they access is checked.
    fn kernel_call(&mut self, f: &mut PrimFunc, args: &[Expr], guards: &mut Vec<Guard>) {
        match reach::reach(f, args).zip(reach::kind(f, args)) {
            Some((inside, kind)) => {
                let message = format!("{kind} reaches outside its buffers");
                let message: Arc<str> = CheckFailure::Index.mark(&message).into();
                guards.extend(inside.into_iter().map(|p| Guard::Check(p, message.clone())));
            }
            None => {
                let no = f.add_expr(ExprData::Int(0, Ty::BOOL));
                let message = "a linked function is not given the addresses it takes";
                guards.push(Guard::Check(no, message.into()));
            }
        }
    }

    /// Guards an access. Returns its indices over variables that the guards bind.
    pub(super) fn access(
        &mut self,
        f: &mut PrimFunc,
        buffer: Buffer,
        indices: &[Expr],
        guards: &mut Vec<Guard>,
    ) -> Box<[Expr]> {
        let bound = Bound::of(f, buffer, indices.len());
        if bound.sizes.is_empty() {
            return indices.into();
        }
        let message = bound.flat.then(|| flat_message(&f.buffer(buffer).name));
        if let Some(message) = &message {
            let checks = bound.conditions.into_iter().map(|p| Guard::Check(p, message.clone()));
            guards.extend(checks);
        }
        let dims = indices.iter().zip(bound.sizes).enumerate();
        dims.map(|(dim, (&i, n))| {
            let message = message.clone().unwrap_or_else(|| index_message(f, buffer, dim, n));
            self.check_index(f, i, n, message, guards)
        })
        .collect()
    }

    /// Guards one index, which must be in `0..n`. Returns it over variables that the guards bind.
    fn check_index(
        &mut self,
        f: &mut PrimFunc,
        i: Expr,
        n: Expr,
        message: Arc<str>,
        guards: &mut Vec<Guard>,
    ) -> Expr {
        let i = self.bind_repeated_loads(f, i, guards);
        if self.index_is_proved(f, i, n) {
            return i;
        }
        let i = self.bindings.loads(f, i, guards);
        let zero = f.int(0);
        let ends = ends(f, i).filter(|_| has_plain_steps(f, i)).unwrap_or_else(|| extremes(f, i));
        for e in ends {
            if let Some(inside) = self.facts.inside(f, e, zero, n) {
                guards.push(Guard::Check(inside, message.clone()));
            }
        }
        i
    }
}

/// The bounds with which the indices of an access are compared.
pub(super) struct Bound {
    /// One size for each index.
    pub(super) sizes: Vec<Expr>,
    /// Further conditions that must hold.
    pub(super) conditions: Vec<Expr>,
    /// Whether the access has one index over the elements of the whole buffer.
    flat: bool,
}

impl Bound {
    /// The bound of an access with `count` indices.
    pub(super) fn of(f: &mut PrimFunc, buffer: Buffer, count: usize) -> Bound {
        let data = f.buffer(buffer).clone();
        if count == 1 && !data.strides.is_empty() && (f.is_flat() || data.shape.len() != 1) {
            let (span, conditions) = span(f, &data);
            return Bound { sizes: vec![span], conditions, flat: true };
        }
        let flat = count == 1 && data.shape.len() != 1;
        let sizes = match () {
            () if count == data.shape.len() => data.shape.to_vec(),
            () if flat => vec![data.shape.iter().fold(f.int(1), |acc, &d| f.mul(acc, d))],
            () => Vec::new(),
        };
        Bound { sizes, conditions: Vec::new(), flat }
    }
}

/// The values to check of an index: the index itself, or the first and the last lane of a ramp. `None` for other
/// vectors, whose lanes are arbitrary.
pub(super) fn ends(f: &mut PrimFunc, i: Expr) -> Option<Vec<Expr>> {
    match *f.expr(i) {
        ExprData::Ramp(base, stride, lanes) => {
            let last = f.add_expr(ExprData::Int(i64::from(lanes) - 1, f.expr_ty(stride)));
            let reach = f.mul(stride, last);
            Some(vec![base, f.add(base, reach)])
        }
        _ => (f.expr_ty(i).lanes == 1).then(|| vec![i]),
    }
}

/// Whether all lanes of an index are in bounds if both ends are: it is a scalar, or an int64 ramp with a small constant
/// stride, which cannot wrap around between the ends.
fn has_plain_steps(f: &PrimFunc, i: Expr) -> bool {
    match *f.expr(i) {
        ExprData::Ramp(_, stride, _) => {
            let small = |n: i64| n.unsigned_abs() <= SIZE_LIMIT.unsigned_abs();
            f.expr_ty(i).dtype == DType::Int64 && f.as_int(stride).is_some_and(small)
        }
        _ => true,
    }
}

/// The least and the greatest lane of a vector.
fn extremes(f: &mut PrimFunc, i: Expr) -> Vec<Expr> {
    let ty = f.expr_ty(i).with_lanes(1);
    [Intrin::VectorMin, Intrin::VectorMax]
        .map(|extreme| f.add_expr(ExprData::Call(extreme, [i].into(), ty)))
        .to_vec()
}

/// Whether generated code may load a value of the expression twice: once in each side of a conditional.
pub(super) fn loads_may_repeat(f: &PrimFunc, e: Expr) -> bool {
    let mut choice = false;
    for_each_expr(f, e, |e| {
        choice |= matches!(f.expr(e), ExprData::Call(Intrin::IfThenElse, ..));
    });
    choice && reads(f, e)
}

/// Whether a call of a linked function takes addresses, or calls a library kernel.
pub(super) fn takes_addresses(f: &PrimFunc, args: &[Expr]) -> bool {
    let address = |&e: &Expr| matches!(f.expr(e), ExprData::Call(Intrin::AddressOf, ..));
    reach::kind(f, args).is_some() || args.iter().any(address)
}

/// Makes a guard of one side of a conditional depend on `chosen`, the condition for that side. The variable that it
/// binds is used only in that side.
pub(super) fn guarded_by(f: &mut PrimFunc, chosen: Expr, guard: Guard) -> Guard {
    match guard {
        Guard::Check(p, message) => Guard::Check(under(f, chosen, p), message),
        Guard::Bind(var, value) => {
            let ty = f.expr_ty(value);
            let mut unused = f.const_of(0.0, ty.dtype);
            if ty.lanes > 1 {
                unused = f.add_expr(ExprData::Broadcast(unused, ty.lanes));
            }
            Guard::Bind(var, f.call(Intrin::IfThenElse, &[chosen, value, unused]))
        }
    }
}

/// The number of elements from the first to the last one of a strided buffer, and the conditions under which that is
/// correct: it is not empty, and no stride is negative.
fn span(f: &mut PrimFunc, data: &BufferData) -> (Expr, Vec<Expr>) {
    let (zero, one) = (f.int(0), f.int(1));
    let (mut span, mut conditions) = (one, Vec::new());
    for (&dim, &stride) in data.shape.iter().zip(&data.strides) {
        conditions.push(f.binary(BinOp::Le, one, dim));
        conditions.push(f.binary(BinOp::Le, zero, stride));
        let steps = f.binary(BinOp::Sub, dim, one);
        let reach = f.mul(steps, stride);
        span = f.add(span, reach);
    }
    (span, conditions)
}

fn index_message(f: &PrimFunc, buffer: Buffer, dim: usize, n: Expr) -> Arc<str> {
    let (name, n) = (&f.buffer(buffer).name, crate::text::expr(f, n));
    CheckFailure::Index
        .mark(&format!("index out of bounds: dim {dim} of '{name}' has {n} elements"))
        .into()
}

fn flat_message(name: &str) -> Arc<str> {
    CheckFailure::Index.mark(&format!("index out of bounds: flat access of '{name}'")).into()
}

/// `p` if `c` holds, else true; `p` is evaluated only if `c` holds.
fn under(f: &mut PrimFunc, c: Expr, p: Expr) -> Expr {
    let yes = f.add_expr(ExprData::Int(1, Ty::BOOL));
    f.call(Intrin::IfThenElse, &[c, p, yes])
}
