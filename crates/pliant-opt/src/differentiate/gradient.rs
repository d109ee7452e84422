//! # What it does
//! Differentiates a function whose result, or a field of it, is a float scalar (the *target*). Adds the function `<name>_adjoint`,
//! which returns the original result and the adjoints of parameters: the derivatives of the target with respect to them. The pass
//! traverses the bindings from the last to the first, and emits the adjoints of the operands of each.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")) -> R.Tensor((), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.multiply(x, y)
//!         gv = R.sum(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")) -> R.Tensor((), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.multiply(x, y)
//!         gv = R.sum(lv)
//!         R.output(gv)
//!     return gv
//!
//! @R.function
//! def main_adjoint(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")) -> R.Tuple(
//!     R.Tensor((), "float32"), R.Tuple(R.Tensor(("n", 3), "float32"), R.Tensor(("n", 3), "float32"))
//! ):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.multiply(x, y)
//!         gv = R.sum(lv)
//!         gv_adjoint = R.ones(R.shape([]), dtype="float32")
//!         lv_adjoint = R.broadcast_to(gv_adjoint, R.shape([n, 3]))
//!         x_adjoint = R.multiply(lv_adjoint, y)
//!         y_adjoint = R.multiply(lv_adjoint, x)
//!         R.output(gv, x_adjoint, y_adjoint)
//!     return (gv, (x_adjoint, y_adjoint))
//! ```
//!
//! # Requires
//! All operators through which the target depends on the parameters have a gradient. Operators have not been lowered.
//!
//! # Keeps
//! The differentiated function.
//!
//! # Never
//! Stores values of branches and of called functions: they are computed again for the gradient.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::op::{CALL_TIR, CALL_TIR_WITH_GRAD};
use pliant_ir::relax::visit::operand_vars;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_ir::{AttrValue, Attrs, IRModule};
use pliant_ops::gradient::GradientBuilder;
use pliant_pass::optimization_remarks::{Remark, RemarkKind};
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::FxHashSet;

use super::adjoints::{Adjoint, AdjointMap, is_differentiable, materialize};
use super::callees::{Callees, flat_bindings};
use super::checkpoints::{Checkpoints, NO_GRAD, marker, without_markers};
use super::reverse::{Differentiator, Sequence};
use crate::canonicalize::lambda_lift::LambdaLift;
use crate::common::operators_after_lowering::{format_names, relax_func};
use crate::common::shared_loop_functions::LoopFunctions;

/// A function that receives the warnings of the pass.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// The pass that differentiates a function. See the module documentation.
#[derive(Clone)]
pub struct Gradient {
    /// The name of the function to differentiate.
    pub func_name: Arc<str>,
    /// The names of the parameters whose adjoints are returned; `None` for all parameters.
    pub require_grads: Option<Vec<Arc<str>>>,
    /// The field of the result that is differentiated, if the result is a tuple.
    pub target_index: usize,
    /// Receives a warning for each parameter on which the target does not depend.
    pub warn: Option<Warn>,
}

impl ModulePass for Gradient {
    fn name(&self) -> &str {
        "Gradient"
    }

    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        relax_func(&module, &self.func_name, "Gradient")?;
        let mut module = match has_local_functions(&module) {
            true => LambdaLift.run(module, ctx)?,
            false => module,
        };
        let func = relax_func(&module, &self.func_name, "Gradient")?.clone();
        let in_function = |p: Problem| PassError::User(vec![p.in_function(&*self.func_name)]);
        let params = self.differentiated_params(&func).map_err(|list| {
            PassError::User(list.into_iter().map(|p| p.in_function(&*self.func_name)).collect())
        })?;
        let target = self.target(&func).map_err(in_function)?;
        let adjoint_name = module.fresh_name(&format!("{}_adjoint", self.func_name));
        // The name must not be used for a loop function.
        module.insert(adjoint_name.clone(), (*func).clone());
        let loop_functions = Rc::new(RefCell::new(LoopFunctions::new(&module)));
        let differentiator = Differentiator {
            callees: Callees::new(&module, loop_functions.clone()),
            problems: RefCell::default(),
            ctx,
        };
        let adjoint = self.build(&differentiator, &func, &params, target, &adjoint_name)?;
        let Differentiator { callees, problems, .. } = differentiator;
        let problems = problems.into_inner();
        if !problems.is_empty() {
            return Err(PassError::User(problems));
        }
        let functions = callees.into_functions();
        module.insert(adjoint_name, adjoint);
        functions.into_iter().for_each(|(name, func)| module.insert(name, func));
        if let Ok(loop_functions) = Rc::try_unwrap(loop_functions) {
            loop_functions.into_inner().insert_into(&mut module);
        }
        Ok(module)
    }
}

/// Whether a graph function of the module contains a local function.
fn has_local_functions(module: &IRModule) -> bool {
    module.relax_funcs().any(|(_, f)| pliant_pass::binding_rewrites::reachable_funcs(f).len() > 1)
}

