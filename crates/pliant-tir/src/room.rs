//! Stack for functions that are nested deeply: recursion over them runs on a thread with a large stack.

use std::thread::Builder;

use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Expr, PrimFunc};
use pliant_pool::start_scoped;

use crate::walk::children;

/// Expressions nested deeper than this count as deep.
const DEEP_EXPR: usize = 200;
/// Statements nested deeper than this count as deep.
const DEEP_STMT: usize = 64;
/// The size of the large stack; it is only reserved, and used as far as needed.
const LARGE_STACK: usize = 512 << 20;

/// Whether a function is nested so deeply that recursion over it might not fit the stack of an ordinary thread.
pub fn is_deep(f: &PrimFunc) -> bool {
    // Operands have smaller ids than what is made of them.
    let mut depths: Vec<usize> = Vec::with_capacity(f.num_exprs());
    for i in 0..f.num_exprs() {
        let mut below = 0;
        for_each_operand(f.expr(Expr::from_u32(i as u32)), |a| {
            below = below.max(depths[a.as_u32() as usize]);
        });
        if below >= DEEP_EXPR {
            return true;
        }
        depths.push(below + 1);
    }
    let mut stack = vec![(f.body, 0)];
    while let Some((s, depth)) = stack.pop() {
        if depth > DEEP_STMT {
            return true;
        }
        stack.extend(children(f.stmt(s)).into_iter().map(|c| (c, depth + 1)));
    }
    false
}

/// Runs `work` here, or on a thread with a large stack where it works on something `deep`.
///
/// # Errors
/// The system starts no such thread.
pub fn run<T: Send>(deep: bool, work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    if !deep {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = start_scoped(scope, Builder::new(), LARGE_STACK, work)?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
