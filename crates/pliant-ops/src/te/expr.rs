//! Variables and nodes of tensor expressions.
//!
//! The user may build chains of any length, such as `x = x + 1` in a Python loop, so dropping an expression does not recurse.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pliant_ir::tir::{BinOp, Intrin, IterKind, Ty};
use smallvec::SmallVec;

use super::tensor::{Tensor, TensorNode};

/// A scalar variable: a size, an index or a parameter. Two variables are equal only if they are the same object.
#[derive(Clone, Debug)]
pub struct Var(Arc<VarNode>);

#[derive(Debug)]
struct VarNode {
    name: Arc<str>,
    ty: Ty,
    kind: VarKind,
}

#[derive(Debug, PartialEq, Eq)]
enum VarKind {
    Any,
    Nonneg,
    Handle,
}

impl Var {
    /// Creates a new variable, which differs from all others.
    pub fn new(name: impl Into<Arc<str>>, ty: impl Into<Ty>) -> Self {
        Var(Arc::new(VarNode { name: name.into(), ty: ty.into(), kind: VarKind::Any }))
    }

    /// A new variable that is known not to be negative.
    pub fn nonneg(name: impl Into<Arc<str>>, ty: impl Into<Ty>) -> Self {
        Var(Arc::new(VarNode { name: name.into(), ty: ty.into(), kind: VarKind::Nonneg }))
    }

    /// Whether the variable was created by [`Var::nonneg`].
    pub fn is_nonneg(&self) -> bool {
        self.0.kind == VarKind::Nonneg
    }

    /// A new variable that contains the address of a buffer.
    pub fn handle(name: impl Into<Arc<str>>) -> Self {
        Var(Arc::new(VarNode { name: name.into(), ty: Ty::I64, kind: VarKind::Handle }))
    }

    /// Whether the variable was created by [`Var::handle`].
    pub fn is_handle(&self) -> bool {
        self.0.kind == VarKind::Handle
    }

    /// A new size or index variable of type int64.
    pub fn size(name: impl Into<Arc<str>>) -> Self {
        Var::new(name, Ty::I64)
    }

    /// The name for display. It need not be unique.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The scalar type of the variable.
    pub fn ty(&self) -> Ty {
        self.0.ty
    }

    /// The address of the variable, a key for side tables while the variable lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The variable as an expression.
    pub fn expr(&self) -> Expr {
        Expr::new(ExprKind::Var(self.clone()), self.ty())
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Var {}

impl Hash for Var {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// An axis of a computation: a variable and its range.
#[derive(Clone, Debug)]
pub struct IterVar {
    /// The index variable of the axis.
    pub var: Var,
    /// The first value of the index variable.
    pub min: Expr,
    /// The number of values of the index variable.
    pub extent: Expr,
    /// Whether the axis is one of the output (spatial) or of a reduction (reduce).
    pub kind: IterKind,
}

/// How a reduction combines two values, and from which value it starts.
#[derive(Clone, Debug)]
pub enum Reducer {
    /// A sum that starts from 0.
    Sum,
    /// A product that starts from 1.
    Prod,
    /// The maximum. It starts from minus infinity or the smallest integer.
    Max,
    /// The minimum. It starts from infinity or the largest integer.
    Min,
    /// A user-defined commutative and associative function.
    Custom(Arc<CustomReducer>),
}

/// A user-defined reducer: `result` over `lhs` and `rhs`, with the initial value `identity`.
#[derive(Clone, Debug)]
pub struct CustomReducer {
    /// The variable for the accumulated value.
    pub lhs: Var,
    /// The variable for the next value.
    pub rhs: Var,
    /// The value that results from combining `lhs` and `rhs`.
    pub result: Expr,
    /// The value from which the reduction starts.
    pub identity: Expr,
}

/// A reduction of the values of an expression. It may occur only at the top of a stage's body.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// The function that combines two values.
    pub reducer: Reducer,
    /// The expression whose values are combined.
    pub source: Expr,
    /// The axes over which the values are combined.
    pub axes: Vec<IterVar>,
    /// The initial value, if it differs from the reducer's own.
    pub init: Option<Expr>,
}

/// A scalar expression. Clones share the same node.
#[derive(Clone, Debug)]
pub struct Expr(Arc<Node>);

#[derive(Debug)]
pub(super) struct Node {
    kind: ExprKind,
    ty: Ty,
}

/// The kinds of scalar expressions, with their operands.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer or bool constant of the expression's type.
    Int(i64),
    /// A float constant of the expression's type.
    Float(f64),
    /// A string, which can only be an argument of a call.
    Str(Arc<str>),
    /// A reference to a variable.
    Var(Var),
    /// An operator over two operands of the same type.
    Binary(BinOp, Expr, Expr),
    /// A conversion to the expression's type.
    Cast(Expr),
    /// Logical negation of a bool operand.
    Not(Expr),
    /// `c ? a : b`, where both operands are evaluated.
    Select(Expr, Expr, Expr),
    /// A call of an intrinsic.
    Call(Intrin, Vec<Expr>),
    /// An element of a tensor, with one index per dim.
    Load(Tensor, Vec<Expr>),
    /// A reduction of the values of an expression over axes.
    Reduce(Arc<Reduce>),
    /// The vector `base, base + stride, ...`. It occurs in lowered loop functions, not in stages.
    Ramp(Expr, Expr),
    /// A vector with the scalar in every lane. It occurs in lowered loop functions, not in stages.
    Broadcast(Expr),
}

impl Expr {
    /// An expression of the type `ty`. Prefer the functions of this module, which derive the type.
    pub fn new(kind: ExprKind, ty: Ty) -> Self {
        Expr(Arc::new(Node { kind, ty }))
    }

