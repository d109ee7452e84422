//! ConvertBlocksToLoops: replaces a block by its body, under its predicate and with the axes replaced by their bindings.

use pliant_ir::tir::bind_calls::may_change;
use pliant_ir::tir::{PrimFunc, StmtData, VarTy};
use rustc_hash::FxHashMap;

use crate::error::LowerError;
use crate::walk::{map_stmts, substitute, substitute_expr};

const NAME: &str = "ConvertBlocksToLoops";

/// Removes every block. Blocks with an init must have been lowered first.
///
/// # Errors
/// A block still has an init.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let mut error = None;
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| {
        let StmtData::Block(b) = f.stmt(s) else { return None };
        let b = (**b).clone();
        if b.init.is_some() {
            error =
                Some(LowerError::new(NAME, format!("the block '{}' still has an init", b.name)));
            return None;
        }
        let mut map = FxHashMap::default();
        let mut once = Vec::new();
        for iter in &b.iters {
            // The body may write memory that the binding reads, so such a binding is evaluated once.
            let value = if may_change(f, iter.binding) {
                let var = f.add_var("axis", VarTy::Value(f.expr_ty(iter.binding)));
                once.push((var, iter.binding));
                f.var_expr(var)
            } else {
                iter.binding
            };
            map.insert(iter.var, value);
        }
        let mut body = substitute(f, b.body, &map);
        for &buffer in b.allocs.iter().rev() {
            body = f.add_stmt(StmtData::Alloc(buffer, body));
        }
        if let Some(p) = b.predicate {
            let p = substitute_expr(f, p, &map);
            body = f.add_stmt(StmtData::If(p, body, None));
        }
        let inside = |body, (var, value)| f.add_stmt(StmtData::Let(var, value, body));
        Some(once.into_iter().rev().fold(body, inside))
    });
    error.map_or(Ok(()), Err)
}
