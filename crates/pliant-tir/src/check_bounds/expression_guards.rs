//! CheckBounds for expressions: adds guards for their accesses, and replaces loads in indices by variables that the guards bind.

use std::sync::Arc;

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Buffer, BufferData, Expr, ExprData, Intrin, PrimFunc, Ty};
use pliant_tensor::{CheckFailure, DType};

use super::Checker;
use crate::access_guards::{Guard, reads_memory};
use crate::overflow_analysis::SIZE_LIMIT;
use crate::schedule::vector_math_bounds;
use crate::statement_traversal::map_operands;

impl Checker {
    /// Appends the run-time bounds checks that the loads of an expression need to `guards`. Returns the expression, in which
    /// checked values that were loaded from memory are replaced by variables that guards bind. `T.Select` becomes `T.if_then_else`
    /// if only the chosen side is in bounds.
    pub(super) fn guard_expr(
        &mut self,
        f: &mut PrimFunc,
        e: Expr,
        guards: &mut Vec<Guard>,
    ) -> Expr {
        if self.proved.contains(&e) {
            return e;
        }
        if let Some(guarded) = self.bindings.guarded(e) {
            self.guarded_uses += 1;
            return guarded;
        }
        let (before, uses) = (guards.len(), self.guarded_uses);
        let new = self.guard_new_expr(f, e, guards);
        self.guarded_uses += usize::from(guards.len() != before);
        // The guards of a subexpression may have been added before, or may be dropped by the caller, so the length of `guards`
        // does not tell whether there are any.
        if self.guarded_uses == uses {
            self.proved.insert(new);
        } else {
            self.bindings.set_guarded(e, new);
        }
        new
    }

    /// Appends the run-time checks of an expression that was not visited before to `guards`, and returns its guarded form, in which
    /// checked values that were loaded from memory are replaced by variables.
    fn guard_new_expr(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        match f.expr(e).clone() {
            ExprData::Load(buffer, indices) => {
                let new: Vec<Expr> =
                    indices.iter().map(|&i| self.guard_expr(f, i, guards)).collect();
                let new = self.guard_access(f, buffer, &new, guards);
                if new == indices { e } else { f.add_expr(ExprData::Load(buffer, new)) }
            }
            ExprData::Call(Intrin::IfThenElse, args, _) if args.len() == 3 => {
                let c = self.guard_expr(f, args[0], guards);
                let [c, a, b] = self.guard_conditional(f, c, [args[1], args[2]], guards);
                f.call(Intrin::IfThenElse, &[c, a, b])
            }
            ExprData::Select(c, a, b) => self.guard_select(f, [c, a, b], guards),
            ExprData::Binary(op @ (BinOp::And | BinOp::Or), a, b)
                if f.expr_ty(e).lanes == 1 && reads_memory(f, b) =>
            {
                self.guard_logical(f, op, a, b, guards)
            }
            ExprData::Call(Intrin::CallExtern, args, _) if takes_addresses(f, &args) => {
                let new = map_operands(f, e, |f, a| self.guard_kernel_argument(f, a, guards));
                if let ExprData::Call(_, args, _) = f.expr(new).clone() {
                    self.guard_kernel_call(f, &args, guards);
                }
                new
            }
            ExprData::Call(Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel, ..) => {
                map_operands(f, e, |f, a| self.guard_argument(f, a, guards))
            }
            _ => map_operands(f, e, |f, a| self.guard_expr(f, a, guards)),
        }
    }

    /// Appends the run-time checks of a conditional that evaluates only one side to `guards`. The checks of a side apply only if
    /// the side is chosen. A condition that reads memory is bound to a variable, so that the checks and the conditional agree on
    /// the chosen side. Returns the condition and both sides in their guarded forms.
    fn guard_conditional(
        &mut self,
        f: &mut PrimFunc,
        c: Expr,
        sides: [Expr; 2],
        guards: &mut Vec<Guard>,
    ) -> [Expr; 3] {
        let [(a, guards_a), (b, guards_b)] = [(sides[0], true), (sides[1], false)]
            .map(|(side, holds)| self.guard_branch(f, c, holds, side));
        let unguarded = guards_a.is_empty() && guards_b.is_empty();
        let c = if unguarded || !reads_memory(f, c) { c } else { self.bindings.bind(f, c, guards) };
        for (holds, inner) in [(true, guards_a), (false, guards_b)] {
            let chosen = if holds { c } else { f.add_expr(ExprData::Not(c)) };
            guards.extend(inner.into_iter().map(|guard| guard_if(f, chosen, guard)));
        }
        [c, a, b]
    }

