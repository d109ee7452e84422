//! Outputs that a graph function has not allocated itself: parameters and their aliases, fields
//! and views, results of calls and branches. Before a loop function writes to one, the VM checks
//! that it shares no memory with the other operands. Outputs that the function allocates have
//! their own memory.

use pliant_exec::{LoopFuncInfo, LoopFuncParam, Reg};
use pliant_ir::relax::visit::bindings;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_opt::common::lowered_ops::VM_ALLOC_TENSOR;
use pliant_pass::PassError;
use rustc_hash::FxHashSet;

use super::FunctionGen;

/// The variables that are tensors allocated by the function, including renamed ones.
pub(super) fn allocated(func: &Function) -> FxHashSet<Var> {
    let mut found = FxHashSet::default();
    for (_, b) in bindings(func) {
        let own = match func.expr(b.value) {
            ExprData::Call { callee: Callee::Op(op), .. } => *op == VM_ALLOC_TENSOR,
            ExprData::Var(v) => found.contains(v),
            _ => false,
        };
        if own {
            found.insert(b.var);
        }
    }
    found
}

impl FunctionGen<'_> {
    /// Emits checks of the memory that a call of a loop function writes to.
    pub(super) fn check_given(
        &mut self,
        kernel: &LoopFuncInfo,
        args: &[Expr],
        temps: &mut Vec<Reg>,
    ) -> Result<(), PassError> {
        let pairs = || args.iter().copied().zip(&kernel.args).enumerate();
        for (i, (output, kind)) in pairs() {
            if !self.is_given(output, kind) {
                continue;
            }
            for (j, (other, kind)) in pairs() {
                // A pair of outputs is checked once, for the first of them.
                let seen = j < i && self.is_given(other, kind);
                if let LoopFuncParam::Tensor { strided, .. } = kind
                    && i != j
                    && !seen
                {
                    self.check_apart([output, other], *strided, temps)?;
                }
            }
        }
        Ok(())
    }

    /// Whether an operand is written to and was not allocated by this function.
    fn is_given(&self, e: Expr, kind: &LoopFuncParam) -> bool {
        let own = matches!(self.func.expr(e), ExprData::Var(v) if self.allocated.contains(v));
        matches!(kind, LoopFuncParam::Tensor { written: true, .. }) && !own
    }

    fn check_apart(
        &mut self,
        pair: [Expr; 2],
        strided: bool,
        temps: &mut Vec<Reg>,
    ) -> Result<(), PassError> {
        let mut operands = Vec::with_capacity(5);
        for e in pair {
            operands.push(self.operand(e, temps)?.arg());
        }
        operands.push(self.exec.imm(i64::from(strided)));
        for e in pair {
            let name = match self.func.expr(e) {
                ExprData::Var(v) => format!("'{}'", self.func.var(*v).name),
                _ => "another operand".to_string(),
            };
            operands.push(self.exec.str(&name));
        }
        self.exec.emit_call("vm.builtin.check_apart", &operands, Reg::VOID);
        Ok(())
    }
}
