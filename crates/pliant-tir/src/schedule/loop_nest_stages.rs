//! Stages: the unit on which the default schedule works. A stage is a loop nest around a single block, in the form that tensor
//! expressions produce.

use std::sync::Arc;

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, ForKind, Intrin, IterKind, PrimFunc, Stmt, StmtData, Ty, Var,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::vector_math_bounds;
use crate::access_guards::{self, Guard};
use crate::statement_traversal::{
    direct_exprs, for_each_stmt, substitute, substitute_expr, uses_any,
};

/// An axis of a stage. Its values are `0..extent`.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The variable of the axis in the expressions of the stage.
    pub var: Var,
    /// The number of values of the axis.
    pub extent: Expr,
    /// Whether the axis is a reduction axis.
    pub reduce: bool,
}

/// The statement that a stage executes at each point of its axes.
#[derive(Clone, Debug)]
pub enum Body {
    /// A body that stores one element of a buffer.
    Store {
        /// The buffer that is written.
        buffer: Buffer,
        /// The indices of the written element, one for each dim.
        indices: Box<[Expr]>,
        /// The value that is stored.
        value: Expr,
    },
    /// A body that executes any other statement.
    Other(Stmt),
}

/// An access of a stage: (buffer, indices of the element, whether the element is written). Empty indices mean that any element of
/// the buffer may be accessed.
pub type Access = (Buffer, Box<[Expr]>, bool);

/// A stage: a loop nest around a single block.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The name of the block.
    pub name: Arc<str>,
    /// The axes of the loop nest, outermost first.
    pub axes: Vec<Axis>,
    /// The bindings and checks that run at each point of the axes, before its accesses.
    pub guards: Vec<Guard>,
    /// The initialization of the reduction, which runs at the first point of the reduction axes; `None` if the stage has none.
    pub init: Option<Init>,
    /// The statement that the stage executes at each point of its axes.
    pub body: Body,
}

/// The initialization of a reduction.
#[derive(Clone, Debug)]
pub enum Init {
    /// Stores this value to the element that the body accumulates into.
    Value(Expr),
    /// Executes a statement that is not the store of one value to the element that the body accumulates into.
    Other(Stmt),
}

/// A reduction `C[..] = op(C[..], value)`.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The operation that combines the accumulated result `C[..]` with each value: `+`, `*`, `min` or `max`.
    pub op: BinOp,
    /// The value that each point of the reduction axes contributes to the result.
    pub value: Expr,
}

/// A part of a function's body: a stage or another statement.
#[derive(Clone, Debug)]
pub enum Item {
    /// A statement that was parsed as a stage.
    Stage(Stage),
    /// A statement that is not a stage.
    Other(Stmt),
}

/// Parses the body of a function into stages. Returns the buffers that are allocated around the whole body, and the stages and
/// other statements of the body in order.
pub fn parse_body(f: &mut PrimFunc) -> (Vec<Buffer>, Vec<Item>) {
    let (mut allocs, mut items) = (Vec::new(), Vec::new());
    let body = f.body;
    collect_items(f, body, &mut allocs, &mut items, true);
    (allocs, items)
}

fn collect_items(
    f: &mut PrimFunc,
    s: Stmt,
    allocs: &mut Vec<Buffer>,
    items: &mut Vec<Item>,
    top: bool,
) {
    match f.stmt(s).clone() {
        StmtData::Seq(list) => {
            list.into_iter().for_each(|s| collect_items(f, s, allocs, items, false))
        }
        StmtData::Alloc(b, body) if top => {
            allocs.push(b);
            collect_items(f, body, allocs, items, true);
        }
        StmtData::Block(b)
            if top && b.iters.is_empty() && b.predicate.is_none() && b.init.is_none() =>
        {
            allocs.extend(b.allocs.iter().copied());
            collect_items(f, b.body, allocs, items, true);
        }
        _ => items.push(match parse_stage(f, s) {
            Some(stage) => Item::Stage(stage),
            None => Item::Other(s),
        }),
    }
}

