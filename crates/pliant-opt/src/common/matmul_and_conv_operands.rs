//! Functions for passes on matmuls and convolutions: operator names, matmuls with an optional bias ([`MatrixProduct`]), access to
//! operands, their attributes and sizes, and the variables that do not depend on the model's inputs.

use pliant_ir::relax::visit::{bindings, operand_vars};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, Var};
use pliant_ir::{Attrs, Op, Sym};
use pliant_pass::pattern::{Pattern, RewriteCx, is_op};
use pliant_sym::{Analyzer, Facts};
use rustc_hash::FxHashSet;

use crate::common::operators_after_lowering::{is_absent, num_input};

/// The operator `R.matmul(x1, x2)`.
pub const MATMUL: Op = Op::new("relax.matmul");
/// The operator `R.linear(x, weight, bias)`: a matmul with the transposed weight, and an addition of the bias.
pub const LINEAR: Op = Op::new("relax.linear");
/// The operator `R.einsum(operands, subscripts)`.
pub const EINSUM: Op = Op::new("relax.einsum");
/// The operator `R.add(x1, x2)`.
pub const ADD: Op = Op::new("relax.add");
/// The operator `R.permute_dims(x, axes)`.
pub const PERMUTE_DIMS: Op = Op::new("relax.permute_dims");

/// The operators of convolutions with 1 to 3 spatial dims, then those of transposed convolutions with 1 to 3 spatial dims.
pub const CONVOLUTIONS: [Op; 6] = [
    Op::new("relax.nn.conv1d"),
    Op::new("relax.nn.conv2d"),
    Op::new("relax.nn.conv3d"),
    Op::new("relax.nn.conv1d_transpose"),
    Op::new("relax.nn.conv2d_transpose"),
    Op::new("relax.nn.conv3d_transpose"),
];

/// Creates a pattern that matches a matmul whose operands match `a` and `b`.
pub fn matmul_pattern(a: &Pattern, b: &Pattern) -> Pattern {
    is_op(MATMUL).call([a.clone(), b.clone()])
}

/// A matmul with an optional bias: the operands of `R.matmul` or `R.linear`.
#[derive(Clone, Copy, Debug)]
pub struct MatrixProduct {
    /// The left operand of the matmul.
    pub x: Expr,
    /// The right operand of the matmul, before a transpose.
    pub right: Expr,
    /// Whether the right operand is transposed before the multiplication.
    pub transposed: bool,
    /// The bias that is added to the result of the matmul; `None` if there is none.
    pub bias: Option<Expr>,
}

impl MatrixProduct {
    /// Matches a call of `R.matmul` or `R.linear`. `None` for other values, and for an `R.linear` whose bias does not provably
    /// broadcast to the result, because such a call must check the shape of the bias at run time.
    pub fn of(func: &Function, value: Expr) -> Option<MatrixProduct> {
        let ExprData::Call { callee: Callee::Op(op), args, .. } = func.expr(value) else {
            return None;
        };
        let (transposed, args) = (*op == LINEAR, func.list(*args));
        if *op != MATMUL && !transposed {
            return None;
        }
        let bias = args.get(2).copied().filter(|&b| !is_absent(func, b));
        let fits = bias.is_none_or(|b| broadcasts_to(func, b, value));
        fits.then(|| MatrixProduct { x: args[0], right: args[1], transposed, bias })
    }
}

/// Whether a tensor provably broadcasts to the shape of the tensor `other`.
fn broadcasts_to(func: &Function, e: Expr, other: Expr) -> bool {
    let (Some(dims), Some(of)) = (func.ty(e).dims(), func.ty(other).dims()) else { return false };
    let mut pairs = dims.iter().rev().zip(of.iter().rev());
    dims.len() <= of.len() && pairs.all(|(&a, &b)| a == b || func.syms.as_int(a) == Some(1))
}

