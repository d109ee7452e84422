//! Tensors: placeholders, computed stages and stages made of statements.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pliant_ir::tir::{IterKind, Ty};
use pliant_tensor::DType;

use super::TeError;
use super::expr::{Expr, ExprKind, IterVar, Orphan, Var, drop_orphans};
use super::expr_builders::{cast, int};
use super::expr_traversal::tensors_read;
use super::extern_stage::Extern;

/// A tensor. Cloning shares it. Two tensors are equal only if they are the same object.
#[derive(Clone, Debug)]
pub struct Tensor(Arc<TensorNode>);

#[derive(Debug)]
pub(super) struct TensorNode {
    name: Arc<str>,
    shape: Vec<Expr>,
    dtype: DType,
    op: TensorOp,
}

/// The source of a tensor's elements.
#[derive(Clone, Debug)]
pub enum TensorOp {
    /// The tensor is an argument that the caller passes.
    Placeholder,
    /// A formula computes each element of the tensor.
    Compute(Compute),
    /// Statements write the tensor, which is the output with this index.
    Extern(Arc<Extern>, usize),
}

/// A stage with one formula for all elements.
#[derive(Clone, Debug)]
pub struct Compute {
    /// The output axes, one per dim.
    pub axes: Vec<IterVar>,
    /// The formula of the element at the indices `axes`. A reduction may occur only at its top.
    pub body: Expr,
    /// Conditions that are checked at run time before the stage.
    pub checks: Vec<Check>,
}

/// A condition that is checked at run time before a stage, for all values of its axes.
#[derive(Clone, Debug)]
pub struct Check {
    /// The axes over which the condition is checked: it must be true for all their values. Empty
    /// for a condition on sizes.
    pub axes: Vec<IterVar>,
    /// The condition that must be true.
    pub cond: Expr,
    /// The error message if the condition is false.
    pub message: Arc<str>,
}

/// Axes over a shape, for a check of all elements.
pub fn check_axes(shape: &[Expr]) -> Vec<IterVar> {
    let axis = |(k, extent): (usize, &Expr)| IterVar {
        var: Var::size(format!("c{k}")),
        min: int(0),
        extent: extent.clone(),
        kind: IterKind::Spatial,
    };
    shape.iter().enumerate().map(axis).collect()
}

impl Tensor {
    /// The name of the tensor.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The sizes of the tensor's dims, of type int64.
    pub fn shape(&self) -> &[Expr] {
        &self.0.shape
    }

    /// The number of dims of the tensor.
    pub fn ndim(&self) -> usize {
        self.0.shape.len()
    }

    /// The element type of the tensor.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The source of the tensor's elements.
    pub fn op(&self) -> &TensorOp {
        &self.0.op
    }

    /// The compute stage that defines the tensor; `None` for placeholders and for stages made of statements.
    pub fn as_compute(&self) -> Option<&Compute> {
        match &self.0.op {
            TensorOp::Compute(c) => Some(c),
            TensorOp::Placeholder | TensorOp::Extern(..) => None,
        }
    }

    /// Whether the caller passes the tensor.
    pub fn is_placeholder(&self) -> bool {
        matches!(self.0.op, TensorOp::Placeholder)
    }

    /// The tensors from which this tensor is computed directly, without duplicates.
    pub fn inputs(&self) -> Vec<Tensor> {
        match &self.0.op {
            TensorOp::Placeholder => Vec::new(),
            TensorOp::Compute(stage) => {
                let mut inputs = tensors_read(&stage.body);
                inputs.extend(stage.checks.iter().flat_map(|c| tensors_read(&c.cond)));
                inputs
            }
            TensorOp::Extern(stage, _) => stage.inputs.clone(),
        }
    }

    /// The element at `indices`. `create_prim_func` reports a wrong number of indices.
    pub fn at(&self, indices: &[Expr]) -> Expr {
        let indices = indices.iter().map(index).collect();
        Expr::new(ExprKind::Load(self.clone(), indices), Ty::scalar(self.dtype()))
    }

    /// The element at `indices`.
    ///
    /// # Errors
    /// If the number of indices is not the rank.
    pub fn try_at(&self, indices: &[Expr]) -> Result<Expr, TeError> {
        if indices.len() == self.ndim() {
            return Ok(self.at(indices));
        }
        let (name, rank, got) = (self.name(), self.ndim(), indices.len());
        Err(TeError::new(format!("tensor {name} has {rank} dims, but is read with {got} indices")))
    }

    /// The same stage with one more run-time check. Only a compute stage can have checks; other
    /// tensors are returned unchanged.
    pub fn with_check(&self, check: Check) -> Tensor {
        let TensorOp::Compute(stage) = self.op() else { return self.clone() };
        let mut stage = stage.clone();
        stage.checks.push(check);
        self.with_op(TensorOp::Compute(stage))
    }

    /// The same tensor with another name. For a placeholder, this is a new placeholder.
    pub fn renamed(&self, name: impl Into<Arc<str>>) -> Tensor {
        Tensor::new(name.into(), self.0.shape.clone(), self.0.dtype, self.0.op.clone())
    }

