//! Emits the adjoints of the bindings of one sequence, from the last binding to the first (reverse-mode differentiation).

use std::cell::RefCell;

use pliant_ir::op::CALL_TIR_WITH_GRAD;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, Op};
use pliant_ops::Gradient;
use pliant_ops::gradient::te_gradients::argument_adjoints;
use pliant_ops::gradient::{DifferentiatedCall, GradientBuilder, gradient_of, operand_adjoints};
use pliant_pass::{PassContext, PassError, Problem};
use rustc_hash::FxHashSet;

use super::activity::{useful_bindings, varied_vars};
use super::adjoints::{Adjoint, AdjointMap, is_differentiable, materialize};
use super::callees::Callees;
use super::checkpoints::Checkpoints;

/// The state of a run of the pass that all functions share.
pub(super) struct Differentiator<'m> {
    /// The adjoints of functions that the differentiated function calls.
    pub callees: Callees<'m>,
    /// The problems found so far.
    pub problems: RefCell<Vec<Problem>>,
    /// The pass context, for cancellation.
    pub ctx: &'m PassContext,
}

/// The bindings of a sequence and what is differentiated.
pub(super) struct Sequence<'s> {
    /// The name of the function, for messages.
    pub function: &'s str,
    /// All bindings, in order.
    pub bindings: &'s [Binding],
    /// The variables whose adjoints are needed.
    pub on: FxHashSet<Var>,
    /// The operands with known adjoints from which differentiation starts.
    pub seeds: Vec<(Expr, Adjoint)>,
    /// The values that are computed again.
    pub checkpoints: Checkpoints,
}

