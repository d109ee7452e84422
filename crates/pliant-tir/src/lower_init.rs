//! LowerInitBlock: the init of a block becomes a statement that runs at the first values of all reduction axes.

use pliant_ir::tir::{BinOp, BlockData, IterKind, PrimFunc, Stmt, StmtData};

use crate::error::LowerError;
use crate::walk::map_stmts;

/// Lowers the init of every block.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| match f.stmt(s) {
        StmtData::Block(b) if b.init.is_some() => {
            let b = (**b).clone();
            Some(lower(f, b))
        }
        _ => None,
    });
    Ok(())
}

fn lower(f: &mut PrimFunc, mut b: BlockData) -> Stmt {
    let init = b.init.take().expect("the caller looked");
    let mut condition = None;
    for iter in b.iters.iter().filter(|i| i.kind == IterKind::Reduce) {
        let v = f.var_expr(iter.var);
        let first = f.binary(BinOp::Eq, v, iter.min);
        condition = Some(match condition {
            None => first,
            Some(c) => f.binary(BinOp::And, c, first),
        });
    }
    let init = match condition {
        Some(c) => f.add_stmt(StmtData::If(c, init, None)),
        None => init,
    };
    b.body = f.add_stmt(StmtData::Seq(vec![init, b.body]));
    f.add_stmt(StmtData::Block(Box::new(b)))
}
