//! Determines which argument checks of private functions are redundant because all their call sites are known. A parameter's kind
//! (rank, data type) needs no check if every caller passes the right kind of value. Its dims need no check if the types of all
//! arguments prove them.

use std::sync::Arc;

use pliant_ir::relax::visit::{Event, for_each_expr, for_each_operand, walk};
use pliant_ir::relax::{
    Binding, Callee, Expr, ExprData, Function, TensorShape, Type, TypeData, Var,
};
use pliant_ir::{IRModule, Sym, SymVar};
use rustc_hash::FxHashMap;

use crate::analysis::while_loop_closures::{LoopClosure, loop_closures, loop_operands};

/// The properties that hold for the arguments at all calls of a function.
#[derive(Clone, Debug)]
pub(super) struct CallerFacts {
    /// For each parameter, whether the arguments at all calls have the right kind: rank, data type, number of fields.
    pub kinds: Vec<bool>,
    /// Whether the dims of all arguments provably equal those of the parameters, except for dims that define symbols.
    pub dims: bool,
}

/// Maps the names of functions whose call sites are all known to the properties of their arguments.
pub(super) type CallerFactsByName = FxHashMap<Arc<str>, CallerFacts>;

/// Returns, for each private function whose call sites are all known, the properties that hold for its arguments at all
/// calls.
pub(super) fn caller_facts(module: &IRModule) -> CallerFactsByName {
    let private = module.relax_funcs().filter(|(_, f)| f.private);
    let facts = private.map(|(name, f)| {
        (name.clone(), CallerFacts { kinds: vec![true; f.params().len()], dims: true })
    });
    let mut analysis = CallerAnalysis { module, facts: facts.collect() };
    for (_, func) in module.relax_funcs() {
        let closures = loop_closures(func);
        walk(func, func.root(), |event| match event {
            Event::EnterBinding(_, b) => analysis.visit_binding(func, b, &closures),
            Event::Result(seq) => analysis.record_escapes(func, func.seq(seq).result, &[]),
            _ => {}
        });
    }
    analysis.facts
}

/// Collects the properties of arguments by visiting all functions of a module. A function that may have an unknown call site is
/// removed from `facts`.
struct CallerAnalysis<'a> {
    module: &'a IRModule,
    facts: CallerFactsByName,
}

impl CallerAnalysis<'_> {
    fn visit_binding(
        &mut self,
        func: &Function,
        b: Binding,
        closures: &FxHashMap<Var, LoopClosure>,
    ) {
        if closures.contains_key(&b.var) {
            // The only caller of the closure's function is the loop.
            let ExprData::Call { args, .. } = func.expr(b.value) else { return };
            return self.record_escapes(func, b.value, &func.list(*args)[..1]);
        }
        if let Some(&[cond, body, ref initial @ ..]) = loop_operands(func, b.value) {
            self.record_loop(func, cond, body, initial, closures);
            return self.record_escapes(func, b.value, &[cond, body]);
        }
        match func.expr(b.value) {
            ExprData::Call { callee: Callee::Expr(callee), args, .. } => {
                if let ExprData::Global(name) = func.expr(*callee) {
                    let args: Vec<ArgType> =
                        func.list(*args).iter().map(|&e| ArgType::of(func, e)).collect();
                    self.record_call(func.str(*name), &args);
                }
                self.record_escapes(func, b.value, &[*callee]);
            }
            _ => self.record_escapes(func, b.value, &[]),
        }
    }

    /// Removes the functions to which an expression refers from `facts`, because they may have unknown call sites. Ignores
    /// references in the operands `except`, which are known call sites.
    fn record_escapes(&mut self, func: &Function, e: Expr, except: &[Expr]) {
        let mut escape = |e: Expr| {
            if let ExprData::Global(name) = func.expr(e) {
                self.facts.remove(func.str(*name));
            }
        };
        escape(e);
        let mut operands = Vec::new();
        for_each_operand(func, e, |operand| operands.push(operand));
        for operand in operands.into_iter().filter(|o| !except.contains(o)) {
            for_each_expr(func, operand, &mut escape);
        }
    }

    /// Records the calls of the condition and the body of a loop: with the initial state, and with the results of the body as the
    /// next state.
    fn record_loop(
        &mut self,
        func: &Function,
        cond: Expr,
        body: Expr,
        initial: &[Expr],
        closures: &FxHashMap<Var, LoopClosure>,
    ) {
        let callee_of = |e: Expr| match func.expr(e) {
            ExprData::Global(name) => Some((func.str(*name).clone(), Vec::new())),
            ExprData::Var(v) => closures.get(v).map(|c| (c.name.clone(), c.captured.clone())),
            _ => None,
        };
        let module = self.module;
        let body_func = callee_of(body).and_then(|(name, _)| module.get(&name)?.as_relax());
        let next_state = body_func.and_then(|body_func| next_state_types(func, initial, body_func));
        for (name, captured) in [cond, body].into_iter().filter_map(callee_of) {
            let captured: Vec<ArgType> = captured.iter().map(|&e| ArgType::of(func, e)).collect();
            let initial: Vec<ArgType> = initial.iter().map(|&e| ArgType::of(func, e)).collect();
            self.record_call(&name, &[&initial[..], &captured].concat());
            match &next_state {
                Some(next_state) => self.record_call(&name, &[&next_state[..], &captured].concat()),
                None => drop(self.facts.remove(&name)),
            }
        }
    }

    /// Records a call of the function `name` with arguments of these types.
    fn record_call(&mut self, name: &Arc<str>, args: &[ArgType<'_>]) {
        let Some(facts) = self.facts.get_mut(name) else { return };
        let callee = self.module.get(name).and_then(|f| f.as_relax());
        let Some(callee) = callee.filter(|f| f.params().len() == args.len()) else {
            return drop(self.facts.remove(name));
        };
        let mut sizes = CallerSizes::default();
        for ((fits, &param), arg) in facts.kinds.iter_mut().zip(callee.params()).zip(args) {
            let expected = callee.var(param).ty;
            *fits &= type_kind_fits(arg.func, arg.ty, callee, expected);
            facts.dims &= dims_are_proved(*arg, arg.ty, callee, expected, &mut sizes);
        }
    }
}

