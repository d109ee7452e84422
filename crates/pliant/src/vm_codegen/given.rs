//! Outputs that a function's own caller gave: before a loop function writes into one, the machine sees that it shares no memory
//! with the other operands. Outputs that the program allocates have memory of their own.

use pliant_exec::{KernelArg, KernelInfo, Reg};
use pliant_ir::relax::{Expr, ExprData};
use pliant_pass::PassError;

use super::FunctionGen;

impl FunctionGen<'_> {
    /// Has the machine check the parameters that a call of a loop function writes.
    pub(super) fn check_given(
        &mut self,
        kernel: &KernelInfo,
        args: &[Expr],
        temps: &mut Vec<Reg>,
    ) -> Result<(), PassError> {
        for (i, (&output, kind)) in args.iter().zip(&kernel.args).enumerate() {
            if !matches!(kind, KernelArg::Tensor { written: true, .. }) || !self.is_param(output) {
                continue;
            }
            for (j, (&other, kind)) in args.iter().zip(&kernel.args).enumerate() {
                if let KernelArg::Tensor { strided, .. } = kind
                    && i != j
                {
                    self.check_apart([output, other], *strided, temps)?;
                }
            }
        }
        Ok(())
    }

    fn is_param(&self, e: Expr) -> bool {
        matches!(self.func.expr(e), ExprData::Var(v) if self.func.params().contains(v))
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
