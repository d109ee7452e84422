//! Emits sequences in tail position, which compute the result of a function, and then the code that
//! consumes the result.
//!
//! A function with its own frame returns the result. A tail call is directly followed by the return
//! of its result, in each branch of an `If` too, so that the VM reuses the caller's frame for the
//! callee. For a function inlined into a loop, the result is the loop condition or the state of the
//! next iteration.

use pliant_exec::{Arg, Reg};
use pliant_ir::relax::{Binding, Expr, ExprData, Seq};
use pliant_opt::analysis::liveness::AT_RESULT;
use pliant_opt::analysis::result_binding::{is_rename, len_without_trailing_kills, tail_binding};
use pliant_opt::analysis::while_loop_closures::loop_operands;
use pliant_pass::PassError;
use rustc_hash::FxHashMap;

use super::{FunctionGen, Operand};

/// How the code that follows the body of a function consumes the function's result.
pub(super) enum Exit {
    /// The function returns the result to its caller.
    Return,
    /// The function is inlined as the condition of a loop, and its result decides whether the loop
    /// continues. The fields are the positions of jumps to the end of the loop and to its body,
    /// which are patched later.
    Condition { exit_jumps: Vec<usize>, body_jumps: Vec<usize> },
    /// The result is the loop state of the next iteration, which starts at the instruction `start`.
    /// `checked` states whether the result is known to be a tuple with one field for each register
    /// of `state`.
    State { state: Vec<Reg>, start: usize, checked: bool },
}

