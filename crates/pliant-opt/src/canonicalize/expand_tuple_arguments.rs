//! # What it does
//! Replaces each tuple parameter of a private function by one parameter per field. Nested tuples are expanded recursively.
//!
//! # Before
//! ```python
//! @R.function(private=True)
//! def total(t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
//!     a = t[0]
//!     b = t[1]
//!     c = R.add(a, b)
//!     return c
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     y = cls.total((x, x))
//!     return y
//! ```
//!
//! # After
//! ```python
//! @R.function(private=True)
//! def total(t_0: R.Tensor((4,), "float32"), t_1: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     c = R.add(t_0, t_1)
//!     return c
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     cls = Module
//!     y = cls.total(x, x)
//!     return y
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! A tuple parameter that is also used as a whole: the body builds the tuple again under its name.
//!
//! # Never
//! Changes public functions, or functions that are used as values.

use std::sync::Arc;

use pliant_ir::relax::{Binding, BlockData, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::{BaseFunc, IRModule, Span};
use pliant_pass::binding_rewrites::{
    Namer, Substitution, for_each_operand_var, reachable_seqs, remove_and_substitute,
};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::call_graph::called_by_name_only;
use crate::common::rewrite_call_sites::{CallSite, rewrite_calls};

/// The pass that replaces tuple parameters of private functions by one parameter per field. See the module documentation.
pub struct ExpandTupleArguments;

/// The nesting structure of a tuple parameter that is expanded. A leaf is a field, at any depth, that is not a tuple. Each leaf
/// becomes one parameter.
enum TupleShape {
    Leaf,
    Fields(Vec<TupleShape>),
}

impl ModulePass for ExpandTupleArguments {
    fn name(&self) -> &str {
        "ExpandTupleArguments"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let candidates = called_by_name_only(&module);
        let mut changed: FxHashMap<Arc<str>, Arc<Function>> = FxHashMap::default();
        let mut shapes: FxHashMap<Arc<str>, Vec<TupleShape>> = FxHashMap::default();
        for (name, func) in &mut module.functions {
            let BaseFunc::Relax(func) = func else { continue };
            let tuple = |&p: &Var| matches!(func.var_ty(p), TypeData::Tuple(_));
            if !candidates.contains(name) || !func.params().iter().any(tuple) {
                continue;
            }
            let tys = func.params().iter().map(|&p| func.var(p).ty);
            shapes.insert(name.clone(), tys.map(|ty| tuple_shape(func, ty)).collect());
            let mut new = Function::clone(func);
            expand_params(&mut new);
            *func = Arc::new(new);
            changed.insert(name.clone(), func.clone());
        }
        rewrite_calls(&mut module, ctx, &changed, |mut site| {
            let shapes = shapes.get(site.callee)?;
            let mut out = Vec::new();
            for (arg, shape) in std::mem::take(&mut site.args).into_iter().zip(shapes) {
                expand_arg(&mut site, arg, shape, &mut out);
            }
            Some(out)
        })?;
        Ok(module)
    }
}

/// Returns the nesting structure of a type. Its depth is the nesting depth of tuple types, which the verifier limits,
/// so functions may recurse over it.
fn tuple_shape(func: &Function, ty: Type) -> TupleShape {
    match func.types.get(ty) {
        TypeData::Tuple(fields) => {
            TupleShape::Fields(fields.iter().map(|&t| tuple_shape(func, t)).collect())
        }
        _ => TupleShape::Leaf,
    }
}

/// Replaces tuple parameters by parameters for their fields. At the beginning of the body, builds those tuples again that are
/// used as a whole.
fn expand_params(func: &mut Function) {
    let mut namer = Namer::new(func);
    let old_params = func.params().to_vec();
    let used_as_tuple = vars_used_as_tuples(func);
    let (mut params, mut bindings) = (Vec::new(), Vec::new());
    let mut tuples: FxHashMap<Var, Expr> = FxHashMap::default();
    for param in old_params {
        let TypeData::Tuple(_) = func.var_ty(param) else {
            params.push(param);
            continue;
        };
        let (name, ty) = (func.var(param).name.clone(), func.var(param).ty);
        let tuple = add_field_params(func, &mut namer, &name, ty, &mut params);
        if used_as_tuple.contains(&param) {
            bindings.push(Binding::bind(param, tuple));
        }
        tuples.insert(param, tuple);
    }
    forward_fields(func, &used_as_tuple, &mut tuples);
    let (root, body) = (func.root(), func.body());
    func.func_mut(root).params = params;
    if bindings.is_empty() {
        return;
    }
    let block = func.add_block(BlockData { dataflow: false, bindings });
    func.seq_mut(body).blocks.insert(0, block);
}

/// Returns the variables that have a use other than an access to one of their fields.
fn vars_used_as_tuples(func: &Function) -> FxHashSet<Var> {
    let mut used_as_tuple = FxHashSet::default();
    for seq in reachable_seqs(func) {
        for binding in func.seq(seq).blocks.iter().flat_map(|&b| &func.block(b).bindings) {
            if accessed_field(func, binding).is_none() {
                for_each_operand_var(func, binding.value, &mut |v| {
                    used_as_tuple.insert(v);
                });
            }
        }
        for_each_operand_var(func, func.seq(seq).result, &mut |v| {
            used_as_tuple.insert(v);
        });
    }
    used_as_tuple
}

/// Returns (tuple variable, index) if a binding reads a field of a tuple variable; `None` otherwise.
fn accessed_field(func: &Function, binding: &Binding) -> Option<(Var, u32)> {
    match *func.expr(binding.value) {
        ExprData::TupleGetItem(tuple, i) if binding.cast.is_none() => match *func.expr(tuple) {
            ExprData::Var(v) => Some((v, i)),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces accesses to fields of the tuples in `tuples`, which maps variables to tuple expressions, by the fields. Removes the
/// bindings of tuples that are only read by field accesses.
fn forward_fields(
    func: &mut Function,
    used_as_tuple: &FxHashSet<Var>,
    tuples: &mut FxHashMap<Var, Expr>,
) {
    let (mut dead, mut subst) = (FxHashSet::default(), Substitution::default());
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            for binding in func.block(block).bindings.clone() {
                let Some((tuple, i)) = accessed_field(func, &binding) else { continue };
                let Some(&tuple) = tuples.get(&tuple) else { continue };
                let field = func.tuple_fields(tuple).and_then(|f| f.get(i as usize).copied());
                let Some(field) = field else { continue };
                if let ExprData::Var(_) = func.expr(field) {
                    subst.insert(binding.var, field);
                    dead.insert(binding.var);
                } else if !used_as_tuple.contains(&binding.var) {
                    tuples.insert(binding.var, field);
                    dead.insert(binding.var);
                }
            }
        }
    }
    remove_and_substitute(func, &dead, &subst);
}

/// Adds one parameter to `params` for each field of the type `ty`, at any depth, that is not a tuple. Returns the expression that
/// builds a value of type `ty` from these parameters.
fn add_field_params(
    func: &mut Function,
    namer: &mut Namer,
    name: &str,
    ty: Type,
    params: &mut Vec<Var>,
) -> Expr {
    let TypeData::Tuple(tys) = func.types.get(ty).clone() else {
        let name = namer.fresh(name);
        let var = func.add_var(name, ty, false, Span::NONE);
        params.push(var);
        return func.var_expr(var);
    };
    let fields: Vec<Expr> = tys
        .iter()
        .enumerate()
        .map(|(i, &ty)| add_field_params(func, namer, &format!("{name}_{i}"), ty, params))
        .collect();
    func.tuple(&fields)
}

/// Appends the fields of an argument to `out`: one for each field of `shape`, at any depth, that is not a tuple.
fn expand_arg(site: &mut CallSite<'_>, arg: Expr, shape: &TupleShape, out: &mut Vec<Expr>) {
    let TupleShape::Fields(shapes) = shape else {
        out.push(arg);
        return;
    };
    let tuples = site.func.tuple_fields(arg).map(<[Expr]>::to_vec);
    for (i, shape) in shapes.iter().enumerate() {
        let field = match &tuples {
            Some(fields) => fields[i],
            None => {
                let hint = match site.func.expr(arg) {
                    ExprData::Var(v) => format!("{}_{i}", site.func.var(*v).name),
                    _ => "lv".into(),
                };
                let field = site.func.tuple_get_item(arg, i as u32);
                site.bind(&hint, field)
            }
        };
        expand_arg(site, field, shape, out);
    }
}
