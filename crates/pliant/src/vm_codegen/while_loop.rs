//! `R.while_loop` as jumps. The state stays in registers; each turn's state is gone when the next one is there, and so
//! is the first one, unless it is read after the loop.

use pliant_exec::{Arg, Reg};
use pliant_ir::op::WHILE_LOOP;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_opt::liveness::AT_RESULT;
use pliant_opt::tail::is_kill;
use pliant_pass::PassError;

use super::{FunctionGen, Operand};

/// The operands of a loop: the condition, the body, then the first state.
pub(super) fn operands(func: &Function, value: Expr) -> Option<Vec<Expr>> {
    match func.expr(value) {
        ExprData::Call { callee: Callee::Op(WHILE_LOOP), args, .. } => {
            Some(func.list(*args).to_vec())
        }
        _ => None,
    }
}

impl FunctionGen<'_> {
    /// Emits the loop that `var` is bound to; returns the register of its result.
    pub(super) fn while_loop(&mut self, var: Var, operands: &[Expr]) -> Result<Reg, PassError> {
        let [cond, body, first @ ..] = operands else {
            return Err(PassError::internal("a while_loop without condition and body"));
        };
        let functions = self.dying(var, &operands[..2]);
        let mut old = self.dying(var, first);
        old.retain(|reg| !self.holds(&operands[..2], *reg));
        let checked = self.returns_tuple(*body, first.len());
        let mut temps = Vec::new();
        let cond = self.loop_function(*cond, &mut temps)?;
        let body = self.loop_function(*body, &mut temps)?;
        let mut state = Vec::with_capacity(first.len());
        for &value in first {
            let value = self.operand(value, &mut temps)?.arg();
            let reg = self.fresh();
            self.exec.emit_call("vm.builtin.copy", &[value], reg);
            state.push(reg);
        }
        self.kill(&old);
        let result = self.fresh();
        let start = self.exec.here();
        // Nobody reads the result before the loop is over, so it serves as the condition too.
        self.call_loop_function(&cond, &state, result);
        let jump_end = self.exec.emit_if(result, 1);
        match state[..] {
            [one] => self.call_loop_function(&body, &state, one),
            _ => {
                self.call_loop_function(&body, &state, result);
                if !checked {
                    self.check_state(result, state.len());
                }
                for (i, &reg) in (0i64..).zip(&state) {
                    let index = self.exec.imm(i);
                    let args = [Arg::reg(result), index];
                    self.exec.emit_call("vm.builtin.tuple_getitem", &args, reg);
                }
            }
        }
        let jump_start = self.exec.emit_goto(0);
        self.exec.patch(jump_start, start);
        let here = self.exec.here();
        self.exec.patch(jump_end, here);
        self.loop_result(&state, result);
        self.kill(&functions);
        self.free.extend(temps);
        self.free.extend(state);
        Ok(result)
    }

    /// Whether the body's type says that it returns a tuple of so many values, which it has checked itself.
    fn returns_tuple(&self, body: Expr, count: usize) -> bool {
        let TypeData::Callable { ret, .. } = self.func.ty(body) else { return false };
        matches!(self.func.types.get(*ret), TypeData::Tuple(fields) if fields.len() == count)
    }

    fn check_state(&mut self, result: Reg, count: usize) {
        let len = self.exec.imm(count as i64);
        let context = self.exec.str("the result of the loop's body");
        let args = [Arg::reg(result), len, context];
        self.exec.emit_call("vm.builtin.check_tuple_info", &args, Reg::VOID);
    }

    fn loop_result(&mut self, state: &[Reg], result: Reg) {
        match state {
            [one] => {
                self.exec.emit_call("vm.builtin.copy", &[Arg::reg(*one)], result);
            }
            many => {
                let args: Vec<Arg> = many.iter().map(|&r| Arg::reg(r)).collect();
                self.exec.emit_call("vm.builtin.make_tuple", &args, result);
            }
        }
        // A register that is free keeps its value until it is written again.
        self.kill(state);
    }

    fn kill(&mut self, regs: &[Reg]) {
        for &reg in regs {
            self.exec.emit_call("vm.builtin.kill_object", &[Arg::reg(reg)], Reg::VOID);
        }
    }

    /// The registers of those operands that nothing reads after the loop `var`: only kills come then.
    fn dying(&self, var: Var, operands: &[Expr]) -> Vec<Reg> {
        let Some((seq, index)) = self.live.definition(var) else { return Vec::new() };
        let mut skip = index + 1;
        let mut end = index;
        for &block in &self.func.seq(seq).blocks {
            let bindings = &self.func.block(block).bindings;
            let rest = &bindings[skip.min(bindings.len())..];
            skip = skip.saturating_sub(bindings.len());
            let kills = rest.iter().take_while(|b| is_kill(self.func, b)).count();
            end += kills;
            if kills < rest.len() {
                break;
            }
        }
        let mut out = Vec::new();
        for &e in operands {
            let ExprData::Var(v) = *self.func.expr(e) else { continue };
            let root = self.live.root(v);
            let home = self.live.definition(root).map_or(self.func.body(), |d| d.0);
            let last = self.live.last_read(root);
            if home == seq
                && last.is_some_and(|last| last != AT_RESULT && last <= end)
                && let Some(&Operand::Reg(reg)) = self.places.get(&root)
                && !out.contains(&reg)
            {
                out.push(reg);
            }
        }
        out
    }

    /// Whether one of the operands is in that register.
    fn holds(&self, operands: &[Expr], reg: Reg) -> bool {
        operands.iter().any(|&e| match *self.func.expr(e) {
            ExprData::Var(v) => {
                matches!(self.places.get(&v), Some(Operand::Reg(r)) if *r == reg)
            }
            _ => false,
        })
    }

    /// What is called each turn: a function of the program by name, or a function value.
    fn loop_function(&mut self, e: Expr, temps: &mut Vec<Reg>) -> Result<LoopFunction, PassError> {
        match self.func.expr(e) {
            ExprData::Global(name) | ExprData::Extern(name) => {
                Ok(LoopFunction::Named(self.func.str(*name).to_string()))
            }
            _ => Ok(LoopFunction::Value(self.operand(e, temps)?.arg())),
        }
    }

    fn call_loop_function(&mut self, function: &LoopFunction, state: &[Reg], dst: Reg) {
        let state = state.iter().map(|&reg| Arg::reg(reg));
        match function {
            LoopFunction::Named(name) => {
                let args: Vec<Arg> = state.collect();
                self.exec.emit_call(name, &args, dst);
            }
            LoopFunction::Value(value) => {
                let args: Vec<Arg> = [*value].into_iter().chain(state).collect();
                self.exec.emit_call("vm.builtin.invoke_closure", &args, dst);
            }
        }
    }
}

enum LoopFunction {
    Named(String),
    Value(Arg),
}