    /// Returns the guarded form of the side of a conditional that is chosen if the condition `c` is `holds`, and the run-time
    /// checks that are needed if this side is chosen.
    fn guard_branch(
        &mut self,
        f: &mut PrimFunc,
        c: Expr,
        holds: bool,
        side: Expr,
    ) -> (Expr, Vec<Guard>) {
        let mut inner = Vec::new();
        // Other expressions must not use variables that are bound only if this side is chosen.
        let outer = self.bindings.clone();
        let side = self.in_scope(|this| {
            this.facts.assume(f, c, holds);
            this.guard_expr(f, side, &mut inner)
        });
        self.bindings = outer;
        (side, inner)
    }

    /// Appends the run-time checks of a `T.Select`, which evaluates both sides, to `guards`, and returns its guarded form. If a
    /// side is in bounds only for one value of a scalar condition, the `T.Select` becomes `T.if_then_else`.
    fn guard_select(
        &mut self,
        f: &mut PrimFunc,
        [c, a, b]: [Expr; 3],
        guards: &mut Vec<Guard>,
    ) -> Expr {
        let c = self.guard_expr(f, c, guards);
        if f.expr_ty(c).lanes != 1 || [a, b].into_iter().all(|side| self.is_proved(f, side)) {
            let [a, b] = [a, b].map(|side| self.guard_expr(f, side, guards));
            return f.add_expr(ExprData::Select(c, a, b));
        }
        let lazy = self.guard_conditional(f, c, [a, b], guards);
        f.call(Intrin::IfThenElse, &lazy)
    }

    /// Appends the run-time checks of a conjunction or disjunction whose second operand reads memory to `guards`, and returns its
    /// guarded form. If the second operand is in bounds only for one value of the first operand, the expression becomes
    /// `T.if_then_else`.
    fn guard_logical(
        &mut self,
        f: &mut PrimFunc,
        op: BinOp,
        a: Expr,
        b: Expr,
        guards: &mut Vec<Guard>,
    ) -> Expr {
        let a = self.guard_expr(f, a, guards);
        if self.is_proved(f, b) {
            let b = self.guard_expr(f, b, guards);
            return f.binary(op, a, b);
        }
        let decided = f.add_expr(ExprData::Int(i64::from(op == BinOp::Or), Ty::BOOL));
        let sides = if op == BinOp::And { [b, decided] } else { [decided, b] };
        let lazy = self.guard_conditional(f, a, sides, guards);
        f.call(Intrin::IfThenElse, &lazy)
    }

    /// Appends the run-time checks of a call argument to `guards`, and returns its guarded form. If the argument is the address of
    /// an element, only the loads in its indices are checked, because the element is not read here: the callee receives the bounds
    /// of the buffer, or [`Checker::guard_kernel_call`] checks the range that the callee accesses.
    fn guard_argument(&mut self, f: &mut PrimFunc, a: Expr, guards: &mut Vec<Guard>) -> Expr {
        if !matches!(f.expr(a), ExprData::Call(Intrin::AddressOf, ..)) {
            return self.guard_expr(f, a, guards);
        }
        map_operands(f, a, |f, element| {
            map_operands(f, element, |f, i| self.guard_expr(f, i, guards))
        })
    }

    /// Appends the run-time checks of an argument of a linked function that takes addresses to `guards`, and returns the argument.
    /// An argument that reads memory is loaded once, into a variable, so that the check of the call and the call itself use the
    /// same value.
    fn guard_kernel_argument(
        &mut self,
        f: &mut PrimFunc,
        a: Expr,
        guards: &mut Vec<Guard>,
    ) -> Expr {
        if !matches!(f.expr(a), ExprData::Call(Intrin::AddressOf, ..)) {
            return self.guard_and_bind(f, a, guards);
        }
        map_operands(f, a, |f, element| {
            map_operands(f, element, |f, i| self.guard_and_bind(f, i, guards))
        })
    }

