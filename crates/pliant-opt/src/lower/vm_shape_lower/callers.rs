//! Facts about the arguments of private functions whose callers are all known. A parameter needs no
//! check if every caller passes the right kind of value, and its dims need none if every caller's
//! types prove them.

use std::sync::Arc;

use pliant_ir::relax::visit::{Event, for_each_expr, for_each_operand, walk};
use pliant_ir::relax::{
    Binding, Callee, Expr, ExprData, Function, TensorShape, Type, TypeData, Var,
};
use pliant_ir::{IRModule, Sym, SymVar};
use rustc_hash::FxHashMap;

use crate::analysis::loop_closures::{LoopClosure, loop_closures, loop_operands};

/// What all callers of a function pass.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// For each parameter, whether all arguments have the right kind: ranks, data types, numbers
    /// of fields.
    pub kinds: Vec<bool>,
    /// Whether all dims are proved, except those that define symbols.
    pub dims: bool,
}

/// The functions whose callers are all known.
pub(super) type Callers = FxHashMap<Arc<str>, Known>;

/// Examines all callers of the private functions.
pub(super) fn known_arguments(module: &IRModule) -> Callers {
    let private = module.relax_funcs().filter(|(_, f)| f.private);
    let known = private
        .map(|(name, f)| (name.clone(), Known { kinds: vec![true; f.params().len()], dims: true }));
    let mut search = Search { module, known: known.collect() };
    for (_, func) in module.relax_funcs() {
        let closures = loop_closures(func);
        walk(func, func.root(), |event| match event {
            Event::EnterBinding(_, b) => search.binding(func, b, &closures),
            Event::Result(seq) => search.mentioned(func, func.seq(seq).result, &[]),
            _ => {}
        });
    }
    search.known
}

struct Search<'a> {
    module: &'a IRModule,
    known: Callers,
}

impl Search<'_> {
    fn binding(&mut self, func: &Function, b: Binding, closures: &FxHashMap<Var, LoopClosure>) {
        if closures.contains_key(&b.var) {
            // The loop is its caller.
            let ExprData::Call { args, .. } = func.expr(b.value) else { return };
            return self.mentioned(func, b.value, &func.list(*args)[..1]);
        }
        if let Some(&[cond, body, ref first @ ..]) = loop_operands(func, b.value) {
            self.turned(func, cond, body, first, closures);
            return self.mentioned(func, b.value, &[cond, body]);
        }
        match func.expr(b.value) {
            ExprData::Call { callee: Callee::Expr(callee), args, .. } => {
                if let ExprData::Global(name) = func.expr(*callee) {
                    let args: Vec<Arg> =
                        func.list(*args).iter().map(|&e| Arg::of(func, e)).collect();
                    self.passed(func.str(*name), &args);
                }
                self.mentioned(func, b.value, &[*callee]);
            }
            _ => self.mentioned(func, b.value, &[]),
        }
    }

    /// Functions that an expression mentions outside the operands `but` may be called from
    /// anywhere.
    fn mentioned(&mut self, func: &Function, e: Expr, but: &[Expr]) {
        let mut escape = |e: Expr| {
            if let ExprData::Global(name) = func.expr(e) {
                self.known.remove(func.str(*name));
            }
        };
        escape(e);
        let mut operands = Vec::new();
        for_each_operand(func, e, |operand| operands.push(operand));
        for operand in operands.into_iter().filter(|o| !but.contains(o)) {
            for_each_expr(func, operand, &mut escape);
        }
    }

    /// The functions of a loop: called with the initial state, and with the results of the body.
    fn turned(
        &mut self,
        func: &Function,
        cond: Expr,
        body: Expr,
        first: &[Expr],
        closures: &FxHashMap<Var, LoopClosure>,
    ) {
        let named = |e: Expr| match func.expr(e) {
            ExprData::Global(name) => Some((func.str(*name).clone(), Vec::new())),
            ExprData::Var(v) => closures.get(v).map(|c| (c.name.clone(), c.captured.clone())),
            _ => None,
        };
        let module = self.module;
        let turn = named(body).and_then(|(name, _)| module.get(&name)?.as_relax());
        let next = turn.and_then(|turn| next_turn(func, first, turn));
        for (name, captured) in [cond, body].into_iter().filter_map(named) {
            let captured: Vec<Arg> = captured.iter().map(|&e| Arg::of(func, e)).collect();
            let first: Vec<Arg> = first.iter().map(|&e| Arg::of(func, e)).collect();
            self.passed(&name, &[&first[..], &captured].concat());
            match &next {
                Some(next) => self.passed(&name, &[&next[..], &captured].concat()),
                None => drop(self.known.remove(&name)),
            }
        }
    }

    /// Records a call of `name` with these arguments.
    fn passed(&mut self, name: &Arc<str>, args: &[Arg<'_>]) {
        let Some(known) = self.known.get_mut(name) else { return };
        let callee = self.module.get(name).and_then(|f| f.as_relax());
        let Some(callee) = callee.filter(|f| f.params().len() == args.len()) else {
            return drop(self.known.remove(name));
        };
        let mut meaning = Meaning::default();
        for ((fits, &param), arg) in known.kinds.iter_mut().zip(callee.params()).zip(args) {
            let want = callee.var(param).ty;
            *fits &= kind_fits(arg.func, arg.ty, callee, want);
            known.dims &= dims_fit(*arg, arg.ty, callee, want, &mut meaning);
        }
    }
}

