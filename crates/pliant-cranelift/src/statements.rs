//! Code generation for statements and loops.

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use pliant_codegen::interrupt_polling::PollFrequency;
use pliant_ir::tir::{Expr, ExprData, ForKind, Intrin, Stmt, StmtData, Var};
use pliant_tir::index_arithmetic::conjuncts;

use crate::function_builder::{FuncGen, Gen, unsupported};
use crate::value_representations::ExprValue;

impl FuncGen<'_, '_> {
    /// Generates code for a statement. In functions with many arguments, each outermost loop or
    /// branch loads the arguments that it uses.
    pub fn stmt(&mut self, s: Stmt) -> Gen<()> {
        let f = self.f;
        self.memo.clear();
        match f.stmt(s) {
            StmtData::For { .. } | StmtData::While(..) | StmtData::If(..)
                if self.loop_depth == 0 =>
            {
                let replaced = self.load_arguments(s)?;
                self.stmt_code(s)?;
                self.restore_entries(replaced);
                Ok(())
            }
            _ => self.stmt_code(s),
        }
    }

    fn stmt_code(&mut self, s: Stmt) -> Gen<()> {
        let f = self.f;
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
                let ty = f.expr_ty(*value);
                let v = if ty.lanes == 1 { v } else { self.storage_form(&v, ty) };
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
                self.assertion(*condition, message)?;
                self.stmt(*body)
            }
            StmtData::Block(_) => unsupported(
                "code generation does not support blocks (T.block), but the function has one; \
                 lower the function with pliant_tir::lower first",
            ),
        }
    }

    /// Emits a check: at run time, the loop function fails with `message` if the condition is false. The operands of a conjunction
    /// are tested one after another, because a comparison and its branch are cheaper than a comparison whose result is stored in a
    /// register.
    fn assertion(&mut self, condition: Expr, message: &Arc<str>) -> Gen<()> {
        let (condition, values) = match self.f.expr(condition) {
            ExprData::Call(Intrin::Explain, args, _) => (args[0], &args[1..]),
            _ => (condition, [].as_slice()),
        };
        let (mut conditions, mut failed) = (Vec::new(), Vec::new());
        conjuncts(self.f, condition, &mut conditions);
        for condition in conditions {
            let holds = self.condition(condition)?;
            failed.push(self.b.ins().icmp_imm_s(IntCC::Equal, holds, 0));
        }
        if !values.is_empty() {
            return self.error_with_exprs_if(&failed, message.clone(), values);
        }
        failed.into_iter().for_each(|failed| self.error_if(failed, message.clone()));
        Ok(())
    }

    fn serial_loop(&mut self, var: Var, min: Expr, extent: Expr, body: Stmt) -> Gen<()> {
        let iterations = self.f.as_int(extent);
        let (lo, extent) = (self.scalar(min)?, self.scalar(extent)?);
        let hi = self.b.ins().iadd(lo, extent);
        let nonempty = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, extent, 0);
        self.counted_loop(var, (lo, hi), nonempty, iterations, body)
    }

    /// Generates a loop from `lo` to `hi` (exclusive), which is entered only if `nonempty` is nonzero. `iterations` is
    /// the number of iterations if it is constant.
    pub fn counted_loop(
        &mut self,
        var: Var,
        (lo, hi): (Value, Value),
        nonempty: Value,
        iterations: Option<i64>,
        body: Stmt,
    ) -> Gen<()> {
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let ty = self.var_type(var);
        let i = self.b.append_block_param(head, ty);
        self.b.ins().brif(nonempty, head, &[BlockArg::Value(lo)], done, &[]);
        self.b.switch_to_block(head);
        self.vars.insert(var, ExprValue::Scalar(i));
        match PollFrequency::of_loop(self.f, self.loop_depth, iterations, body) {
            PollFrequency::EveryIteration => self.poll_interrupt(),
            PollFrequency::Periodic => self.poll_interrupt_periodically(i),
            PollFrequency::Never => {}
        }
        self.loop_depth += 1;
        self.stmt(body)?;
        self.loop_depth -= 1;
        let next = self.b.ins().iadd_imm_s(i, 1);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, hi);
        self.b.ins().brif(more, head, &[BlockArg::Value(next)], done, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.memo.clear();
        Ok(())
    }

    fn while_loop(&mut self, condition: Expr, body: Stmt) -> Gen<()> {
        let (head, loop_body, done) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        self.memo.clear();
        // Each iteration polls the interrupt flag, because the number of iterations is unbounded.
        self.poll_interrupt();
        let holds = self.condition(condition)?;
        self.b.ins().brif(holds, loop_body, &[], done, &[]);
        self.b.seal_block(loop_body);
        self.b.switch_to_block(loop_body);
        self.loop_depth += 1;
        self.stmt(body)?;
        self.loop_depth -= 1;
        self.b.ins().jump(head, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.memo.clear();
        Ok(())
    }

    fn if_stmt(&mut self, condition: Expr, then: Stmt, other: Option<Stmt>) -> Gen<()> {
        let c = self.condition(condition)?;
        let (then_block, done) = (self.b.create_block(), self.b.create_block());
        let else_block = if other.is_some() { self.b.create_block() } else { done };
        self.b.ins().brif(c, then_block, &[], else_block, &[]);
        self.b.seal_block(then_block);
        self.b.switch_to_block(then_block);
        self.stmt(then)?;
        self.b.ins().jump(done, &[]);
        if let Some(other) = other {
            self.b.seal_block(else_block);
            self.b.switch_to_block(else_block);
            self.stmt(other)?;
            self.b.ins().jump(done, &[]);
        }
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.memo.clear();
        Ok(())
    }
}