impl Differentiator<'_> {
    /// Reports a problem of the call that is bound to `var`.
    pub(super) fn report(
        &self,
        builder: &GradientBuilder,
        function: &str,
        var: Var,
        message: String,
    ) {
        let (span, name) = builder.read(|f| (f.var(var).span, f.var(var).name.clone()));
        let message = format!("{message}, but the target depends on it through '{name}'");
        let problem = Problem::new(message).at(span).in_function(function);
        self.problems.borrow_mut().push(problem);
    }

    /// Emits the adjoints of a sequence. Returns the adjoints of the variables in `on`.
    ///
    /// # Errors
    /// If the run is cancelled. Problems of the program are added to `problems`.
    pub(super) fn differentiate<'b>(
        &self,
        builder: &'b GradientBuilder,
        mut sequence: Sequence<'_>,
    ) -> Result<AdjointMap<'b>, PassError> {
        let varied = builder.read(|f| varied_vars(f, sequence.bindings, &sequence.on));
        let targets: Vec<Var> = sequence
            .seeds
            .iter()
            .flat_map(|(operand, _)| {
                builder.read(|f| pliant_ir::relax::visit::operand_vars(f, *operand))
            })
            .collect();
        let useful = builder.read(|f| useful_bindings(f, sequence.bindings, &varied, &targets));
        let mut map = AdjointMap::new(builder, varied);
        for (operand, adjoint) in std::mem::take(&mut sequence.seeds) {
            map.add(operand, adjoint);
        }
        for (count, binding) in useful.into_iter().enumerate() {
            if count % 256 == 0 {
                self.ctx.check_cancelled()?;
            }
            let Some(adjoint) = map.take(binding.var) else { continue };
            let span = builder.read(|f| f.var(binding.var).span);
            builder.build(|b| b.set_span(span));
            self.propagate(builder, &mut map, &mut sequence, binding, adjoint)?;
        }
        Ok(map)
    }

    /// Adds the adjoints that follow from the adjoint of a binding's variable.
    fn propagate(
        &self,
        builder: &GradientBuilder,
        map: &mut AdjointMap<'_>,
        sequence: &mut Sequence<'_>,
        binding: Binding,
        adjoint: Adjoint,
    ) -> Result<(), PassError> {
        let value = binding.value;
        match builder.read(|f| f.expr(value).clone()) {
            ExprData::Var(_) | ExprData::Tuple(_) => map.add(value, adjoint),
            ExprData::TupleGetItem(tuple, index) => {
                let count = builder.read(|f| match f.ty(tuple) {
                    pliant_ir::relax::TypeData::Tuple(fields) => fields.len(),
                    _ => index as usize + 1,
                });
                let mut fields = vec![None; count];
                fields[index as usize] = Some(adjoint);
                map.add(tuple, Adjoint::Fields(fields));
            }
            ExprData::Call { callee: Callee::Op(op), args, attrs, ty_args } => {
                let (args, attrs, ty_args) = builder.read(|f| {
                    let args = f.list(args).to_vec();
                    (args, f.call_attrs(attrs).clone(), f.type_list(ty_args).to_vec())
                });
                let call = OperatorCall { op, args, attrs, ty_args };
                self.operator(builder, map, sequence, binding, adjoint, call);
            }
            ExprData::Call { callee: Callee::Expr(callee), args, .. } => {
                let args = builder.read(|f| f.list(args).to_vec());
                self.function_call(builder, map, sequence, binding, (callee, &args), adjoint)?;
            }
            ExprData::If { .. } => {
                self.branches(builder, map, sequence, binding, adjoint)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the adjoints of the operands of an operator.
    fn operator(
        &self,
        builder: &GradientBuilder,
        map: &mut AdjointMap<'_>,
        sequence: &mut Sequence<'_>,
        binding: Binding,
        adjoint: Adjoint,
        call: OperatorCall,
    ) {
        let OperatorCall { op, args, attrs, ty_args } = call;
        let wanted: Vec<bool> = args.iter().map(|&a| self.wants(builder, map, a)).collect();
        let mut replace = |e: Expr| sequence.checkpoints.replace(builder, e);
        let arguments: Vec<Expr> = args
            .iter()
            .map(|&a| {
                let arg = replace(a);
                builder.build(|b| b.resolve_absent(arg))
            })
            .collect();
        let result = builder.read(|f| f.var_expr(binding.var));
        let result = match needs_result(op) {
            true => replace(result),
            false => result,
        };
        let result_adjoints = result_adjoints(builder, &adjoint);
        let call = DifferentiatedCall {
            op,
            args: &arguments,
            attrs: &attrs,
            ty_args: &ty_args,
            result,
            result_adjoints: &result_adjoints,
            wanted: &wanted,
        };
        let adjoints = match op {
            CALL_TIR_WITH_GRAD => loop_function_adjoints(builder, &call),
            _ => operand_adjoints(builder, &call),
        };
        match adjoints {
            Ok(adjoints) => {
                for ((&arg, adjoint), wanted) in args.iter().zip(adjoints).zip(wanted) {
                    if let Some(adjoint) = adjoint.filter(|_| wanted) {
                        map.add(arg, Adjoint::Tensor(adjoint));
                    }
                }
            }
            Err(error) => {
                self.report(builder, sequence.function, binding.var, error.0);
                // Zeros keep the operands useful, so that all problems before this call are found, too.
                for &arg in args.iter().zip(&wanted).filter(|(_, w)| **w).map(|(a, _)| a) {
                    let zero = materialize(builder, None, arg);
                    map.add(arg, Adjoint::Tensor(zero));
                }
            }
        }
    }

    /// Whether the adjoint of an operand is needed.
    fn wants(&self, builder: &GradientBuilder, map: &AdjointMap<'_>, operand: Expr) -> bool {
        builder.read(|f| {
            is_differentiable(f, f.expr_ty(operand))
                && pliant_ir::relax::visit::operand_vars(f, operand)
                    .into_iter()
                    .any(|v| map.is_varied(v))
        })
    }
}

/// A call of an operator, copied out of the function's arenas.
struct OperatorCall {
    op: Op,
    args: Vec<Expr>,
    attrs: Attrs,
    ty_args: Vec<pliant_ir::relax::Type>,
}

/// Whether the gradient of an operator may read the result of the call.
fn needs_result(op: Op) -> bool {
    matches!(gradient_of(op), Gradient::Rule(_) | Gradient::FromTe)
}

/// The adjoints of the results of a call: one per field if the result is a tuple.
fn result_adjoints(builder: &GradientBuilder, adjoint: &Adjoint) -> Vec<Option<Expr>> {
    match adjoint {
        Adjoint::Tensor(e) => vec![Some(*e)],
        Adjoint::Fields(fields) => fields
            .iter()
            .map(|field| match field {
                Some(Adjoint::Tensor(e)) => Some(builder.operand(*e)),
                _ => None,
            })
            .collect(),
    }
}

/// The adjoints of the operands of `call_tir_with_grad`: the loop function has none, the tuple of arguments has one per argument.
fn loop_function_adjoints(
    builder: &GradientBuilder,
    call: &DifferentiatedCall<'_>,
) -> Result<Vec<Option<Expr>>, pliant_ops::GradientError> {
    let tuple = call.args[1];
    let arguments: Vec<Expr> = builder.read(|f: &Function| match f.tuple_fields(tuple) {
        Some(fields) => fields.to_vec(),
        None => vec![tuple],
    });
    let name = call.attrs.get("te_grad_name").and_then(|v| v.as_str().map(str::to_string));
    let name = name.unwrap_or_default();
    let kwargs = match call.attrs.get("te_grad_kwargs") {
        Some(pliant_ir::AttrValue::Map(items)) => Attrs(items.clone()),
        _ => Attrs::default(),
    };
    let wanted = vec![true; arguments.len()];
    let result_adjoints: Vec<Option<Expr>> = match call.result_adjoints {
        [only] => vec![*only],
        several => several
            .iter()
            .enumerate()
            .map(|(k, adjoint)| {
                let zeros = || {
                    let field = builder.term(call.result).field(k);
                    builder.operand(builder.term(builder.operand(field.expr())).zeros().expr())
                };
                Some(adjoint.unwrap_or_else(zeros))
            })
            .collect(),
    };
    let inner = DifferentiatedCall {
        op: call.op,
        args: &arguments,
        attrs: call.attrs,
        ty_args: call.ty_args,
        result: call.result,
        result_adjoints: &result_adjoints,
        wanted: &wanted,
    };
    let adjoints = argument_adjoints(builder, &name, &inner, &kwargs)?;
    let fields = builder.edit(|f| f.tuple(&adjoints));
    let mut all = vec![None; call.args.len()];
    all[1] = Some(fields);
    Ok(all)
}
