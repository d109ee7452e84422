//! Converts stages made of statements to loop functions. Each stage becomes one opaque block.

use std::sync::Arc;

use pliant_ir::tir::{self, BlockData, Scope, StmtData};
use pliant_tensor::CheckFailure;
use rustc_hash::{FxHashMap, FxHashSet};

use super::TeError;
use super::create_prim_func::{ADVICE_STAGE, PrimFuncCreator, check_term_count};
use super::expr::{Expr, ExprKind, Var};
use super::expr_traversal::post_order;
use super::extern_stage::{Extern, Stmt, exprs_of, for_each};
use super::tensor::{Tensor, TensorOp};

/// The variables that the statements of a stage define.
pub(super) fn defined_vars(stage: &Extern) -> Vec<Var> {
    let mut vars = Vec::new();
    for_each(&stage.body, &mut |s| match s {
        Stmt::For { var, .. } | Stmt::Let(var, _) => vars.push(var.clone()),
        _ => {}
    });
    vars
}

/// Rejects stages that cannot become a block. Such a stage contains a reduction, an access with a
/// wrong number of indices, a store to a tensor that is not a buffer of the stage, or an expression
/// with too many terms when written out as a tree.
pub(super) fn validate(stage: &Extern) -> Result<(), TeError> {
    let name = &stage.name;
    let mut stage_buffers: FxHashSet<&Tensor> = stage.outs.iter().collect();
    for_each(&stage.body, &mut |s| {
        if let Stmt::Alloc(t) = s {
            stage_buffers.insert(t);
        }
    });
    let mut problem: Option<String> = None;
    let mut note = |text: String| {
        problem.get_or_insert(text);
    };
    let mut too_large = Ok(());
    for_each(&stage.body, &mut |s| {
        if let Stmt::Store(to, indices, _) = s {
            if !stage_buffers.contains(to) {
                note(format!(
                    "stage '{name}' stores to {}, which is not one of its own buffers",
                    to.name()
                ));
            } else if to.ndim() != indices.len() {
                let (to, rank, n) = (to.name(), to.ndim(), indices.len());
                note(format!(
                    "{to} has {rank} dims, but stage '{name}' stores to it with {n} indices"
                ));
            }
        }
        for root in exprs_of(s) {
            let checked =
                check_term_count(root, || format!("a value in stage '{name}'"), ADVICE_STAGE);
            if too_large.is_ok() {
                too_large = checked;
            }
            post_order(root, |e| match e.kind() {
                ExprKind::Reduce(_) => {
                    note(format!(
                        "stage '{name}' consists of statements, which must not contain \
                         reductions: make the reduction a te.compute stage of its own"
                    ));
                }
                ExprKind::Load(t, indices) if t.ndim() != indices.len() => {
                    let (t, rank, n) = (t.name(), t.ndim(), indices.len());
                    note(format!(
                        "tensor {t} has {rank} dims, but '{name}' reads it with {n} indices"
                    ));
                }
                _ => {}
            });
        }
    });
    problem.map_or(too_large, |p| Err(TeError(p)))
}