/// Whether a statement calls functions other than the vector math functions of the run-time library (`pliant_vec_*`). Such calls
/// are not reordered or parallelized.
pub fn calls_non_vector_math_functions(f: &PrimFunc, s: Stmt) -> bool {
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| {
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| match f.expr(e) {
                ExprData::Call(Intrin::CallPacked | Intrin::CallKernel, ..) => found = true,
                ExprData::Call(Intrin::CallExtern, args, _) => {
                    found |= vector_math_bounds::callee_symbol(f, args).is_none();
                }
                _ => {}
            });
        });
    });
    found
}

/// Parses a statement as a stage. Returns `None` for statements of other forms, and for statements that call unknown functions
/// ([`calls_non_vector_math_functions`]).
pub fn parse_stage(f: &mut PrimFunc, s: Stmt) -> Option<Stage> {
    if calls_non_vector_math_functions(f, s) {
        return None;
    }
    let mut loops: FxHashMap<Var, (Expr, Expr)> = FxHashMap::default();
    let mut at = s;
    while let StmtData::For { var, min, extent, kind: ForKind::Serial, body, .. } = f.stmt(at) {
        loops.insert(*var, (*min, *extent));
        at = *body;
    }
    let StmtData::Block(block) = f.stmt(at) else { return None };
    let block = (**block).clone();
    if block.predicate.is_some() || !block.allocs.is_empty() || block.iters.len() != loops.len() {
        return None;
    }
    // The extents of triangular loop nests use the variables of outer loops, which stages do not have.
    let varies = |e: Expr| uses_any(f, e, &|v| loops.contains_key(&v));
    if block.iters.iter().any(|i| varies(i.min) || varies(i.extent)) {
        return None;
    }
    let (mut axes, mut shifted) = (Vec::new(), FxHashMap::default());
    for iter in &block.iters {
        let ExprData::Var(v) = f.expr(iter.binding) else { return None };
        let is_loop = loops.remove(v) == Some((iter.min, iter.extent));
        if !is_loop || iter.kind == IterKind::Opaque || f.expr_ty(iter.binding) != Ty::I64 {
            return None;
        }
        if f.as_int(iter.min) != Some(0) {
            let v = f.var_expr(iter.var);
            shifted.insert(iter.var, f.add(v, iter.min));
        }
        axes.push(Axis {
            var: iter.var,
            extent: iter.extent,
            reduce: iter.kind == IterKind::Reduce,
        });
    }
    let body = substitute(f, block.body, &shifted);
    let init = block.init.map(|s| substitute(f, s, &shifted));
    let (guards, body) = access_guards::split_guards(f, body);
    let body = match f.stmt(body).clone() {
        StmtData::Store { buffer, indices, value } => Body::Store { buffer, indices, value },
        _ => Body::Other(body),
    };
    let init = init.map(|s| match (f.stmt(s), &body) {
        (StmtData::Store { buffer, indices, value }, Body::Store { buffer: b, indices: i, .. })
            if buffer == b && indices == i =>
        {
            Init::Value(*value)
        }
        _ => Init::Other(s),
    });
    Some(Stage { name: block.name, axes, guards, init, body })
}

impl Stage {
    /// Returns the number of spatial axes before the first reduction axis.
    pub fn leading_spatial(&self) -> usize {
        self.axes.iter().take_while(|a| !a.reduce).count()
    }

    /// Whether any axis is a reduction axis.
    pub fn reduces(&self) -> bool {
        self.axes.iter().any(|a| a.reduce)
    }

