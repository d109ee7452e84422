//! Finds slow innermost loops of a lowered function: loops that compute one element at a time, divide integers for each element,
//! or check an assertion for each element.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Var};

use rustc_hash::FxHashSet;

use crate::statement_traversal::{direct_exprs, for_each_stmt, uses_any};

/// Loops with at most this number of iterations are not reported as slow. They usually compute the remaining iterations of a
/// vectorized or unrolled loop.
const MAX_REMAINDER_ITERATIONS: i64 = 16;

/// A slow innermost loop, and the reasons why it is slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowLoop {
    /// The name of the loop variable.
    pub var: String,
    /// Whether the loop computes one element at a time.
    pub scalar: bool,
    /// Whether the loop divides integers that depend on the loop variable.
    pub divides: bool,
    /// Whether the loop checks an assertion.
    pub asserts: bool,
}

impl SlowLoop {
    /// Returns a sentence that names the loop variable and the reasons why the loop is slow.
    pub fn description(&self) -> String {
        let parts = [
            (self.scalar, "computes one element at a time"),
            (self.divides, "divides integers for each element"),
            (self.asserts, "checks an assertion for each element"),
        ];
        let parts: Vec<&str> = parts.into_iter().filter(|p| p.0).map(|p| p.1).collect();
        format!("the innermost loop over {} {}", self.var, parts.join(" and "))
    }
}

/// Returns the slow innermost loops of a lowered function, in program order and without duplicates.
pub fn slow_loops(f: &PrimFunc) -> Vec<SlowLoop> {
    let (mut out, mut remainders) = (Vec::new(), FxHashSet::default());
    for_each_stmt(f, f.body, &mut |s, data| {
        let StmtData::For { var, extent, body, .. } = data else { return };
        let few_iterations = has_few_iterations(f, *extent);
        if few_iterations && f.as_int(*extent).is_none() {
            // Loops inside a remainder loop take little time too.
            for_each_stmt(f, *body, &mut |inner, _| {
                remainders.insert(inner);
            });
        }
        if !few_iterations && !remainders.contains(&s) && !has_loop(f, *body) {
            let slow = analyze_loop(f, *var, *body);
            if (slow.scalar || slow.divides || slow.asserts) && !out.contains(&slow) {
                out.push(slow);
            }
        }
    });
    out
}

fn has_loop(f: &PrimFunc, body: Stmt) -> bool {
    let mut found = false;
    for_each_stmt(f, body, &mut |_, data| {
        found |= matches!(data, StmtData::For { .. } | StmtData::While(..));
    });
    found
}

/// Whether a loop has few iterations: its extent is small, or is the remainder of a division by a small number.
fn has_few_iterations(f: &PrimFunc, extent: Expr) -> bool {
    let small = |e: Expr| f.as_int(e).is_some_and(|n| n <= MAX_REMAINDER_ITERATIONS);
    match *f.expr(extent) {
        ExprData::Binary(BinOp::FloorMod, _, by) => small(by),
        ExprData::Binary(BinOp::FloorDiv, a, _) => has_few_iterations(f, a),
        ExprData::Binary(BinOp::Min, a, b) => has_few_iterations(f, a) || has_few_iterations(f, b),
        ExprData::Binary(BinOp::Max, a, b) => has_few_iterations(f, a) && has_few_iterations(f, b),
        _ => small(extent),
    }
}

/// Finds the reasons why an innermost loop is slow.
fn analyze_loop(f: &PrimFunc, var: Var, body: Stmt) -> SlowLoop {
    let (mut stores, mut vectors, mut divides, mut asserts) = (false, false, false, false);
    // The loop variable, and the variables that are computed from it.
    let mut varying = vec![var];
    for_each_stmt(f, body, &mut |_, data| {
        if let StmtData::Let(v, value, _) = data
            && uses_any(f, *value, &|v| varying.contains(&v))
        {
            varying.push(*v);
        }
        stores |= matches!(data, StmtData::Store { .. });
        asserts |= matches!(data, StmtData::Assert(..));
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| match *f.expr(e) {
                // Kernels and vector math functions compute many elements.
                ExprData::Ramp(..)
                | ExprData::Call(
                    Intrin::CallExtern | Intrin::CallKernel | Intrin::CallPacked,
                    ..,
                ) => vectors = true,
                ExprData::Binary(BinOp::FloorDiv | BinOp::FloorMod, a, _) => {
                    let integer = f.expr_ty(a).dtype.is_int();
                    divides |= integer && uses_any(f, a, &|v| varying.contains(&v));
                }
                _ => {}
            });
        });
    });
    let name = f.var(var).name.to_string();
    SlowLoop { var: name, scalar: stores && !vectors, divides, asserts }
}
