//! Prevents stack overflow of recursive passes: recursion over deeply nested functions runs on a thread with a large stack.

use std::thread::Builder;

use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Expr, PrimFunc, Stmt};
use pliant_pool::start_scoped;

use crate::statement_traversal::{children, direct_exprs, for_each_stmt};

/// Maximum nesting depth of expressions for recursion on an ordinary stack.
const DEEP_EXPR: usize = 200;
/// Maximum nesting depth of statements for recursion on an ordinary stack.
const DEEP_STMT: usize = 64;
/// The size in bytes of the stack of a thread for deeply nested functions. The thread reserves only address space; the system
/// commits memory when it is used.
const LARGE_STACK: usize = 512 << 20;

/// Whether a function is nested so deeply that recursion over it might overflow the stack of an ordinary thread.
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

/// Whether a statement has an expression that is nested so deeply that recursion over it might overflow the stack of an ordinary
/// thread.
pub fn has_deep_expr(f: &PrimFunc, s: Stmt) -> bool {
    let mut roots = Vec::new();
    for_each_stmt(f, s, &mut |_, data| direct_exprs(data, |e| roots.push(e.as_u32() as usize)));
    let count = roots.iter().max().map_or(0, |last| last + 1);
    let depths: Vec<usize> = depths(f, count).collect();
    roots.iter().any(|&e| depths[e] > DEEP_EXPR)
}

/// Returns the nesting depths of the first `count` expressions of a function. An expression without operands has depth 1.
fn depths(f: &PrimFunc, count: usize) -> impl Iterator<Item = usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(count);
    (0..count).map(move |i| {
        let mut operand_depth = 0;
        // Operands have smaller ids than the expressions that use them.
        for_each_operand(f.expr(Expr::from_u32(i as u32)), |a| {
            operand_depth = operand_depth.max(depths[a.as_u32() as usize]);
        });
        depths.push(operand_depth + 1);
        operand_depth + 1
    })
}

/// Runs `task` on a new thread with a large stack if `deep` is set, otherwise on the calling thread. Panics of the task are
/// propagated.
///
/// # Errors
/// The system cannot start the thread.
pub fn run<T: Send>(deep: bool, task: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    if !deep {
        return Ok(task());
    }
    std::thread::scope(|scope| {
        let thread = start_scoped(scope, Builder::new(), LARGE_STACK, task)?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
