//! Stages made of statements. They compute tensors that cannot be expressed by a formula over
//! output indices: sorting, scans, scatters with duplicate indices, recurrences.
//!
//! [`extern_`] creates a stage from a function, which writes statements with a [`Body`] over the
//! stage's outputs, its own scratch buffers and any other tensors. In a loop function, the stage is
//! one opaque block, so passes leave it unchanged.
//!
//! ```
//! use pliant_ops::te;
//! let n = te::var("n").expr();
//! let x = te::placeholder(vec![n.clone()], pliant_ir::DType::Float32, "x");
//! let sums = te::extern_("running_sum", &[(vec![n.clone()], pliant_ir::DType::Float32)], |b, out| {
//!     let total = b.cell("total", &te::float(0.0));
//!     b.for_("i", &n, |b, i| {
//!         b.set(&total, &(total.get() + x.at(&[i.clone()])));
//!         b.store(&out[0], &[i.clone()], &total.get());
//!     });
//! });
//! assert_eq!(sums.len(), 1);
//! ```

use std::sync::Arc;

use pliant_ir::tir::{ForKind, Ty};
use pliant_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::{Expr, ExprKind, IterVar, Var};
use super::expr_builders::{cast, int, not};
use super::expr_traversal::{post_order, redirect_loads, substitute};
use super::tensor::{Tensor, TensorOp, placeholder};

/// A statement. The variables, buffers and assertions that [`Stmt::Let`], [`Stmt::Alloc`] and [`Stmt::Assert`] introduce are in
/// effect up to the end of the enclosing list.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// A loop over `0 .. extent`.
    For {
        /// The loop variable, which counts from 0.
        var: Var,
        /// The number of iterations. A negative number means none.
        extent: Expr,
        /// Whether the iterations run serially, in parallel, vectorized or unrolled.
        kind: ForKind,
        /// The statements that every iteration executes.
        body: Vec<Stmt>,
    },
    /// Repeats the statements while the condition is true.
    While(Expr, Vec<Stmt>),
    /// A branch: the condition, the statements if it is true, and the statements if it is false.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Defines a variable with the given value.
    Let(Var, Expr),
    /// A scratch buffer, represented by a placeholder.
    Alloc(Tensor),
    /// Fails at run time with the message if the condition is false. In the message, `{0}`, `{1}`, ... stand for the values of a
    /// condition created by [`explain`](super::explain).
    Assert(Expr, Arc<str>),
    /// Writes an element of an output or a scratch buffer.
    Store(Tensor, Vec<Expr>, Expr),
    /// Evaluates a call for its side effects.
    Evaluate(Expr),
}

/// A stage made of statements: several outputs written by one list of statements.
#[derive(Debug)]
pub struct Extern {
    /// The name of the stage, which becomes the name of its block.
    pub name: Arc<str>,
    /// The outputs as the statements refer to them: placeholders with their shapes.
    pub outs: Vec<Tensor>,
    /// The tensors that the statements read, except for outputs and scratch buffers.
    pub inputs: Vec<Tensor>,
    /// The statements that write the outputs.
    pub body: Vec<Stmt>,
    /// Whether the stage was created by [`scan`](super::scan()).
    pub scan: bool,
}

/// Creates a stage made of statements and returns its outputs, which have the shapes and data types
/// in `outputs`. `write` emits the statements and receives the outputs as buffers.
///
/// # Examples
/// ```
/// use pliant_ir::DType;
/// use pliant_ops::te;
///
/// // The first elements of two vectors, written by statements.
/// let x = te::placeholder(vec![te::int(4)], DType::Float32, "x");
/// let first = te::extern_("first", &[(vec![te::int(1)], DType::Float32)], |body, out| {
///     body.store(&out[0], &[te::int(0)], &x.at(&[te::int(0)]));
/// });
/// assert_eq!(first[0].inputs(), [x]);
/// ```
pub fn extern_(
    name: &str,
    outputs: &[(Vec<Expr>, DType)],
    write: impl FnOnce(&mut Body, &[Tensor]),
) -> Vec<Tensor> {
    let label =
        |k: usize| if outputs.len() == 1 { name.to_string() } else { format!("{name}_{k}") };
    let outs: Vec<Tensor> = outputs
        .iter()
        .enumerate()
        .map(|(k, (shape, dtype))| placeholder(shape.clone(), *dtype, label(k)))
        .collect();
    let mut body = Body::default();
    write(&mut body, &outs);
    extern_of(name, outs, body.stmts)
}

