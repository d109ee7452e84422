//! CheckBounds: inserts a run-time check of each index that is not provably in bounds, so that no function reads or
//! writes outside its buffers. If the accesses of one side of a `T.Select` are in bounds only when that side is chosen,
//! the `T.Select` becomes `T.if_then_else`. A conjunction becomes `T.if_then_else`, too, if an access in its second
//! operand is in bounds only when the first operand is true.
//!
//! Checked values that are read from memory are loaded once: a `T.let` in front of the check binds the value to a
//! variable, and the access uses this variable ([`crate::access_guards`]). Loop extents and kernel arguments that are
//! read from memory are bound to variables, too. [`crate::index_range_analysis`] proves that accesses are in bounds.

mod expression_guards;
mod in_bounds_proofs;

use pliant_ir::AttrValue;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BlockData, Buffer, Expr, ExprData, IterKind, IterVar, PrimFunc, Stmt, StmtData, Ty, Var, VarTy,
};
use pliant_tensor::{CheckFailure, DType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::access_guards::{self, Bindings, Guard};
use crate::index_range_analysis::{IndexFacts, Snapshot};
use crate::lowering_error::LowerError;
use crate::statement_traversal::{direct_exprs, for_each_stmt, substitute_expr, uses_any};

/// The function attribute that lists the positions of int64 parameters that may have any value, so that no proof may rely on
/// bounds of these parameters. CheckBounds recomputes the attribute and ignores its value in scripts.
pub const UNBOUNDED_PARAMS: &str = "tir.unbounded_params";

/// Returns the positions of the int64 parameters on which no index and no size depends; they are used only in values and
/// conditions. No proof needs bounds of these parameters. A condition on them is assumed only if its arithmetic cannot overflow
/// for any values ([`crate::overflow_analysis::Fact::exact`]).
pub(crate) fn unbounded_params(f: &PrimFunc) -> Vec<usize> {
    let mut bounded: FxHashSet<Var> = FxHashSet::default();
    let mut add_vars = |e: Expr| {
        for_each_expr(f, e, |e| {
            if let ExprData::Var(v) = f.expr(e) {
                bounded.insert(*v);
            }
        });
    };
    let mut values = Vec::new();
    for_each_stmt(f, f.body, &mut |_, data| match data {
        StmtData::Store { indices, value, .. } => {
            indices.iter().for_each(|&i| add_vars(i));
            values.push(*value);
        }
        StmtData::Evaluate(e) | StmtData::If(e, ..) => values.push(*e),
        _ => direct_exprs(data, &mut add_vars),
    });
    for value in values {
        for_each_expr(f, value, |e| {
            if let ExprData::Load(_, indices) = f.expr(e) {
                indices.iter().for_each(|&i| add_vars(i));
            }
        });
    }
    for b in f.buffer_ids() {
        let data = f.buffer(b);
        data.shape.iter().chain(&data.strides).chain(&data.elem_offset).for_each(|&e| add_vars(e));
    }
    let is_unbounded = |p: &Var| f.var(*p).ty == VarTy::Value(Ty::I64) && !bounded.contains(p);
    f.params.iter().enumerate().filter(|(_, p)| is_unbounded(p)).map(|(i, _)| i).collect()
}

/// Returns the positions that the attribute [`UNBOUNDED_PARAMS`] lists; empty before CheckBounds has run.
pub(crate) fn recorded_unbounded_params(f: &PrimFunc) -> Vec<usize> {
    let Some(AttrValue::List(list)) = f.attrs.get(UNBOUNDED_PARAMS) else { return Vec::new() };
    list.iter().filter_map(|v| usize::try_from(v.as_int()?).ok()).collect()
}

/// Inserts the run-time checks into a function.
///
/// # Errors
/// An allocated buffer has strides or an offset, or its size is read from memory, which may change during the buffer's lifetime.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let unbounded = unbounded_params(f);
    let mut c = Checker {
        facts: IndexFacts::at_entry(f, &unbounded),
        proved: FxHashSet::default(),
        guarded_uses: 0,
        bindings: Bindings::default(),
        loops: Vec::new(),
        error: None,
    };
    f.attrs.shift_remove(UNBOUNDED_PARAMS);
    if !unbounded.is_empty() {
        let list = unbounded.iter().map(|&i| AttrValue::Int(i as i64)).collect();
        f.attrs.insert(UNBOUNDED_PARAMS.into(), AttrValue::List(list));
    }
    let body = f.body;
    f.body = c.stmt(f, body);
    c.error.map_or(Ok(()), Err)
}

