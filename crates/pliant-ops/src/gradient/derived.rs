//! Derives gradients from tensor expressions: the loop function that computes the adjoints of the operands of a call.

use pliant_ir::relax::{Expr, ExprData, Function, TypeData};

use super::builder::GradientBuilder;
use super::{DifferentiatedCall, GradientError};
use crate::legalize::{LegalizeCtx, LegalizeError, TeForm, TirCall, te_form, tir_call_assuming};
use crate::op_declaration::TeResult;
use crate::op_registry::{RegistryEntry, registry};
use crate::te::{self, AssumedDims};
use crate::user_defined_ops::TeCall;

/// Emits the adjoints of the operands of a call by one call of a derived loop function.
///
/// # Errors
/// If a shape or data type is unknown, or the tensor expression cannot be differentiated.
pub(super) fn operand_adjoints(
    builder: &GradientBuilder,
    call: &DifferentiatedCall<'_>,
) -> Result<Vec<Option<Expr>>, GradientError> {
    let slots = wanted_operands(builder, call);
    let (tir, found) = builder.edit(|func| loop_function(func, call, &slots))?;
    let mut adjoints: Vec<OperandAdjoint> =
        call.args.iter().map(|_| OperandAdjoint::Zero).collect();
    if let Some(tir) = tir {
        let single = !tir.tuple;
        let result = builder.bind(builder.call_loop_function(tir), "lv");
        for (output, slot) in found.iter().enumerate() {
            let e = match single {
                true => result,
                false => builder.term(result).field(output).expr(),
            };
            adjoints[slot.operand].set(slot.field, builder.operand(e));
        }
    }
    Ok(call
        .args
        .iter()
        .zip(adjoints)
        .map(|(&arg, adjoint)| adjoint.into_expr(builder, arg))
        .collect())
}

/// An operand of a call, or a field of an operand that is a tuple, whose adjoint is needed.
#[derive(Clone, Copy)]
struct Slot {
    operand: usize,
    field: Option<usize>,
    expr: Expr,
}

/// The adjoint of an operand.
enum OperandAdjoint {
    Zero,
    Tensor(Expr),
    Fields(Vec<(usize, Expr)>),
}

impl OperandAdjoint {
    fn set(&mut self, field: Option<usize>, e: Expr) {
        match (field, &mut *self) {
            (None, _) => *self = OperandAdjoint::Tensor(e),
            (Some(k), OperandAdjoint::Fields(list)) => list.push((k, e)),
            (Some(k), _) => *self = OperandAdjoint::Fields(vec![(k, e)]),
        }
    }

    /// The adjoint as an expression. Fields without an adjoint become zeros.
    fn into_expr(self, builder: &GradientBuilder, operand: Expr) -> Option<Expr> {
        match self {
            OperandAdjoint::Zero => None,
            OperandAdjoint::Tensor(e) => Some(e),
            OperandAdjoint::Fields(list) => {
                let count = builder.read(|f| match f.ty(operand) {
                    TypeData::Tuple(fields) => fields.len(),
                    _ => 0,
                });
                let field = |k: usize| match list.iter().find(|(i, _)| *i == k) {
                    Some(&(_, e)) => builder.term(e),
                    None => builder.term(operand).field(k).zeros_like(),
                };
                let fields: Vec<_> = (0..count).map(field).collect();
                Some(super::Term::tuple(builder, &fields).expr())
            }
        }
    }
}

/// The operands and fields of operands whose adjoints are needed, each once.
fn wanted_operands(builder: &GradientBuilder, call: &DifferentiatedCall<'_>) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    let mut add = |slot: Slot| {
        if !slots.iter().any(|s| s.expr == slot.expr) {
            slots.push(slot);
        }
    };
    for (operand, &expr) in call.args.iter().enumerate().filter(|&(i, _)| call.wanted[i]) {
        let fields = builder.read(|f| match f.ty(expr) {
            TypeData::Tuple(fields) => Some(fields.len()),
            _ => None,
        });
        match fields {
            None => add(Slot { operand, field: None, expr }),
            Some(count) => (0..count).for_each(|k| {
                let expr = builder.term(expr).field(k).expr();
                add(Slot { operand, field: Some(k), expr });
            }),
        }
    }
    slots
}