/// Returns the dims of a tensor; `None` if its shape is unknown.
pub fn dims(func: &Function, e: Expr) -> Option<Vec<Sym>> {
    func.ty(e).dims().map(<[_]>::to_vec)
}

/// Returns the attributes of the call that defines an operand; `None` if no call defines it.
pub fn defining_attrs(cx: &RewriteCx<'_>, e: Expr) -> Option<Attrs> {
    match *cx.func.expr(cx.value(e)) {
        ExprData::Call { attrs, .. } => Some(cx.func.call_attrs(attrs).clone()),
        _ => None,
    }
}

/// Returns (operands, attributes) of a value that is a call of `op`; `None` for other values.
pub fn call_operands(func: &Function, e: Expr, op: Op) -> Option<(&[Expr], &Attrs)> {
    match func.expr(e) {
        ExprData::Call { callee: Callee::Op(callee), args, attrs, .. } if *callee == op => {
            Some((func.list(*args), func.call_attrs(*attrs)))
        }
        _ => None,
    }
}

/// Returns the operands of the call that defines the operand `e`; `None` unless it is a call of `op`.
pub fn defining_operands(cx: &RewriteCx<'_>, e: Expr, op: Op) -> Option<Vec<Expr>> {
    call_operands(cx.func, cx.value(e), op).map(|(args, _)| args.to_vec())
}

/// Returns the axes of a `permute_dims` of a tensor of rank `rank` as non-negative numbers. If the attribute `axes` is absent,
/// the dims are reversed.
pub fn permute_axes(attrs: &Attrs, rank: usize) -> Option<Vec<usize>> {
    let axes = match attrs.get("axes") {
        Some(axes) if !axes.is_none() => axes.as_ints()?,
        _ => return Some((0..rank).rev().collect()),
    };
    let at = |axis: i64| usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok();
    axes.into_iter().map(at).collect()
}

/// Whether `cost` is provably at most `other` for all sizes, and the two are not provably equal.
pub fn provably_cheaper(func: &mut Function, cost: Sym, other: Sym) -> bool {
    let mut facts = Facts::new();
    for sym in [cost, other] {
        for var in func.syms.free_vars(sym) {
            facts.assume_size(var);
        }
    }
    let mut analyzer = Analyzer::new(&mut func.syms, &facts);
    analyzer.prove_le(cost, other).is_yes() && !analyzer.prove_le(other, cost).is_yes()
}

/// Returns the variables that do not depend on the inputs of the model, only on constants and on weights, which are the
/// parameters after the first `num_input`.
pub fn input_independent_vars(func: &Function) -> FxHashSet<Var> {
    let params = func.params();
    let inputs = num_input(func).ok().flatten().unwrap_or(params.len());
    vars_computed_from(func, params[inputs..].iter().copied().collect())
}

/// Returns the variables that are computed from constants alone.
pub fn constant_vars(func: &Function) -> FxHashSet<Var> {
    vars_computed_from(func, FxHashSet::default())
}

/// Adds the variables that are computed from constants and the variables in `known` to `known`, and returns the set.
fn vars_computed_from(func: &Function, mut known: FxHashSet<Var>) -> FxHashSet<Var> {
    for (_, b) in bindings(func) {
        let computed = match func.expr(b.value) {
            ExprData::If { .. } | ExprData::Func(_) => false,
            _ => operand_vars(func, b.value).iter().all(|v| known.contains(v)),
        };
        if computed {
            known.insert(b.var);
        }
    }
    known
}

/// Whether an operand is a constant or one of the variables in `independent`.
pub fn is_input_independent(func: &Function, independent: &FxHashSet<Var>, e: Expr) -> bool {
    match func.expr(e) {
        ExprData::Var(v) => independent.contains(v),
        ExprData::Constant(_) => true,
        _ => false,
    }
}

/// Whether two operands have the same type.
pub fn same_type(func: &Function, a: Expr, b: Expr) -> bool {
    let ty = |e: Expr| -> Type { func.expr_ty(e) };
    ty(a) == ty(b)
}
