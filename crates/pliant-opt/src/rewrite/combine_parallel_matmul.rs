//! # What it does
//! Merges matmuls that share their left operand into one larger matmul, whose columns are split afterwards (for example queries,
//! keys and values of attention).
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), q: R.Tensor((16, 8), "float32"), k: R.Tensor((16, 4), "float32")) -> R.Tuple(R.Tensor(("n", 8), "float32"), R.Tensor(("n", 4), "float32")):
//!     n = T.int64()
//!     with R.dataflow():
//!         a = R.matmul(x, q)
//!         b = R.matmul(x, k)
//!         R.output(a, b)
//!     return (a, b)
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 16), "float32"), q: R.Tensor((16, 8), "float32"), k: R.Tensor((16, 4), "float32")) -> R.Tuple(R.Tensor(("n", 8), "float32"), R.Tensor(("n", 4), "float32")):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.concat((q, k), axis=-1)
//!         lv1 = R.matmul(x, lv)
//!         lv2 = R.split(lv1, indices_or_sections=[8], axis=-1)
//!         a = lv2[0]
//!         b = lv2[1]
//!         R.output(a, b)
//!     return (a, b)
//! ```
//!
//! # Requires
//! Right operands with known numbers of columns, which are defined before the first of the matmuls.
//!
//! # Keeps
//! Matmuls outside of dataflow blocks, matmuls with right operands of more than two dims, biases, and matmuls with a call between
//! them that may write to its operands.
//!
//! # Never
//! Changes a value: each column of the result is summed as before.

use pliant_ir::relax::{Binding, Block, Callee, Expr, ExprData, Function};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Op, OpRegistry};
use pliant_pass::binding_rewrites::Namer;
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::rewrite_dataflow_blocks::{
    BlockReplacement, dataflow_blocks, replace_in_block,
};
use pliant_pass::pattern::{Defs, Pattern, match_expr, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};
use rustc_hash::FxHashSet;

use crate::common::matmul_and_conv_operands::{MATMUL, dims, matmul_pattern};

const CONCAT: Op = Op::new("relax.concat");
const SPLIT: Op = Op::new("relax.split");

/// The pass that merges matmuls that share their left operand. See the module documentation.
pub struct CombineParallelMatmul;

impl ModulePass for CombineParallelMatmul {
    fn name(&self) -> &str {
        "CombineParallelMatmul"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let writers = MayWrite::of(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let mut changed = false;
            for block in dataflow_blocks(func) {
                for group in matmul_groups(func, block, ctx.ops, &writers) {
                    let with = combine(func, &group, ctx.ops)?;
                    changed |= replace_in_block(func, block, vec![with], ctx.ops)?;
                }
            }
            Ok(changed)
        })?;
        Ok(module)
    }
}

/// A matmul that can be merged with other matmuls that have the same left operand.
struct CombinableMatmul {
    binding: Binding,
    /// The left operand and the right operand, which is a matrix.
    operands: [Expr; 2],
    columns: i64,
    /// The properties that all matmuls of a group have in common: (left operand, data type, attributes).
    key: (Expr, Option<DType>, Attrs),
}