impl Gradient {
    /// The parameters whose adjoints are returned.
    fn differentiated_params(&self, func: &Function) -> Result<Vec<Var>, Vec<Problem>> {
        let params = func.params();
        let Some(names) = &self.require_grads else {
            let wrong = |&&p: &&Var| !is_differentiable(func, func.var(p).ty);
            let problems: Vec<Problem> =
                params.iter().filter(wrong).map(|&p| not_float(func, p)).collect();
            return if problems.is_empty() { Ok(params.to_vec()) } else { Err(problems) };
        };
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for name in names {
            match params.iter().find(|&&p| func.var(p).name == *name) {
                Some(&p) if found.contains(&p) => problems.push(Problem::new(format!(
                    "require_grads contains the parameter '{name}' twice"
                ))),
                Some(&p) if is_differentiable(func, func.var(p).ty) => found.push(p),
                Some(&p) => problems.push(not_float(func, p)),
                None => {
                    let names = params.iter().map(|&p| &*func.var(p).name);
                    let problem = Problem::new(format!(
                        "require_grads contains '{name}', which is not a parameter of the function"
                    ));
                    problems.push(
                        problem
                            .with_help(format_names("the parameters of the function are:", names)),
                    );
                }
            }
        }
        if problems.is_empty() { Ok(found) } else { Err(problems) }
    }

    /// The operand of the result that is differentiated, as the index of a field if the result is a tuple.
    fn target(&self, func: &Function) -> Result<Option<usize>, Problem> {
        let ty = func.types.get(func.ret_ty());
        let result_ty = func.ty(func.seq(func.body()).result);
        let (index, target) = match (result_ty, ty) {
            (TypeData::Tuple(fields), _) => match fields.get(self.target_index) {
                Some(&field) => (Some(self.target_index), func.types.get(field).clone()),
                None => {
                    return Err(Problem::new(format!(
                        "target_index is {}, but the function returns a tuple of {} values",
                        self.target_index,
                        fields.len()
                    )));
                }
            },
            (_, _) if self.target_index != 0 => {
                return Err(Problem::new(format!(
                    "target_index is {}, but the function does not return a tuple",
                    self.target_index
                )));
            }
            (ty, _) => (None, ty.clone()),
        };
        let is_scalar = target.dims().is_some_and(<[_]>::is_empty);
        let is_float = target.dtype().is_some_and(|d| d.is_float());
        if target.is_tensor() && is_scalar && is_float {
            return Ok(index);
        }
        let result = func.seq(func.body()).result;
        let ty = pliant_ir::print::type_text(func, func.expr_ty(result));
        let field = index.map_or(String::new(), |k| format!(" with target_index {k}"));
        let span =
            operand_vars(func, result).first().map_or(pliant_ir::Span::NONE, |&v| func.var(v).span);
        Err(Problem::new(format!(
            "the differentiated value must be a float tensor of rank 0, but the function returns {ty}{field}"
        ))
        .at(span)
        .with_help("reduce the result to a scalar, for example with R.sum or R.mean"))
    }

    /// Builds the adjoint function.
    fn build(
        &self,
        differentiator: &Differentiator<'_>,
        original: &Function,
        params: &[Var],
        target: Option<usize>,
        name: &str,
    ) -> Result<Function, PassError> {
        let mut func = original.clone();
        if func.attrs.contains_key(GLOBAL_SYMBOL) {
            func.attrs.insert(GLOBAL_SYMBOL.into(), AttrValue::str(name));
        }
        let dataflow = is_dataflow(&func);
        let all = flat_bindings(&mut func);
        let mut checkpoints = Checkpoints::of(&func, &all);
        let (kept, subst) = without_markers(&mut func, &all);
        let result = func.seq(func.body()).result;
        let result = subst.apply(&mut func, result);
        checkpoints.set_bindings(
            kept.iter().zip(&all).map(|(kept, &original)| kept.unwrap_or(original)).collect(),
        );
        let bindings: Vec<Binding> = kept.into_iter().flatten().collect();
        let emitted: Vec<Binding> = bindings
            .iter()
            .map(|&b| Binding { value: forward_value(&mut func, b.value), ..b })
            .collect();
        let loop_functions = differentiator.callees.loop_functions.clone();
        let builder = GradientBuilder::new(func, move |hint, prim| {
            loop_functions.borrow_mut().add(hint, prim)
        });
        if dataflow {
            builder.build(|b| b.begin_dataflow()).map_err(|e| PassError::internal(e.message))?;
        }
        builder.build(|b| emitted.iter().for_each(|&binding| b.bind(binding)));
        let seeds = vec![seed(&builder, result, target)];
        let sequence = Sequence {
            function: &self.func_name,
            bindings: &bindings,
            on: params.iter().copied().collect::<FxHashSet<Var>>(),
            seeds,
            checkpoints,
        };
        let mut map = differentiator.differentiate(&builder, sequence)?;
        let adjoints = self.results(&builder, &mut map, params, differentiator.ctx);
        let pure = original.is_pure();
        let tuple = builder.edit(|f| {
            let adjoints = f.tuple(&adjoints);
            f.tuple(&[result, adjoints])
        });
        if dataflow {
            builder.build(|b| b.end_dataflow());
        }
        let mut func = builder.finish(tuple, pure);
        if dataflow {
            restrict_to_block(&mut func);
        }
        Ok(func)
    }

