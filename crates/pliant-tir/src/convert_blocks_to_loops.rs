//! ConvertBlocksToLoops: replaces each block by its body, in which the block's axes are replaced by the values bound to them. The
//! predicate of the block becomes an `if`.

use pliant_ir::tir::bind_calls::may_change;
use pliant_ir::tir::{PrimFunc, StmtData, VarTy};
use rustc_hash::FxHashMap;

use crate::lowering_error::LowerError;
use crate::statement_traversal::{map_stmts, substitute, substitute_expr};

const NAME: &str = "ConvertBlocksToLoops";

/// Replaces every block by its body. [`crate::lower_block_init`] must have lowered all inits.
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
            error = Some(LowerError::new(
                NAME,
                format!(
                    "the init of the block '{}' must be lowered first: run LowerInitBlock before ConvertBlocksToLoops",
                    b.name
                ),
            ));
            return None;
        }
        let mut map = FxHashMap::default();
        let mut lets = Vec::new();
        for iter in &b.iters {
            // The body may write memory that the binding reads, so such a binding is evaluated once, in front of the body.
            let value = if may_change(f, iter.binding) {
                let var = f.add_var("axis", VarTy::Value(f.expr_ty(iter.binding)));
                lets.push((var, iter.binding));
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
        let wrap = |body, (var, value)| f.add_stmt(StmtData::Let(var, value, body));
        Some(lets.into_iter().rev().fold(body, wrap))
    });
    error.map_or(Ok(()), Err)
}
