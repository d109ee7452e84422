//! `fuse`: replaces a nest of loops by one loop.

use pliant_ir::tir::{BinOp, Expr, ForKind, PrimFunc, StmtData, Var};
use pliant_tir::statement_traversal::{substitute, uses_any};
use rustc_hash::FxHashMap;

use crate::error::Step;
use crate::loop_tree::{Loop, find_loop, replace};
use crate::reorder::check_one_kind;
use pliant_tir::index_arithmetic::{not_negative, product, sum};

/// Fuses a nest of loops, outermost first, into one loop. The body of each loop must consist of the next loop only. Returns the
/// variable of the new loop.
pub(crate) fn fuse(f: &mut PrimFunc, vars: &[Var]) -> Step<Var> {
    let loops = vars.iter().map(|&var| find_loop(f, var)).collect::<Step<Vec<Loop>>>()?;
    let Some((first, last)) = loops.first().zip(loops.last()).map(|(a, b)| (*a, *b)) else {
        return Err("the list of loops to fuse is empty; pass at least one loop".into());
    };
    let name = |l: &Loop| f.var(l.var).name.clone();
    for pair in loops.windows(2) {
        if pair[0].body != pair[1].stmt {
            return Err(format!(
                "fuse requires that the body of the loop '{}' consists only of the loop '{}'",
                name(&pair[0]),
                name(&pair[1])
            ));
        }
    }
    for (i, l) in loops.iter().enumerate() {
        if l.kind != ForKind::Serial {
            return Err(format!(
                "the loop '{}' is {kind}, but only serial loops can be fused; apply fuse before the loop is made {kind}",
                name(l),
                kind = l.kind.name()
            ));
        }
        let outer = &loops[..i];
        let depends = |e: Expr| uses_any(f, e, &|v| outer.iter().any(|o| o.var == v));
        if depends(l.extent) || depends(l.min) {
            return Err(format!(
                "the range of the loop '{}' depends on an outer loop, so the loops cannot be fused",
                name(l)
            ));
        }
    }
    check_one_kind(f, last.body, vars)?;
    let names: Vec<String> = loops.iter().map(|l| name(l).to_string()).collect();
    let fused = f.size_var(format!("{}_fused", names.join("_")));
    let mut index = f.var_expr(fused);
    let mut values = FxHashMap::default();
    for (i, l) in loops.iter().enumerate().rev() {
        let (mut value, rest) = match i {
            0 => (index, index),
            _ => (
                f.binary(BinOp::FloorMod, index, l.extent),
                f.binary(BinOp::FloorDiv, index, l.extent),
            ),
        };
        value = sum(f, l.min, value);
        values.insert(l.var, value);
        index = rest;
    }
    let one = f.int(1);
    let extents: Vec<Expr> = loops.iter().map(|l| not_negative(f, l.extent)).collect();
    let extent = extents.into_iter().fold(one, |all, extent| product(f, all, extent));
    let body = substitute(f, last.body, &values);
    let min = f.int(0);
    let new = f.add_stmt(StmtData::For {
        var: fused,
        min,
        extent,
        kind: ForKind::Serial,
        body,
        annotations: Vec::new(),
    });
    replace(f, first.stmt, new);
    Ok(fused)
}