    /// Appends the run-time checks of a call that passes addresses to a linked function to `guards`. For a vector math function
    /// (`pliant_vec_*`), checks that the range that it accesses is in bounds. For other functions, adds a check that always fails.
    fn guard_kernel_call(&mut self, f: &mut PrimFunc, args: &[Expr], guards: &mut Vec<Guard>) {
        match vector_math_bounds::bounds_conditions(f, args)
            .zip(vector_math_bounds::callee_symbol(f, args))
        {
            Some((inside, symbol)) => {
                let message = format!("a call of '{symbol}' accesses elements outside its buffers");
                let message: Arc<str> = CheckFailure::Index.mark(&message).into();
                guards.extend(inside.into_iter().map(|p| Guard::Check(p, message.clone())));
            }
            None => {
                let never = f.add_expr(ExprData::Int(0, Ty::BOOL));
                let name = match args.first().map(|&name| f.expr(name)) {
                    Some(ExprData::Str(name)) => format!("'{name}'"),
                    _ => "a linked function".to_string(),
                };
                let message = format!(
                    "the address arguments of {name} must be addresses of elements of row-major buffers with the data type of \
                     the function"
                );
                guards.push(Guard::Check(never, message.into()));
            }
        }
    }

    /// Appends the run-time checks of an access to a buffer to `guards`. Returns its indices, in which checked values that were
    /// loaded from memory are replaced by variables that guards bind.
    pub(super) fn guard_access(
        &mut self,
        f: &mut PrimFunc,
        buffer: Buffer,
        indices: &[Expr],
        guards: &mut Vec<Guard>,
    ) -> Box<[Expr]> {
        let bound = AccessBounds::of(f, buffer, indices.len());
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
            self.guard_index(f, i, n, message, guards)
        })
        .collect()
    }

    /// Appends a run-time check that an index is in `0..n` to `guards`, unless this is proved. Returns the index, in which values
    /// that were loaded from memory are replaced by variables that guards bind.
    fn guard_index(
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
        let i = self.bindings.bind_loads(f, i, guards);
        let zero = f.int(0);
        let ends = end_lanes(f, i)
            .filter(|_| ends_bound_all_lanes(f, i))
            .unwrap_or_else(|| min_and_max_lanes(f, i));
        for e in ends {
            if let Some(inside) = self.facts.range_check(f, e, zero, n) {
                guards.push(Guard::Check(inside, message.clone()));
            }
        }
        i
    }
}

/// The bounds that the indices of an access must satisfy.
pub(super) struct AccessBounds {
    /// For each index of the access, the size `n` for which the index must be in `0..n`.
    pub(super) sizes: Vec<Expr>,
    /// Conditions on the strides and dims of the buffer that must also be checked, because `sizes` is correct only if they hold.
    pub(super) conditions: Vec<Expr>,
    /// Whether the access has one linear index over all elements of the buffer.
    flat: bool,
}

impl AccessBounds {
    /// Returns the limits that the indices of an access must not exceed: the dims of the buffer for an access with one index per
    /// dim (`count` indices), or the number of elements for an access with one flat index.
    pub(super) fn of(f: &mut PrimFunc, buffer: Buffer, count: usize) -> AccessBounds {
        let data = f.buffer(buffer).clone();
        if count == 1 && !data.strides.is_empty() && (f.is_flat() || data.shape.len() != 1) {
            let (span, conditions) = span(f, &data);
            return AccessBounds { sizes: vec![span], conditions, flat: true };
        }
        let flat = count == 1 && data.shape.len() != 1;
        let sizes = match () {
            () if count == data.shape.len() => data.shape.to_vec(),
            () if flat => vec![data.shape.iter().fold(f.int(1), |acc, &d| f.mul(acc, d))],
            () => Vec::new(),
        };
        AccessBounds { sizes, conditions: Vec::new(), flat }
    }
}