    /// Returns the reduction that the stage computes; `None` if its body does not have the form `C[..] = op(C[..], value)`.
    pub fn reduction(&self, f: &PrimFunc) -> Option<Reduction> {
        let Body::Store { buffer, indices, value } = &self.body else { return None };
        if !self.reduces() || matches!(self.init, Some(Init::Other(_))) {
            return None;
        }
        // Scheduled reductions load and store their result outside of the guards, so no guard may be needed for the result. An
        // init, which writes the same element without a guard, proves this.
        if self.init.is_none() && !self.guards.is_empty() {
            return None;
        }
        let ExprData::Binary(op @ (BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max), a, b) =
            f.expr(*value)
        else {
            return None;
        };
        let is_self =
            |e: Expr| matches!(f.expr(e), ExprData::Load(b, i) if b == buffer && i == indices);
        let value = match (is_self(*a), is_self(*b)) {
            (true, false) => *b,
            (false, true) => *a,
            _ => return None,
        };
        let reduction_vars = self.reduction_vars(f);
        let indexed_by_reduction =
            indices.iter().any(|&i| uses_any(f, i, &|v| reduction_vars.contains(&v)));
        let reads_result =
            self.guards.iter().map(Guard::expr).chain([value]).any(|e| loads_from(f, e, *buffer));
        (!indexed_by_reduction && !reads_result).then_some(Reduction { op: *op, value })
    }

    /// Returns the variables that vary along the reduction axes: the variables of these axes, and variables that guards bind to
    /// values that depend on these axes.
    pub fn reduction_vars(&self, f: &PrimFunc) -> FxHashSet<Var> {
        let mut vars: FxHashSet<Var> =
            self.axes.iter().filter(|a| a.reduce).map(|a| a.var).collect();
        for guard in &self.guards {
            if let Guard::Bind(var, value) = guard
                && uses_any(f, *value, &|v| vars.contains(&v))
            {
                vars.insert(*var);
            }
        }
        vars
    }

    /// Returns all accesses to buffers in the guards, the init and the body of the stage.
    pub fn accesses(&self, f: &PrimFunc) -> Vec<Access> {
        let mut out = Vec::new();
        let mut exprs: Vec<Expr> = self.guards.iter().map(Guard::expr).collect();
        let mut stmts = Vec::new();
        match &self.body {
            Body::Store { buffer, indices, value } => {
                out.push((*buffer, indices.clone(), true));
                exprs.extend(indices.iter().copied().chain([*value]));
            }
            Body::Other(s) => stmts.push(*s),
        }
        match &self.init {
            Some(Init::Value(e)) => exprs.push(*e),
            Some(Init::Other(s)) => stmts.push(*s),
            None => {}
        }
        for s in stmts {
            for_each_stmt(f, s, &mut |_, data| {
                if let StmtData::Store { buffer, indices, .. } = data {
                    out.push((*buffer, indices.clone(), true));
                }
                direct_exprs(data, |e| exprs.push(e));
            });
        }
        for e in exprs {
            for_each_expr(f, e, |e| match f.expr(e) {
                ExprData::Load(b, indices) => out.push((*b, indices.clone(), false)),
                // A linked function may write through an address, and may access any element from there.
                ExprData::Call(Intrin::AddressOf, args, _) => {
                    if let ExprData::Load(b, _) = f.expr(args[0]) {
                        out.push((*b, [].into(), true));
                    }
                }
                _ => {}
            });
        }
        out
    }

    /// Returns the stage with variables replaced in its guards, init and body.
    pub fn substituted(&self, f: &mut PrimFunc, map: &FxHashMap<Var, Expr>) -> Stage {
        let mut s = self.clone();
        for guard in &mut s.guards {
            *guard = guard.map(|e| substitute_expr(f, e, map));
        }
        s.init = s.init.map(|i| match i {
            Init::Value(e) => Init::Value(substitute_expr(f, e, map)),
            Init::Other(s) => Init::Other(substitute(f, s, map)),
        });
        s.body = match s.body {
            Body::Store { buffer, indices, value } => Body::Store {
                buffer,
                indices: indices.iter().map(|&i| substitute_expr(f, i, map)).collect(),
                value: substitute_expr(f, value, map),
            },
            Body::Other(s) => Body::Other(substitute(f, s, map)),
        };
        s
    }
}

/// Whether an expression loads from a buffer.
pub fn loads_from(f: &PrimFunc, e: Expr, buffer: Buffer) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer));
    found
}

/// Whether an expression is the variable `v`.
pub fn is_var(f: &PrimFunc, e: Expr, v: Var) -> bool {
    matches!(f.expr(e), ExprData::Var(x) if *x == v)
}
