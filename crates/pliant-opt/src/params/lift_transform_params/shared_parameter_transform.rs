//! Creates one transformation function for the parameters that several functions of a model share.
//!
//! A computation is lifted only if all functions contain it. To compare the computations, the lifted bindings of all functions are
//! copied to one combined function with the same parameters. Value numbering of this function finds equal values.

use std::sync::Arc;

use pliant_ir::relax::type_lattice::SymMap;
use pliant_ir::relax::visit::{Importer, operand_vars};
use pliant_ir::relax::{Binding, BlockData, Function, SeqData, Type, TypeData, Var};
use pliant_ir::{IRModule, Sym};
use pliant_pass::binding_rewrites::{Substitution, remove_and_substitute};
use pliant_pass::{PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{called_functions, check_not_called, liftable, needed_by_rest, transform_function};
use crate::analysis::Effects;
use crate::canonicalize::eliminate_common_subexpr::redundant_bindings;
use crate::common::operators_after_lowering::{num_input, relax_func};

/// The name of the shared function that transforms the parameters.
pub const SHARED_NAME: &str = "transform_params";

/// The functions that share a transformation of their parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedTransform {
    /// All functions with model parameters share the transformation.
    All,
    /// The functions with these names share the transformation.
    Of(Vec<String>),
}

/// A function that shares the transformation of its parameters with others.
struct SharingFunction {
    name: Arc<str>,
    func: Function,
    /// The number of parameters that are inputs of the model.
    count: usize,
    /// The parameters of the model, which follow the inputs.
    weights: Vec<Var>,
    lifted: Vec<Binding>,
    /// Maps each lifted variable to its value number, which is a variable of the combined function. Equal values have the same
    /// number.
    value_numbers: FxHashMap<Var, Var>,
}

/// Moves the computations on parameters that all functions have in common to one function.
pub(super) fn lift_shared(
    mut module: IRModule,
    selection: &SharedTransform,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    if module.get(SHARED_NAME).is_some() {
        return Ok(module);
    }
    let effects = Effects::of(&module, ctx.ops);
    let mut functions = sharing_functions(&module, selection)?;
    for s in &mut functions {
        ctx.check_cancelled()?;
        s.lifted = liftable(&s.func, &s.weights, &effects);
    }
    assign_value_numbers(&mut functions, &effects)?;
    retain_common(&mut functions);
    let Some(outputs) = common_outputs(&functions) else { return Ok(module) };
    let transform = {
        let first = &functions[0];
        let vars: Vec<Var> = outputs.iter().map(|o| o.var_in(first)).collect();
        transform_function(&first.func, &first.weights, &first.lifted, &vars)
    };
    for s in functions {
        let (name, func) = rewrite_function(s, &outputs);
        module.insert(name, func);
    }
    module.insert(Arc::from(SHARED_NAME), transform);
    Ok(module)
}

/// Finds the functions that share the transformation.
///
/// # Errors
/// If one of the functions does not exist, calls another of them, or has no attribute `num_input`.
fn sharing_functions(
    module: &IRModule,
    selection: &SharedTransform,
) -> Result<Vec<SharingFunction>, PassError> {
    let names: Vec<Arc<str>> = match selection {
        SharedTransform::All => module.relax_funcs().map(|(name, _)| name.clone()).collect(),
        SharedTransform::Of(list) => list.iter().map(|name| name.as_str().into()).collect(),
    };
    let called = called_functions(module);
    let mut out: Vec<SharingFunction> = Vec::new();
    for name in names {
        let func = relax_func(module, &name, "LiftTransformParams")?;
        let Some(count) = num_input(func).map_err(|e| e.in_function(&name))? else {
            if let SharedTransform::Of(_) = selection {
                let problem = Problem::new("LiftTransformParams: the function has no attribute num_input, which states the number of inputs before the parameters")
                    .with_help("R.func_attr({\"num_input\": k}) declares the first k parameters as inputs")
                    .in_function(name);
                return Err(PassError::User(vec![problem]));
            }
            continue;
        };
        check_not_called(&called, &name)?;
        let func = Function::clone(func);
        let weights = func.params()[count..].to_vec();
        let (lifted, value_numbers) = (Vec::new(), FxHashMap::default());
        out.push(SharingFunction { name, func, count, weights, lifted, value_numbers });
    }
    Ok(out)
}

/// Assigns value numbers to the lifted variables of all functions, so that variables with equal values have equal numbers.
fn assign_value_numbers(
    functions: &mut [SharingFunction],
    effects: &Effects,
) -> Result<(), PassError> {
    let mut combined = Function::empty();
    let (mut params, mut bindings): (Vec<Var>, Vec<Binding>) = (Vec::new(), Vec::new());
    let mut copies: Vec<FxHashMap<Var, Var>> = Vec::new();
    for (i, s) in functions.iter().enumerate() {
        let mut importer = Importer::new(&s.func, &mut combined);
        if i == 0 {
            params = s.weights.iter().map(|&w| importer.define(w)).collect();
        } else {
            map_params(s, &functions[0], &params, &mut importer)?;
        }
        let mut copied = FxHashMap::default();
        for &b in &s.lifted {
            let copy = importer.binding(b);
            copied.insert(b.var, copy.var);
            bindings.push(copy);
        }
        copies.push(copied);
    }
    let block = combined.add_block(BlockData { dataflow: false, bindings });
    let result = combined.tuple(&[]);
    let body = combined.add_seq(SeqData { blocks: vec![block], result });
    let root = combined.root();
    let data = combined.func_mut(root);
    (data.params, data.body) = (params, body);
    let first_equal = redundant_bindings(&combined, effects);
    for (s, copied) in functions.iter_mut().zip(copies) {
        s.value_numbers = copied
            .into_iter()
            .map(|(v, c)| (v, first_equal.get(&c).copied().unwrap_or(c)))
            .collect();
    }
    Ok(())
}

