//! ReduceStrength: replaces divisions that depend on a loop variable by counters.
//!
//! Loops over fused axes compute the index of each axis from one position: `p // n` and `p % n`, where `p` grows by 1 in each
//! iteration and `n` is a size. A division by a size takes 10 to 40 cycles, which is more than the rest of a short loop body. A
//! counter for the remainder and one for the quotient take an addition, a comparison and a conditional move each. The quotient
//! grows by 1 at most, so divisions of a quotient get counters, too.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Ty, Var,
};
use pliant_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::access_guards::reads_memory;
use crate::check_bounds::recorded_unbounded_params;
use crate::index_range_analysis::IndexFacts;
use crate::lowering_error::LowerError;
use crate::statement_traversal::{
    ExprRewriter, calls_functions, direct_exprs, for_each_stmt, map_stmts, substitute_expr,
    uses_any,
};

/// Replaces the divisions in all serial loops by counters where possible.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    // Created for the first division, because most functions have none.
    let mut facts: Option<IndexFacts> = None;
    let mut is_size = |f: &PrimFunc, e: Expr| {
        let new = || IndexFacts::at_entry(f, &recorded_unbounded_params(f));
        facts.get_or_insert_with(new).is_non_negative(f, e)
    };
    f.body = map_stmts(f, body, &mut |f, s| match *f.stmt(s) {
        StmtData::For { var, extent, kind: ForKind::Serial, body, .. } if !is_short(f, extent) => {
            let counters = find_counters(f, var, body, &mut is_size);
            (!counters.is_empty()).then(|| with_counters(f, s, counters))
        }
        _ => None,
    });
    Ok(())
}

/// Whether a loop is known to have only few iterations. In such a loop, counters save less time than their
/// initialization takes.
fn is_short(f: &PrimFunc, extent: Expr) -> bool {
    const FEW: i64 = 4;
    let bound = match *f.expr(extent) {
        ExprData::Binary(BinOp::FloorMod, _, bound) => bound,
        _ => extent,
    };
    f.as_int(bound).is_some_and(|n| n <= FEW)
}

/// The quotient and the remainder of a dividend that grows by 0 or 1 in each iteration of a loop.
struct Counter {
    /// The dividend of the divisions that the counter replaces. If the counter has a parent, this is the quotient variable of the
    /// parent.
    dividend: Expr,
    divisor: Expr,
    /// The position, in the list of counters, of the counter whose quotient is the dividend. `None` if the dividend grows by 1 in
    /// each iteration.
    parent: Option<usize>,
    /// The variables that are bound to the quotient and the remainder in the loop body.
    vars: [Var; 2],
    /// The buffers of one element that contain the quotient and the remainder between iterations.
    cells: [Buffer; 2],
}

/// Returns the counters that replace the divisions in the body of a loop over `var`, parents first. Only divisions are replaced
/// that every iteration executes before anything else in it can fail, so a counter neither introduces a division by 0 nor hides
/// another error. `is_size` returns whether an expression is never negative.
fn find_counters(
    f: &mut PrimFunc,
    var: Var,
    body: Stmt,
    is_size: &mut dyn FnMut(&PrimFunc, Expr) -> bool,
) -> Vec<Counter> {
    let mut divisions = unconditional_divisions(f, body);
    divisions.retain(|&(_, d)| f.as_int(d).is_none());
    if divisions.is_empty() {
        return Vec::new();
    }
    let mut varying = FxHashSet::from_iter([var]);
    for_each_stmt(f, body, &mut |_, data| {
        if let StmtData::For { var, .. } | StmtData::Let(var, ..) = data {
            varying.insert(*var);
        }
    });
    divisions.retain(|&(_, d)| is_invariant(f, &varying, d) && is_size(f, d));
    // The dividends of the counters in the body, before divisions are replaced.
    let mut sources: Vec<(Expr, Expr)> = Vec::new();
    let mut counters: Vec<Counter> = Vec::new();
    // A quotient is listed after the division of it, so several rounds are needed.
    loop {
        let count = counters.len();
        for &(dividend, divisor) in &divisions {
            if sources.contains(&(dividend, divisor)) {
                continue;
            }
            let parent = match *f.expr(dividend) {
                ExprData::Binary(BinOp::FloorDiv, a, b) => {
                    sources.iter().position(|&source| source == (a, b))
                }
                _ => None,
            };
            let key = match parent {
                Some(parent) => f.var_expr(counters[parent].vars[0]),
                None if grows_by_one(f, &varying, var, dividend) => dividend,
                None => continue,
            };
            sources.push((dividend, divisor));
            counters.push(new_counter(f, key, divisor, parent));
        }
        if counters.len() == count {
            return counters;
        }
    }
}

