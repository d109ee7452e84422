//! CheckBounds: an index that cannot be proved to lie inside its buffer is checked at run time, so that no function
//! reads or writes outside its buffers. A `T.Select` with a side that is in bounds only if it is chosen becomes
//! `T.if_then_else`, and so does a conjunction that guards an access.
//!
//! A checked value that comes from memory is loaded once: a `T.let` binds it in front of the check, and the access
//! uses the variable ([`crate::guards`]). Loop extents and kernel arguments that come from memory are bound too.
//! [`crate::index_facts`] proves accesses in bounds.

mod expr;
mod proved;

use pliant_ir::AttrValue;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BlockData, Buffer, BufferData, Expr, ExprData, IterKind, IterVar, PrimFunc, Scope, Stmt,
    StmtData, Ty, Var, VarTy,
};
use pliant_tensor::{CheckFailure, DType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::LowerError;
use crate::guards::{self, Bindings, Guard};
use crate::index_facts::{IndexFacts, Mark};
use crate::walk::{for_each_stmt, own_exprs, substitute_expr, uses_any};

/// The attribute that lists the int64 parameters, by position, that may have any value: no proof relies on their bounds.
/// CheckBounds recomputes it and never takes it from a script.
pub const UNBOUNDED: &str = "tir.unbounded_params";

/// The int64 parameters that are used only in values and conditions: no index and no size depends on them, so that no proof needs
/// their bounds. A condition over them is assumed only if its arithmetic fits 64 bits for all their values
/// ([`crate::fit::Fact::exact`]).
pub(crate) fn unbounded_params(f: &PrimFunc) -> Vec<usize> {
    let mut bounded: FxHashSet<Var> = FxHashSet::default();
    let mut note = |e: Expr| {
        for_each_expr(f, e, |e| {
            if let ExprData::Var(v) = f.expr(e) {
                bounded.insert(*v);
            }
        });
    };
    let mut values = Vec::new();
    for_each_stmt(f, f.body, &mut |_, data| match data {
        StmtData::Store { indices, value, .. } => {
            indices.iter().for_each(|&i| note(i));
            values.push(*value);
        }
        StmtData::Evaluate(e) | StmtData::If(e, ..) => values.push(*e),
        _ => own_exprs(data, &mut note),
    });
    for value in values {
        for_each_expr(f, value, |e| {
            if let ExprData::Load(_, indices) = f.expr(e) {
                indices.iter().for_each(|&i| note(i));
            }
        });
    }
    for b in f.buffer_ids() {
        let data = f.buffer(b);
        data.shape.iter().chain(&data.strides).chain(&data.elem_offset).for_each(|&e| note(e));
    }
    let free = |p: &Var| f.var(*p).ty == VarTy::Value(Ty::I64) && !bounded.contains(p);
    f.params.iter().enumerate().filter(|(_, p)| free(p)).map(|(i, _)| i).collect()
}

/// The positions that [`UNBOUNDED`] lists; empty before CheckBounds has run.
pub(crate) fn listed_unbounded(f: &PrimFunc) -> Vec<usize> {
    let Some(AttrValue::List(list)) = f.attrs.get(UNBOUNDED) else { return Vec::new() };
    list.iter().filter_map(|v| usize::try_from(v.as_int()?).ok()).collect()
}

/// Inserts the checks.
///
/// # Errors
/// The size of an allocation depends on memory, which may change while the buffer lives.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let unbounded = unbounded_params(f);
    let mut c = Checker {
        facts: IndexFacts::at_entry(f, &unbounded),
        known: FxHashSet::default(),
        guarded_uses: 0,
        bindings: Bindings::default(),
        loops: Vec::new(),
        error: None,
    };
    f.attrs.shift_remove(UNBOUNDED);
    if !unbounded.is_empty() {
        let list = unbounded.iter().map(|&i| AttrValue::Int(i as i64)).collect();
        f.attrs.insert(UNBOUNDED.into(), AttrValue::List(list));
    }
    let body = f.body;
    f.body = c.stmt(f, body);
    c.error.map_or(Ok(()), Err)
}

