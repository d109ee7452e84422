//! Empty reductions: the init of a block runs once for each value of its spatial axes, even if a
//! reduction loop around it has no iterations.

use pliant_ir::tir::visit::for_each_stmt;
use pliant_ir::tir::{BlockData, IterKind, Stmt, StmtData};

use super::Loops;
use super::scalar::{Val, wrap};
use crate::error::Result;

impl Loops<'_, '_, '_> {
    /// Runs only the inits of the blocks with empty reduction axes under a loop without iterations.
    /// The loop's variable has its first value; inner loops run normally.
    pub(super) fn empty_loop(&mut self, body: Stmt) -> Result<()> {
        // Without inits, nothing is evaluated: values may be meaningless if the loop has no
        // iterations.
        let mut any = false;
        for_each_stmt(self.f, body, |s| {
            any |= matches!(self.f.stmt(s), StmtData::Block(b) if b.init.is_some());
        });
        if any { self.inits(body) } else { Ok(()) }
    }

    fn inits(&mut self, s: Stmt) -> Result<()> {
        self.m.step(1)?;
        self.m.check_stack()?;
        let f = self.f;
        match f.stmt(s) {
            StmtData::Seq(list) => list.iter().try_for_each(|&s| self.inits(s)),
            StmtData::For { var, min, extent, body, .. } => {
                let dtype = f.expr_ty(*min).dtype;
                let (min, extent) = (self.eval(*min)?.int()?, self.eval(*extent)?.int()?);
                for i in 0..extent.max(1) {
                    self.m.step(1)?;
                    self.vars.insert(*var, Val::Int(wrap(min.wrapping_add(i), dtype)));
                    self.inits(*body)?;
                }
                Ok(())
            }
            StmtData::Let(var, value, body) => {
                let value = self.eval(*value)?;
                self.vars.insert(*var, value);
                self.inits(*body)
            }
            StmtData::Block(block) => self.block_init(block),
            // Statements outside of blocks do not run.
            _ => Ok(()),
        }
    }

    fn block_init(&mut self, block: &BlockData) -> Result<()> {
        let Some(init) = block.init else { return Ok(()) };
        let mut empty = false;
        for iter in &block.iters {
            let (min, extent) = (self.eval(iter.min)?.int()?, self.eval(iter.extent)?.int()?);
            let value = match iter.kind {
                IterKind::Reduce => {
                    empty |= extent <= 0;
                    min
                }
                _ => self.eval(iter.binding)?.int()?,
            };
            let inside = value >= min && i128::from(value) < i128::from(min) + i128::from(extent);
            if iter.kind != IterKind::Reduce && !inside {
                return Ok(());
            }
            self.vars.insert(iter.var, Val::Int(value));
        }
        if empty { self.stmt(init) } else { Ok(()) }
    }
}