impl PrimFuncCreator<'_> {
    /// Assigns a buffer to each output: the buffer of the output's tensor if that is an argument,
    /// else a buffer to be allocated.
    pub(super) fn extern_buffers(
        &mut self,
        stage: &Arc<Extern>,
        args: &FxHashSet<&Tensor>,
        stages: &[Tensor],
    ) -> Result<Vec<tir::Buffer>, TeError> {
        let mut allocs = Vec::new();
        for (k, out) in stage.outs.iter().enumerate() {
            let same = |t: &&Tensor| matches!(t.op(), TensorOp::Extern(s, i) if Arc::ptr_eq(s, stage) && *i == k);
            let tensors: Vec<&Tensor> = stages.iter().filter(same).collect();
            let arguments: Vec<&&Tensor> = tensors.iter().filter(|t| args.contains(**t)).collect();
            let buffer = match arguments[..] {
                [] => {
                    let buffer = self.buffer(out);
                    allocs.push(buffer);
                    buffer
                }
                [one] => self.buffers[*one],
                _ => {
                    let name = out.name();
                    return Err(TeError(format!(
                        "the arguments of the loop function contain the output '{name}' twice; pass each output once"
                    )));
                }
            };
            self.buffers.insert(out.clone(), buffer);
            for t in tensors {
                self.buffers.insert(t.clone(), buffer);
            }
        }
        Ok(allocs)
    }

    /// Converts a stage to a block without axes.
    pub(super) fn extern_stage(&mut self, stage: &Extern) -> tir::Stmt {
        let body = self.statements(&stage.body);
        let block = BlockData {
            name: stage.name.clone(),
            iters: Vec::new(),
            predicate: None,
            reads: None,
            writes: None,
            allocs: Vec::new(),
            init: None,
            body,
            annotations: Vec::new(),
        };
        self.f.add_stmt(StmtData::Block(Box::new(block)))
    }

    /// Converts a list to one statement. A statement that introduces a variable, buffer or
    /// assertion encloses all statements after it.
    fn statements(&mut self, list: &[Stmt]) -> tir::Stmt {
        let mut open: Vec<(StmtData, Vec<tir::Stmt>)> = Vec::new();
        let mut current: Vec<tir::Stmt> = Vec::new();
        for s in list {
            match s {
                Stmt::Let(var, value) => {
                    let value = self.expr_unshared(value);
                    let var = self.var(var);
                    open.push((
                        StmtData::Let(var, value, self.f.body),
                        std::mem::take(&mut current),
                    ));
                }
                Stmt::Alloc(t) => {
                    let buffer = self.scratch_buffer(t);
                    open.push((StmtData::Alloc(buffer, self.f.body), std::mem::take(&mut current)));
                }
                Stmt::Assert(cond, message) => {
                    let cond = self.expr_unshared(cond);
                    let message = CheckFailure::Shape.mark(message).into();
                    let data = StmtData::Assert(cond, message, self.f.body);
                    open.push((data, std::mem::take(&mut current)));
                }
                other => {
                    let s = self.statement(other);
                    current.push(s);
                }
            }
        }
        while let Some((mut data, before)) = open.pop() {
            let inner = self.f.seq(current);
            match &mut data {
                StmtData::Let(.., body) | StmtData::Alloc(_, body) | StmtData::Assert(.., body) => {
                    *body = inner;
                }
                _ => unreachable!("only these are opened"),
            }
            current = before;
            current.push(self.f.add_stmt(data));
        }
        self.f.seq(current)
    }

    fn statement(&mut self, s: &Stmt) -> tir::Stmt {
        let data = match s {
            Stmt::For { var, extent, kind, body } => {
                let (min, extent) = (self.f.int(0), self.expr_unshared(extent));
                let var = self.var(var);
                let (body, kind) = (self.statements(body), *kind);
                StmtData::For { var, min, extent, kind, body, annotations: Vec::new() }
            }
            Stmt::While(cond, body) => {
                let cond = self.expr_unshared(cond);
                StmtData::While(cond, self.statements(body))
            }
            Stmt::If(cond, then, other) => {
                let cond = self.expr_unshared(cond);
                let then = self.statements(then);
                let other = (!other.is_empty()).then(|| self.statements(other));
                StmtData::If(cond, then, other)
            }
            Stmt::Store(to, indices, value) => {
                let indices: Vec<tir::Expr> =
                    indices.iter().map(|i| self.expr_unshared(i)).collect();
                let value = self.expr_unshared(value);
                return self.f.store(self.buffers[to], &indices, value);
            }
            Stmt::Evaluate(call) => StmtData::Evaluate(self.expr_unshared(call)),
            Stmt::Let(..) | Stmt::Alloc(_) | Stmt::Assert(..) => {
                return self.statements(std::slice::from_ref(s));
            }
        };
        self.f.add_stmt(data)
    }

    fn scratch_buffer(&mut self, t: &Tensor) -> tir::Buffer {
        let buffer = self.buffer(t);
        if t.shape().iter().all(|d| d.as_int().is_some()) {
            self.f.buffer_mut(buffer).scope = Scope::Local;
        }
        buffer
    }

    fn expr_unshared(&mut self, e: &Expr) -> tir::Expr {
        let mut memo = FxHashMap::default();
        self.expr(e, &mut memo)
    }
}
