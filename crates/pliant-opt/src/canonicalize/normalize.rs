//! # What it does
//! Drops empty binding blocks and merges adjacent plain binding blocks. The builder and the parser already create A-normal form,
//! so the pass normalizes nothing else.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     a = R.exp(x)
//!     with R.dataflow():
//!         R.output()
//!     b = R.exp(a)
//!     return b
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     a: R.Tensor((4,), "float32") = R.exp(x)
//!     b: R.Tensor((4,), "float32") = R.exp(a)
//!     return b
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! Every binding, and all non-empty dataflow blocks.
//!
//! # Never
//! Merges dataflow blocks.

use pliant_ir::IRModule;
use pliant_ir::relax::{Block, Function, Seq};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};

/// The pass that drops empty binding blocks and merges adjacent blocks that are not dataflow blocks. See the module documentation.
pub struct Normalize;

impl ModulePass for Normalize {
    fn name(&self) -> &str {
        "Normalize"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        update_each_relax(&mut module, ctx, |_, func| {
            let seqs = reachable_seqs(func);
            Ok(seqs.into_iter().fold(false, |changed, seq| changed | merge_blocks(func, seq)))
        })?;
        Ok(module)
    }
}

/// Drops the empty blocks of a sequence and merges adjacent blocks that are not dataflow blocks. Returns whether anything changed.
fn merge_blocks(func: &mut Function, seq: Seq) -> bool {
    let old_blocks = func.seq(seq).blocks.clone();
    let old_count = old_blocks.len();
    let mut new_blocks: Vec<Block> = Vec::with_capacity(old_count);
    for block in old_blocks {
        if func.block(block).bindings.is_empty() {
            continue;
        }
        match new_blocks.last() {
            Some(&last) if !func.block(last).dataflow && !func.block(block).dataflow => {
                let mut bindings = std::mem::take(&mut func.block_mut(block).bindings);
                func.block_mut(last).bindings.append(&mut bindings);
            }
            _ => new_blocks.push(block),
        }
    }
    let changed = new_blocks.len() != old_count;
    func.seq_mut(seq).blocks = new_blocks;
    changed
}