/// Creates the call of the loop function that computes the adjoints of `slots`. Returns the slots that have an adjoint, in the
/// order of the outputs; no call if there are none.
fn loop_function(
    func: &mut Function,
    call: &DifferentiatedCall<'_>,
    slots: &[Slot],
) -> Result<(Option<TirCall>, Vec<Slot>), GradientError> {
    let DifferentiatedForm { name, mut inputs, outputs, assumed, vars } = form(func, call)?;
    let mut with_adjoints = Vec::new();
    for (output, &adjoint) in outputs.iter().zip(call.result_adjoints) {
        let Some(adjoint) = adjoint else { continue };
        let placeholder = te::placeholder(output.shape().to_vec(), output.dtype(), "dy");
        inputs.push((placeholder.clone(), adjoint));
        with_adjoints.push((output.clone(), placeholder));
    }
    let of_slot = |slot: &Slot| -> Vec<usize> {
        let positions = inputs.iter().enumerate();
        positions.filter(|(_, (_, e))| is_operand(func, *e, slot)).map(|(i, _)| i).collect()
    };
    let placeholders: Vec<Vec<usize>> = slots.iter().map(of_slot).collect();
    let wanted: Vec<te::Tensor> =
        placeholders.iter().flatten().map(|&i| inputs[i].0.clone()).collect();
    let adjoints = te::adjoints(&with_adjoints, &wanted)
        .map_err(|e| GradientError::new(format!("{}: {e}", call.op.name())))?;
    let mut adjoints = adjoints.into_iter();
    let (mut found, mut results) = (Vec::new(), Vec::new());
    for (slot, list) in slots.iter().zip(&placeholders) {
        // An operand that a call passes twice has a placeholder for each use.
        let parts: Vec<te::Tensor> = adjoints.by_ref().take(list.len()).flatten().collect();
        let Some(first) = parts.first() else { continue };
        found.push(*slot);
        results.push(match parts.len() {
            1 => first.clone(),
            _ => te::compute(first.shape().to_vec(), "T_adjoint", |i| {
                let sum = parts.iter().map(|t| t.at(i)).reduce(|a, b| a + b);
                sum.unwrap_or_else(|| first.at(i))
            }),
        });
    }
    if results.is_empty() {
        return Ok((None, found));
    }
    let mut types = TeCall::with_vars(func, vars);
    let ty = types.out_ty(&results).map_err(LegalizeError::from)?;
    let (_, vars) = types.finish();
    let name = format!("{name}_adjoint");
    let call = tir_call_assuming(func, &name, (&inputs, &results, &assumed), &vars, ty)?;
    Ok((Some(call), found))
}

/// Whether `e` is the operand or the field of a slot.
fn is_operand(func: &Function, e: Expr, slot: &Slot) -> bool {
    e == slot.expr
        || match (func.expr(e), func.expr(slot.expr)) {
            (ExprData::TupleGetItem(a, i), ExprData::TupleGetItem(b, k)) => a == b && i == k,
            _ => false,
        }
}

/// The tensor expressions of a call.
struct DifferentiatedForm {
    name: String,
    inputs: Vec<(te::Tensor, Expr)>,
    outputs: Vec<te::Tensor>,
    assumed: AssumedDims,
    vars: te::VarMap,
}

fn form(
    func: &mut Function,
    call: &DifferentiatedCall<'_>,
) -> Result<DifferentiatedForm, GradientError> {
    let (args, attrs) = (call.args, call.attrs);
    let no_te = || GradientError::new(format!("{} has no tensor expression", call.op.name()));
    match registry().entry(call.op) {
        Some(RegistryEntry::Library { decl, .. }) => {
            let ty = func.expr_ty(call.result);
            let form = te_form(func, decl, (args, attrs), ty, true)?.ok_or_else(no_te)?;
            let TeForm { name, inputs, outputs, assumed, vars } = form;
            Ok(DifferentiatedForm { name: name.into(), inputs, outputs, assumed, vars })
        }
        Some(RegistryEntry::User(op)) => {
            let mut te_call = TeCall::new(func);
            let outputs = op.outputs(&mut te_call, args, attrs)?;
            let (inputs, vars) = te_call.finish();
            let name = call.op.name().rsplit('.').next().unwrap_or("operator").to_string();
            Ok(DifferentiatedForm { name, inputs, outputs, assumed: AssumedDims::default(), vars })
        }
        None => Err(no_te()),
    }
}

/// Lowers the gradient of another operator: operand 0 is the adjoint of its result, the other operands are its operands. The result
/// is the adjoint of operand `wanted`.
///
/// # Errors
/// If a shape or data type is unknown, or the tensor expression cannot be differentiated.
pub(crate) fn te_of_gradient(
    ctx: &mut LegalizeCtx<'_>,
    forward: &'static str,
    wanted: usize,
) -> TeResult {
    let Some(RegistryEntry::Library { decl, .. }) = registry().named(forward) else {
        return Err(ctx.error(format!("the operator {forward} does not exist")));
    };
    let (decl, args) = (*decl, ctx.args);
    let ty = ctx.func.expr_ty(args[0]);
    let outputs = ctx.te_of(decl, &args[1..], ty)?;
    let output = outputs.first().ok_or_else(|| ctx.error("the operator has no result"))?;
    let dims = ctx.dims(0)?;
    let adjoint = ctx.tensor_with_dims(0, &dims)?;
    let result = match ctx.placeholder_of(args[wanted]) {
        Some(operand) => {
            let adjoints = te::adjoints(&[(output.clone(), adjoint)], &[operand])?;
            adjoints.into_iter().flatten().next()
        }
        None => None,
    };
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let zero = || te::compute(shape, "T_zeros", |_| te::const_of(0.0, dtype));
    Ok(vec![result.unwrap_or_else(zero)])
}
