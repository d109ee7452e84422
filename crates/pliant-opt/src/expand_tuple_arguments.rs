//! # What it does
//! Gives private functions a parameter for each field of a tuple that they take, nested tuples included.
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
//!     t = (t_0, t_1)
//!     a = t[0]
//!     b = t[1]
//!     c = R.add(a, b)
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
//! The tuple under its name in the body, for [`CanonicalizeBindings`](crate::canonicalize_bindings) to fold.
//!
//! # Never
//! Changes public functions, or functions that are handed on as values.

use std::sync::Arc;

use pliant_ir::relax::{Binding, BlockData, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::{BaseFunc, IRModule, Span};
use pliant_pass::rewrite::Namer;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashMap;

use crate::analysis::call_graph::called_by_name_only;
use crate::call_sites::{CallSite, rewrite_calls};

/// See the module's documentation.
pub struct ExpandTupleArguments;

/// The fields of a parameter; a leaf is a parameter that stays.
enum Shape {
    Leaf,
    Fields(Vec<Shape>),
}

impl ModulePass for ExpandTupleArguments {
    fn name(&self) -> &str {
        "ExpandTupleArguments"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let candidates = called_by_name_only(&module);
        let mut changed: FxHashMap<Arc<str>, Arc<Function>> = FxHashMap::default();
        let mut shapes: FxHashMap<Arc<str>, Vec<Shape>> = FxHashMap::default();
        for (name, func) in &mut module.functions {
            let BaseFunc::Relax(func) = func else { continue };
            let tuple = |&p: &Var| matches!(func.var_ty(p), TypeData::Tuple(_));
            if !candidates.contains(name) || !func.params().iter().any(tuple) {
                continue;
            }
            let tys = func.params().iter().map(|&p| func.var(p).ty);
            shapes.insert(name.clone(), tys.map(|ty| shape_of(func, ty)).collect());
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

/// Recursion follows nested tuple types only, whose depth the verifier bounds; so in the functions below.
fn shape_of(func: &Function, ty: Type) -> Shape {
    match func.types.get(ty) {
        TypeData::Tuple(fields) => {
            Shape::Fields(fields.iter().map(|&t| shape_of(func, t)).collect())
        }
        _ => Shape::Leaf,
    }
}

/// Replaces tuple parameters by their fields, and puts the tuples together at the beginning of the body.
fn expand_params(func: &mut Function) {
    let mut namer = Namer::new(func);
    let old = func.params().to_vec();
    let (mut params, mut bindings) = (Vec::new(), Vec::new());
    for param in old {
        let TypeData::Tuple(_) = func.var_ty(param) else {
            params.push(param);
            continue;
        };
        let (name, ty) = (func.var(param).name.clone(), func.var(param).ty);
        let tuple = fields(func, &mut namer, &name, ty, &mut params);
        bindings.push(Binding::bind(param, tuple));
    }
    let (root, body) = (func.root(), func.body());
    let block = func.add_block(BlockData { dataflow: false, bindings });
    func.func_mut(root).params = params;
    func.seq_mut(body).blocks.insert(0, block);
}

fn fields(
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
        .map(|(i, &ty)| fields(func, namer, &format!("{name}_{i}"), ty, params))
        .collect();
    func.tuple(&fields)
}

fn expand_arg(site: &mut CallSite<'_>, arg: Expr, shape: &Shape, out: &mut Vec<Expr>) {
    let Shape::Fields(shapes) = shape else {
        out.push(arg);
        return;
    };
    let known = site.func.tuple_fields(arg).map(<[Expr]>::to_vec);
    for (i, shape) in shapes.iter().enumerate() {
        let field = match &known {
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
