//! Differentiates a scalar expression: the adjoint of each element that the expression reads.

use pliant_ir::tir::{BinOp, Intrin};
use rustc_hash::{FxHashMap, FxHashSet};

use super::TeError;
use super::expr::{Expr, ExprKind};
use super::expr_builders::*;
use super::expr_traversal::{fold, post_order};
use super::tensor::Tensor;

/// The adjoint of one read of an element: the derivative of the expression with respect to this element, times the adjoint of the
/// expression.
pub(super) struct ReadAdjoint {
    /// The tensor whose element is read.
    pub tensor: Tensor,
    /// The indices of the element.
    pub indices: Vec<Expr>,
    /// The conditions under which the element is read. Otherwise, the adjoint is 0, and the indices may be out of range.
    pub guards: Vec<Expr>,
    /// The adjoint if all conditions are true.
    pub value: Expr,
}

/// The adjoint of a node, if all conditions are true.
#[derive(Clone)]
struct GuardedAdjoint {
    guards: Vec<Expr>,
    value: Expr,
}

/// The adjoints of all reads of tensors in `active`, where `adjoint` is the adjoint of `body`.
///
/// # Errors
/// If the expression contains an intrinsic without a derivative.
pub(super) fn read_adjoints(
    body: &Expr,
    adjoint: &Expr,
    active: &FxHashSet<Tensor>,
) -> Result<Vec<ReadAdjoint>, TeError> {
    let depends = nodes_that_read(body, active);
    let mut nodes = Vec::new();
    post_order(body, |e| nodes.push(e.clone()));
    let mut adjoints: FxHashMap<usize, Vec<GuardedAdjoint>> = FxHashMap::default();
    adjoints.insert(body.id(), vec![GuardedAdjoint { guards: Vec::new(), value: adjoint.clone() }]);
    let mut reads = Vec::new();
    for node in nodes.iter().rev() {
        let Some(list) = adjoints.remove(&node.id()) else { continue };
        for adjoint in list {
            if let ExprKind::Load(tensor, indices) = node.kind() {
                if active.contains(tensor) {
                    let (tensor, indices) = (tensor.clone(), indices.clone());
                    let GuardedAdjoint { guards, value } = adjoint;
                    reads.push(ReadAdjoint { tensor, indices, guards, value });
                }
                continue;
            }
            for (child, guard, value) in child_adjoints(node, &adjoint.value)? {
                if !depends[&child.id()] || !child.ty().dtype.is_float() {
                    continue;
                }
                let guards = adjoint.guards.iter().cloned().chain(guard).collect();
                add(adjoints.entry(child.id()).or_default(), GuardedAdjoint { guards, value });
            }
        }
    }
    Ok(reads)
}

/// For each node of the expression, whether it reads a tensor in `active`.
fn nodes_that_read(body: &Expr, active: &FxHashSet<Tensor>) -> FxHashMap<usize, bool> {
    let mut memo = FxHashMap::default();
    let result: Result<bool, std::convert::Infallible> =
        fold(body, &mut memo, |e, children: &[bool]| {
            let reads = matches!(e.kind(), ExprKind::Load(t, _) if active.contains(t));
            Ok(reads || children.contains(&true))
        });
    match result {
        Ok(_) => memo,
    }
}

/// Adds an adjoint to a list, in which all adjoints have different conditions.
fn add(list: &mut Vec<GuardedAdjoint>, new: GuardedAdjoint) {
    let same = |a: &GuardedAdjoint| {
        a.guards.len() == new.guards.len()
            && a.guards.iter().zip(&new.guards).all(|(x, y)| x.same_as(y))
    };
    match list.iter_mut().find(|a| same(a)) {
        Some(known) => known.value = &known.value + &new.value,
        None => list.push(new),
    }
}

/// The adjoint of an operand: the operand, the condition under which it contributes to the result (`None` for always), and the
/// value of the adjoint.
type OperandAdjoint<'e> = (&'e Expr, Option<Expr>, Expr);

/// Returns the adjoints of the operands of a node.
fn child_adjoints<'e>(node: &'e Expr, dy: &Expr) -> Result<Vec<OperandAdjoint<'e>>, TeError> {
    use ExprKind::*;
    Ok(match node.kind() {
        Binary(op, a, b) => binary_adjoints(*op, (a, b), node, dy),
        Cast(a) => vec![(a, None, cast(dy, a.ty()))],
        Select(c, a, b) => vec![(a, Some(c.clone()), dy.clone()), (b, Some(not(c)), dy.clone())],
        Call(Intrin::IfThenElse, args) => {
            let (c, a, b) = (&args[0], &args[1], &args[2]);
            vec![(a, Some(c.clone()), dy.clone()), (b, Some(not(c)), dy.clone())]
        }
        Call(intrin, args) => intrinsic_adjoints(*intrin, args, node, dy)?
            .into_iter()
            .zip(args)
            .map(|(value, arg)| (arg, None, value))
            .collect(),
        _ => Vec::new(),
    })
}

