//! Sequences that compute the result of the function, and the use of that result.
//!
//! A separate function returns it. A call at the end is directly followed by the return of its
//! result, in each branch of an `If` too: the VM then reuses the caller's frame for the callee. For
//! a function that is inlined into a loop, the result decides whether the loop continues, or is the
//! state of the next iteration.

use pliant_exec::{Arg, Reg};
use pliant_ir::relax::{Binding, Expr, ExprData, Seq};
use pliant_opt::analysis::liveness::AT_RESULT;
use pliant_opt::analysis::loop_closures::loop_operands;
use pliant_opt::analysis::tail_binding::{is_rename, len_without_trailing_kills, tail_binding};
use pliant_pass::PassError;
use rustc_hash::FxHashMap;

use super::{FunctionGen, Operand};

/// The use of a function's result.
pub(super) enum Exit {
    /// The function returns it.
    Return,
    /// It decides whether a loop continues. The jumps, to be patched, lead to the end of the loop
    /// and to its body.
    Condition { leave: Vec<usize>, enter: Vec<usize> },
    /// It is the state of the next iteration, which starts at `start`. `checked` if it was checked
    /// to be a tuple of the state.
    State { state: Vec<Reg>, start: usize, checked: bool },
}

impl FunctionGen<'_> {
    /// Emits a sequence and the use of its result. `last` if the code after the function is
    /// emitted next.
    pub(super) fn returned(&mut self, seq: Seq, last: bool) -> Result<(), PassError> {
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
            self.at(func.var(branch.var).span);
            let jump_else = self.jump_unless(*cond)?;
            let held = self.held.len();
            self.returned(*then_seq, false)?;
            self.held.truncate(held);
            let here = self.exec.here();
            self.exec.patch(jump_else, here);
            self.returned(*else_seq, last)?;
        } else {
            self.bindings(body, &mut expiring)?;
            // Renamings of values; the values that the remaining bindings kill die with a frame.
            let dies = matches!(self.exit, Exit::Return);
            for binding in rest.iter().filter(|b| !dies || is_rename(func, b)) {
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
            Exit::Condition { mut leave, mut enter } => {
                let result = self.operand(result, &mut temps)?;
                let reg = self.in_register(result, &mut temps);
                self.release_held(&[reg]);
                leave.push(self.exec.emit_if(reg, 1));
                if !last {
                    enter.push(self.exec.emit_goto(1));
                }
                self.exit = Exit::Condition { leave, enter };
            }
            Exit::State { state, start, checked } => {
                let fields = self.next_state(result, state.len(), checked, &mut temps)?;
                self.move_state(&fields, &state);
                self.release_held(&state);
                let jump = self.exec.emit_goto(0);
                self.exec.patch(jump, start);
                self.exit = Exit::State { state, start, checked };
            }
        }
        self.free.extend(temps);
        Ok(())
    }

    /// The locations of the values of the next iteration's state.
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
            let (reg, index) = (self.fresh(), self.exec.imm(i));
            self.exec.emit_call("vm.builtin.tuple_getitem", &[tuple, index], reg);
            self.held.push(reg);
            temps.push(reg);
            fields.push(Operand::Reg(reg));
        }
        Ok(fields)
    }

    /// Moves values into the registers of the state as a parallel move: some of them may be
    /// old state.
    fn move_state(&mut self, fields: &[Operand], state: &[Reg]) {
        let mut temps = Vec::new();
        let mut moves = Vec::with_capacity(fields.len());
        for (&field, &to) in fields.iter().zip(state) {
            match field {
                Operand::Reg(from) if from == to => {}
                Operand::Reg(from) if state.contains(&from) => {
                    let temp = self.fresh();
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

    /// Clears the registers whose values would have died with a frame, except those in `but`.
    fn release_held(&mut self, but: &[Reg]) {
        self.release(self.held.clone(), but);
    }

    /// Clears registers, except those in `but`.
    pub(super) fn release(&mut self, mut held: Vec<Reg>, but: &[Reg]) {
        held.sort_unstable_by_key(|reg| reg.0);
        held.dedup();
        held.retain(|reg| !but.contains(reg));
        self.kill(&held);
    }

    /// Finds the fields of the next iteration's state that can be computed directly into the
    /// registers of the old state, because these are read for the last time before.
    pub(super) fn plan_state(&mut self) {
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
            let Some((seq, at)) = self.live.definition(v).filter(|_| self.live.root(v) == v) else {
                continue;
            };
            if self.makes_loop(seq, at) {
                continue;
            }
            let last = self.live.last_read(param);
            let once = fields
                .iter()
                .filter(|&&f| matches!(func.expr(f), ExprData::Var(w) if self.live.root(*w) == v));
            if seq == body
                && last.is_none_or(|last| last != AT_RESULT && last <= at)
                && once.count() == 1
            {
                self.in_place.insert(v, reg);
            }
        }
    }

    /// Whether the binding at that position is a loop, which keeps its result in its own register.
    fn makes_loop(&self, seq: Seq, at: usize) -> bool {
        let blocks = self.func.seq(seq).blocks.iter();
        let mut bindings = blocks.flat_map(|&b| &self.func.block(b).bindings);
        bindings.nth(at).is_some_and(|b| loop_operands(self.func, b.value).is_some())
    }
}
