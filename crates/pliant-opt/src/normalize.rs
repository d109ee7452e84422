//! # What it does
//! Drops empty binding blocks and joins neighbouring plain blocks. Programs are in A-normal form
//! from the start, because
//! the builder and the parser make no other form, so nothing else is left to normalise.
//!
//! # Before
//! Two plain blocks one after the other, as rewriting leaves them.
//!
//! # After
//! One plain block.
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! Every binding, and the dataflow blocks.
//!
//! # Never
//! Joins dataflow blocks: what one of them outputs may be used by what stands between.

use pliant_ir::relax::{Block, Function};
use pliant_pass::rewrite::reachable_seqs;
use pliant_pass::{FunctionPass, PassContext, PassError};

/// See the module's documentation.
pub struct Normalize;

impl FunctionPass for Normalize {
    fn name(&self) -> &str {
        "Normalize"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        for seq in reachable_seqs(func) {
            let old = std::mem::take(&mut func.seq_mut(seq).blocks);
            let mut new: Vec<Block> = Vec::with_capacity(old.len());
            for block in old {
                if func.block(block).bindings.is_empty() {
                    continue;
                }
                match new.last() {
                    Some(&last) if !func.block(last).dataflow && !func.block(block).dataflow => {
                        let mut bindings = std::mem::take(&mut func.block_mut(block).bindings);
                        func.block_mut(last).bindings.append(&mut bindings);
                    }
                    _ => new.push(block),
                }
            }
            func.seq_mut(seq).blocks = new;
        }
        Ok(())
    }
}
