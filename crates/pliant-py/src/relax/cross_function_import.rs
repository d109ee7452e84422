//! Imports expressions, blocks and bindings of one function into another. A symbol of one function and a symbol of the other
//! become the same symbol if both represent the same size variable of Python. Imported variables keep their identity
//! ([`Ident`](crate::relax::detached_expr::Ident)), so Python objects for them still compare equal.

use std::sync::Arc;

use pliant_ir::relax::type_lattice::SymMap;
use pliant_ir::relax::visit::{Event, Importer, type_vars, value_free_vars, walk_value};
use pliant_ir::relax::{Binding, Block, Expr, ExprData, Function, Type, Var};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::relax::function_owner::{FuncOwner, OwnerState, abandoned};

/// The expressions that were imported from one other function so far. A later import reuses them.
#[derive(Default)]
pub struct ImportMemo {
    vars: FxHashMap<Var, Expr>,
    syms: SymMap,
    types: FxHashMap<Type, Type>,
}

impl OwnerState {
    /// Calls `work` with an importer that copies parts of the function of `owner` into the function under construction. `required`
    /// lists the variables of the owner's function that the function under construction must already define.
    ///
    /// # Errors
    /// If the function under construction does not define one of these variables.
    pub(super) fn import_with<T>(
        &mut self,
        owner: &Arc<FuncOwner>,
        required: impl FnOnce(&Function) -> Vec<Var>,
        work: impl FnOnce(&mut Importer<'_>) -> T,
    ) -> Result<T> {
        let mut guarded = owner.lock();
        let mut memo = self.import_memos.remove(&guarded.uid).unwrap_or_default();
        let count = guarded.func().ok_or_else(abandoned)?.syms.vars().len();
        if count > memo.syms.len() {
            let source = guarded.func().ok_or_else(abandoned)?.syms.clone();
            for v in source.vars().skip(memo.syms.len()) {
                let var = guarded.vars.te_var(&source, v);
                let (func, vars) = self.func_and_vars()?;
                let sym = vars.sym_var(&mut func.syms, &var);
                memo.syms.insert(v, func.syms.var(sym));
            }
        }
        let source = &*guarded;
        let func = source.func().ok_or_else(abandoned)?;
        for v in required(func) {
            match self.find_expr(source.ident(func.var_expr(v))) {
                Some(e) => {
                    memo.vars.insert(v, e);
                }
                None if self.allow_undefined => {}
                None => {
                    return Err(Error::Value(format!(
                        "variable {} is neither a parameter of this function nor defined in it: it belongs to another function",
                        func.var(v).name
                    )));
                }
            }
        }
        let ImportMemo { vars, syms, types } = memo;
        let dst = self.func_and_vars()?.0;
        let mut importer = Importer { vars, syms, types, ..Importer::new(func, dst) };
        let out = work(&mut importer);
        let Importer { vars, syms, types, defined, .. } = importer;
        for v in defined {
            self.set_ident(source.ident(func.var_expr(v)), vars[&v]);
        }
        self.import_memos.insert(source.uid, ImportMemo { vars, syms, types });
        Ok(out)
    }

    /// Copies the expression `e` of the function of `owner` into the function under construction.
    ///
    /// # Errors
    /// If the expression uses a variable that the function under construction does not define.
    pub(super) fn import(&mut self, owner: &Arc<FuncOwner>, e: Expr) -> Result<Expr> {
        self.import_with(owner, |f| required_vars(f, e), |i| i.expr(e))
    }

    /// Copies a block of bindings from the function of `owner` into the function under construction.
    ///
    /// # Errors
    /// As for [`import`](Self::import).
    pub(super) fn import_block(&mut self, owner: &Arc<FuncOwner>, block: Block) -> Result<Block> {
        self.import_with(owner, |f| required_vars_of_block(f, block), |i| i.block(block))
    }

    /// Copies a binding from the function of `owner` into the function under construction.
    ///
    /// # Errors
    /// As for [`import`](Self::import).
    pub(super) fn import_binding(
        &mut self,
        owner: &Arc<FuncOwner>,
        binding: Binding,
    ) -> Result<Binding> {
        let required = |f: &Function| {
            let mut vars = required_vars(f, binding.value);
            // A local function may refer to itself.
            vars.retain(|&v| v != binding.var);
            vars
        };
        self.import_with(owner, required, |i| i.binding(binding))
    }

    /// Copies the function that `owner` holds into the function under construction, as a local function.
    ///
    /// # Errors
    /// As for [`import`](Self::import).
    pub(super) fn import_root(&mut self, owner: &Arc<FuncOwner>) -> Result<Expr> {
        self.import_with(
            owner,
            |_| Vec::new(),
            |i| {
                let id = i.func(i.src.root());
                let ty = i.dst.signature(id);
                i.dst.add_expr(ExprData::Func(id), ty)
            },
        )
    }
}

fn required_vars(f: &Function, e: Expr) -> Vec<Var> {
    let mut vars = value_free_vars(f, e);
    vars.extend(type_vars(f, f.expr_ty(e)));
    vars
}

/// Returns the variables that a block uses without defining them.
fn required_vars_of_block(f: &Function, block: Block) -> Vec<Var> {
    let mut bound = FxHashSet::default();
    let mut vars = Vec::new();
    for b in &f.block(block).bindings {
        vars.extend(required_vars(f, b.value));
        bound.insert(b.var);
        walk_value(f, b.value, |event| match event {
            Event::EnterFunc(id) => bound.extend(f.func(id).params.iter().copied()),
            Event::EnterBinding(_, b) => {
                bound.insert(b.var);
            }
            _ => {}
        });
    }
    vars.retain(|v| !bound.contains(v));
    vars
}