    /// A tensor with the same name and shape but another source.
    pub(super) fn with_op(&self, op: TensorOp) -> Tensor {
        Tensor::new(self.0.name.clone(), self.0.shape.clone(), self.0.dtype, op)
    }

    pub(super) fn new(name: Arc<str>, shape: Vec<Expr>, dtype: DType, op: TensorOp) -> Tensor {
        Tensor(Arc::new(TensorNode { name, shape, dtype, op }))
    }

    pub(super) fn into_arc(self) -> Arc<TensorNode> {
        self.0
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Tensor {}

impl Hash for Tensor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl TensorNode {
    /// Moves the parts of a tensor that may start deep chains onto the stack, so that dropping the
    /// tensor does not recurse.
    pub(super) fn take_children(node: &mut TensorNode, stack: &mut Vec<Orphan>) {
        match std::mem::replace(&mut node.op, TensorOp::Placeholder) {
            TensorOp::Placeholder => {}
            TensorOp::Compute(stage) => {
                stack.push(Orphan::Expr(stage.body));
                stack.extend(stage.checks.into_iter().map(|c| Orphan::Expr(c.cond)));
            }
            // The inputs outlive the statements that read them, so dropping the statements does not free a deep chain.
            TensorOp::Extern(stage, _) => {
                if let Some(stage) = Arc::into_inner(stage) {
                    stack.extend(stage.inputs.into_iter().map(Orphan::Tensor));
                }
            }
        }
    }
}

impl Drop for TensorNode {
    fn drop(&mut self) {
        let mut stack = Vec::new();
        TensorNode::take_children(self, &mut stack);
        drop_orphans(stack);
    }
}

/// Converts an index or a dim to int64.
fn index(e: &Expr) -> Expr {
    if e.ty() == Ty::I64 { e.clone() } else { cast(e, Ty::I64) }
}

/// A placeholder: a tensor that the caller passes as an argument.
///
/// # Examples
/// ```
/// use pliant_ir::DType;
/// use pliant_ops::te;
///
/// let x = te::placeholder(vec![te::var("n").expr(), te::int(4)], DType::Float32, "x");
/// assert!(x.is_placeholder());
/// assert_eq!(x.ndim(), 2);
/// ```
pub fn placeholder(shape: Vec<Expr>, dtype: DType, name: impl Into<Arc<str>>) -> Tensor {
    let shape = shape.iter().map(index).collect();
    Tensor::new(name.into(), shape, dtype, TensorOp::Placeholder)
}

/// A tensor of shape `shape` whose element at the indices `i` is `f(i)`. The dtype is the dtype of
/// this element.
///
/// # Examples
/// ```
/// use pliant_ir::DType;
/// use pliant_ops::te;
///
/// let n = te::var("n").expr();
/// let x = te::placeholder(vec![n.clone()], DType::Float32, "x");
/// let doubled = te::compute(vec![n], "doubled", |i| x.at(i) + x.at(i));
/// assert_eq!(doubled.dtype(), DType::Float32);
/// assert_eq!(doubled.inputs(), [x]);
/// ```
pub fn compute(
    shape: Vec<Expr>,
    name: impl Into<Arc<str>>,
    f: impl FnOnce(&[Expr]) -> Expr,
) -> Tensor {
    let names: Vec<String> = (0..shape.len()).map(|i| format!("ax{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    compute_named(shape, name, &names, f)
}

/// A tensor of shape `shape` whose element at the indices `i` is `f(i)`. Its axes have the names `axis_names`. Axes without a name
/// are called `ax0`, `ax1`, ...
pub fn compute_named(
    shape: Vec<Expr>,
    name: impl Into<Arc<str>>,
    axis_names: &[&str],
    f: impl FnOnce(&[Expr]) -> Expr,
) -> Tensor {
    let name_of = |i: usize| match axis_names.get(i) {
        Some(name) => Var::size(*name),
        None => Var::size(format!("ax{i}")),
    };
    let vars: Vec<Var> = (0..shape.len()).map(name_of).collect();
    let indices: Vec<Expr> = vars.iter().map(Var::expr).collect();
    compute_over(shape, name, &vars, &f(&indices))
}

/// A tensor of shape `shape` whose element is `body`, an expression over the index variables `vars`, one for each dim.
///
/// # Panics
/// If there are more dims than variables.
pub fn compute_over(
    shape: Vec<Expr>,
    name: impl Into<Arc<str>>,
    vars: &[Var],
    body: &Expr,
) -> Tensor {
    let shape: Vec<Expr> = shape.iter().map(index).collect();
    assert!(vars.len() >= shape.len(), "a stage has a variable for each dim");
    let axis = |(extent, var): (&Expr, &Var)| {
        let (min, extent) = (int(0), extent.clone());
        IterVar { var: var.clone(), min, extent, kind: IterKind::Spatial }
    };
    let axes = shape.iter().zip(vars).map(axis).collect();
    let (body, checks) = (body.clone(), Vec::new());
    let dtype = body.ty().dtype;
    Tensor::new(name.into(), shape, dtype, TensorOp::Compute(Compute { axes, body, checks }))
}
