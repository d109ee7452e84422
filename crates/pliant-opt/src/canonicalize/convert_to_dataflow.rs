//! # What it does
//! Puts runs of consecutive pure bindings without control flow into dataflow blocks, also in branches and local functions.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     a = R.exp(x)
//!     b = R.add(a, x)
//!     return b
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     with R.dataflow():
//!         a = R.exp(x)
//!         b = R.add(a, x)
//!         R.output(b)
//!     return b
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The order of the bindings, and existing dataflow blocks.
//!
//! # Never
//! Creates a block with fewer than [`min_size`](ConvertToDataflow::min_size) bindings.

use pliant_ir::IRModule;
use pliant_ir::relax::{Binding, Block, BlockData, ExprData, Function, Seq};
use pliant_pass::binding_rewrites::{reachable_seqs, read_outside_block};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};

use crate::analysis::Effects;

/// The pass that puts consecutive pure bindings into dataflow blocks. See the module documentation.
#[derive(Clone, Debug)]
pub struct ConvertToDataflow {
    /// The minimum number of consecutive pure bindings that the pass puts into a dataflow block.
    pub min_size: usize,
}

impl Default for ConvertToDataflow {
    fn default() -> Self {
        ConvertToDataflow { min_size: 2 }
    }
}

impl ModulePass for ConvertToDataflow {
    fn name(&self) -> &str {
        "ConvertToDataflow"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let effects = Effects::of(&module, ctx.ops);
        update_each_relax(&mut module, ctx, |_, func| {
            let mut dataflow_blocks = Vec::new();
            for seq in reachable_seqs(func) {
                self.split_plain_blocks(func, seq, &effects, &mut dataflow_blocks);
            }
            if dataflow_blocks.is_empty() {
                return Ok(false);
            }
            let outputs = read_outside_block(func);
            for block in dataflow_blocks {
                for binding in func.block(block).bindings.clone() {
                    func.var_mut(binding.var).dataflow = !outputs.contains(&binding.var);
                }
            }
            Ok(true)
        })?;
        Ok(module)
    }
}

impl ConvertToDataflow {
    /// Splits the blocks of a sequence that are not dataflow blocks: runs of pure bindings become dataflow blocks, the other
    /// bindings stay in plain blocks. Appends the new dataflow blocks to `dataflow_blocks`.
    fn split_plain_blocks(
        &self,
        func: &mut Function,
        seq: Seq,
        effects: &Effects,
        dataflow_blocks: &mut Vec<Block>,
    ) {
        let old_blocks = func.seq(seq).blocks.clone();
        let from = dataflow_blocks.len();
        let mut new_blocks = Vec::with_capacity(old_blocks.len());
        for &block in &old_blocks {
            if func.block(block).dataflow {
                new_blocks.push(block);
                continue;
            }
            let bindings = func.block(block).bindings.clone();
            let mut plain: Vec<Binding> = Vec::new();
            let is_convertible = |b: &Binding| {
                !matches!(func.expr(b.value), ExprData::If { .. } | ExprData::Func(_))
                    && !effects.is_impure(func, b.value)
            };
            let runs: Vec<(bool, Vec<Binding>)> = bindings
                .chunk_by(|a, b| is_convertible(a) == is_convertible(b))
                .map(|run| {
                    (is_convertible(&run[0]) && run.len() >= self.min_size.max(1), run.to_vec())
                })
                .collect();
            if !runs.iter().any(|(dataflow, _)| *dataflow) {
                new_blocks.push(block);
                continue;
            }
            for (dataflow, mut run) in runs {
                if !dataflow {
                    plain.append(&mut run);
                    continue;
                }
                push_plain_block(func, &mut plain, &mut new_blocks);
                let block = func.add_block(BlockData { dataflow: true, bindings: run });
                dataflow_blocks.push(block);
                new_blocks.push(block);
            }
            push_plain_block(func, &mut plain, &mut new_blocks);
        }
        if dataflow_blocks.len() > from {
            func.seq_mut(seq).blocks = new_blocks;
        }
    }
}

fn push_plain_block(func: &mut Function, bindings: &mut Vec<Binding>, out: &mut Vec<Block>) {
    if !bindings.is_empty() {
        let bindings = std::mem::take(bindings);
        out.push(func.add_block(BlockData { dataflow: false, bindings }));
    }
}
