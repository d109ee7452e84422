//! Large stacks for deeply nested functions: recursion over them runs on a thread with a large stack.

use std::thread::Builder;

use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Expr, PrimFunc, Stmt};
use pliant_pool::start_scoped;

use crate::walk::{children, for_each_stmt, own_exprs};

/// Expressions nested deeper than this count as deep.
const DEEP_EXPR: usize = 200;
/// Statements nested deeper than this count as deep.
const DEEP_STMT: usize = 64;
/// The size of the large stack. The address range is reserved; memory is committed only as needed.
const LARGE_STACK: usize = 512 << 20;

/// Whether a function is nested so deeply that recursion over it might not fit the stack of an ordinary thread.
pub fn is_deep(f: &PrimFunc) -> bool {
    if depths(f, f.num_exprs()).any(|depth| depth > DEEP_EXPR) {
        return true;
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

/// Whether a statement has an expression that is nested so deeply that recursion over it might not fit the stack of an
/// ordinary thread.
pub fn has_deep_expr(f: &PrimFunc, s: Stmt) -> bool {
    let mut own = Vec::new();
    for_each_stmt(f, s, &mut |_, data| own_exprs(data, |e| own.push(e.as_u32() as usize)));
    let count = own.iter().max().map_or(0, |last| last + 1);
    let depths: Vec<usize> = depths(f, count).collect();
    own.iter().any(|&e| depths[e] > DEEP_EXPR)
}

/// The nesting depths of the first `count` expressions of a function; 1 for an expression without operands.
fn depths(f: &PrimFunc, count: usize) -> impl Iterator<Item = usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(count);
    (0..count).map(move |i| {
        let mut below = 0;
        // Operands have smaller ids than the expressions that use them.
        for_each_operand(f.expr(Expr::from_u32(i as u32)), |a| {
            below = below.max(depths[a.as_u32() as usize]);
        });
        depths.push(below + 1);
        below + 1
    })
}

/// Runs `work` on this thread, or on a thread with a large stack if `deep`.
///
/// # Errors
/// The system cannot start the thread.
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