/// Maps the model parameters of a function to those of the first function that shares the transformation.
///
/// # Errors
/// If the functions have different numbers or types of parameters.
fn map_params(
    s: &SharingFunction,
    first: &SharingFunction,
    params: &[Var],
    importer: &mut Importer<'_>,
) -> Result<(), PassError> {
    let mismatch = |what: String| {
        let problem = Problem::new(format!(
            "'{}' and '{}' cannot share a transformation: {what}",
            first.name, s.name
        ));
        PassError::User(vec![problem.with_help(
            "list only functions in shared_transform that have the same types of parameters from position num_input on",
        )])
    };
    if s.weights.len() != params.len() {
        return Err(mismatch(format!(
            "their numbers of model parameters differ, {} and {}",
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
            let text = |sharer: &SharingFunction| {
                let v = sharer.weights[i];
                let ty = pliant_ir::print::type_text(&sharer.func, sharer.func.var(v).ty);
                format!("{}: {ty}", sharer.func.var(v).name)
            };
            return Err(mismatch(format!("the types of {} and {} differ", text(first), text(s))));
        }
        let e = importer.dst.var_expr(param);
        importer.vars.insert(w, e);
    }
    Ok(())
}

/// Adds to `syms`, for each dim of the type `a` that is a single symbol, the symbol with the size in the same dim of the type `b`.
/// Both types must have the same structure. Existing entries of `syms` are kept.
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

/// Removes lifted bindings whose values, or whose operands, are not computed in all functions.
fn retain_common(functions: &mut [SharingFunction]) {
    loop {
        let sets =
            functions.iter().map(|s| s.value_numbers.values().copied().collect::<FxHashSet<Var>>());
        let Some(shared_values) = sets.reduce(|a, b| &a & &b) else { return };
        let mut changed = false;
        for s in functions.iter_mut() {
            let mut shared_vars: FxHashSet<Var> = s.weights.iter().copied().collect();
            let before = s.lifted.len();
            let (func, value_numbers) = (&s.func, &s.value_numbers);
            s.lifted.retain(|b| {
                let keep = shared_values.contains(&value_numbers[&b.var])
                    && operand_vars(func, b.value).iter().all(|v| shared_vars.contains(v));
                if keep {
                    shared_vars.insert(b.var);
                }
                keep
            });
            changed |= s.lifted.len() != before;
            s.value_numbers.retain(|v, _| shared_vars.contains(v));
        }
        if !changed {
            return;
        }
    }
}

/// An output of the function that transforms the parameters for all functions that share it: an unchanged parameter or a computed
/// value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TransformOutput {
    /// A parameter that the transformation returns unchanged, identified by its index among the model parameters.
    Param(usize),
    /// A value that the transformation computes, identified by its value number.
    Value(Var),
}

impl TransformOutput {
    /// Returns the variable of the sharing function `s` whose value this output contains.
    fn var_in(self, s: &SharingFunction) -> Var {
        match self {
            TransformOutput::Param(i) => s.weights[i],
            TransformOutput::Value(number) => {
                let found = s.lifted.iter().find(|b| s.value_numbers[&b.var] == number);
                found
                    .expect(
                        "every function that shares the transformation computes the common values",
                    )
                    .var
            }
        }
    }
}

/// Returns the parameters and values that the functions need from the transformation, parameters first. `None` if no function has
/// model parameters.
fn common_outputs(functions: &[SharingFunction]) -> Option<Vec<TransformOutput>> {
    let first = functions.first()?;
    let mut needed: FxHashSet<TransformOutput> = FxHashSet::default();
    for s in functions {
        for v in needed_by_rest(&s.func, s.count, &s.weights, &s.lifted) {
            needed.insert(match s.weights.iter().position(|&w| w == v) {
                Some(i) => TransformOutput::Param(i),
                None => TransformOutput::Value(s.value_numbers[&v]),
            });
        }
    }
    let params = (0..first.weights.len()).map(TransformOutput::Param);
    let values = first.lifted.iter().map(|b| TransformOutput::Value(first.value_numbers[&b.var]));
    let mut seen = FxHashSet::default();
    let in_order = params.chain(values).filter(|o| needed.contains(o) && seen.insert(*o));
    (!first.weights.is_empty()).then(|| in_order.collect())
}

/// Returns the function with the outputs of the transformation as parameters instead of the original model parameters.
fn rewrite_function(s: SharingFunction, outputs: &[TransformOutput]) -> (Arc<str>, Function) {
    let vars: Vec<Var> = outputs.iter().map(|o| o.var_in(&s)).collect();
    let by_number: FxHashMap<Var, Var> =
        vars.iter().filter_map(|v| Some((*s.value_numbers.get(v)?, *v))).collect();
    let SharingFunction { name, mut func, count, lifted, value_numbers, .. } = s;
    let mut subst = Substitution::default();
    for b in &lifted {
        if let Some(&representative) =
            by_number.get(&value_numbers[&b.var]).filter(|v| **v != b.var)
        {
            let e = func.var_expr(representative);
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
