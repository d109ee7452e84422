//! One transformation for the parameters that several functions of a model share.
//!
//! A computation is lifted if all functions contain it; the others stay. To compare them, the
//! lifted bindings of all functions are copied into one function with the same parameters, whose
//! values are numbered.

use std::sync::Arc;

use pliant_ir::relax::type_lattice::SymMap;
use pliant_ir::relax::visit::{Importer, operand_vars};
use pliant_ir::relax::{Binding, BlockData, Function, SeqData, Type, TypeData, Var};
use pliant_ir::{IRModule, Sym};
use pliant_pass::rewrite::{Substitution, remove_and_substitute};
use pliant_pass::{PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{called_functions, check_not_called, liftable, needed, transform_function};
use crate::analysis::Effects;
use crate::canonicalize::eliminate_common_subexpr::redundant_bindings;
use crate::common::lowered_ops::{num_input, relax_func};

/// The name of the shared function that transforms the parameters.
pub const SHARED_NAME: &str = "transform_params";

/// Which functions share a transformation of their parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedTransform {
    /// All functions with model parameters.
    All,
    /// The functions with these names; others are left alone.
    Of(Vec<String>),
}

/// A function whose parameters are transformed.
struct Sharer {
    name: Arc<str>,
    func: Function,
    /// The number of parameters that are inputs.
    count: usize,
    /// The model parameters.
    weights: Vec<Var>,
    lifted: Vec<Binding>,
    /// For each lifted variable, the equal variable in the combined function.
    numbers: FxHashMap<Var, Var>,
}

/// Lifts what all the functions compute from the parameters into one function.
pub(super) fn lift_shared(
    mut module: IRModule,
    wanted: &SharedTransform,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    if module.get(SHARED_NAME).is_some() {
        return Ok(module);
    }
    let effects = Effects::of(&module, ctx.ops);
    let mut sharers = sharers(&module, wanted)?;
    for s in &mut sharers {
        ctx.check_cancelled()?;
        s.lifted = liftable(&s.func, &s.weights, &effects);
    }
    number(&mut sharers, &effects)?;
    keep_common(&mut sharers);
    let Some(outputs) = outputs(&sharers) else { return Ok(module) };
    let transform = {
        let first = &sharers[0];
        let vars: Vec<Var> = outputs.iter().map(|o| o.of(first)).collect();
        transform_function(&first.func, &first.weights, &first.lifted, &vars)
    };
    for s in sharers {
        let (name, func) = rewritten(s, &outputs);
        module.insert(name, func);
    }
    module.insert(Arc::from(SHARED_NAME), transform);
    Ok(module)
}

/// The functions that share the transformation. None of them may call another.
fn sharers(module: &IRModule, wanted: &SharedTransform) -> Result<Vec<Sharer>, PassError> {
    let names: Vec<Arc<str>> = match wanted {
        SharedTransform::All => module.relax_funcs().map(|(name, _)| name.clone()).collect(),
        SharedTransform::Of(list) => list.iter().map(|name| name.as_str().into()).collect(),
    };
    let called = called_functions(module);
    let mut out: Vec<Sharer> = Vec::new();
    for name in names {
        let func = relax_func(module, &name, "LiftTransformParams")?;
        let Some(count) = num_input(func).map_err(|e| e.in_function(&name))? else {
            if let SharedTransform::Of(_) = wanted {
                let problem = Problem::new("the function does not say which parameters are inputs")
                    .with_help("R.func_attr({\"num_input\": k}) says that the first k are")
                    .in_function(name);
                return Err(PassError::User(vec![problem]));
            }
            continue;
        };
        check_not_called(&called, &name)?;
        let func = Function::clone(func);
        let weights = func.params()[count..].to_vec();
        let (lifted, numbers) = (Vec::new(), FxHashMap::default());
        out.push(Sharer { name, func, count, weights, lifted, numbers });
    }
    Ok(out)
}

/// Gives equal values of the functions the same number.
fn number(sharers: &mut [Sharer], effects: &Effects) -> Result<(), PassError> {
    let mut all = Function::empty();
    let (mut params, mut bindings): (Vec<Var>, Vec<Binding>) = (Vec::new(), Vec::new());
    let mut copies: Vec<FxHashMap<Var, Var>> = Vec::new();
    for (i, s) in sharers.iter().enumerate() {
        let mut importer = Importer::new(&s.func, &mut all);
        if i == 0 {
            params = s.weights.iter().map(|&w| importer.define(w)).collect();
        } else {
            same_params(s, &sharers[0], &params, &mut importer)?;
        }
        let mut copied = FxHashMap::default();
        for &b in &s.lifted {
            let copy = importer.binding(b);
            copied.insert(b.var, copy.var);
            bindings.push(copy);
        }
        copies.push(copied);
    }
    let block = all.add_block(BlockData { dataflow: false, bindings });
    let result = all.tuple(&[]);
    let body = all.add_seq(SeqData { blocks: vec![block], result });
    let root = all.root();
    let data = all.func_mut(root);
    (data.params, data.body) = (params, body);
    let same = redundant_bindings(&all, effects);
    for (s, copied) in sharers.iter_mut().zip(copies) {
        s.numbers =
            copied.into_iter().map(|(v, c)| (v, same.get(&c).copied().unwrap_or(c))).collect();
    }
    Ok(())
}