struct Checker {
    facts: IndexFacts,
    /// Expressions that need no guards in the current scope, since all their accesses are in bounds.
    known: FxHashSet<Expr>,
    /// The number of expressions found so far whose accesses have guards.
    guarded_uses: usize,
    /// Variables that the guards of the current statement bind.
    bindings: Bindings,
    /// The loops around the current statement, outermost first.
    loops: Vec<Loop>,
    error: Option<LowerError>,
}

/// A loop around a statement.
struct Loop {
    var: Var,
    min: Expr,
    extent: Expr,
    /// The facts that hold in front of the loop.
    before: Mark,
}

impl Checker {
    /// Adds the facts about a buffer that is allocated here: its dims are computed with overflow checks. Rejects strides, offsets,
    /// and sizes that depend on memory.
    fn allocated(&mut self, f: &PrimFunc, b: Buffer) {
        let data = f.buffer(b);
        if !data.strides.is_empty() || data.elem_offset.is_some() {
            let message = format!("the allocated buffer '{}' has strides or an offset", data.name);
            self.error.get_or_insert(LowerError::new("CheckBounds", message));
        }
        for &dim in &f.buffer(b).shape {
            if !self.facts.fact(f, dim).pure {
                let (dim, name) = (crate::text::expr(f, dim), &f.buffer(b).name);
                let message = format!("the size {dim} of the buffer '{name}' depends on memory");
                self.error.get_or_insert(LowerError::new("CheckBounds", message));
            }
        }
        self.facts.allocated(f, b);
    }

