//! Cleans up after a rewrite: removes unused bindings, and turns dataflow variables that are used outside of their dataflow block
//! into outputs of the block.

use cranelift_entity::SecondaryMap;
use pliant_ir::OpRegistry;
use pliant_ir::relax::visit::{Event, operand_vars, type_vars, walk};
use pliant_ir::relax::{Binding, Block, ExprData, Function, Type, Var};
use rustc_hash::FxHashSet;

use super::variable_definitions::Defs;

/// Removes unused pure bindings of candidate variables, and bindings that become unused by this. `match_cast`, branches and local
/// functions are kept.
pub fn remove_unused(func: &mut Function, ops: &dyn OpRegistry, defs: &Defs, candidates: Vec<Var>) {
    let mut counts: SecondaryMap<Var, u32> = SecondaryMap::new();
    let mut values: SecondaryMap<Var, Option<Binding>> = SecondaryMap::new();
    let count_ty = |counts: &mut SecondaryMap<Var, u32>, ty: Type| {
        type_vars(func, ty).into_iter().for_each(|v| counts[v] += 1);
    };
    walk(func, func.root(), |event| match event {
        Event::EnterBinding(_, b) => {
            operand_vars(func, b.value).into_iter().for_each(|v| counts[v] += 1);
            count_ty(&mut counts, func.var(b.var).ty);
            values[b.var] = Some(b);
        }
        Event::Result(seq) => {
            operand_vars(func, func.seq(seq).result).into_iter().for_each(|v| counts[v] += 1);
        }
        Event::EnterFunc(id) => {
            count_ty(&mut counts, func.func(id).ret_ty);
        }
        _ => {}
    });
    let mut dead: FxHashSet<Var> = FxHashSet::default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut worklist = candidates;
    while let Some(v) = worklist.pop() {
        let Some(b) = values[v] else { continue };
        let removable = counts[v] == 0
            && b.cast.is_none()
            && !matches!(func.expr(b.value), ExprData::If { .. } | ExprData::Func(_))
            && defs.is_pure(func, ops, b.value);
        if !removable || !dead.insert(v) {
            continue;
        }
        blocks.extend(defs.block(v));
        for used in operand_vars(func, b.value) {
            counts[used] -= 1;
            worklist.push(used);
        }
        for used in type_vars(func, func.var(v).ty) {
            counts[used] -= 1;
            worklist.push(used);
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    for block in blocks {
        func.block_mut(block).bindings.retain(|b| !dead.contains(&b.var));
    }
}

/// Turns dataflow variables that are used outside of their dataflow block into outputs of the block, which are visible outside.
pub fn export_used_outside_block(func: &mut Function) {
    let mut block_of: SecondaryMap<Var, Option<Block>> = SecondaryMap::new();
    let mut outside: Vec<Var> = Vec::new();
    walk(func, func.root(), |event| match event {
        Event::EnterBinding(location, b) => {
            block_of[b.var] = Some(location.block);
            for v in operand_vars(func, b.value) {
                if func.var(v).dataflow && block_of[v] != Some(location.block) {
                    outside.push(v);
                }
            }
        }
        Event::Result(seq) => {
            for v in operand_vars(func, func.seq(seq).result) {
                if func.var(v).dataflow {
                    outside.push(v);
                }
            }
        }
        _ => {}
    });
    for v in outside {
        func.var_mut(v).dataflow = false;
    }
}
