//! Emits run-time checks that an output does not overlap another operand, before a loop function
//! writes to the output. Outputs that the graph function allocates have their own memory and need
//! no check. All other outputs need a check: parameters and their aliases, tuple fields and views,
//! and results of calls and branches.

use pliant_exec::{LoopFuncInfo, LoopFuncParam, Reg};
use pliant_ir::relax::visit::bindings;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_opt::common::operators_after_lowering::VM_ALLOC_TENSOR;
use pliant_pass::PassError;
use rustc_hash::FxHashSet;

use super::FunctionGen;

/// Returns the variables that hold tensors allocated by the function, including copies of such
/// variables under other names.
pub(super) fn allocated(func: &Function) -> FxHashSet<Var> {
    let mut allocated_vars = FxHashSet::default();
    for (_, b) in bindings(func) {
        let is_allocated = match func.expr(b.value) {
            ExprData::Call { callee: Callee::Op(op), .. } => *op == VM_ALLOC_TENSOR,
            ExprData::Var(v) => allocated_vars.contains(v),
            _ => false,
        };
        if is_allocated {
            allocated_vars.insert(b.var);
        }
    }
    allocated_vars
}

impl FunctionGen<'_> {
    /// Emits the alias checks for a call of a loop function.
    pub(super) fn check_output_aliases(
        &mut self,
        kernel: &LoopFuncInfo,
        args: &[Expr],
        temps: &mut Vec<Reg>,
    ) -> Result<(), PassError> {
        let pairs = || args.iter().copied().zip(&kernel.args).enumerate();
        for (i, (output, kind)) in pairs() {
            if !self.is_external_output(output, kind) {
                continue;
            }
            for (j, (other, kind)) in pairs() {
                // A pair of outputs is checked once, for the first of them.
                let already_checked = j < i && self.is_external_output(other, kind);
                if let LoopFuncParam::Tensor { strided, .. } = kind
                    && i != j
                    && !already_checked
                {
                    self.emit_alias_check([output, other], *strided, temps)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the loop function writes to the operand `e`, and the graph function did not allocate the memory of `e`.
    fn is_external_output(&self, e: Expr, kind: &LoopFuncParam) -> bool {
        let is_allocated =
            matches!(self.func.expr(e), ExprData::Var(v) if self.allocated.contains(v));
        matches!(kind, LoopFuncParam::Tensor { written: true, .. }) && !is_allocated
    }

    /// Emits a check that two operands do not overlap. `strided` states whether the loop function
    /// accepts strides for the second operand.
    fn emit_alias_check(
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
