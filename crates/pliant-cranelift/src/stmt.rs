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

    /// A loop from `lo` to `hi`, which is entered if `runs` holds. `turns` is the number of iterations if it is constant.
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
        // The number of iterations is not bounded, so each of them polls the interrupt flag.
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

/// The iterations in which a counted loop polls the interrupt flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Polls {
    EachTurn,
    /// Once in `2 ** POLL_SHIFT` iterations, so that the poll costs nothing compared to their work.
    Sometimes,
    Never,
}

/// Decides where a nest polls: outermost loops and loops around others in each iteration, innermost loops once in
/// `2 ** POLL_SHIFT` iterations, and nests of fewer iterations not at all.
fn polls(f: &PrimFunc, depth: usize, iterations: Option<i64>, body: Stmt) -> Polls {
    let mut inner = false;
    for_each_stmt(f, body, |s| {
        inner |= matches!(f.stmt(s), StmtData::For { .. } | StmtData::While(..));
    });
    match iterations {
        _ if depth == 0 => Polls::EachTurn,
        Some(n) if unpolled(f, n, body).is_some() => Polls::Never,
        _ if inner => Polls::EachTurn,
        _ => Polls::Sometimes,
    }
}

/// The iterations of a loop and of the loops in its body if they run without a poll. `None` if the loop polls.
fn unpolled(f: &PrimFunc, iterations: i64, body: Stmt) -> Option<i64> {
    let all = iterations.max(1).saturating_mul(unpolled_inside(f, body));
    (all <= 1 << POLL_SHIFT).then_some(all)
}

/// The iterations in a statement between two polls; at least 1.
fn unpolled_inside(f: &PrimFunc, s: Stmt) -> i64 {
    let of = |s: &Stmt| unpolled_inside(f, *s);
    match f.stmt(s) {
        // Loops of unknown extent poll.
        StmtData::For { extent, body, .. } => {
            f.as_int(*extent).and_then(|n| unpolled(f, n, *body)).unwrap_or(1)
        }
        StmtData::Seq(list) => list.iter().map(of).fold(0, i64::saturating_add).max(1),
        StmtData::If(_, then, other) => of(then).max(other.as_ref().map_or(1, of)),
        StmtData::Let(_, _, body) | StmtData::Alloc(_, body) | StmtData::Assert(_, _, body) => {
            of(body)
        }
        _ => 1,
    }
}

/// Innermost loops poll once in `2 ** POLL_SHIFT` iterations.
pub(crate) const POLL_SHIFT: u32 = 16;
