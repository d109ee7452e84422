//! Copies composite functions into the functions (regions) that call them, as local functions, so that a region contains
//! everything that its code generator needs.

use std::sync::Arc;

use pliant_ir::attr_names::COMPOSITE;
use pliant_ir::relax::visit::{Event, Importer, called_globals, copy_local_function, walk};
use pliant_ir::relax::{Binding, BlockData, Callee, Expr, ExprData, FuncId, Function};
use pliant_ir::{AttrValue, Span};
use pliant_pass::binding_rewrites::rewrite_bindings;
use rustc_hash::FxHashMap;

/// Copies the composite functions (outlined matches of backend patterns) that `func` calls into `func`, as local functions that are
/// bound at the beginning of its body. `composite` returns the composite function with the given name; `None` if there is none.
pub fn nest_composites(func: &mut Function, composite: impl Fn(&str) -> Option<Arc<Function>>) {
    let mut local_funcs: FxHashMap<Arc<str>, Expr> = FxHashMap::default();
    let mut bindings = Vec::new();
    for name in called_globals(func) {
        if let Some(inner) = composite(&name) {
            let binding = bind_local_copy(func, &name, &inner);
            local_funcs.insert(name, func.var_expr(binding.var));
            bindings.push(binding);
        }
    }
    if local_funcs.is_empty() {
        return;
    }
    let rewritten = rewrite_bindings(func, |func, mut b, out| {
        if let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(b.value)
            && let ExprData::Global(name) = func.expr(*callee)
            && let Some(&inner) = local_funcs.get(func.str(*name))
        {
            let (args, ty) = (func.list(*args).to_vec(), func.expr_ty(b.value));
            b.value = func.call(Callee::Expr(inner), &args, Default::default(), &[], ty);
        }
        out.push(b);
        Ok(())
    });
    rewritten.expect("the callback of the binding rewriter never returns an error");
    let block = func.add_block(BlockData { dataflow: false, bindings });
    let body = func.body();
    func.seq_mut(body).blocks.insert(0, block);
}

/// Creates the binding of a local function that is a copy of `inner`.
fn bind_local_copy(func: &mut Function, name: &str, inner: &Function) -> Binding {
    let id = Importer::new(inner, func).func(inner.root());
    func.func_mut(id).attrs = inner.attrs.clone();
    let ty = func.signature(id);
    let value = func.add_expr(ExprData::Func(id), ty);
    Binding::bind(func.add_var(name, ty, false, Span::NONE), value)
}

/// Copies the local functions of `func` that are composite functions (outlined matches of backend patterns) to separate functions.
/// Returns each copy with the name of its pattern.
pub fn nested_composites(func: &Function) -> Vec<(Arc<str>, Arc<Function>)> {
    let mut found: Vec<(Arc<str>, FuncId)> = Vec::new();
    walk(func, func.root(), |event| {
        if let Event::EnterFunc(id) = event
            && let Some(AttrValue::Str(pattern)) = func.func(id).attrs.get(COMPOSITE)
        {
            found.push((pattern.clone(), id));
        }
    });
    found
        .into_iter()
        .map(|(pattern, id)| (pattern, Arc::new(copy_local_function(func, id))))
        .collect()
}