/// Inserts the run-time checks into one function.
struct Checker {
    /// The facts that hold at the current statement, such as ranges of variables.
    facts: IndexFacts,
    /// Expressions that need no run-time checks in the current scope, because all their accesses are provably in bounds.
    proved: FxHashSet<Expr>,
    /// The number of visited expressions whose accesses need run-time checks. If it does not change while an expression is visited,
    /// the expression needs none.
    guarded_uses: usize,
    /// The values of the current statement that are loaded from memory and bound to variables, so that a check and the checked
    /// access use the same value.
    bindings: Bindings,
    /// The loops around the current statement, outermost first.
    loops: Vec<Loop>,
    /// The first error that was found in the function; `None` if there is none so far.
    error: Option<LowerError>,
}

/// A loop that encloses the current statement.
struct Loop {
    var: Var,
    min: Expr,
    extent: Expr,
    /// The facts that hold in front of the loop.
    before: Snapshot,
}

impl Checker {
    /// Rejects an allocated buffer with strides, an offset, or a size that is read from memory. Otherwise assumes that the
    /// arithmetic in its dims does not overflow, because the allocation checks this.
    fn check_allocation(&mut self, f: &PrimFunc, b: Buffer) {
        let data = f.buffer(b);
        if !data.strides.is_empty() || data.elem_offset.is_some() {
            let message = format!(
                "the allocated buffer '{}' has strides or an offset, which only buffers of parameters can have",
                data.name
            );
            self.error.get_or_insert(LowerError::new("CheckBounds", message));
        }
        for &dim in &f.buffer(b).shape {
            if !self.facts.fact(f, dim).pure {
                let (dim, name) =
                    (crate::format_index_expressions::format_expr(f, dim), &f.buffer(b).name);
                let message = format!(
                    "the size {dim} of the buffer '{name}' is read from memory, which may change; use a parameter or a dim of a parameter"
                );
                self.error.get_or_insert(LowerError::new("CheckBounds", message));
            }
        }
        self.facts.assume_allocation(f, b);
    }