/// Maps the parameters of a function to those of the first one, which must have the same types.
fn same_params(
    s: &Sharer,
    first: &Sharer,
    params: &[Var],
    importer: &mut Importer<'_>,
) -> Result<(), PassError> {
    let differ = |what: String| {
        let problem = Problem::new(format!(
            "'{}' and '{}' cannot share a transformation: {what}",
            first.name, s.name
        ));
        PassError::User(vec![problem.with_help(
            "shared_transform takes functions whose parameters from num_input on are the same; name those that are",
        )])
    };
    if s.weights.len() != params.len() {
        return Err(differ(format!(
            "they have {} and {} parameters of the model",
            params.len(),
            s.weights.len()
        )));
    }
    for (&w, &param) in s.weights.iter().zip(params) {
        let ty = s.func.var(w).ty;
        match_syms(&s.func, ty, importer.dst, importer.dst.var(param).ty, &mut importer.syms);
    }
    for (i, (&w, &param)) in s.weights.iter().zip(params).enumerate() {
        let ty = importer.ty(s.func.var(w).ty);
        if ty != importer.dst.var(param).ty {
            let text = |sharer: &Sharer| {
                let v = sharer.weights[i];
                let ty = pliant_ir::print::type_text(&sharer.func, sharer.func.var(v).ty);
                format!("{}: {ty}", sharer.func.var(v).name)
            };
            return Err(differ(format!("{} is not {}", text(first), text(s))));
        }
        let e = importer.dst.var_expr(param);
        importer.vars.insert(w, e);
    }
    Ok(())
}

/// Maps the symbols of one type to those of another type of the same form.
fn match_syms(src: &Function, a: Type, dst: &Function, b: Type, syms: &mut SymMap) {
    let mut dim = |s: Sym, d: Sym| {
        if let Some(v) = src.syms.as_var(s) {
            syms.entry(v).or_insert(d);
        }
    };
    match (src.types.get(a), dst.types.get(b)) {
        (TypeData::Tuple(xs), TypeData::Tuple(ys)) => {
            xs.iter().zip(ys).for_each(|(&x, &y)| match_syms(src, x, dst, y, syms));
        }
        (TypeData::Prim { value: Some(x), .. }, TypeData::Prim { value: Some(y), .. }) => {
            dim(*x, *y);
        }
        (x, y) => {
            if let (Some(xs), Some(ys)) = (x.dims(), y.dims()) {
                xs.iter().zip(ys).for_each(|(&x, &y)| dim(x, y));
            }
        }
    }
}

/// Restricts the lifted bindings of each function to those that all functions have, with everything
/// that they read.
fn keep_common(sharers: &mut [Sharer]) {
    loop {
        let sets = sharers.iter().map(|s| s.numbers.values().copied().collect::<FxHashSet<Var>>());
        let Some(common) = sets.reduce(|a, b| &a & &b) else { return };
        let mut changed = false;
        for s in sharers.iter_mut() {
            let mut known: FxHashSet<Var> = s.weights.iter().copied().collect();
            let before = s.lifted.len();
            let (func, numbers) = (&s.func, &s.numbers);
            s.lifted.retain(|b| {
                let keep = common.contains(&numbers[&b.var])
                    && operand_vars(func, b.value).iter().all(|v| known.contains(v));
                if keep {
                    known.insert(b.var);
                }
                keep
            });
            changed |= s.lifted.len() != before;
            s.numbers.retain(|v, _| known.contains(v));
        }
        if !changed {
            return;
        }
    }
}

/// One result of the transformation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Output {
    /// An unchanged parameter, by position.
    Param(usize),
    /// A lifted value, by its number.
    Value(Var),
}

impl Output {
    /// The variable of this output in a function.
    fn of(self, s: &Sharer) -> Var {
        match self {
            Output::Param(i) => s.weights[i],
            Output::Value(number) => {
                let found = s.lifted.iter().find(|b| s.numbers[&b.var] == number);
                found.expect("every function has the common values").var
            }
        }
    }
}

/// What the functions need, parameters first; `None` if no function has model parameters.
fn outputs(sharers: &[Sharer]) -> Option<Vec<Output>> {
    let first = sharers.first()?;
    let mut wanted: FxHashSet<Output> = FxHashSet::default();
    for s in sharers {
        for v in needed(&s.func, s.count, &s.weights, &s.lifted) {
            wanted.insert(match s.weights.iter().position(|&w| w == v) {
                Some(i) => Output::Param(i),
                None => Output::Value(s.numbers[&v]),
            });
        }
    }
    let params = (0..first.weights.len()).map(Output::Param);
    let values = first.lifted.iter().map(|b| Output::Value(first.numbers[&b.var]));
    let mut seen = FxHashSet::default();
    let in_order = params.chain(values).filter(|o| wanted.contains(o) && seen.insert(*o));
    (!first.weights.is_empty()).then(|| in_order.collect())
}

/// The function with the results of the transformation instead of the parameters.
fn rewritten(s: Sharer, outputs: &[Output]) -> (Arc<str>, Function) {
    let vars: Vec<Var> = outputs.iter().map(|o| o.of(&s)).collect();
    let by_number: FxHashMap<Var, Var> =
        vars.iter().filter_map(|v| Some((*s.numbers.get(v)?, *v))).collect();
    let Sharer { name, mut func, count, lifted, numbers, .. } = s;
    let mut subst = Substitution::default();
    for b in &lifted {
        if let Some(&stands) = by_number.get(&numbers[&b.var]).filter(|v| **v != b.var) {
            let e = func.var_expr(stands);
            subst.insert(b.var, e);
        }
    }
    let dead: FxHashSet<Var> = lifted.iter().map(|b| b.var).collect();
    remove_and_substitute(&mut func, &dead, &subst);
    for &v in &vars {
        func.var_mut(v).dataflow = false;
    }
    let root = func.root();
    let params = &mut func.func_mut(root).params;
    params.truncate(count);
    params.extend(vars);
    (name, func)
}