fn new_counter(f: &mut PrimFunc, dividend: Expr, divisor: Expr, parent: Option<usize>) -> Counter {
    let vars = ["quotient", "remainder"].map(|name| f.size_var(name));
    let cells =
        ["next_quotient", "next_remainder"].map(|name| f.local_buffer(name, DType::Int64, 1));
    Counter { dividend, divisor, parent, vars, cells }
}

/// Returns the operands of the int64 divisions that every execution of a statement executes before anything that can fail or that
/// another function can observe. The divisions may therefore run earlier, in front of the loop, where the counters that replace
/// them are initialized.
fn unconditional_divisions(f: &PrimFunc, s: Stmt) -> Vec<(Expr, Expr)> {
    let (mut out, mut exprs) = (Vec::new(), Vec::new());
    collect_unconditional_exprs(f, s, &mut exprs);
    let mut seen = FxHashSet::default();
    while let Some(e) = exprs.pop() {
        if !seen.insert(e) {
            continue;
        }
        match f.expr(e) {
            ExprData::Call(Intrin::IfThenElse, args, _) => exprs.push(args[0]),
            data => pliant_ir::tir::visit::for_each_operand(data, |a| exprs.push(a)),
        }
        if let Some(operands) = division(f, e)
            && !out.contains(&operands)
        {
            out.push(operands);
        }
    }
    out
}

/// Collects the expressions that every execution of a statement evaluates before it can fail or have an effect outside of the
/// function. Returns whether the statement itself can neither fail nor have such an effect.
fn collect_unconditional_exprs(f: &PrimFunc, s: Stmt, exprs: &mut Vec<Expr>) -> bool {
    let data = f.stmt(s);
    match data {
        StmtData::Seq(list) => list.iter().all(|&s| collect_unconditional_exprs(f, s, exprs)),
        StmtData::Let(_, value, body) => {
            exprs.push(*value);
            !calls_functions(f, *value) && collect_unconditional_exprs(f, *body, exprs)
        }
        StmtData::Alloc(_, body) => collect_unconditional_exprs(f, *body, exprs),
        _ => {
            direct_exprs(data, |e| exprs.push(e));
            let mut ends = false;
            for_each_stmt(f, s, &mut |_, data| {
                ends |= matches!(data, StmtData::Assert(..) | StmtData::While(..));
                direct_exprs(data, |e| ends |= calls_functions(f, e));
            });
            !ends
        }
    }
}

/// Returns the operands of an int64 division or remainder; `None` for other expressions.
fn division(f: &PrimFunc, e: Expr) -> Option<(Expr, Expr)> {
    match *f.expr(e) {
        ExprData::Binary(BinOp::FloorDiv | BinOp::FloorMod, a, b) if f.expr_ty(e) == Ty::I64 => {
            Some((a, b))
        }
        _ => None,
    }
}

/// Whether an expression has the same value in all iterations of a loop. `varying` contains the variables that may change between
/// iterations.
fn is_invariant(f: &PrimFunc, varying: &FxHashSet<Var>, e: Expr) -> bool {
    let mut calls = false;
    for_each_expr(f, e, |e| calls |= matches!(f.expr(e), ExprData::Call(..)));
    !calls && !reads_memory(f, e) && !uses_any(f, e, &|v| varying.contains(&v))
}

/// Whether an expression grows by 1 in each iteration of the loop over `var`: it is `var` plus or minus expressions that are the
/// same in all iterations.
fn grows_by_one(f: &PrimFunc, varying: &FxHashSet<Var>, var: Var, e: Expr) -> bool {
    let grows = |e: Expr| grows_by_one(f, varying, var, e);
    let invariant = |e: Expr| is_invariant(f, varying, e);
    match *f.expr(e) {
        ExprData::Var(v) => v == var,
        ExprData::Binary(BinOp::Add, a, b) => grows(a) && invariant(b) || invariant(a) && grows(b),
        ExprData::Binary(BinOp::Sub, a, b) => grows(a) && invariant(b),
        _ => false,
    }
}

