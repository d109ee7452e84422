//! Statements.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder};
use pliant_ir::tir::visit::for_each_stmt;
use pliant_ir::tir::{Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Var};

use crate::function::{FuncGen, Gen, unsupported};
use crate::value::V;

impl FuncGen<'_, '_> {
    pub fn stmt(&mut self, s: Stmt) -> Gen<()> {
        let f = self.f;
        self.memo.clear();
        match f.stmt(s) {
            StmtData::For { .. } | StmtData::While(..) | StmtData::If(..) if self.depth == 0 => {
                let old = self.load_arguments(s)?;
                self.nest(s)?;
                self.give_back(old);
                Ok(())
            }
            _ => self.nest(s),
        }
    }

    fn nest(&mut self, s: Stmt) -> Gen<()> {
        let f = self.f;
        match f.stmt(s) {
            StmtData::Seq(list) => list.iter().try_for_each(|&s| self.stmt(s)),
            StmtData::For { var, min, extent, kind, body, annotations } => match kind {
                ForKind::Serial => self.serial(*var, *min, *extent, *body),
                ForKind::Parallel if self.in_parallel => self.serial(*var, *min, *extent, *body),
                ForKind::Parallel => self.parallel(*var, *min, *extent, *body, annotations),
                other => unsupported(format!("a {} loop in a lowered function", other.name())),
            },
            StmtData::While(condition, body) => self.while_loop(*condition, *body),
            StmtData::If(condition, then, other) => self.if_stmt(*condition, *then, *other),
            StmtData::Let(var, value, body) => {
                let v = self.expr(*value)?;
                let ty = f.expr_ty(*value);
                let v = if ty.lanes == 1 { v } else { self.canonical(&v, ty) };
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
                let fails = self.b.ins().icmp_imm_s(IntCC::Equal, holds, 0);
                match f.expr(*condition) {
                    ExprData::Call(Intrin::Explain, args, _) if args.len() > 1 => {
                        self.check_telling(fails, message.clone(), &args[1..])?;
                    }
                    _ => self.assert_not(fails, message.clone()),
                }
                self.stmt(*body)
            }
            StmtData::Block(_) => unsupported("a block in a lowered function"),
        }
    }

    fn serial(&mut self, var: Var, min: Expr, extent: Expr, body: Stmt) -> Gen<()> {
        let turns = self.f.as_int(extent);
        let (lo, extent) = (self.scalar(min)?, self.scalar(extent)?);
        let hi = self.b.ins().iadd(lo, extent);
        let runs = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, extent, 0);
        self.counted(var, (lo, hi), runs, turns, body)
    }

    /// A loop from `lo` to `hi`, entered where `runs` holds, of `turns` turns where that is known.
    pub fn counted(
        &mut self,
        var: Var,
        (lo, hi): (cranelift_codegen::ir::Value, cranelift_codegen::ir::Value),
        runs: cranelift_codegen::ir::Value,
        turns: Option<i64>,
        body: Stmt,
    ) -> Gen<()> {
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let ty = self.var_type(var);
        let i = self.b.append_block_param(head, ty);
        self.b.ins().brif(runs, head, &[BlockArg::Value(lo)], done, &[]);
        self.b.switch_to_block(head);
        self.vars.insert(var, V::S(i));
        match polls(self.f, self.depth, turns, body) {
            Polls::EachTurn => self.poll_interrupt(),
            Polls::Sometimes => self.poll_sometimes(i),
            Polls::Never => {}
        }
        self.depth += 1;
        self.stmt(body)?;
        self.depth -= 1;
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
        let (head, inside, done) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        self.memo.clear();
        // Nothing bounds the turns of such a loop, so each of them looks at the flag.
        self.poll_interrupt();
        let go = self.condition(condition)?;
        self.b.ins().brif(go, inside, &[], done, &[]);
        self.b.seal_block(inside);
        self.b.switch_to_block(inside);
        self.depth += 1;
        self.stmt(body)?;
        self.depth -= 1;
        self.b.ins().jump(head, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.memo.clear();
        Ok(())
    }

    fn if_stmt(&mut self, condition: Expr, then: Stmt, other: Option<Stmt>) -> Gen<()> {
        let c = self.condition(condition)?;
        let (yes, done) = (self.b.create_block(), self.b.create_block());
        let no = if other.is_some() { self.b.create_block() } else { done };
        self.b.ins().brif(c, yes, &[], no, &[]);
        self.b.seal_block(yes);
        self.b.switch_to_block(yes);
        self.stmt(then)?;
        self.b.ins().jump(done, &[]);
        if let Some(other) = other {
            self.b.seal_block(no);
            self.b.switch_to_block(no);
            self.stmt(other)?;
            self.b.ins().jump(done, &[]);
        }
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.memo.clear();
        Ok(())
    }
}

/// When a counted loop looks at the interrupt flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Polls {
    EachTurn,
    /// Once in so many turns that it costs nothing beside their work.
    Sometimes,
    Never,
}

/// A loop around others looks at each turn, an innermost one now and then, and a short one leaves it to those around
/// it: so no nest runs long without a look, and no hot loop pays for many.
fn polls(f: &PrimFunc, depth: usize, turns: Option<i64>, body: Stmt) -> Polls {
    let mut inner = false;
    for_each_stmt(f, body, |s| {
        inner |= matches!(f.stmt(s), StmtData::For { .. } | StmtData::While(..));
    });
    match turns {
        _ if depth == 0 => Polls::EachTurn,
        Some(n) if n <= 16 => Polls::Never,
        _ if inner => Polls::EachTurn,
        Some(n) if n <= 1 << POLL_SHIFT => Polls::Never,
        _ => Polls::Sometimes,
    }
}

/// An innermost loop looks at the flag once in `2 ** POLL_SHIFT` turns.
pub(crate) const POLL_SHIFT: u32 = 16;