fn binary_adjoints<'e>(
    op: BinOp,
    (a, b): (&'e Expr, &'e Expr),
    node: &Expr,
    dy: &Expr,
) -> Vec<OperandAdjoint<'e>> {
    match op {
        BinOp::Add => vec![(a, None, dy.clone()), (b, None, dy.clone())],
        BinOp::Sub => vec![(a, None, dy.clone()), (b, None, -dy)],
        BinOp::Mul => vec![(a, None, dy * b), (b, None, dy * a)],
        BinOp::Div => vec![(a, None, dy / b), (b, None, -(dy * node / b))],
        BinOp::Max => vec![(a, Some(ge(a, b)), dy.clone()), (b, Some(lt(a, b)), dy.clone())],
        BinOp::Min => vec![(a, Some(le(a, b)), dy.clone()), (b, Some(gt(a, b)), dy.clone())],
        BinOp::FloorMod => {
            vec![(a, None, dy.clone()), (b, None, -(dy * floor(&(a / b))))]
        }
        _ => Vec::new(),
    }
}

/// The adjoints of the operands of an intrinsic whose result is `y`.
///
/// # Errors
/// If the intrinsic has no derivative.
fn intrinsic_adjoints(
    intrin: Intrin,
    args: &[Expr],
    y: &Expr,
    dy: &Expr,
) -> Result<Vec<Expr>, TeError> {
    let c = |v: f64| const_of(v, y.ty().dtype);
    let x = args.first().unwrap_or(y);
    let one = c(1.0);
    let factor = match intrin {
        Intrin::Exp => y.clone(),
        Intrin::Exp2 => y * c(std::f64::consts::LN_2),
        Intrin::Log => &one / x,
        Intrin::Log2 => c(std::f64::consts::LOG2_E) / x,
        Intrin::Log10 => c(std::f64::consts::LOG10_E) / x,
        Intrin::Log1p => &one / (&one + x),
        Intrin::Sqrt => c(0.5) / y,
        Intrin::Rsqrt => c(-0.5) * y / x,
        Intrin::Sin => cos(x),
        Intrin::Cos => -sin(x),
        Intrin::Tan => &one + y * y,
        Intrin::Sinh => cosh(x),
        Intrin::Cosh => sinh(x),
        Intrin::Tanh => &one - y * y,
        Intrin::Asin => rsqrt(&(&one - x * x)),
        Intrin::Acos => -rsqrt(&(&one - x * x)),
        Intrin::Atan => &one / (&one + x * x),
        Intrin::Asinh => rsqrt(&(&one + x * x)),
        Intrin::Acosh => rsqrt(&(x * x - &one)),
        Intrin::Atanh => &one / (&one - x * x),
        Intrin::Sigmoid => y * (&one - y),
        Intrin::Erf => c(std::f64::consts::FRAC_2_SQRT_PI) * exp(&-(x * x)),
        Intrin::Gelu => {
            let density = c(0.398_942_280_401_432_7) * exp(&(c(-0.5) * x * x));
            let cumulative = c(0.5) * (&one + erf(&(x * c(std::f64::consts::FRAC_1_SQRT_2))));
            cumulative + x * density
        }
        Intrin::Abs => select(&lt(x, &c(0.0)), &c(-1.0), &select(&gt(x, &c(0.0)), &one, &c(0.0))),
        Intrin::Likely => one,
        Intrin::Floor | Intrin::Ceil | Intrin::Trunc | Intrin::Round | Intrin::Nearbyint => {
            return Ok(Vec::new());
        }
        Intrin::Pow | Intrin::Atan2 | Intrin::Fma | Intrin::Fmod => {
            return Ok(several_operands(intrin, args, y, dy));
        }
        _ => {
            return Err(TeError::new(format!("T.{} has no derivative", intrin.name())));
        }
    };
    Ok(vec![dy * factor])
}

fn several_operands(intrin: Intrin, args: &[Expr], y: &Expr, dy: &Expr) -> Vec<Expr> {
    let c = |v: f64| const_of(v, y.ty().dtype);
    match (intrin, args) {
        (Intrin::Pow, [a, b]) => {
            vec![dy * b * power(a, &(b - c(1.0))), dy * y * log(a)]
        }
        (Intrin::Atan2, [a, b]) => {
            let squares = a * a + b * b;
            vec![dy * b / &squares, -(dy * a / &squares)]
        }
        (Intrin::Fma, [a, b, _]) => vec![dy * b, dy * a, dy.clone()],
        (Intrin::Fmod, [a, b]) => vec![dy.clone(), -(dy * trunc(&(a / b)))],
        _ => Vec::new(),
    }
}