/// The type of an argument, with the function whose arena contains it.
#[derive(Clone, Copy)]
struct ArgType<'a> {
    /// The function whose arena contains the type.
    func: &'a Function,
    ty: Type,
    /// Whether the symbols in the type are symbols of the caller, so that sizes of several arguments can be compared. If not,
    /// they are symbols of a loop body whose result is the argument.
    has_caller_symbols: bool,
}

impl<'a> ArgType<'a> {
    fn of(func: &'a Function, e: Expr) -> ArgType<'a> {
        ArgType { func, ty: func.expr_ty(e), has_caller_symbols: true }
    }
}

/// Returns the types of the loop state after the first iteration: the initial type for values whose type the body does not
/// change, and the result type of the body for others.
fn next_state_types<'a>(
    func: &'a Function,
    initial: &[Expr],
    body_func: &'a Function,
) -> Option<Vec<ArgType<'a>>> {
    let ret = body_func.ret_ty();
    let results = match body_func.types.get(ret) {
        _ if initial.len() == 1 => vec![ret],
        TypeData::Tuple(fields) if fields.len() == initial.len() => fields.to_vec(),
        _ => return None,
    };
    let param_tys = body_func.params().iter().map(|&p| body_func.var(p).ty);
    let next_state = initial.iter().zip(results).zip(param_tys).map(|((&e, result), param_tys)| {
        if result == param_tys {
            ArgType::of(func, e)
        } else {
            ArgType { func: body_func, ty: result, has_caller_symbols: false }
        }
    });
    Some(next_state.collect())
}

/// Whether a value of type `actual` of `f` has the kind that type `expected` of `g` requires. Dims are ignored.
fn type_kind_fits(f: &Function, actual: Type, g: &Function, expected: Type) -> bool {
    let (actual_data, expected_data) = (f.types.get(actual), g.types.get(expected));
    let rank_fits = || g.rank_of(expected).is_none_or(|rank| f.rank_of(actual) == Some(rank));
    match (actual_data, expected_data) {
        (_, TypeData::Any) | (TypeData::Callable { .. }, TypeData::Callable { .. }) => true,
        (TypeData::Tensor { .. }, TypeData::Tensor { dtype, .. }) => {
            rank_fits() && (dtype.is_none() || actual_data.dtype() == *dtype)
        }
        (TypeData::Shape { .. }, TypeData::Shape { .. }) => rank_fits(),
        (TypeData::Prim { dtype, .. }, TypeData::Prim { dtype: expected_dtype, .. }) => {
            dtype == expected_dtype
        }
        (TypeData::Tuple(actual), TypeData::Tuple(expected)) => {
            actual.len() == expected.len()
                && actual
                    .iter()
                    .zip(expected)
                    .all(|(&actual, &expected)| type_kind_fits(f, actual, g, expected))
        }
        _ => false,
    }
}

/// Maps the symbols of a callee to symbolic sizes of the caller; `None` for symbols whose value the caller does not know.
type CallerSizes = FxHashMap<SymVar, Option<Sym>>;

/// Whether the dims of an argument of type `actual` (or of a part of it) provably equal those of type `expected` of `g`. Dims that
/// define symbols are recorded in `sizes`.
fn dims_are_proved(
    arg: ArgType<'_>,
    actual: Type,
    g: &Function,
    expected: Type,
    sizes: &mut CallerSizes,
) -> bool {
    let f = arg.func;
    let expected = match g.types.get(expected) {
        TypeData::Tuple(fields) => {
            let TypeData::Tuple(actual) = f.types.get(actual) else { return false };
            let mut pairs = actual.iter().zip(fields);
            return pairs
                .all(|(&actual, &expected)| dims_are_proved(arg, actual, g, expected, sizes));
        }
        TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => dims.to_vec(),
        TypeData::Shape { dims: Some(dims), .. } => dims.to_vec(),
        TypeData::Prim { value: Some(value), .. } => vec![*value],
        _ => return true,
    };
    let actual = match f.types.get(actual) {
        TypeData::Prim { value: Some(value), .. } => Some(vec![*value]),
        other => other.dims().map(<[Sym]>::to_vec),
    };
    let actual = actual.filter(|actual| actual.len() == expected.len());
    expected.into_iter().enumerate().all(|(i, expected)| {
        let actual = actual.as_ref().map(|actual| actual[i]);
        let Some(var) = g.syms.as_var(expected) else {
            let value = g.syms.as_int(expected);
            return value.is_some() && actual.and_then(|actual| f.syms.as_int(actual)) == value;
        };
        let actual = actual.filter(|_| arg.has_caller_symbols);
        match sizes.get(&var) {
            None => {
                sizes.insert(var, actual);
                true
            }
            Some(facts) => facts.is_some() && *facts == actual,
        }
    })
}
