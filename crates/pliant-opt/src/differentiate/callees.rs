//! Differentiates calls of functions of the module. The adjoint of a call `f(x, y)` is a call of a private function that receives
//! `x`, `y` and the adjoint of the result, computes the values of `f` again, and returns the adjoints of the parameters as a tuple.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_ir::{Attrs, IRModule};
use pliant_ops::gradient::GradientBuilder;
use pliant_pass::PassError;
use rustc_hash::FxHashSet;

use super::adjoints::{Adjoint, AdjointMap, is_differentiable, materialize};
use super::checkpoints::Checkpoints;
use super::reverse::{Differentiator, Sequence};
use crate::common::shared_loop_functions::LoopFunctions;

/// The function that computes the adjoints of the parameters of another function.
#[derive(Clone)]
struct AdjointFunction {
    name: Arc<str>,
    /// The indices of the parameters that have an adjoint.
    params: Vec<usize>,
    /// The function; `None` while it is being built.
    func: Option<Function>,
}

/// The adjoints of called functions that have been created so far.
pub(super) struct Callees<'m> {
    module: &'m IRModule,
    /// The loop functions that all created functions call.
    pub loop_functions: Rc<RefCell<LoopFunctions>>,
    functions: RefCell<IndexMap<Arc<str>, AdjointFunction>>,
}

impl<'m> Callees<'m> {
    pub(super) fn new(module: &'m IRModule, loop_functions: Rc<RefCell<LoopFunctions>>) -> Self {
        Callees { module, loop_functions, functions: RefCell::default() }
    }

    /// The created functions with their names.
    pub(super) fn into_functions(self) -> Vec<(Arc<str>, Function)> {
        let functions = self.functions.into_inner().into_values();
        functions.filter_map(|f| f.func.map(|func| (f.name, func))).collect()
    }
}

impl Differentiator<'_> {
    /// Adds the adjoints of the arguments of a call of a function.
    pub(super) fn function_call(
        &self,
        builder: &GradientBuilder,
        map: &mut AdjointMap<'_>,
        sequence: &mut Sequence<'_>,
        binding: Binding,
        (callee, args): (Expr, &[Expr]),
        adjoint: Adjoint,
    ) -> Result<(), PassError> {
        let name = builder.read(|f| match f.expr(callee) {
            ExprData::Global(name) => Ok(f.str(*name).clone()),
            ExprData::Extern(name) => Err(format!("the packed function '{}'", f.str(*name))),
            _ => Err("a function that is a value".to_string()),
        });
        let function = match &name {
            Ok(name) => self.callees.module.get(name).and_then(|f| f.as_relax()).cloned(),
            Err(_) => None,
        };
        let (Ok(name), Some(function)) = (&name, function) else {
            let what = name.map_or_else(|what| what, |name| format!("the function '{name}'"));
            self.report(
                builder,
                sequence.function,
                binding.var,
                format!("the call of {what} has no gradient"),
            );
            return Ok(());
        };
        if !function.is_pure() {
            let message = format!("the function '{name}' has side effects");
            self.report(builder, sequence.function, binding.var, message);
            return Ok(());
        }
        let AdjointFunction { name: adjoint_name, params, .. } =
            self.adjoint_function(name, &function)?;
        let result = builder.read(|f| f.var_expr(binding.var));
        let adjoint = builder.operand(materialize(builder, Some(&adjoint), result));
        let mut operands: Vec<Expr> =
            args.iter().map(|&a| sequence.checkpoints.replace(builder, a)).collect();
        operands.push(adjoint);
        let call = builder.edit(|f| {
            let tys: Vec<_> = params.iter().map(|&i| f.expr_ty(args[i])).collect();
            let ret = f.intern(TypeData::Tuple(tys.into()));
            let callee_ty = f.intern(TypeData::Callable { params: None, ret, pure: true });
            let callee = f.global(&adjoint_name, callee_ty);
            f.call(Callee::Expr(callee), &operands, Attrs::default(), &[], ret)
        });
        let adjoints = builder.term(builder.bind(call, &format!("{name}_adjoints")));
        for (k, &i) in params.iter().enumerate() {
            map.add(args[i], Adjoint::Tensor(adjoints.field(k).expr()));
        }
        Ok(())
    }

    /// The function that computes the adjoints of the parameters of `function`. It is created when it is first needed.
    fn adjoint_function(
        &self,
        name: &Arc<str>,
        function: &Function,
    ) -> Result<AdjointFunction, PassError> {
        if let Some(known) = self.callees.functions.borrow().get(name) {
            return Ok(AdjointFunction { func: None, ..known.clone() });
        }
        let params: Vec<usize> = function
            .params()
            .iter()
            .enumerate()
            .filter(|(_, p)| is_differentiable(function, function.var(**p).ty))
            .map(|(i, _)| i)
            .collect();
        let adjoint_name = self.callees.module.fresh_name(&format!("{name}_argument_adjoints"));
        let adjoint = AdjointFunction { name: adjoint_name, params, func: None };
        // A recursive function refers to its own adjoint.
        self.callees.functions.borrow_mut().insert(name.clone(), adjoint.clone());
        let built = self.build_adjoint_function(name, function, &adjoint.params)?;
        if let Some(slot) = self.callees.functions.borrow_mut().get_mut(name) {
            slot.func = Some(built);
        }
        Ok(adjoint)
    }

    fn build_adjoint_function(
        &self,
        name: &str,
        function: &Function,
        params: &[usize],
    ) -> Result<Function, PassError> {
        let mut func = function.clone();
        func.private = true;
        func.attrs.shift_remove(GLOBAL_SYMBOL);
        let bindings = flat_bindings(&mut func);
        let (ret_ty, result) = (func.ret_ty(), func.seq(func.body()).result);
        let wanted: Vec<Var> = params.iter().map(|&i| func.params()[i]).collect();
        let loop_functions = self.callees.loop_functions.clone();
        let builder = GradientBuilder::new(func, move |hint, prim| {
            loop_functions.borrow_mut().add(hint, prim)
        });
        let dy = builder.build(|b| {
            let dy = b.param("result_adjoint", ret_ty);
            bindings.iter().for_each(|&binding| b.bind(binding));
            b.func().var_expr(dy)
        });
        self.reject_effects(&builder, name, &bindings);
        let sequence = Sequence {
            function: name,
            bindings: &bindings,
            on: wanted.iter().copied().collect::<FxHashSet<Var>>(),
            seeds: vec![(result, Adjoint::Tensor(dy))],
            checkpoints: builder.read(|f| Checkpoints::of(f, &[])),
        };
        let mut map = self.differentiate(&builder, sequence)?;
        let fields: Vec<Expr> = wanted
            .iter()
            .map(|&v| {
                let operand = builder.read(|f| f.var_expr(v));
                let adjoint = map.take(v);
                builder.operand(materialize(&builder, adjoint.as_ref(), operand))
            })
            .collect();
        let tuple = builder.edit(|f| f.tuple(&fields));
        Ok(builder.finish(tuple, true))
    }
}

/// The bindings of the body of a function in order. Their variables become visible in the whole body.
pub(super) fn flat_bindings(func: &mut Function) -> Vec<Binding> {
    let blocks = func.seq(func.body()).blocks.clone();
    let bindings: Vec<Binding> =
        blocks.iter().flat_map(|&b| func.block(b).bindings.clone()).collect();
    for b in &bindings {
        func.var_mut(b.var).dataflow = false;
    }
    bindings
}