    /// The adjoints of the parameters. Warns of those on which the target does not depend, whose adjoints are zeros.
    fn results(
        &self,
        builder: &GradientBuilder,
        map: &mut AdjointMap<'_>,
        params: &[Var],
        ctx: &PassContext,
    ) -> Vec<Expr> {
        params
            .iter()
            .map(|&p| {
                let adjoint = map.take(p);
                if adjoint.is_none() {
                    self.warn_of_zeros(builder, p, ctx);
                }
                let operand = builder.read(|f| f.var_expr(p));
                let value = materialize(builder, adjoint.as_ref(), operand);
                builder.operand(value)
            })
            .collect()
    }

    fn warn_of_zeros(&self, builder: &GradientBuilder, param: Var, ctx: &PassContext) {
        let (name, span) = builder.read(|f| (f.var(param).name.clone(), f.var(param).span));
        let message = format!(
            "the target of '{}' does not depend on the parameter '{name}' differentiably, so its gradient is zero",
            self.func_name
        );
        if let Some(warn) = &self.warn {
            warn(&message);
        }
        ctx.remarks.add(Remark {
            kind: RemarkKind::Analysis,
            rule: "Gradient".into(),
            function: self.func_name.clone(),
            subject: name,
            span,
            message,
        });
    }
}

fn not_float(func: &Function, param: Var) -> Problem {
    let name = &func.var(param).name;
    let ty = pliant_ir::print::type_text(func, func.var(param).ty);
    Problem::new(format!(
        "the parameter '{name}' has no gradient, because it is {ty} and not a float tensor"
    ))
    .at(func.var(param).span)
    .with_help("list the parameters with gradients in require_grads")
}

/// Whether the body consists of one dataflow block.
fn is_dataflow(func: &Function) -> bool {
    let mut blocks = func.seq(func.body()).blocks.iter().map(|&b| func.block(b));
    let used = blocks.by_ref().filter(|b| !b.bindings.is_empty());
    let mut count = 0;
    used.into_iter().all(|b| {
        count += 1;
        b.dataflow && count == 1
    })
}

/// The value that the adjoint function computes for a value of the differentiated function: `call_tir` instead of
/// `call_tir_with_grad`, and the operand of `no_grad`.
fn forward_value(func: &mut Function, value: Expr) -> Expr {
    if let Some((NO_GRAD, operand)) = marker(func, value) {
        return operand;
    }
    match func.expr(value).clone() {
        ExprData::Call { callee: Callee::Op(CALL_TIR_WITH_GRAD), args, ty_args, .. } => {
            let (args, ty_args) = (func.list(args).to_vec(), func.type_list(ty_args).to_vec());
            let ty = func.expr_ty(value);
            func.call(Callee::Op(CALL_TIR), &args, Attrs::default(), &ty_args, ty)
        }
        _ => value,
    }
}

/// The operand from which differentiation starts, with its adjoint 1.
fn seed(builder: &GradientBuilder, result: Expr, target: Option<usize>) -> (Expr, Adjoint) {
    let value = match target {
        Some(k) => builder.term(result).field(k).expr(),
        None => result,
    };
    let value = builder.term(value);
    let shape = builder.shape(&[]);
    let attrs = Attrs::default().with("dtype", AttrValue::DType(value.dtype()));
    let one = builder.call("relax.ones", &[shape], attrs);
    let is_field_of_var = builder.read(|f| f.tuple_fields(result).is_none());
    match (target, is_field_of_var) {
        (Some(k), true) => {
            let count = builder.read(|f| match f.ty(result) {
                TypeData::Tuple(fields) => fields.len(),
                _ => k + 1,
            });
            let mut fields = vec![None; count];
            fields[k] = Some(Adjoint::Tensor(one));
            (result, Adjoint::Fields(fields))
        }
        _ => (value.expr(), Adjoint::Tensor(one)),
    }
}

/// Makes all variables local to the only block, except for those that the result reads.
fn restrict_to_block(func: &mut Function) {
    let result = func.seq(func.body()).result;
    let outputs: FxHashSet<Var> = operand_vars(func, result).into_iter().collect();
    let blocks = func.seq(func.body()).blocks.clone();
    for block in blocks {
        for b in func.block(block).bindings.clone() {
            func.var_mut(b.var).dataflow = !outputs.contains(&b.var);
        }
    }
}