/// Returns the groups of at least two matmuls of a block that share their left operand, in program order. A call that may write
/// to its operands ends all groups, because the combined matmul reads all operands at the position of the first matmul of its
/// group.
fn matmul_groups(
    func: &mut Function,
    block: Block,
    ops: &dyn OpRegistry,
    writers: &MayWrite,
) -> Vec<Vec<CombinableMatmul>> {
    let (x, w) = (wildcard(), wildcard());
    let pattern = matmul_pattern(&x, &w);
    let defs = Defs::of(func, ops, Some(writers));
    let mut groups: Vec<Vec<CombinableMatmul>> = Vec::new();
    // For each group, the variables that are defined before its first matmul.
    let mut vars_before_first: Vec<FxHashSet<_>> = Vec::new();
    let mut first_open = 0;
    let mut defined = FxHashSet::default();
    let block_vars: FxHashSet<_> = func.block(block).bindings.iter().map(|b| b.var).collect();
    for binding in func.block(block).bindings.clone() {
        if let Some(matmul) = combinable_matmul(func, &defs, ops, binding, [&x, &w, &pattern]) {
            let is_defined_early = |defined: &FxHashSet<_>| match func.expr(matmul.operands[1]) {
                ExprData::Var(v) => !block_vars.contains(v) || defined.contains(v),
                _ => true,
            };
            let mut open = groups.iter().zip(&vars_before_first).skip(first_open);
            let group_index = open.position(|(group, defined)| {
                group[0].key == matmul.key && is_defined_early(defined)
            });
            match group_index {
                Some(i) => groups[first_open + i].push(matmul),
                None => {
                    groups.push(vec![matmul]);
                    vars_before_first.push(defined.clone());
                }
            }
        }
        if writers.may_write(func, binding.value) {
            first_open = groups.len();
        }
        defined.insert(binding.var);
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Returns the matmul that a binding computes, if it can be combined with others; `None` otherwise.
fn combinable_matmul(
    func: &Function,
    defs: &Defs,
    ops: &dyn OpRegistry,
    binding: Binding,
    [x, w, pattern]: [&Pattern; 3],
) -> Option<CombinableMatmul> {
    if binding.cast.is_some() {
        return None;
    }
    let found = match_expr(func, defs, ops, pattern, binding.value)?;
    let ExprData::Call { callee: Callee::Op(_), attrs, .. } = *func.expr(binding.value) else {
        return None;
    };
    let operands = [found.get(x)?, found.get(w)?];
    let (lhs, rhs) = (dims(func, operands[0])?, dims(func, operands[1])?);
    let &[_, columns] = rhs.as_slice() else { return None };
    let columns = func.syms.as_int(columns).filter(|_| lhs.len() > 1)?;
    let dtype = func.ty(operands[1]).dtype();
    let key = (defs.origin(func, operands[0]), dtype, func.call_attrs(attrs).clone());
    Some(CombinableMatmul { binding, operands, columns, key })
}

/// Emits the matmul that replaces the matmuls of a group, and the split of its result into their results.
fn combine(
    func: &mut Function,
    group: &[CombinableMatmul],
    ops: &dyn OpRegistry,
) -> Result<BlockReplacement, PassError> {
    let mut with = BlockReplacement::default();
    let mut namer = Namer::new(func);
    let last = || Attrs::default().with("axis", AttrValue::Int(-1));
    let mut call = |func: &mut Function, op: Op, args: &[Expr], attrs: Attrs| {
        let attrs = ops.complete(op, attrs);
        let ty = ops.infer(func, op, args, &attrs, &[]).map_err(|e| PassError::user(e.message))?;
        let value = func.call(Callee::Op(op), args, attrs, &[], ty);
        Ok::<Expr, PassError>(namer.bind(func, "lv", value, &mut with.bindings))
    };
    let matrices: Vec<Expr> = group.iter().map(|p| p.operands[1]).collect();
    let matrices = func.tuple(&matrices);
    let all_columns = call(func, CONCAT, &[matrices], last())?;
    let (x, attrs) = (group[0].operands[0], group[0].key.2.clone());
    let combined = call(func, MATMUL, &[x, all_columns], attrs)?;
    let mut at = 0;
    let split_indices = group[..group.len() - 1].iter().map(|p| {
        at += p.columns;
        at
    });
    let split_indices =
        last().with("indices_or_sections", AttrValue::ints(split_indices.collect::<Vec<_>>()));
    let parts = call(func, SPLIT, &[combined], split_indices)?;
    for (i, p) in group.iter().enumerate() {
        let field = func.tuple_get_item(parts, i as u32);
        with.values.push((p.binding.var, field));
    }
    Ok(with)
}