/// Returns the loop `s` with divisions replaced by counters, and with the statements around it that allocate and initialize the
/// buffers of the counters.
fn with_counters(f: &mut PrimFunc, s: Stmt, counters: Vec<Counter>) -> Stmt {
    let StmtData::For { var, min, extent, kind, body, annotations } = f.stmt(s).clone() else {
        unreachable!("only loops have counters")
    };
    let by_division: FxHashMap<(Expr, Expr), [Var; 2]> =
        counters.iter().map(|c| ((c.dividend, c.divisor), c.vars)).collect();
    let mut rule = |f: &mut PrimFunc, e: Expr| {
        let [quotient, remainder] = *by_division.get(&division(f, e)?)?;
        let is_quotient = matches!(f.expr(e), ExprData::Binary(BinOp::FloorDiv, ..));
        Some(f.var_expr(if is_quotient { quotient } else { remainder }))
    };
    let body = ExprRewriter::new(&mut rule).stmt(f, body);
    let update = update(f, &counters);
    let body = f.seq(vec![body, update]);
    let zero = f.int(0);
    let body = counters.iter().rev().fold(body, |body, c| {
        c.vars.into_iter().zip(c.cells).fold(body, |body, (var, cell)| {
            let value = f.load(cell, &[zero]);
            f.add_stmt(StmtData::Let(var, value, body))
        })
    });
    let counted = f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations });
    // The divisors may be 0 if there are no iterations.
    let init = initialization(f, &counters, (var, min));
    let not_empty = f.binary(BinOp::Lt, zero, extent);
    let init = f.add_stmt(StmtData::If(not_empty, init, None));
    let s = f.seq(vec![init, counted]);
    counters.iter().flat_map(|c| c.cells).fold(s, |s, cell| f.add_stmt(StmtData::Alloc(cell, s)))
}

/// Emits the stores of the counters' values in the first iteration of the loop over `var`, which starts at `min`.
fn initialization(f: &mut PrimFunc, counters: &[Counter], (var, min): (Var, Expr)) -> Stmt {
    let (zero, first_iteration) = (f.int(0), FxHashMap::from_iter([(var, min)]));
    let mut quotients: Vec<Expr> = Vec::new();
    let mut stores = Vec::new();
    for c in counters {
        let dividend = match c.parent {
            Some(parent) => quotients[parent],
            None => substitute_expr(f, c.dividend, &first_iteration),
        };
        let quotient = f.binary(BinOp::FloorDiv, dividend, c.divisor);
        let remainder = f.binary(BinOp::FloorMod, dividend, c.divisor);
        stores.push(f.store(c.cells[0], &[zero], quotient));
        stores.push(f.store(c.cells[1], &[zero], remainder));
        quotients.push(f.load(c.cells[0], &[zero]));
    }
    f.seq(stores)
}

/// Emits the stores at the end of the loop body, which set the counters to their values in the next iteration.
fn update(f: &mut PrimFunc, counters: &[Counter]) -> Stmt {
    let (zero, one) = (f.int(0), f.int(1));
    // The amounts by which the quotients grow: 0 or 1.
    let mut carries: Vec<Expr> = Vec::new();
    let mut stores = Vec::new();
    for c in counters {
        let [quotient, remainder] = c.vars.map(|v| f.var_expr(v));
        let step = c.parent.map_or(one, |parent| carries[parent]);
        let next = f.add(remainder, step);
        let wraps = f.binary(BinOp::Ge, next, c.divisor);
        let carry = f.cast(wraps, Ty::I64);
        let next_remainder = f.add_expr(ExprData::Select(wraps, zero, next));
        let next_quotient = f.add(quotient, carry);
        stores.push(f.store(c.cells[0], &[zero], next_quotient));
        stores.push(f.store(c.cells[1], &[zero], next_remainder));
        carries.push(carry);
    }
    f.seq(stores)
}