/// Creates a stage from statements that store to the placeholders `outs`, and returns its outputs.
pub fn extern_of(name: &str, outs: Vec<Tensor>, body: Vec<Stmt>) -> Vec<Tensor> {
    stage_of(name, outs, body, false)
}

/// All outputs of the stage that computes `tensor`. A stage made of statements may have several.
pub fn outputs_of(tensor: &Tensor) -> Vec<Tensor> {
    match tensor.op() {
        TensorOp::Extern(stage, _) => outputs(stage),
        _ => vec![tensor.clone()],
    }
}

pub(super) fn stage_of(name: &str, outs: Vec<Tensor>, body: Vec<Stmt>, scan: bool) -> Vec<Tensor> {
    let mut stage_buffers: FxHashSet<Tensor> = outs.iter().cloned().collect();
    let (mut seen, mut inputs) = (FxHashSet::default(), Vec::new());
    for_each(&body, &mut |s| {
        if let Stmt::Alloc(t) = s {
            stage_buffers.insert(t.clone());
        }
    });
    for_each(&body, &mut |s| {
        for e in exprs_of(s) {
            post_order(e, |e| {
                if let ExprKind::Load(t, _) = e.kind()
                    && !stage_buffers.contains(t)
                    && seen.insert(t.clone())
                {
                    inputs.push(t.clone());
                }
            });
        }
    });
    outputs(&Arc::new(Extern { name: name.into(), outs, inputs, body, scan }))
}

fn outputs(stage: &Arc<Extern>) -> Vec<Tensor> {
    let output = |(k, out): (usize, &Tensor)| {
        let op = TensorOp::Extern(stage.clone(), k);
        Tensor::new(out.name().clone(), out.shape().to_vec(), out.dtype(), op)
    };
    stage.outs.iter().enumerate().map(output).collect()
}

/// Visits all statements in order, including nested ones.
pub fn for_each<'s>(stmts: &'s [Stmt], visit: &mut impl FnMut(&'s Stmt)) {
    let mut stack: Vec<&Stmt> = stmts.iter().rev().collect();
    while let Some(s) = stack.pop() {
        visit(s);
        match s {
            Stmt::For { body, .. } | Stmt::While(_, body) => stack.extend(body.iter().rev()),
            Stmt::If(_, then, other) => stack.extend(then.iter().chain(other).rev()),
            _ => {}
        }
    }
}

/// Copies statements, and replaces variables and tensors in the copies.
pub fn replace_in_stmts(
    stmts: &[Stmt],
    vars: &FxHashMap<Var, Expr>,
    tensors: &FxHashMap<Tensor, Tensor>,
) -> Vec<Stmt> {
    let new = |e: &Expr| redirect_loads(&substitute(e, vars), tensors);
    let list = |stmts: &[Stmt]| replace_in_stmts(stmts, vars, tensors);
    let one = |s: &Stmt| match s {
        Stmt::For { var, extent, kind, body } => {
            let (extent, body) = (new(extent), list(body));
            Stmt::For { var: var.clone(), extent, kind: *kind, body }
        }
        Stmt::While(cond, body) => Stmt::While(new(cond), list(body)),
        Stmt::If(cond, then, other) => Stmt::If(new(cond), list(then), list(other)),
        Stmt::Let(var, value) => Stmt::Let(var.clone(), new(value)),
        Stmt::Alloc(buffer) => Stmt::Alloc(tensors.get(buffer).unwrap_or(buffer).clone()),
        Stmt::Assert(cond, message) => Stmt::Assert(new(cond), message.clone()),
        Stmt::Store(to, indices, value) => {
            let to = tensors.get(to).unwrap_or(to).clone();
            Stmt::Store(to, indices.iter().map(new).collect(), new(value))
        }
        Stmt::Evaluate(call) => Stmt::Evaluate(new(call)),
    };
    stmts.iter().map(one).collect()
}