impl FunctionGen<'_> {
    /// Emits a sequence in tail position and the code that consumes its result. `last` states
    /// whether the code after the function is emitted next, so that no jump to it is needed.
    pub(super) fn tail_sequence(&mut self, seq: Seq, last: bool) -> Result<(), PassError> {
        let func = self.func;
        let blocks = func.seq(seq).blocks.iter();
        let bindings: Vec<Binding> =
            blocks.flat_map(|&b| func.block(b).bindings.iter().copied()).collect();
        let result = func.seq(seq).result;
        let (body, rest) = bindings.split_at(len_without_trailing_kills(func, &bindings));
        let tail = tail_binding(func, &bindings, result).map(|i| func.expr(bindings[i].value));
        let mut expiring: FxHashMap<usize, Vec<Reg>> = FxHashMap::default();
        if let Some(ExprData::If { cond, then_seq, else_seq }) = tail {
            let (branch, before) = body.split_last().expect("the branch is the last binding");
            self.bindings(before, &mut expiring)?;
            self.set_location(func.var(branch.var).span);
            let jump_else = self.jump_unless(*cond)?;
            let unkilled = self.unkilled.len();
            self.tail_sequence(*then_seq, false)?;
            self.unkilled.truncate(unkilled);
            let here = self.exec.here();
            self.exec.patch(jump_else, here);
            self.tail_sequence(*else_seq, last)?;
        } else {
            self.bindings(body, &mut expiring)?;
            // Trailing kills are skipped if the function returns, since its frame is cleared then.
            // Trailing renames are needed for the result.
            let returns = matches!(self.exit, Exit::Return);
            for binding in rest.iter().filter(|b| !returns || is_rename(func, b)) {
                self.binding(binding)?;
            }
            self.emit_exit(result, last)?;
        }
        self.free.extend(expiring.into_values().flatten());
        Ok(())
    }

    fn emit_exit(&mut self, result: Expr, last: bool) -> Result<(), PassError> {
        let mut temps = Vec::new();
        match std::mem::replace(&mut self.exit, Exit::Return) {
            Exit::Return => {
                let result = self.operand(result, &mut temps)?;
                let reg = self.in_register(result, &mut temps);
                self.exec.emit_ret(reg);
            }
            Exit::Condition { mut exit_jumps, mut body_jumps } => {
                let result = self.operand(result, &mut temps)?;
                let reg = self.in_register(result, &mut temps);
                self.kill_unkilled(&[reg]);
                exit_jumps.push(self.exec.emit_if(reg, 1));
                if !last {
                    body_jumps.push(self.exec.emit_goto(1));
                }
                self.exit = Exit::Condition { exit_jumps, body_jumps };
            }
            Exit::State { state, start, checked } => {
                let fields = self.next_state(result, state.len(), checked, &mut temps)?;
                self.move_state(&fields, &state);
                self.kill_unkilled(&state);
                let jump = self.exec.emit_goto(0);
                self.exec.patch(jump, start);
                self.exit = Exit::State { state, start, checked };
            }
        }
        self.free.extend(temps);
        Ok(())
    }

    /// Returns the registers or constants that contain the fields of the next iteration's state.
    fn next_state(
        &mut self,
        result: Expr,
        count: usize,
        checked: bool,
        temps: &mut Vec<Reg>,
    ) -> Result<Vec<Operand>, PassError> {
        if count == 1 {
            return Ok(vec![self.operand(result, temps)?]);
        }
        if let Some(fields) = self.func.tuple_fields(result).filter(|f| f.len() == count) {
            return fields.iter().map(|&field| self.operand(field, temps)).collect();
        }
        let tuple = self.operand(result, temps)?.arg();
        if !checked {
            self.check_state(tuple, count);
        }
        let mut fields = Vec::with_capacity(count);
        for i in 0..count as i64 {
            let (reg, index) = (self.alloc_register(), self.exec.imm(i));
            self.exec.emit_call("vm.builtin.tuple_getitem", &[tuple, index], reg);
            self.unkilled.push(reg);
            temps.push(reg);
            fields.push(Operand::Reg(reg));
        }
        Ok(fields)
    }

    /// Moves values into the registers of the loop state. This is a parallel move, since the values
    /// may be in registers of the current state.
    fn move_state(&mut self, fields: &[Operand], state: &[Reg]) {
        let mut temps = Vec::new();
        let mut moves = Vec::with_capacity(fields.len());
        for (&field, &to) in fields.iter().zip(state) {
            match field {
                Operand::Reg(from) if from == to => {}
                Operand::Reg(from) if state.contains(&from) => {
                    let temp = self.alloc_register();
                    self.exec.emit_call("vm.builtin.copy", &[Arg::reg(from)], temp);
                    temps.push(temp);
                    moves.push((Arg::reg(temp), to));
                }
                other => moves.push((other.arg(), to)),
            }
        }
        for (from, to) in moves {
            self.exec.emit_call("vm.builtin.copy", &[from], to);
        }
        self.kill(&temps);
        self.free.extend(temps);
    }

    /// Emits instructions that clear the registers in `unkilled`, which no kill (a binding that clears the register of a dead
    /// value) clears. Registers in `except` keep their values.
    fn kill_unkilled(&mut self, except: &[Reg]) {
        self.kill_except(self.unkilled.clone(), except);
    }

    /// Emits instructions that clear the registers `regs`, except those in `except`.
    pub(super) fn kill_except(&mut self, mut regs: Vec<Reg>, except: &[Reg]) {
        regs.sort_unstable_by_key(|reg| reg.0);
        regs.dedup();
        regs.retain(|reg| !except.contains(reg));
        self.kill(&regs);
    }

    /// Finds the fields of the next iteration's state that can be computed directly into the
    /// registers of the current state, because those registers are not read afterwards.
    pub(super) fn plan_in_place_state(&mut self) {
        let Exit::State { state, .. } = &self.exit else { return };
        let (func, state) = (self.func, state.clone());
        let body = func.body();
        let result = func.seq(body).result;
        let fields = match func.tuple_fields(result) {
            Some(fields) if state.len() != 1 && fields.len() == state.len() => fields.to_vec(),
            _ if state.len() == 1 => vec![result],
            _ => return,
        };
        for (i, (&field, &reg)) in fields.iter().zip(&state).enumerate() {
            let ExprData::Var(v) = *func.expr(field) else { continue };
            let param = func.params()[i];
            let Some((seq, index)) = self.live.definition(v).filter(|_| self.live.root(v) == v)
            else {
                continue;
            };
            if self.is_loop(seq, index) {
                continue;
            }
            let last = self.live.last_read(param);
            let uses = fields
                .iter()
                .filter(|&&f| matches!(func.expr(f), ExprData::Var(w) if self.live.root(*w) == v));
            if seq == body
                && last.is_none_or(|last| last != AT_RESULT && last <= index)
                && uses.count() == 1
            {
                self.in_place.insert(v, reg);
            }
        }
    }

    /// Whether the binding at index `index` of the sequence is a loop, which keeps its result in
    /// its own register.
    fn is_loop(&self, seq: Seq, index: usize) -> bool {
        let blocks = self.func.seq(seq).blocks.iter();
        let mut bindings = blocks.flat_map(|&b| &self.func.block(b).bindings);
        bindings.nth(index).is_some_and(|b| loop_operands(self.func, b.value).is_some())
    }
}
