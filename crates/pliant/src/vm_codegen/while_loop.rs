//! Lowers `R.while_loop` to branches. The loop state stays in registers. The state of an iteration is released as soon as the
//! state of the next iteration exists. The initial state is released in the same way, unless it is read after the loop. The
//! condition and the body are inlined into the loop if [`InlinedFunctions`](super::loop_inlining) selects them, otherwise called.

use std::sync::Arc;

use pliant_exec::{Arg, Reg};
use pliant_ir::relax::{Expr, ExprData, TypeData, Var};
use pliant_opt::analysis::liveness::AT_RESULT;
use pliant_opt::analysis::result_binding::is_kill;
use pliant_pass::PassError;

use super::tail_position::Exit;
use super::{FunctionGen, Operand};

impl FunctionGen<'_> {
    /// Emits the `R.while_loop` that is bound to `var`. Returns the register of its result.
    pub(super) fn while_loop(&mut self, var: Var, operands: &[Expr]) -> Result<Reg, PassError> {
        let [cond, body, initial @ ..] = operands else {
            return Err(PassError::internal(format!(
                "a call of R.while_loop must have a condition and a body as operands, but has {} operands",
                operands.len()
            )));
        };
        let functions = self.last_used_registers(var, &operands[..2]);
        let mut old = self.last_used_registers(var, initial);
        old.retain(|reg| !self.operands_include(&operands[..2], *reg));
        let checked = self.returns_tuple(*body, initial.len());
        let mut temps = Vec::new();
        let cond = self.loop_function(*cond, &mut temps)?;
        let body = self.loop_function(*body, &mut temps)?;
        let mut state = Vec::with_capacity(initial.len());
        for &value in initial {
            let value = self.operand(value, &mut temps)?.arg();
            let reg = self.alloc_register();
            self.exec.emit_call("vm.builtin.copy", &[value], reg);
            state.push(reg);
        }
        self.kill(&old);
        let result = self.alloc_register();
        let start = self.exec.here();
        let exit_jumps = self.loop_condition(&cond, &state, result)?;
        self.set_location(self.func.var(var).span);
        self.loop_body(&body, &state, result, start, checked)?;
        let here = self.exec.here();
        for jump in exit_jumps {
            self.exec.patch(jump, here);
        }
        self.loop_result(&state, result);
        self.kill(&functions);
        self.free.extend(temps);
        self.free.extend(state);
        Ok(result)
    }

    /// Emits the loop condition. Returns the jumps to the end of the loop, to be patched.
    fn loop_condition(
        &mut self,
        cond: &LoopFunction,
        state: &[Reg],
        result: Reg,
    ) -> Result<Vec<usize>, PassError> {
        if let LoopFunction::Inline(name, captured) = cond {
            let exit = Exit::Condition { exit_jumps: Vec::new(), body_jumps: Vec::new() };
            let exit = self.inline_function(name, state, captured, exit)?;
            let Exit::Condition { exit_jumps, body_jumps } = exit else {
                return Err(PassError::internal(
                    "the code of an inlined while_loop condition does not end with jumps to the body and to the end of the loop",
                ));
            };
            let here = self.exec.here();
            for jump in body_jumps {
                self.exec.patch(jump, here);
            }
            return Ok(exit_jumps);
        }
        // The register of the loop's result is free until the loop ends, so it holds the condition.
        self.call_loop_function(cond, state, result);
        Ok(vec![self.exec.emit_if(result, 1)])
    }

    /// Emits the body of the loop, and the jump back to the instruction `start`, at which the next iteration begins.
    fn loop_body(
        &mut self,
        body: &LoopFunction,
        state: &[Reg],
        result: Reg,
        start: usize,
        checked: bool,
    ) -> Result<(), PassError> {
        if let LoopFunction::Inline(name, captured) = body {
            let exit = Exit::State { state: state.to_vec(), start, checked };
            return self.inline_function(name, state, captured, exit).map(drop);
        }
        match *state {
            [one] => self.call_loop_function(body, state, one),
            _ => {
                self.call_loop_function(body, state, result);
                if !checked {
                    self.check_state(Arg::reg(result), state.len());
                }
                for (i, &reg) in (0i64..).zip(state) {
                    let index = self.exec.imm(i);
                    let args = [Arg::reg(result), index];
                    self.exec.emit_call("vm.builtin.tuple_getitem", &args, reg);
                }
            }
        }
        let jump = self.exec.emit_goto(0);
        self.exec.patch(jump, start);
        Ok(())
    }

    /// Emits the code of another function inline, with its parameters in the given registers.
    fn inline_function(
        &mut self,
        name: &str,
        state: &[Reg],
        captured: &[Reg],
        exit: Exit,
    ) -> Result<Exit, PassError> {
        let func = self.module.get(name).and_then(|f| f.as_relax());
        let func = func.ok_or_else(|| {
            PassError::internal(format!(
                "the function '{name}' of a while_loop does not exist in the module"
            ))
        })?;
        let mut inner = FunctionGen::new(
            (self.module, self.kernels),
            func,
            self.inlined,
            self.sources,
            &mut *self.exec,
        );
        let params = func.params().iter().zip(state.iter().chain(captured));
        inner.locations = params.map(|(&param, &reg)| (param, Operand::Reg(reg))).collect();
        (inner.free, inner.next) = (std::mem::take(&mut self.free), self.next);
        inner.pinned = captured.to_vec();
        if matches!(exit, Exit::Condition { .. }) {
            // The body reads the state after the condition.
            inner.pinned.extend(state);
        }
        inner.exit = exit;
        inner.plan_in_place_state();
        inner.tail_sequence(func.body(), true).map_err(|e| e.in_function(name))?;
        let (free, next, exit) = (inner.free, inner.next, inner.exit);
        (self.free, self.next) = (free, next);
        Ok(exit)
    }

    /// Whether the type of the loop body guarantees a tuple of `count` values as its result. If so, the loop needs no check of
    /// the result, since the body checks it.
    fn returns_tuple(&self, body: Expr, count: usize) -> bool {
        let TypeData::Callable { ret, .. } = self.func.ty(body) else { return false };
        matches!(self.func.types.get(*ret), TypeData::Tuple(fields) if fields.len() == count)
    }

    /// Emits a run-time check that a value is a tuple of `count` fields.
    pub(super) fn check_state(&mut self, state: Arg, count: usize) {
        let len = self.exec.imm(count as i64);
        let context = self.exec.str("the result of the loop's body");
        let args = [state, len, context];
        self.exec.emit_call("vm.builtin.check_tuple_info", &args, Reg::VOID);
    }

    /// Emits the code that creates the result of the loop from the final state, and clears the state.
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
        // A free register keeps its value until it is written again.
        self.kill(state);
    }

    /// Emits instructions that clear registers.
    pub(super) fn kill(&mut self, regs: &[Reg]) {
        for &reg in regs {
            self.exec.emit_call("vm.builtin.kill_object", &[Arg::reg(reg)], Reg::VOID);
        }
    }

    /// Returns the registers of the operands that are not read after the loop bound to `var`. Kills (bindings that clear the
    /// registers of dead values) directly after the loop do not count as reads.
    fn last_used_registers(&self, var: Var, operands: &[Expr]) -> Vec<Reg> {
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
            if home == seq && last.is_some_and(|last| last != AT_RESULT && last <= end) {
                let regs = match (self.locations.get(&root), self.captured.get(&root)) {
                    (Some(&Operand::Reg(reg)), _) => vec![reg],
                    (_, Some(regs)) => regs.clone(),
                    _ => continue,
                };
                out.extend(regs.into_iter().filter(|reg| !out.contains(reg)).collect::<Vec<_>>());
            }
        }
        out.retain(|reg| !self.pinned.contains(reg));
        out
    }

    /// Whether one of the operands is in the register `reg`.
    fn operands_include(&self, operands: &[Expr], reg: Reg) -> bool {
        operands.iter().any(|&e| match *self.func.expr(e) {
            ExprData::Var(v) => {
                matches!(self.locations.get(&v), Some(Operand::Reg(r)) if *r == reg)
            }
            _ => false,
        })
    }

    /// Determines how the condition or the body `e` of a loop is called: inlined, by name, or as a function value.
    fn loop_function(&mut self, e: Expr, temps: &mut Vec<Reg>) -> Result<LoopFunction, PassError> {
        match self.func.expr(e) {
            ExprData::Global(name) if self.inlined.contains(self.func.str(*name)) => {
                Ok(LoopFunction::Inline(self.func.str(*name).clone(), Vec::new()))
            }
            ExprData::Global(name) | ExprData::Extern(name) => {
                Ok(LoopFunction::Named(self.func.str(*name).clone()))
            }
            ExprData::Var(v) if let Some(regs) = self.captured.get(v) => {
                Ok(LoopFunction::Inline(self.closures[v].name.clone(), regs.clone()))
            }
            _ => Ok(LoopFunction::Value(self.operand(e, temps)?.arg())),
        }
    }

    /// Copies the captured values of a loop's closure to registers, instead of creating the closure. Returns `None` if
    /// the closure must be created.
    pub(super) fn keep_captured(&mut self, var: Var) -> Result<Option<Vec<Reg>>, PassError> {
        let Some(closure) = self.closures.get(&var) else { return Ok(None) };
        if !self.inlined.contains(&closure.name) {
            return Ok(None);
        }
        let (mut temps, mut regs) = (Vec::new(), Vec::new());
        for value in closure.captured.clone() {
            let value = self.operand(value, &mut temps)?.arg();
            let reg = self.alloc_register();
            self.exec.emit_call("vm.builtin.copy", &[value], reg);
            regs.push(reg);
        }
        self.free.extend(temps);
        self.captured.insert(var, regs.clone());
        Ok(Some(regs))
    }

    fn call_loop_function(&mut self, function: &LoopFunction, state: &[Reg], dst: Reg) {
        let state = state.iter().map(|&reg| Arg::reg(reg));
        match function {
            LoopFunction::Named(name) | LoopFunction::Inline(name, _) => {
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

/// How the condition or the body of a loop is called.
enum LoopFunction {
    /// The function is called by its name.
    Named(Arc<str>),
    /// The function with this name is inlined into the loop. The registers contain its captured values.
    Inline(Arc<str>, Vec<Reg>),
    /// A function value, such as a closure, is called.
    Value(Arg),
}