/// The expressions of the statement itself, including the dims of a scratch buffer. The expressions
/// of nested statements are not included.
pub fn exprs_of(s: &Stmt) -> Vec<&Expr> {
    match s {
        Stmt::For { extent, .. } => vec![extent],
        Stmt::While(c, _) | Stmt::If(c, ..) | Stmt::Assert(c, _) => vec![c],
        Stmt::Let(_, value) | Stmt::Evaluate(value) => vec![value],
        Stmt::Alloc(t) => t.shape().iter().collect(),
        Stmt::Store(_, indices, value) => indices.iter().chain([value]).collect(),
    }
}

/// A list of statements under construction.
#[derive(Debug, Default)]
pub struct Body {
    stmts: Vec<Stmt>,
}

/// A scalar that statements can assign: a scratch buffer with one element.
#[derive(Clone, Debug)]
pub struct Cell(Tensor);

impl Cell {
    /// Returns an expression that reads the scalar. It yields the value at the time when the
    /// statement that contains it is executed.
    pub fn get(&self) -> Expr {
        self.0.at(&[int(0)])
    }
}

/// Collects the statements that `write` emits.
fn nested(write: impl FnOnce(&mut Body)) -> Vec<Stmt> {
    let mut body = Body::default();
    write(&mut body);
    body.stmts
}

impl Body {
    /// Ends the construction and returns the statements.
    pub fn finish(self) -> Vec<Stmt> {
        self.stmts
    }

    /// Emits a loop over `0 .. extent`.
    pub fn for_(&mut self, name: &str, extent: &Expr, write: impl FnOnce(&mut Body, &Expr)) {
        self.push_for(name, extent, ForKind::Serial, write);
    }

    /// Emits a parallel loop. Its iterations must be independent, and each should be large enough to be scheduled on a thread.
    pub fn parallel(&mut self, name: &str, extent: &Expr, write: impl FnOnce(&mut Body, &Expr)) {
        self.push_for(name, extent, ForKind::Parallel, write);
    }

    fn push_for(
        &mut self,
        name: &str,
        extent: &Expr,
        kind: ForKind,
        write: impl FnOnce(&mut Body, &Expr),
    ) {
        let var = Var::size(name);
        let body = nested(|b| write(b, &var.expr()));
        self.stmts.push(Stmt::For { var, extent: cast(extent, Ty::I64), kind, body });
    }

    /// Emits loops over all indices of a shape. The last index varies fastest.
    pub fn for_each(&mut self, shape: &[Expr], write: impl FnOnce(&mut Body, &[Expr])) {
        let vars: Vec<Var> = (0..shape.len()).map(|k| Var::size(format!("i{k}"))).collect();
        let indices: Vec<Expr> = vars.iter().map(Var::expr).collect();
        let mut body = nested(|b| write(b, &indices));
        for (var, extent) in vars.into_iter().zip(shape).rev() {
            let (extent, kind) = (cast(extent, Ty::I64), ForKind::Serial);
            body = vec![Stmt::For { var, extent, kind, body }];
        }
        self.stmts.extend(body);
    }

    /// Emits loops over axes. The last axis varies fastest. The body receives the expression for each axis's variable.
    pub fn for_axes(
        &mut self,
        axes: &[IterVar],
        write: impl FnOnce(&mut Body, &FxHashMap<Var, Expr>),
    ) {
        let extents: Vec<Expr> = axes.iter().map(|axis| axis.extent.clone()).collect();
        self.for_each(&extents, |b, indices| {
            let at = axes.iter().zip(indices).map(|(axis, i)| (axis.var.clone(), i + &axis.min));
            write(b, &at.collect());
        });
    }

