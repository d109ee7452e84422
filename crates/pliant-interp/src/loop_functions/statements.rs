//! Executes statements of loop functions. Parallel, vectorized and unrolled loops are executed sequentially.

use pliant_ir::tir::{BlockData, Buffer, Expr, ExprData, Intrin, IterKind, Stmt, StmtData, Var};
use pliant_tensor::CheckFailure;

use super::LoopFrame;
use super::scalar_arithmetic::{Val, malformed, wrap};
use crate::InterpError;
use crate::interp_error::{ErrorKind, Result};

impl LoopFrame<'_, '_, '_> {
    pub(super) fn stmt(&mut self, s: Stmt) -> Result<()> {
        self.interp.step(1)?;
        self.interp.check_stack()?;
        let f = self.f;
        match f.stmt(s) {
            StmtData::Seq(list) => list.iter().try_for_each(|&s| self.stmt(s)),
            StmtData::For { var, min, extent, body, .. } => {
                self.for_loop(*var, *min, *extent, *body)
            }
            StmtData::While(cond, body) => {
                while self.eval(*cond)?.is_true()? {
                    self.stmt(*body)?;
                }
                Ok(())
            }
            StmtData::If(cond, then, otherwise) => {
                if self.eval(*cond)?.is_true()? {
                    self.stmt(*then)
                } else {
                    otherwise.map_or(Ok(()), |s| self.stmt(s))
                }
            }
            StmtData::Let(var, value, body) => {
                let value = self.eval(*value)?;
                self.vars.insert(*var, value);
                self.stmt(*body)
            }
            StmtData::Store { buffer, indices, value } => self.store(*buffer, indices, *value),
            StmtData::Alloc(buffer, body) => {
                self.allocate(*buffer)?;
                self.stmt(*body)?;
                self.views.remove(buffer);
                Ok(())
            }
            StmtData::Evaluate(e) => match self.f.expr(*e) {
                ExprData::Call(Intrin::CallPacked, args, _) => {
                    self.memo.clear();
                    self.packed_value(args).map(drop)
                }
                _ => self.eval(*e).map(drop),
            },
            StmtData::Assert(cond, message, body) => {
                let (holds, values) = self.assertion(*cond)?;
                if !holds {
                    let (kind, message) = CheckFailure::split(message);
                    let message = CheckFailure::fill_args(message, &values);
                    return Err(InterpError::new(kind.into(), format!("{}: {message}", self.name)));
                }
                self.stmt(*body)
            }
            StmtData::Block(block) => self.block(block),
        }
    }

    /// Evaluates the condition of an assertion. Returns whether the condition is true and, if not,
    /// the integers that the message contains.
    fn assertion(&mut self, cond: Expr) -> Result<(bool, Vec<i64>)> {
        let ExprData::Call(Intrin::Explain, args, _) = self.f.expr(cond) else {
            return Ok((self.eval(cond)?.is_true()?, Vec::new()));
        };
        let Some((&cond, values)) = args.split_first() else {
            return Err(malformed("T.explain has no condition"));
        };
        if self.eval(cond)?.is_true()? {
            return Ok((true, Vec::new()));
        }
        let values: Result<Vec<i64>> = values.iter().map(|&v| self.eval(v)?.int()).collect();
        Ok((false, values?))
    }

    fn for_loop(&mut self, var: Var, min: Expr, extent: Expr, body: Stmt) -> Result<()> {
        let dtype = self.f.expr_ty(min).dtype;
        let (min, extent) = (self.eval(min)?.int()?, self.eval(extent)?.int()?);
        for i in 0..extent {
            self.interp.step(1)?;
            self.vars.insert(var, Val::Int(wrap(min.wrapping_add(i), dtype)));
            self.stmt(body)?;
        }
        if extent <= 0 {
            self.vars.insert(var, Val::Int(wrap(min, dtype)));
            self.run_inits_of_empty_loop(body)?;
        }
        Ok(())
    }

    fn store(&mut self, buffer: Buffer, indices: &[Expr], value: Expr) -> Result<()> {
        // The value and the indices share one memo, so that their common subexpressions are evaluated once.
        self.memo.clear();
        let value = self.expr(value)?;
        let view = self.view(buffer)?;
        let mut list = Vec::with_capacity(indices.len());
        for &i in indices {
            list.push(self.expr(i)?);
        }
        let Some(lanes) = list.iter().find_map(Val::lanes) else {
            let position = view.position(&ints(&list)?)?;
            return view.write(position, &value);
        };
        for lane in 0..lanes {
            let at: Result<Vec<i64>> = list.iter().map(|i| i.lane(lane)?.int()).collect();
            view.write(view.position(&at?)?, &value.lane(lane)?)?;
        }
        if value.lanes().is_some_and(|n| n != lanes) {
            return Err(malformed(&format!(
                "the value and the indices of a store to '{}' have different numbers of lanes",
                view.name
            )));
        }
        Ok(())
    }

    fn block(&mut self, block: &BlockData) -> Result<()> {
        let mut values = Vec::with_capacity(block.iters.len());
        for iter in &block.iters {
            values.push(self.eval(iter.binding)?.int()?);
        }
        for (iter, &value) in block.iters.iter().zip(&values) {
            self.vars.insert(iter.var, Val::Int(value));
        }
        if let Some(predicate) = block.predicate
            && !self.eval(predicate)?.is_true()?
        {
            return Ok(());
        }
        let mut first = true;
        for (iter, &value) in block.iters.iter().zip(&values) {
            let (min, extent) = (self.eval(iter.min)?.int()?, self.eval(iter.extent)?.int()?);
            if value < min || i128::from(value) >= i128::from(min) + i128::from(extent) {
                let (axis, name) = (&self.f.var(iter.var).name, &block.name);
                return Err(InterpError::new(
                    ErrorKind::Bounds,
                    format!(
                        "axis '{axis}' of block '{name}' is {value}, outside {min}..{}",
                        i128::from(min) + i128::from(extent)
                    ),
                ));
            }
            first &= iter.kind != IterKind::Reduce || value == min;
        }
        for &buffer in &block.allocs {
            self.allocate(buffer)?;
        }
        if let Some(init) = block.init
            && first
        {
            self.stmt(init)?;
        }
        self.stmt(block.body)?;
        for buffer in &block.allocs {
            self.views.remove(buffer);
        }
        Ok(())
    }
}

/// Converts scalar values to integers.
pub(super) fn ints(list: &[Val]) -> Result<Vec<i64>> {
    list.iter().map(Val::int).collect()
}
