//! Binds literal constants to variables where results may share their memory or calls may write to it.

use pliant_ir::relax::{Binding, BlockData, Expr, ExprData, Function};
use pliant_pass::binding_rewrites::{Namer, map_leaves, reachable_seqs};

/// Binds literal constants to variables in two cases: a sequence returns them, or they are operands of a value that may share
/// memory with its operands or write to them (`shares_or_writes_operands`).
pub(crate) fn bind_constants(
    func: &mut Function,
    shares_or_writes_operands: impl Fn(&Function, Expr) -> bool,
) {
    let mut namer = Namer::new(func);
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            let dataflow = func.block(block).dataflow;
            let mut new_bindings = Vec::new();
            for mut binding in std::mem::take(&mut func.block_mut(block).bindings) {
                if shares_or_writes_operands(func, binding.value) {
                    binding.value =
                        bind_literals(func, binding.value, dataflow, &mut namer, &mut new_bindings);
                }
                new_bindings.push(binding);
            }
            func.block_mut(block).bindings = new_bindings;
        }
        let mut bindings = Vec::new();
        let result = func.seq(seq).result;
        let result = bind_literals(func, result, false, &mut namer, &mut bindings);
        if !bindings.is_empty() {
            let block = func.add_block(BlockData { dataflow: false, bindings });
            func.seq_mut(seq).blocks.push(block);
            func.seq_mut(seq).result = result;
        }
    }
}

/// Replaces the literal constants in an operand by new variables, and appends the bindings of these variables to `out`.
fn bind_literals(
    func: &mut Function,
    value: Expr,
    dataflow: bool,
    namer: &mut Namer,
    out: &mut Vec<Binding>,
) -> Expr {
    map_leaves(func, value, &mut |func, leaf| {
        if !matches!(func.expr(leaf), ExprData::Constant(_)) {
            return leaf;
        }
        let e = namer.bind(func, "const", leaf, out);
        if let ExprData::Var(v) = *func.expr(e) {
            func.var_mut(v).dataflow = dataflow;
        }
        e
    })
}
