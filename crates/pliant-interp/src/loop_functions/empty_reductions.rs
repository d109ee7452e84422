//! Empty reductions: the init statement of a block runs once for each value of its spatial axes, even if an enclosing reduction
//! loop has no iterations.

use pliant_ir::tir::visit::for_each_stmt;
use pliant_ir::tir::{BlockData, IterKind, Stmt, StmtData};

use super::LoopFrame;
use super::scalar_arithmetic::{Val, wrap};
use crate::interp_error::Result;

impl LoopFrame<'_, '_, '_> {
    /// Runs the init statements of blocks in the body of a loop without iterations, so that an empty reduction has its initial
    /// value. Only blocks with an empty reduction axis are affected. The loop variable has its first value. Inner loops iterate
    /// normally, but at least once.
    pub(super) fn run_inits_of_empty_loop(&mut self, body: Stmt) -> Result<()> {
        // Without inits, nothing is evaluated, because expressions may be invalid if the loop has no iterations.
        let mut has_inits = false;
        for_each_stmt(self.f, body, |s| {
            has_inits |= matches!(self.f.stmt(s), StmtData::Block(b) if b.init.is_some());
        });
        if has_inits { self.run_inits(body) } else { Ok(()) }
    }

    /// Runs the init statements of those blocks in a statement that have an empty reduction axis.
    fn run_inits(&mut self, s: Stmt) -> Result<()> {
        self.interp.step(1)?;
        self.interp.check_stack()?;
        let f = self.f;
        match f.stmt(s) {
            StmtData::Seq(list) => list.iter().try_for_each(|&s| self.run_inits(s)),
            StmtData::For { var, min, extent, body, .. } => {
                let dtype = f.expr_ty(*min).dtype;
                let (min, extent) = (self.eval(*min)?.int()?, self.eval(*extent)?.int()?);
                for i in 0..extent.max(1) {
                    self.interp.step(1)?;
                    self.vars.insert(*var, Val::Int(wrap(min.wrapping_add(i), dtype)));
                    self.run_inits(*body)?;
                }
                Ok(())
            }
            StmtData::Let(var, value, body) => {
                let value = self.eval(*value)?;
                self.vars.insert(*var, value);
                self.run_inits(*body)
            }
            StmtData::Block(block) => self.run_block_init(block),
            // Other statements are not executed.
            _ => Ok(()),
        }
    }

    /// Runs the init statement of a block if it has an empty reduction axis and its spatial axes are in range.
    fn run_block_init(&mut self, block: &BlockData) -> Result<()> {
        let Some(init) = block.init else { return Ok(()) };
        let (mut is_empty_reduction, mut ranges) = (false, Vec::with_capacity(block.iters.len()));
        for iter in &block.iters {
            let (min, extent) = (self.eval(iter.min)?.int()?, self.eval(iter.extent)?.int()?);
            match iter.kind {
                IterKind::Reduce => is_empty_reduction |= extent <= 0,
                // The binding may divide by the extent.
                _ if extent <= 0 => return Ok(()),
                _ => {}
            }
            ranges.push((min, extent));
        }
        if !is_empty_reduction {
            return Ok(());
        }
        for (iter, (min, extent)) in block.iters.iter().zip(ranges) {
            let value = match iter.kind {
                IterKind::Reduce => min,
                _ => self.eval(iter.binding)?.int()?,
            };
            let inside = value >= min && i128::from(value) < i128::from(min) + i128::from(extent);
            if iter.kind != IterKind::Reduce && !inside {
                return Ok(());
            }
            self.vars.insert(iter.var, Val::Int(value));
        }
        self.stmt(init)
    }
}