    /// The kind of the expression, with its operands.
    pub fn kind(&self) -> &ExprKind {
        &self.0.kind
    }

    /// The scalar or vector type of the expression.
    pub fn ty(&self) -> Ty {
        self.0.ty
    }

    /// Whether both expressions are the same node in memory.
    pub fn same_as(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The address of the node, a key for side tables while the expression lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The value of an integer or bool constant.
    pub fn as_int(&self) -> Option<i64> {
        match self.kind() {
            ExprKind::Int(v) => Some(*v),
            _ => None,
        }
    }

    /// The variable, if the expression is a variable.
    pub fn as_var(&self) -> Option<&Var> {
        match self.kind() {
            ExprKind::Var(v) => Some(v),
            _ => None,
        }
    }

    /// Whether this is the integer or float constant `value`.
    pub fn is_const(&self, value: i64) -> bool {
        match self.kind() {
            ExprKind::Int(v) => *v == value,
            ExprKind::Float(v) => *v == value as f64,
            _ => false,
        }
    }

    /// The direct operands, in order. The body of a loaded tensor is not an operand of the load.
    pub fn children(&self) -> SmallVec<[&Expr; 4]> {
        use ExprKind::*;
        match self.kind() {
            Int(_) | Float(_) | Str(_) | Var(_) => SmallVec::new(),
            Binary(_, a, b) | Ramp(a, b) => SmallVec::from_slice(&[a, b]),
            Cast(a) | Not(a) | Broadcast(a) => SmallVec::from_slice(&[a]),
            Select(c, a, b) => SmallVec::from_slice(&[c, a, b]),
            Call(_, args) | Load(_, args) => args.iter().collect(),
            Reduce(r) => std::iter::once(&r.source).chain(&r.init).collect(),
        }
    }
}

/// An expression or a tensor that was a part of a dropped expression or tensor, and must be dropped, too.
pub(super) enum Orphan {
    Expr(Expr),
    Tensor(Tensor),
}

/// Moves the parts of a node that may start deep chains onto the stack, so that dropping the node
/// does not recurse.
fn take_children(kind: ExprKind, stack: &mut Vec<Orphan>) {
    use ExprKind::*;
    match kind {
        Int(_) | Float(_) | Str(_) | Var(_) => {}
        Cast(a) | Not(a) | Broadcast(a) => stack.push(Orphan::Expr(a)),
        Binary(_, a, b) | Ramp(a, b) => stack.extend([a, b].map(Orphan::Expr)),
        Select(c, a, b) => stack.extend([c, a, b].map(Orphan::Expr)),
        Call(_, args) => stack.extend(args.into_iter().map(Orphan::Expr)),
        Load(t, args) => {
            stack.extend(args.into_iter().map(Orphan::Expr));
            stack.push(Orphan::Tensor(t));
        }
        Reduce(r) => {
            if let Some(r) = Arc::into_inner(r) {
                stack.push(Orphan::Expr(r.source));
                stack.extend(r.init.map(Orphan::Expr));
                for axis in r.axes {
                    stack.extend([axis.min, axis.extent].map(Orphan::Expr));
                }
            }
        }
    }
}

/// Drops the parts on the stack one by one, so that deep chains do not exhaust the call stack.
pub(super) fn drop_orphans(mut stack: Vec<Orphan>) {
    while let Some(orphan) = stack.pop() {
        match orphan {
            Orphan::Expr(e) => {
                if let Some(mut node) = Arc::into_inner(e.0) {
                    take_children(std::mem::replace(&mut node.kind, ExprKind::Int(0)), &mut stack);
                }
            }
            Orphan::Tensor(t) => {
                if let Some(mut node) = Arc::into_inner(t.into_arc()) {
                    TensorNode::take_children(&mut node, &mut stack);
                }
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if matches!(
            self.kind,
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::Var(_)
        ) {
            return;
        }
        let mut stack = Vec::new();
        take_children(std::mem::replace(&mut self.kind, ExprKind::Int(0)), &mut stack);
        drop_orphans(stack);
    }
}
