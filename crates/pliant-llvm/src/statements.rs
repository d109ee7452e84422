//! Code generation for statements and loops.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use pliant_codegen::interrupt_polling::{POLL_PERIOD_LOG2, PollFrequency};
use pliant_ir::tir::{Expr, ExprData, ForKind, Intrin, Stmt, StmtData, Var};

use crate::function_builder::{FuncGen, Gen, unsupported};

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Generates code for a statement.
    pub fn stmt(&mut self, s: Stmt) -> Gen<()> {
        let f = self.f;
        self.memo.clear();
        match f.stmt(s) {
            StmtData::Seq(list) => list.iter().try_for_each(|&s| self.stmt(s)),
            StmtData::For { var, min, extent, kind, body, annotations } => match kind {
                ForKind::Serial => self.serial_loop(*var, *min, *extent, *body),
                ForKind::Parallel if self.in_parallel => {
                    self.serial_loop(*var, *min, *extent, *body)
                }
                ForKind::Parallel => self.parallel_loop(*var, *min, *extent, *body, annotations),
                other => unsupported(format!(
                    "code generation supports only serial and parallel loops, not a loop of kind {}; \
                     lower the function with pliant_tir::lower first",
                    other.name()
                )),
            },
            StmtData::While(condition, body) => self.while_loop(*condition, *body),
            StmtData::If(condition, then, other) => self.if_stmt(*condition, *then, *other),
            StmtData::Let(var, value, body) => {
                let v = self.expr(*value)?;
                let v = self.splat(v, f.expr_ty(*value).lanes)?;
                self.vars.insert(*var, v);
                self.stmt(*body)
            }
            StmtData::Store { buffer, indices, value } => self.store(*buffer, indices, *value),
            StmtData::Alloc(buffer, body) => self.alloc(*buffer, *body),
            StmtData::Evaluate(e) => match f.expr(*e) {
                ExprData::Call(Intrin::CallPacked, args, _) => self.call_packed_for_effect(args),
                _ => self.expr(*e).map(drop),
            },
            StmtData::Assert(condition, message, body) => {
                let holds = self.condition(*condition)?;
                let failed = self.b.build_not(holds, "")?;
                match f.expr(*condition) {
                    ExprData::Call(Intrin::Explain, args, _) if args.len() > 1 => {
                        self.error_with_exprs_if(failed, message.clone(), &args[1..])?;
                    }
                    _ => self.error_if(failed, message.clone())?,
                }
                self.stmt(*body)
            }
            StmtData::Block(_) => unsupported(
                "code generation does not support blocks (T.block), but the function has one; \
                 lower the function with pliant_tir::lower first",
            ),
        }
    }

    fn serial_loop(&mut self, var: Var, min: Expr, extent: Expr, body: Stmt) -> Gen<()> {
        let iterations = self.f.as_int(extent);
        let (lo, extent) = (self.int(min)?, self.int(extent)?);
        let hi = self.b.build_int_add(lo, extent, "")?;
        let zero = extent.get_type().const_zero();
        let nonempty = self.b.build_int_compare(IntPredicate::SGT, extent, zero, "")?;
        self.counted_loop(var, (lo, hi), nonempty, iterations, body)
    }

    /// Generates a loop from `lo` to `hi` (exclusive), which is entered only if `nonempty` is true. `iterations` is
    /// the number of iterations if it is constant.
    ///
    /// A loop that polls the interrupt flag periodically becomes a loop over runs of `2 ** POLL_PERIOD_LOG2` iterations around a
    /// loop without polls, which LLVM can unroll and vectorize.
    pub fn counted_loop(
        &mut self,
        var: Var,
        (lo, hi): (IntValue<'ctx>, IntValue<'ctx>),
        nonempty: IntValue<'ctx>,
        iterations: Option<i64>,
        body: Stmt,
    ) -> Gen<()> {
        match PollFrequency::of_loop(self.f, self.loop_depth, iterations, body) {
            PollFrequency::Periodic if self.unit.check_interrupt => {
                let run = lo.get_type().const_int(1 << POLL_PERIOD_LOG2, false);
                self.emit_loop((lo, hi), Some(run), nonempty, |g, first| {
                    g.poll_interrupt()?;
                    let rest = g.b.build_int_sub(hi, first, "")?;
                    let is_last = g.b.build_int_compare(IntPredicate::ULE, rest, run, "")?;
                    let end = g.b.build_int_add(first, run, "")?;
                    let end = g.b.build_select(is_last, hi, end, "")?.into_int_value();
                    let entered = g.unit.context.bool_type().const_int(1, false);
                    g.emit_loop((first, end), None, entered, |g, i| g.loop_body(var, i, body))
                })
            }
            frequency => self.emit_loop((lo, hi), None, nonempty, |g, i| {
                if frequency == PollFrequency::EveryIteration {
                    g.poll_interrupt()?;
                }
                g.loop_body(var, i, body)
            }),
        }
    }

    fn loop_body(&mut self, var: Var, i: IntValue<'ctx>, body: Stmt) -> Gen<()> {
        self.vars.insert(var, i.into());
        self.loop_depth += 1;
        self.stmt(body)?;
        self.loop_depth -= 1;
        Ok(())
    }

    /// Generates a loop over `lo`, `lo + step`, ... below `hi`, which is entered only if `entered` is true. The default of `step`
    /// is 1.
    fn emit_loop(
        &mut self,
        (lo, hi): (IntValue<'ctx>, IntValue<'ctx>),
        step: Option<IntValue<'ctx>>,
        entered: IntValue<'ctx>,
        body: impl FnOnce(&mut Self, IntValue<'ctx>) -> Gen<()>,
    ) -> Gen<()> {
        let (head, done) = (self.block("loop"), self.block("done"));
        let before = self.current_block()?;
        self.branch(entered, head, done)?;
        self.b.position_at_end(head);
        let phi = self.phi(lo.get_type().into(), &[(lo.into(), before)])?;
        let i = phi.as_basic_value().into_int_value();
        self.memo.clear();
        body(self, i)?;
        let one = i.get_type().const_int(1, false);
        let next = self.b.build_int_add(i, step.unwrap_or(one), "")?;
        let more = match step {
            None => self.b.build_int_compare(IntPredicate::SLT, next, hi, "")?,
            // `next` may overflow, but the distance to the end does not.
            Some(step) => {
                let rest = self.b.build_int_sub(hi, i, "")?;
                self.b.build_int_compare(IntPredicate::UGT, rest, step, "")?
            }
        };
        phi.add_incoming(&[(&next, self.current_block()?)]);
        self.branch(more, head, done)?;
        self.b.position_at_end(done);
        self.memo.clear();
        Ok(())
    }

    fn while_loop(&mut self, condition: Expr, body: Stmt) -> Gen<()> {
        let (head, loop_body, done) = (self.block("while"), self.block("body"), self.block("done"));
        self.jump(head)?;
        self.b.position_at_end(head);
        self.memo.clear();
        // Each iteration polls the interrupt flag, because the number of iterations is unbounded.
        self.poll_interrupt()?;
        let holds = self.condition(condition)?;
        self.branch(holds, loop_body, done)?;
        self.b.position_at_end(loop_body);
        self.loop_depth += 1;
        self.stmt(body)?;
        self.loop_depth -= 1;
        self.jump(head)?;
        self.b.position_at_end(done);
        self.memo.clear();
        Ok(())
    }

    fn if_stmt(&mut self, condition: Expr, then: Stmt, other: Option<Stmt>) -> Gen<()> {
        let c = self.condition(condition)?;
        let (then_block, done) = (self.block("then"), self.block("done"));
        let else_block = if other.is_some() { self.block("else") } else { done };
        self.branch(c, then_block, else_block)?;
        self.b.position_at_end(then_block);
        self.stmt(then)?;
        self.jump(done)?;
        if let Some(other) = other {
            self.b.position_at_end(else_block);
            self.stmt(other)?;
            self.jump(done)?;
        }
        self.b.position_at_end(done);
        self.memo.clear();
        Ok(())
    }
}