    /// Calls `run` in a new scope: the facts about sizes and indices that it adds are dropped afterwards.
    fn in_scope<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let (snapshot, proved) = (self.facts.snapshot(), self.proved.clone());
        let result = run(self);
        self.facts.restore(snapshot);
        self.proved = proved;
        result
    }

    /// Returns a statement with the run-time checks of its accesses in front of it. Every statement has its own checks; it does not
    /// use variables that the guards of enclosing statements bind.
    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        let outer = std::mem::take(&mut self.bindings);
        let mut guards = Vec::new();
        let new = self.guard_stmt(f, s, &mut guards);
        let new = f.add_stmt(new);
        self.bindings = outer;
        access_guards::wrap(f, &guards, new)
    }

    /// Appends the run-time checks of a statement to `guards`. Returns the statement, in which checked values that were loaded from
    /// memory are replaced by variables that guards bind.
    fn guard_stmt(&mut self, f: &mut PrimFunc, s: Stmt, guards: &mut Vec<Guard>) -> StmtData {
        match f.stmt(s).clone() {
            StmtData::Seq(list) => self.in_scope(|c| {
                let mut out = Vec::with_capacity(list.len());
                for s in list {
                    out.push(c.stmt(f, s));
                    c.assume_asserted(f, s);
                }
                StmtData::Seq(out)
            }),
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let (min, extent) =
                    (self.guard_and_bind(f, min, guards), self.guard_and_bind(f, extent, guards));
                let before = self.facts.snapshot();
                self.loops.push(Loop { var, min, extent, before });
                let body = self.in_scope(|c| {
                    c.facts.assume_range(f, var, min, extent);
                    c.stmt(f, body)
                });
                self.loops.pop();
                StmtData::For { var, min, extent, kind, body, annotations }
            }
            StmtData::While(condition, body) => self.while_loop(f, condition, body),
            StmtData::If(condition, then, other) => {
                let condition = self.guard_expr(f, condition, guards);
                let then = self.stmt_assuming(f, condition, true, then);
                let other = other.map(|other| self.stmt_assuming(f, condition, false, other));
                StmtData::If(condition, then, other)
            }
            StmtData::Let(var, value, body) => {
                let value = self.guard_expr(f, value, guards);
                let body = self.in_scope(|c| {
                    c.facts.assume_binding(f, var, value);
                    c.stmt(f, body)
                });
                StmtData::Let(var, value, body)
            }
            StmtData::Store { buffer, indices, value } => {
                let indices: Vec<Expr> =
                    indices.iter().map(|&i| self.guard_expr(f, i, guards)).collect();
                let value = self.guard_expr(f, value, guards);
                let indices = self.guard_access(f, buffer, &indices, guards);
                StmtData::Store { buffer, indices, value }
            }
            StmtData::Alloc(b, body) => {
                let body = self.in_scope(|c| {
                    c.check_allocation(f, b);
                    c.stmt(f, body)
                });
                StmtData::Alloc(b, body)
            }
            StmtData::Evaluate(e) => StmtData::Evaluate(self.guard_expr(f, e, guards)),
            StmtData::Assert(condition, message, body) => {
                let condition = self.guard_expr(f, condition, guards);
                let condition = self.bindings.bind_loads(f, condition, guards);
                StmtData::Assert(condition, message, self.stmt_assuming(f, condition, true, body))
            }
            StmtData::Block(b) => StmtData::Block(Box::new(self.guard_block(f, *b, guards))),
        }
    }

    /// Appends the run-time checks of an expression that must be evaluated only once to `guards`. If the expression reads memory,
    /// binds it to a variable and returns the variable.
    fn guard_and_bind(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        let e = self.guard_expr(f, e, guards);
        if access_guards::reads_memory(f, e) { self.bindings.bind(f, e, guards) } else { e }
    }

    /// Binds the loads of an index to variables if generated code may execute a load twice. Proofs assume that all occurrences of
    /// a load have the same value, but each side of a conditional executes its own load.
    fn bind_repeated_loads(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        if expression_guards::may_load_twice(f, e) {
            self.bindings.bind_loads(f, e, guards)
        } else {
            e
        }
    }

    /// Adds the run-time checks of a statement, under the assumption that the condition is true (`holds`) or false.
    fn stmt_assuming(&mut self, f: &mut PrimFunc, condition: Expr, holds: bool, s: Stmt) -> Stmt {
        self.in_scope(|c| {
            c.facts.assume(f, condition, holds);
            c.stmt(f, s)
        })
    }

    /// Adds the run-time checks of a `while` loop. If its condition needs checks, the checked condition is evaluated before the
    /// loop and after each iteration, and stored in a buffer from which the loop reads it.
    fn while_loop(&mut self, f: &mut PrimFunc, condition: Expr, body: Stmt) -> StmtData {
        let mut guards = Vec::new();
        let checked = self.guard_expr(f, condition, &mut guards);
        let body = self.in_scope(|c| c.stmt(f, body));
        if guards.is_empty() {
            return StmtData::While(checked, body);
        }
        let zero = f.int(0);
        let condition_buffer = f.local_buffer("go", DType::Bool, 1);
        let store = f.store(condition_buffer, &[zero], checked);
        let before_loop = access_guards::wrap(f, &guards, store);
        // `unique_vars` renames the variables of this copy.
        let after_iteration = access_guards::wrap(f, &guards, store);
        let body = f.add_stmt(StmtData::Seq(vec![body, after_iteration]));
        let condition = f.load(condition_buffer, &[zero]);
        let while_loop = f.add_stmt(StmtData::While(condition, body));
        let seq = f.add_stmt(StmtData::Seq(vec![before_loop, while_loop]));
        StmtData::Alloc(condition_buffer, seq)
    }

    /// Adds the conditions of the assertions at the start of a statement to the facts. These conditions hold for the
    /// statements that follow `s`.
    fn assume_asserted(&mut self, f: &PrimFunc, mut s: Stmt) {
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

    /// Adds the run-time checks of the accesses of a block: those in its predicate, in the ranges and bindings of its axes, in its
    /// init and in its body.
    fn guard_block(
        &mut self,
        f: &mut PrimFunc,
        mut b: BlockData,
        guards: &mut Vec<Guard>,
    ) -> BlockData {
        let map: FxHashMap<Var, Expr> = b.iters.iter().map(|i| (i.var, i.binding)).collect();
        self.in_scope(|c| {
            let predicate = b.predicate.map(|p| {
                let outer = substitute_expr(f, p, &map);
                let checked = c.guard_and_bind(f, outer, guards);
                c.facts.assume(f, outer, true);
                c.facts.assume(f, p, true);
                if checked != outer {
                    b.predicate = Some(checked);
                }
                checked
            });
            // ConvertBlocksToLoops evaluates the bindings in front of the predicate, so guards bind all loads in them. These
            // guards apply only if the predicate holds.
            let (outer, mut inner) = (c.bindings.clone(), Vec::new());
            for iter in &mut b.iters {
                iter.min = c.guard_and_bind(f, iter.min, &mut inner);
                iter.extent = c.guard_and_bind(f, iter.extent, &mut inner);
                iter.binding = c.guard_expr(f, iter.binding, &mut inner);
                iter.binding = c.bindings.bind_loads(f, iter.binding, &mut inner);
                if let Some(inside) = c.facts.range_check(f, iter.binding, iter.min, iter.extent) {
                    let name = &f.var(iter.var).name;
                    let message = format!(
                        "the value of axis '{name}' of block '{}' is outside its range",
                        b.name
                    );
                    inner.push(Guard::Check(inside, CheckFailure::Index.mark(&message).into()));
                }
                c.facts.assume_range(f, iter.var, iter.min, iter.extent);
            }
            if let Some(predicate) = predicate {
                c.bindings = outer;
                inner = inner
                    .into_iter()
                    .map(|g| expression_guards::guard_if(f, predicate, g))
                    .collect();
            }
            guards.extend(inner);
            b.allocs.iter().for_each(|&b| c.check_allocation(f, b));
            // The init runs even if a reduction axis is empty.
            b.init = b.init.map(|s| c.before_reductions(f, &b, |c, f| c.stmt(f, s)));
            b.body = c.stmt(f, b.body);
            if b.init.is_none() && b.iters.iter().any(|i| i.kind == IterKind::Reduce) {
                b.body = c.guard_accumulation(f, &b);
            }
        });
        b
    }

    /// Calls `run` with the facts that hold in front of the reduction loops of a block, and the ranges of the spatial axes. Facts
    /// that hold only inside the reduction loops are not available, because these loops may have no iterations.
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
        let is_spatial = |l: &&Loop| {
            let varies = |e| uses_any(f, e, &|v| reduced(f, v));
            !reduced(f, l.var) && !varies(l.min) && !varies(l.extent)
        };
        let spatial: Vec<(Var, Expr, Expr)> = self.loops[outermost..]
            .iter()
            .filter(is_spatial)
            .map(|l| (l.var, l.min, l.extent))
            .chain(b.iters.iter().filter(|i| !reduces(i)).map(|i| (i.var, i.min, i.extent)))
            .collect();
        self.in_scope(|c| {
            c.facts.restore(c.loops[outermost].before.clone());
            c.proved.clear();
            for (var, min, extent) in spatial {
                c.facts.assume_range(f, var, min, extent);
            }
            run(c, f)
        })
    }

    /// Adds run-time checks to the body of a reduction without an init, which accumulates into a result that exists already.
    /// Schedules load and store the result outside the reduction loops, so this access must be in bounds even if the loops have no
    /// iterations. If this is not proved, a check is added in front of the body, which is then not scheduled as a reduction.
    fn guard_accumulation(&mut self, f: &mut PrimFunc, b: &BlockData) -> Stmt {
        let StmtData::Store { buffer, indices, .. } = f.stmt(b.body).clone() else { return b.body };
        let mut guards = Vec::new();
        self.before_reductions(f, b, |c, f| {
            let outer = std::mem::take(&mut c.bindings);
            let indices: Vec<Expr> =
                indices.iter().map(|&i| c.guard_expr(f, i, &mut guards)).collect();
            c.guard_access(f, buffer, &indices, &mut guards);
            c.bindings = outer;
        });
        access_guards::wrap(f, &guards, b.body)
    }
}