/// Returns the values of an index that must be checked: a scalar index itself, or the first and the last lane of a ramp. `None`
/// for other vectors.
pub(super) fn end_lanes(f: &mut PrimFunc, i: Expr) -> Option<Vec<Expr>> {
    match *f.expr(i) {
        ExprData::Ramp(base, stride, lanes) => {
            let last = f.add_expr(ExprData::Int(i64::from(lanes) - 1, f.expr_ty(stride)));
            let distance = f.mul(stride, last);
            Some(vec![base, f.add(base, distance)])
        }
        _ => (f.expr_ty(i).lanes == 1).then(|| vec![i]),
    }
}

/// Whether all lanes of an index are in bounds if its first and last lane are. This holds for scalars, and for int64 ramps with a
/// small constant stride, which cannot wrap around between these lanes.
fn ends_bound_all_lanes(f: &PrimFunc, i: Expr) -> bool {
    match *f.expr(i) {
        ExprData::Ramp(_, stride, _) => {
            let small = |n: i64| n.unsigned_abs() <= SIZE_LIMIT.unsigned_abs();
            f.expr_ty(i).dtype == DType::Int64 && f.as_int(stride).is_some_and(small)
        }
        _ => true,
    }
}

/// Returns expressions for the minimum and the maximum of the lanes of a vector.
fn min_and_max_lanes(f: &mut PrimFunc, i: Expr) -> Vec<Expr> {
    let ty = f.expr_ty(i).with_lanes(1);
    [Intrin::VectorMin, Intrin::VectorMax]
        .map(|extreme| f.add_expr(ExprData::Call(extreme, [i].into(), ty)))
        .to_vec()
}

/// Whether generated code may execute a load of the expression twice, because each side of a conditional executes its own loads.
pub(super) fn may_load_twice(f: &PrimFunc, e: Expr) -> bool {
    let mut has_conditional = false;
    for_each_expr(f, e, |e| {
        has_conditional |= matches!(f.expr(e), ExprData::Call(Intrin::IfThenElse, ..));
    });
    has_conditional && reads_memory(f, e)
}

/// Whether a call of a linked function has addresses as arguments, or calls a vector math function (`pliant_vec_*`).
pub(super) fn takes_addresses(f: &PrimFunc, args: &[Expr]) -> bool {
    let address = |&e: &Expr| matches!(f.expr(e), ExprData::Call(Intrin::AddressOf, ..));
    vector_math_bounds::callee_symbol(f, args).is_some() || args.iter().any(address)
}

/// Makes a guard (a run-time check or a binding) apply only if the condition `chosen` holds, which selects one side of a
/// conditional. Only this side uses the variable that the guard binds.
pub(super) fn guard_if(f: &mut PrimFunc, chosen: Expr, guard: Guard) -> Guard {
    match guard {
        Guard::Check(p, message) => Guard::Check(implies(f, chosen, p), message),
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

/// Returns the number of elements from the first to the last element of a strided buffer, and the conditions under which this
/// number is correct: the buffer is not empty, and no stride is negative.
fn span(f: &mut PrimFunc, data: &BufferData) -> (Expr, Vec<Expr>) {
    let (zero, one) = (f.int(0), f.int(1));
    let (mut span, mut conditions) = (one, Vec::new());
    for (&dim, &stride) in data.shape.iter().zip(&data.strides) {
        conditions.push(f.binary(BinOp::Le, one, dim));
        conditions.push(f.binary(BinOp::Le, zero, stride));
        let steps = f.binary(BinOp::Sub, dim, one);
        let distance = f.mul(steps, stride);
        span = f.add(span, distance);
    }
    (span, conditions)
}

fn index_message(f: &PrimFunc, buffer: Buffer, dim: usize, n: Expr) -> Arc<str> {
    let (name, n) = (&f.buffer(buffer).name, crate::format_index_expressions::format_expr(f, n));
    CheckFailure::Index
        .mark(&format!("index out of bounds: dim {dim} of '{name}' has {n} elements"))
        .into()
}

fn flat_message(name: &str) -> Arc<str> {
    CheckFailure::Index
        .mark(&format!("index out of bounds: the linear index is outside '{name}'"))
        .into()
}

/// Returns the condition "`c` implies `p`", which evaluates `p` only if `c` holds.
fn implies(f: &mut PrimFunc, c: Expr, p: Expr) -> Expr {
    let always = f.add_expr(ExprData::Int(1, Ty::BOOL));
    f.call(Intrin::IfThenElse, &[c, p, always])
}
