//! Sequences whose result the function returns. A call at their end is followed by the return of its result at once,
//! in each branch of an `If` too: the machine then gives the callee the caller's place.

use pliant_exec::Reg;
use pliant_ir::relax::{Binding, Expr, ExprData, Seq};
use pliant_opt::tail::{is_name, significant, tail_binding};
use pliant_pass::PassError;
use rustc_hash::FxHashMap;

use super::FunctionGen;

impl FunctionGen<'_> {
    /// Emits a sequence and the return of its result.
    pub(super) fn returned(&mut self, seq: Seq) -> Result<(), PassError> {
        let func = self.func;
        let blocks = func.seq(seq).blocks.iter();
        let bindings: Vec<Binding> =
            blocks.flat_map(|&b| func.block(b).bindings.iter().copied()).collect();
        let result = func.seq(seq).result;
        let (body, rest) = bindings.split_at(significant(func, &bindings));
        let last = tail_binding(func, &bindings, result).map(|i| func.expr(bindings[i].value));
        let mut expiring: FxHashMap<usize, Vec<Reg>> = FxHashMap::default();
        if let Some(ExprData::If { cond, then_seq, else_seq }) = last {
            self.bindings(&body[..body.len() - 1], &mut expiring)?;
            let jump_else = self.jump_unless(*cond)?;
            self.returned(*then_seq)?;
            let here = self.exec.here();
            self.exec.patch(jump_else, here);
            self.returned(*else_seq)?;
        } else {
            self.bindings(body, &mut expiring)?;
            // Names of values; the values that the rest kills die with the frame.
            for binding in rest.iter().filter(|b| is_name(func, b)) {
                self.binding(binding)?;
            }
            self.emit_return(result)?;
        }
        self.free.extend(expiring.into_values().flatten());
        Ok(())
    }

    fn emit_return(&mut self, result: Expr) -> Result<(), PassError> {
        let mut temps = Vec::new();
        let result = self.operand(result, &mut temps)?;
        let reg = self.in_register(result, &mut temps);
        self.exec.emit_ret(reg);
        self.free.extend(temps);
        Ok(())
    }
}