    fn scope<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let (mark, known) = (self.facts.mark(), self.known.clone());
        let out = run(self);
        self.facts.reset(mark);
        self.known = known;
        out
    }

    /// Wraps a statement in its guards. It does not reuse variables that the guards of other statements bind.
    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        let outer = std::mem::take(&mut self.bindings);
        let mut guards = Vec::new();
        let new = self.guarded(f, s, &mut guards);
        let new = f.add_stmt(new);
        self.bindings = outer;
        guards::wrap(f, &guards, new)
    }

    fn guarded(&mut self, f: &mut PrimFunc, s: Stmt, guards: &mut Vec<Guard>) -> StmtData {
        match f.stmt(s).clone() {
            StmtData::Seq(list) => self.scope(|c| {
                let mut out = Vec::with_capacity(list.len());
                for s in list {
                    out.push(c.stmt(f, s));
                    c.checked(f, s);
                }
                StmtData::Seq(out)
            }),
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let (min, extent) = (self.bound(f, min, guards), self.bound(f, extent, guards));
                let before = self.facts.mark();
                self.loops.push(Loop { var, min, extent, before });
                let body = self.scope(|c| {
                    c.facts.range(f, var, min, extent);
                    c.stmt(f, body)
                });
                self.loops.pop();
                StmtData::For { var, min, extent, kind, body, annotations }
            }
            StmtData::While(condition, body) => self.while_loop(f, condition, body),
            StmtData::If(condition, then, other) => {
                let condition = self.expr(f, condition, guards);
                let then = self.assuming(f, condition, true, then);
                let other = other.map(|other| self.assuming(f, condition, false, other));
                StmtData::If(condition, then, other)
            }
            StmtData::Let(var, value, body) => {
                let value = self.expr(f, value, guards);
                let body = self.scope(|c| {
                    c.facts.bound(f, var, value);
                    c.stmt(f, body)
                });
                StmtData::Let(var, value, body)
            }
            StmtData::Store { buffer, indices, value } => {
                let indices: Vec<Expr> = indices.iter().map(|&i| self.expr(f, i, guards)).collect();
                let value = self.expr(f, value, guards);
                let indices = self.access(f, buffer, &indices, guards);
                StmtData::Store { buffer, indices, value }
            }
            StmtData::Alloc(b, body) => {
                let body = self.scope(|c| {
                    c.allocated(f, b);
                    c.stmt(f, body)
                });
                StmtData::Alloc(b, body)
            }
            StmtData::Evaluate(e) => StmtData::Evaluate(self.expr(f, e, guards)),
            StmtData::Assert(condition, message, body) => {
                let condition = self.expr(f, condition, guards);
                let condition = self.bindings.loads(f, condition, guards);
                StmtData::Assert(condition, message, self.assuming(f, condition, true, body))
            }
            StmtData::Block(b) => StmtData::Block(Box::new(self.block(f, *b, guards))),
        }
    }

    /// Guards an expression that must be evaluated once: a guard binds it to a variable if it reads memory.
    fn bound(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        let e = self.expr(f, e, guards);
        if guards::reads(f, e) { self.bindings.whole(f, e, guards) } else { e }
    }

    /// An index, with its loads bound to variables if generated code may execute one of them twice. Proofs assume that all
    /// occurrences of a load have one value, but each side of a conditional loads anew.
    fn bind_repeated_loads(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        if expr::loads_may_repeat(f, e) { self.bindings.loads(f, e, guards) } else { e }
    }

    fn assuming(&mut self, f: &mut PrimFunc, condition: Expr, holds: bool, s: Stmt) -> Stmt {
        self.scope(|c| {
            c.facts.assume(f, condition, holds);
            c.stmt(f, s)
        })
    }

    /// If the condition has guards, it is computed into a buffer under them, before the loop and after each iteration.
    fn while_loop(&mut self, f: &mut PrimFunc, condition: Expr, body: Stmt) -> StmtData {
        let mut guards = Vec::new();
        let checked = self.expr(f, condition, &mut guards);
        let body = self.scope(|c| c.stmt(f, body));
        if guards.is_empty() {
            return StmtData::While(checked, body);
        }
        let (zero, one) = (f.int(0), f.int(1));
        let go = f.add_buffer(BufferData {
            name: "go".into(),
            dtype: DType::Bool,
            shape: vec![one],
            strides: Vec::new(),
            elem_offset: None,
            scope: Scope::Local,
        });
        let test = f.store(go, &[zero], checked);
        let first = guards::wrap(f, &guards, test);
        // `unique_vars` renames the variables of this copy.
        let again = guards::wrap(f, &guards, test);
        let body = f.add_stmt(StmtData::Seq(vec![body, again]));
        let condition = f.load(go, &[zero]);
        let repeated = f.add_stmt(StmtData::While(condition, body));
        let both = f.add_stmt(StmtData::Seq(vec![first, repeated]));
        StmtData::Alloc(go, both)
    }

    /// Assumes, for the statements that follow, the conditions that a statement asserts at its start.
    fn checked(&mut self, f: &PrimFunc, mut s: Stmt) {
        loop {
            s = match f.stmt(s) {
                StmtData::Block(b) if b.iters.is_empty() && b.predicate.is_none() => b.body,
                StmtData::Assert(condition, _, body) => {
                    self.facts.assume(f, *condition, true);
                    *body
                }
                _ => return,
            };
        }
    }

    fn block(&mut self, f: &mut PrimFunc, mut b: BlockData, guards: &mut Vec<Guard>) -> BlockData {
        let map: FxHashMap<Var, Expr> = b.iters.iter().map(|i| (i.var, i.binding)).collect();
        self.scope(|c| {
            let predicate = b.predicate.map(|p| {
                let outer = substitute_expr(f, p, &map);
                let checked = c.bound(f, outer, guards);
                c.facts.assume(f, outer, true);
                c.facts.assume(f, p, true);
                if checked != outer {
                    b.predicate = Some(checked);
                }
                checked
            });
            // The bindings are evaluated in front of the predicate, so all loads in them are bound under it.
            let (outer, mut inner) = (c.bindings.clone(), Vec::new());
            for iter in &mut b.iters {
                iter.min = c.bound(f, iter.min, &mut inner);
                iter.extent = c.bound(f, iter.extent, &mut inner);
                iter.binding = c.expr(f, iter.binding, &mut inner);
                iter.binding = c.bindings.loads(f, iter.binding, &mut inner);
                if let Some(inside) = c.facts.inside(f, iter.binding, iter.min, iter.extent) {
                    let name = &f.var(iter.var).name;
                    let message = format!("axis {name} of block {} leaves its range", b.name);
                    inner.push(Guard::Check(inside, CheckFailure::Index.mark(&message).into()));
                }
                c.facts.range(f, iter.var, iter.min, iter.extent);
            }
            if let Some(predicate) = predicate {
                c.bindings = outer;
                inner = inner.into_iter().map(|g| expr::guarded_by(f, predicate, g)).collect();
            }
            guards.extend(inner);
            b.allocs.iter().for_each(|&b| c.allocated(f, b));
            // The init runs even if a reduction axis is empty.
            b.init = b.init.map(|s| c.before_reductions(f, &b, |c, f| c.stmt(f, s)));
            b.body = c.stmt(f, b.body);
            if b.init.is_none() && b.iters.iter().any(|i| i.kind == IterKind::Reduce) {
                b.body = c.accumulation(f, &b);
            }
        });
        b
    }

    /// Calls `run` with the facts that hold in a block even if its reduction axes are empty: without those that hold
    /// only inside of the reduction loops.
    fn before_reductions<T>(
        &mut self,
        f: &mut PrimFunc,
        b: &BlockData,
        run: impl FnOnce(&mut Self, &mut PrimFunc) -> T,
    ) -> T {
        let reduces = |i: &&IterVar| i.kind == IterKind::Reduce;
        let reduced = |f: &PrimFunc, v: Var| {
            b.iters.iter().filter(reduces).any(|i| uses_any(f, i.binding, &|x| x == v))
        };
        let Some(outermost) = self.loops.iter().position(|l| reduced(f, l.var)) else {
            // Reduction axes that are not bound to a loop have one value.
            return run(self, f);
        };
        let own = |l: &&Loop| {
            let varies = |e| uses_any(f, e, &|v| reduced(f, v));
            !reduced(f, l.var) && !varies(l.min) && !varies(l.extent)
        };
        let spatial: Vec<(Var, Expr, Expr)> = self.loops[outermost..]
            .iter()
            .filter(own)
            .map(|l| (l.var, l.min, l.extent))
            .chain(b.iters.iter().filter(|i| !reduces(i)).map(|i| (i.var, i.min, i.extent)))
            .collect();
        self.scope(|c| {
            c.facts.reset(c.loops[outermost].before.clone());
            c.known.clear();
            for (var, min, extent) in spatial {
                c.facts.range(f, var, min, extent);
            }
            run(c, f)
        })
    }

    /// The body of a reduction without an init, which accumulates into its result. Schedules load and store the result
    /// once around the reduction loops, so this access must be in bounds even if the loops have no iterations. If that
    /// is not proved, the body gets a guard, which prevents scheduling it as a reduction.
    fn accumulation(&mut self, f: &mut PrimFunc, b: &BlockData) -> Stmt {
        let StmtData::Store { buffer, indices, .. } = f.stmt(b.body).clone() else { return b.body };
        let mut guards = Vec::new();
        self.before_reductions(f, b, |c, f| {
            let outer = std::mem::take(&mut c.bindings);
            let indices: Vec<Expr> = indices.iter().map(|&i| c.expr(f, i, &mut guards)).collect();
            c.access(f, buffer, &indices, &mut guards);
            c.bindings = outer;
        });
        guards::wrap(f, &guards, b.body)
    }
}