/// The type of an argument.
#[derive(Clone, Copy)]
struct Arg<'a> {
    /// The function that the type belongs to.
    func: &'a Function,
    ty: Type,
    /// Whether its symbols are those of the caller.
    exact: bool,
}

impl<'a> Arg<'a> {
    fn of(func: &'a Function, e: Expr) -> Arg<'a> {
        Arg { func, ty: func.expr_ty(e), exact: true }
    }
}

/// The types of the state in later iterations. Values whose type the body keeps have their initial
/// type, the others the type that the body returns.
fn next_turn<'a>(func: &'a Function, first: &[Expr], turn: &'a Function) -> Option<Vec<Arg<'a>>> {
    let ret = turn.ret_ty();
    let results = match turn.types.get(ret) {
        _ if first.len() == 1 => vec![ret],
        TypeData::Tuple(fields) if fields.len() == first.len() => fields.to_vec(),
        _ => return None,
    };
    let kept = turn.params().iter().map(|&p| turn.var(p).ty);
    let next = first.iter().zip(results).zip(kept).map(|((&e, result), kept)| {
        if result == kept { Arg::of(func, e) } else { Arg { func: turn, ty: result, exact: false } }
    });
    Some(next.collect())
}

/// Whether a value of type `have` of `f` has the kind that type `want` of `g` requires, regardless
/// of dims.
fn kind_fits(f: &Function, have: Type, g: &Function, want: Type) -> bool {
    let (have_data, want_data) = (f.types.get(have), g.types.get(want));
    let rank_fits = || g.rank_of(want).is_none_or(|rank| f.rank_of(have) == Some(rank));
    match (have_data, want_data) {
        (_, TypeData::Any) | (TypeData::Callable { .. }, TypeData::Callable { .. }) => true,
        (TypeData::Tensor { .. }, TypeData::Tensor { dtype, .. }) => {
            rank_fits() && (dtype.is_none() || have_data.dtype() == *dtype)
        }
        (TypeData::Shape { .. }, TypeData::Shape { .. }) => rank_fits(),
        (TypeData::Prim { dtype, .. }, TypeData::Prim { dtype: wanted, .. }) => dtype == wanted,
        (TypeData::Tuple(have), TypeData::Tuple(want)) => {
            have.len() == want.len()
                && have.iter().zip(want).all(|(&have, &want)| kind_fits(f, have, g, want))
        }
        _ => false,
    }
}

/// The values of a callee's symbols in the caller; `None` for those that the caller does not know.
type Meaning = FxHashMap<SymVar, Option<Sym>>;

/// Whether the dims of an argument with type `have` (or part of it) equal those of `want` of `g`,
/// except those that define symbols.
fn dims_fit(arg: Arg<'_>, have: Type, g: &Function, want: Type, meaning: &mut Meaning) -> bool {
    let f = arg.func;
    let want = match g.types.get(want) {
        TypeData::Tuple(fields) => {
            let TypeData::Tuple(have) = f.types.get(have) else { return false };
            let mut pairs = have.iter().zip(fields);
            return pairs.all(|(&have, &want)| dims_fit(arg, have, g, want, meaning));
        }
        TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => dims.to_vec(),
        TypeData::Shape { dims: Some(dims), .. } => dims.to_vec(),
        TypeData::Prim { value: Some(value), .. } => vec![*value],
        _ => return true,
    };
    let have = match f.types.get(have) {
        TypeData::Prim { value: Some(value), .. } => Some(vec![*value]),
        other => other.dims().map(<[Sym]>::to_vec),
    };
    let have = have.filter(|have| have.len() == want.len());
    want.into_iter().enumerate().all(|(i, want)| {
        let have = have.as_ref().map(|have| have[i]);
        let Some(var) = g.syms.as_var(want) else {
            let value = g.syms.as_int(want);
            return value.is_some() && have.and_then(|have| f.syms.as_int(have)) == value;
        };
        let have = have.filter(|_| arg.exact);
        match meaning.get(&var) {
            None => {
                meaning.insert(var, have);
                true
            }
            Some(known) => known.is_some() && *known == have,
        }
    })
}
