//! # What it does
//! If a private function returns a tuple, removes the fields that no caller reads. A single remaining field is returned without a
//! tuple.
//!
//! # Before
//! ```python
//! @R.function(private=True)
//! def both(a: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
//!     b = R.exp(a)
//!     c = R.sin(a)
//!     return (b, c)
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     t = cls.both(x)
//!     y = t[1]
//!     z = R.negative(y)
//!     return z
//! ```
//!
//! # After
//! ```python
//! @R.function(private=True)
//! def both(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     b = R.exp(a)
//!     c = R.sin(a)
//!     return c
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     t = cls.both(x)
//!     y = t
//!     z = R.negative(y)
//!     return z
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The computation of a field that is no longer returned, for
//! [`DeadCodeElimination`](crate::canonicalize::dead_code_elimination).
//!
//! # Never
//! Changes public functions, functions that are used as values, or functions that are never called.

use std::sync::Arc;

use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::{Binding, BlockData, Callee, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::binding_rewrites::{Namer, for_each_operand_var, rewrite_bindings};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::call_graph::called_by_name_only;
use crate::common::rewrite_call_sites::callee_expr;

/// The pass that removes results of private functions that no caller reads. See the module documentation.
pub struct RemoveUnusedOutputs;

impl ModulePass for RemoveUnusedOutputs {
    fn name(&self) -> &str {
        "RemoveUnusedOutputs"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let used = used_fields(&module);
        let mut changed: FxHashMap<Arc<str>, (Vec<usize>, Arc<Function>)> = FxHashMap::default();
        for (name, fields) in used {
            let Some(BaseFunc::Relax(func)) = module.get(&name) else { continue };
            let keep: Vec<usize> = (0..fields.len()).filter(|&i| fields[i]).collect();
            let mut new = Function::clone(func);
            restrict_outputs(&mut new, &keep);
            let new = Arc::new(new);
            module.insert(name.clone(), BaseFunc::Relax(new.clone()));
            changed.insert(name, (keep, new));
        }
        if !changed.is_empty() {
            update_each_relax(&mut module, ctx, |_, func| rewrite_callers(func, &changed))?;
        }
        Ok(module)
    }
}

/// Returns the private functions that are called and return a tuple with a field that no caller reads. For each function, a flag
/// per field states whether a caller reads the field.
fn used_fields(module: &IRModule) -> Vec<(Arc<str>, Vec<bool>)> {
    let mut used: FxHashMap<Arc<str>, Option<Vec<bool>>> = FxHashMap::default();
    let candidates = called_by_name_only(module);
    for (name, f) in module.relax_funcs().filter(|(name, _)| candidates.contains(*name)) {
        if let TypeData::Tuple(fields) = f.types.get(f.ret_ty()) {
            used.insert(name.clone(), Some(vec![false; fields.len()]));
        }
    }
    let mut called: FxHashSet<Arc<str>> = FxHashSet::default();
    for (_, f) in module.relax_funcs() {
        let mut results: FxHashMap<Var, Arc<str>> = FxHashMap::default();
        let mark_all_used =
            |v: Var, results: &FxHashMap<Var, Arc<str>>, used: &mut FxHashMap<_, _>| {
                if let Some(name) = results.get(&v) {
                    used.insert(name.clone(), None);
                }
            };
        walk(f, f.root(), |event| match event {
            Event::EnterBinding(_, b) => {
                if let Some((tuple, index)) = field_of_var(f, b.value) {
                    let name = results.get(&tuple);
                    if let Some(Some(fields)) = name.and_then(|n| used.get_mut(n)) {
                        fields[index as usize] = true;
                    }
                } else {
                    for_each_operand_var(f, b.value, &mut |v| {
                        mark_all_used(v, &results, &mut used)
                    });
                }
                if let Some(name) = called_name(f, b.value).filter(|n| used.contains_key(*n)) {
                    called.insert(name.clone());
                    let is_tuple = matches!(f.var_ty(b.var), TypeData::Tuple(_));
                    if b.cast.is_some() || !is_tuple {
                        used.insert(name.clone(), None);
                    }
                    results.insert(b.var, name.clone());
                }
            }
            Event::Result(seq) => {
                let result = f.seq(seq).result;
                for_each_operand_var(f, result, &mut |v| mark_all_used(v, &results, &mut used));
            }
            _ => {}
        });
    }
    let in_order = module.relax_funcs().map(|(name, _)| name.clone());
    in_order
        .filter(|name| called.contains(name))
        .filter_map(|name| {
            let fields = used.remove(&name).flatten()?;
            fields.contains(&false).then_some((name, fields))
        })
        .collect()
}

/// Returns (variable, index) if an expression accesses a field of a tuple variable; `None` otherwise.
fn field_of_var(f: &Function, e: Expr) -> Option<(Var, u32)> {
    match f.expr(e) {
        ExprData::TupleGetItem(tuple, index) => match f.expr(*tuple) {
            ExprData::Var(v) => Some((*v, *index)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the name of the callee if a value is a direct call of a function of the module; `None` otherwise.
fn called_name(f: &Function, e: Expr) -> Option<&Arc<str>> {
    match f.expr(e) {
        ExprData::Call { callee: Callee::Expr(callee), .. } => match f.expr(*callee) {
            ExprData::Global(name) => Some(f.str(*name)),
            _ => None,
        },
        _ => None,
    }
}

/// Removes all fields from the result of a function except those with an index in `keep`.
fn restrict_outputs(func: &mut Function, keep: &[usize]) {
    let body = func.body();
    let result = func.seq(body).result;
    let fields: Vec<Expr> = match func.tuple_fields(result).map(<[Expr]>::to_vec) {
        Some(fields) => keep.iter().map(|&i| fields[i]).collect(),
        None => {
            let mut namer = Namer::new(func);
            let mut bindings: Vec<Binding> = Vec::new();
            let fields = keep
                .iter()
                .map(|&i| {
                    let field = func.tuple_get_item(result, i as u32);
                    namer.bind(func, "gv", field, &mut bindings)
                })
                .collect();
            if !bindings.is_empty() {
                let block = func.add_block(BlockData { dataflow: false, bindings });
                func.seq_mut(body).blocks.push(block);
            }
            fields
        }
    };
    let result = match fields[..] {
        [one] => one,
        _ => func.tuple(&fields),
    };
    func.seq_mut(body).result = result;
    let declared = func.ret_ty();
    let root = func.root();
    func.func_mut(root).ret_ty = restrict_tuple_type(func, declared, keep);
}

/// Returns the tuple type with only the fields in `keep`, or the type of the field if `keep` contains only one.
fn restrict_tuple_type(func: &mut Function, ty: Type, keep: &[usize]) -> Type {
    let TypeData::Tuple(tys) = func.types.get(ty).clone() else { return ty };
    match *keep {
        [one] => tys[one],
        _ => func.intern(TypeData::Tuple(keep.iter().map(|&i| tys[i]).collect())),
    }
}

/// Updates the result types of calls of changed functions, and the indices of the fields that callers read.
fn rewrite_callers(
    func: &mut Function,
    changed: &FxHashMap<Arc<str>, (Vec<usize>, Arc<Function>)>,
) -> Result<bool, PassError> {
    let mut changed_any = false;
    let mut results: FxHashMap<Var, &[usize]> = FxHashMap::default();
    rewrite_bindings(func, |func, mut binding, out| {
        if let Some((tuple, index)) = field_of_var(func, binding.value)
            && let Some(keep) = results.get(&tuple)
        {
            let tuple = func.var_expr(tuple);
            binding.value = match keep.iter().position(|&i| i == index as usize) {
                Some(_) if keep.len() == 1 => tuple,
                Some(i) => func.tuple_get_item(tuple, i as u32),
                None => binding.value,
            };
        } else if let Some(name) = called_name(func, binding.value).cloned()
            && let Some((keep, callee)) = changed.get(&name)
        {
            let old = func.var(binding.var).ty;
            let ty = restrict_tuple_type(func, old, keep);
            binding.value = with_result_type(func, binding.value, &name, callee, ty);
            func.var_mut(binding.var).ty = ty;
            results.insert(binding.var, keep);
            changed_any = true;
        }
        out.push(binding);
        Ok(())
    })?;
    Ok(changed_any)
}

/// Returns the call `e` of the function `name` with the new result type `ty`.
fn with_result_type(func: &mut Function, e: Expr, name: &str, callee: &Function, ty: Type) -> Expr {
    let ExprData::Call { args, attrs, ty_args, .. } = func.expr(e).clone() else { return e };
    let (args, attrs) = (func.list(args).to_vec(), func.call_attrs(attrs).clone());
    let ty_args = func.type_list(ty_args).to_vec();
    let callee = callee_expr(func, name, callee);
    func.call(Callee::Expr(callee), &args, attrs, &ty_args, ty)
}