    /// Emits the loops that compute the reduction `formula` and update a mutable scalar. Returns the result. A formula without a
    /// reduction is returned unchanged.
    pub fn value(&mut self, formula: &Expr) -> Expr {
        let ExprKind::Reduce(r) = formula.kind() else { return formula.clone() };
        let dtype = r.source.ty().dtype;
        let first = r.init.clone().unwrap_or_else(|| r.reducer.identity(dtype));
        let total = self.cell("total", &cast(&first, dtype));
        self.for_axes(&r.axes, |b, at| {
            let next = b.let_("next", &substitute(&r.source, at));
            b.set(&total, &r.reducer.combine(&total.get(), &next));
        });
        total.get()
    }

    /// Emits a loop that repeats while the condition is true.
    pub fn while_(&mut self, cond: &Expr, write: impl FnOnce(&mut Body)) {
        self.stmts.push(Stmt::While(cast(cond, Ty::BOOL), nested(write)));
    }

    /// Emits statements that are executed if the condition is true.
    pub fn if_(&mut self, cond: &Expr, then: impl FnOnce(&mut Body)) {
        self.if_else(cond, then, |_| {});
    }

    /// Emits two lists of statements: `then` is executed if the condition is true, and `other` if
    /// it is false.
    pub fn if_else(
        &mut self,
        cond: &Expr,
        then: impl FnOnce(&mut Body),
        other: impl FnOnce(&mut Body),
    ) {
        let (then, other) = (nested(then), nested(other));
        match (then.is_empty(), other.is_empty()) {
            (true, true) => {}
            (true, false) => self.stmts.push(Stmt::If(not(cond), other, Vec::new())),
            _ => self.stmts.push(Stmt::If(cast(cond, Ty::BOOL), then, other)),
        }
    }

    /// Emits a statement that computes a value once and names it. Returns the named value.
    pub fn let_(&mut self, name: &str, value: &Expr) -> Expr {
        if matches!(value.kind(), ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_)) {
            return value.clone();
        }
        let var = Var::new(name, value.ty());
        self.stmts.push(Stmt::Let(var.clone(), value.clone()));
        var.expr()
    }

    /// Allocates a scratch buffer with undefined contents.
    pub fn alloc(&mut self, name: &str, shape: &[Expr], dtype: DType) -> Tensor {
        let scratch = placeholder(shape.to_vec(), dtype, name);
        self.stmts.push(Stmt::Alloc(scratch.clone()));
        scratch
    }

    /// Allocates a mutable scalar with an initial value.
    pub fn cell(&mut self, name: &str, first: &Expr) -> Cell {
        let cell = Cell(self.alloc(name, &[int(1)], first.ty().dtype));
        self.set(&cell, first);
        cell
    }

    /// Emits an assignment to a mutable scalar.
    pub fn set(&mut self, cell: &Cell, value: &Expr) {
        self.store(&cell.0, &[int(0)], value);
    }

    /// Emits a store to an element. The value is converted to the buffer's type.
    pub fn store(&mut self, to: &Tensor, indices: &[Expr], value: &Expr) {
        let indices = indices.iter().map(|i| cast(i, Ty::I64)).collect();
        self.stmts.push(Stmt::Store(to.clone(), indices, cast(value, to.dtype())));
    }

    /// Emits the evaluation of a call for its side effects.
    pub fn evaluate(&mut self, call: Expr) {
        self.stmts.push(Stmt::Evaluate(call));
    }

    /// Emits an assertion, which fails at run time if the condition is false. The following
    /// statements may rely on the condition.
    pub fn assert(&mut self, cond: &Expr, message: impl Into<Arc<str>>) {
        self.stmts.push(Stmt::Assert(cast(cond, Ty::BOOL), message.into()));
    }
}
