//! The validator. It checks every rule of the bytecode without trusting the input:
//!
//! - Function names are nonempty and unique. A function has at most [`MAX_REGS`] registers, including parameters.
//! - A body ends in a return or a jump. Every jump target is in the same body.
//! - Every index of a function, constant, operand or register is valid. Every operand can be decoded.
//! - The operands of all calls are adjacent in the operand table, in the order of the calls. Calls do not share operands.
//! - Calls of bytecode functions, loop functions and builtins have the right number of operands.
//! - Line entries are in the order of instructions and refer to existing files.
//! - Every path writes a register before it reads it.
//!
//! The memory safety of the VM relies on the first five rules. The last rule only reports errors early, because registers are
//! initially empty. It is skipped for bodies with too many branches.
//!
//! Shapes, strides and attributes of kernel calls are known only at run time: `pliant_kernel_api` checks them when a kernel is
//! called (`kernel_call.rs`).

use rustc_hash::FxHashSet;

use crate::bytecode_program::{
    Arg, ArgValue, Constant, Executable, FuncDef, Instr, Reg, VmFunction,
};
use crate::{ExecError, builtin_arity};

/// Maximum number of registers of a bytecode function, including parameters.
pub const MAX_REGS: u32 = 1 << 22;
/// Maximum number of bitset words that the definite-assignment analysis stores. Larger functions are not analyzed.
const MAX_ANALYSIS_WORDS: usize = 1 << 24;
/// Maximum number of bitset words, instructions and operands that the definite-assignment analysis visits. The analysis of a
/// function stops, without an error, when this number is exceeded.
const MAX_ANALYSIS_STEPS: usize = 1 << 28;

/// Checks that an executable obeys all rules of the bytecode.
pub(crate) fn validate(exe: &Executable) -> Result<(), ExecError> {
    let too_many = |n: usize| u32::try_from(n).is_err();
    if too_many(exe.funcs.len()) || too_many(exe.constants.len()) {
        return Err(ExecError::invalid(
            "executable",
            "the function table or the constant table has too many entries",
        ));
    }
    let mut names = FxHashSet::default();
    for def in &exe.funcs {
        if def.name().is_empty() {
            return Err(ExecError::invalid(
                "executable",
                "a function in the function table has no name",
            ));
        }
        if !names.insert(def.name()) {
            return Err(ExecError::invalid(
                def.name(),
                "several functions in the function table have the same name",
            ));
        }
    }
    for (i, constant) in exe.constants.iter().enumerate() {
        if let Constant::Tensor(tensor) = constant {
            let invalid = |problem: &str| Err(ExecError::invalid(format!("constant {i}"), problem));
            if !tensor.is_contiguous() {
                return invalid("the constant tensor must be row-major, but has other strides");
            }
            if !tensor.is_read_only() {
                return invalid("the constant tensor must be read-only, but is writable");
            }
        }
    }
    exe.vm_functions().try_for_each(|function| Checker { exe, function }.check())
}

struct Checker<'a> {
    exe: &'a Executable,
    function: &'a VmFunction,
}

impl Checker<'_> {
    fn fail(&self, at: usize, message: impl Into<String>) -> ExecError {
        let function = &self.function.name;
        ExecError::invalid(format!("{function}, instruction {at}"), message)
    }

    fn check(&self) -> Result<(), ExecError> {
        let f = self.function;
        let whole = |message: String| Err(ExecError::invalid(&*f.name, message));
        if f.num_regs > MAX_REGS {
            return whole(format!(
                "the function has {} registers, more than the maximum of {MAX_REGS}",
                f.num_regs
            ));
        }
        if f.params.len() > f.num_regs as usize {
            return whole(format!(
                "the function has {} parameters, but only {} registers to hold them",
                f.params.len(),
                f.num_regs
            ));
        }
        if i32::try_from(f.instrs.len()).is_err() || u32::try_from(f.args.len()).is_err() {
            return whole("the function body has too many instructions or operands".into());
        }
        if !matches!(f.instrs.last(), Some(Instr::Ret { .. } | Instr::Goto { .. })) {
            return whole("the function body does not end in a return or a jump".into());
        }
        // If calls shared operands, a small file could expand to a program of any size.
        let mut operands_end = 0usize;
        for (at, instr) in f.instrs.iter().enumerate() {
            match *instr {
                Instr::Call { func, args_start, args_len, dst } => {
                    if args_start as usize != operands_end {
                        let message = "the operands of the call are not directly after the operands of the previous call";
                        return Err(self.fail(at, message));
                    }
                    if !dst.is_void() {
                        self.register(at, dst)?;
                    }
                    let args = self.operands(at, args_start, args_len)?;
                    operands_end += args.len();
                    self.call(at, func, args)?;
                }
                Instr::Ret { reg } => self.register(at, reg)?,
                Instr::If { cond, false_offset } => {
                    self.register(at, cond)?;
                    self.target(at, false_offset)?;
                }
                Instr::Goto { offset } => {
                    self.target(at, offset)?;
                }
            }
        }
        let mut next = 0;
        for run in &f.lines {
            if run.start < next || run.start as usize >= f.instrs.len() {
                return whole(
                    "the entries of the line table are not in the order of instructions".into(),
                );
            }
            if run.line != 0 && run.file as usize >= self.exe.files.len() || run.last < run.line {
                return whole(
                    "an entry of the line table refers to a file that does not exist, or its last line precedes its first"
                        .into(),
                );
            }
            next = run.start + 1;
        }
        if operands_end != f.args.len() {
            return whole("the operand table has operands that belong to no call".into());
        }
        self.definite_assignment()
    }

    fn register(&self, at: usize, reg: Reg) -> Result<(), ExecError> {
        if reg.0 < self.function.num_regs {
            return Ok(());
        }
        Err(self.fail(
            at,
            format!(
                "register {reg} does not exist: the function has {} registers",
                self.function.num_regs
            ),
        ))
    }

    fn target(&self, at: usize, offset: i32) -> Result<usize, ExecError> {
        let target = at as i64 + i64::from(offset);
        usize::try_from(target).ok().filter(|&t| t < self.function.instrs.len()).ok_or_else(|| {
            self.fail(at, format!("the jump target {target} is outside the function body"))
        })
    }

    fn operands(&self, at: usize, start: u32, len: u32) -> Result<&[Arg], ExecError> {
        let (start, len) = (start as usize, len as usize);
        start.checked_add(len).and_then(|end| self.function.args.get(start..end)).ok_or_else(|| {
            self.fail(
                at,
                "the call refers to operands after the end of the function's list of operands",
            )
        })
    }

    fn call(&self, at: usize, func: u32, args: &[Arg]) -> Result<(), ExecError> {
        let Some(def) = self.exe.funcs.get(func as usize) else {
            return Err(self.fail(
                at,
                format!(
                    "the call refers to entry {func} of the function table, which does not exist"
                ),
            ));
        };
        for arg in args {
            let message = match arg.decode() {
                Some(ArgValue::Reg(reg)) => {
                    self.register(at, reg)?;
                    continue;
                }
                Some(ArgValue::Imm(_)) => continue,
                Some(ArgValue::Const(i)) if (i as usize) < self.exe.constants.len() => continue,
                Some(ArgValue::Func(i)) if (i as usize) < self.exe.funcs.len() => continue,
                Some(ArgValue::Const(i)) => format!("the constant table has no constant {i}"),
                Some(ArgValue::Func(i)) => format!("the function table has no function {i}"),
                None => "an operand of the call has an encoding that cannot be decoded".to_string(),
            };
            return Err(self.fail(at, message));
        }
        let (min, max) = match def {
            FuncDef::Vm(callee) => (callee.params.len(), callee.params.len()),
            FuncDef::LoopFunc(info) => (info.args.len(), info.args.len()),
            FuncDef::Packed(name) => match builtin_arity(name) {
                Some(arity) => (arity.min as usize, arity.max as usize),
                None => return Ok(()),
            },
        };
        if args.len() < min || args.len() > max {
            let takes = match max {
                _ if min == max => format!("{min}"),
                _ if max == u32::MAX as usize => format!("at least {min}"),
                _ => format!("{min} to {max}"),
            };
            let given = args.len();
            let message =
                format!("function '{}' takes {takes} operands, but {given} were given", def.name());
            return Err(self.fail(at, message));
        }
        Ok(())
    }

    /// Checks that every path writes a register before it reads it.
    fn definite_assignment(&self) -> Result<(), ExecError> {
        let f = self.function;
        let words = (f.num_regs as usize).div_ceil(64);
        let starts = self.block_starts()?;
        if starts.len().saturating_mul(words) > MAX_ANALYSIS_WORDS {
            return Ok(());
        }
        // The registers written on every path to each block that the analysis has found so far. `None` if no path was found yet.
        let mut entry: Vec<Option<Vec<u64>>> = vec![None; starts.len()];
        let mut first = vec![0u64; words];
        (0..f.params.len()).for_each(|i| set(&mut first, i as u32));
        entry[0] = Some(first);
        let mut work = vec![0usize];
        let mut steps = 0usize;
        while let Some(block) = work.pop() {
            let Some(mut written) = entry[block].clone() else { continue };
            let end = starts.get(block + 1).copied().unwrap_or(f.instrs.len());
            steps = steps.saturating_add(2 * words);
            for at in starts[block]..end {
                steps = steps.saturating_add(1 + self.step(at, &mut written)?);
            }
            if steps > MAX_ANALYSIS_STEPS {
                return Ok(());
            }
            for target in self.successors(end - 1) {
                let Ok(next) = starts.binary_search(&target) else { continue };
                if meet(&mut entry[next], &written) {
                    work.push(next);
                }
            }
        }
        Ok(())
    }

    fn block_starts(&self) -> Result<Vec<usize>, ExecError> {
        let mut starts = vec![0];
        for (at, instr) in self.function.instrs.iter().enumerate() {
            match *instr {
                Instr::If { false_offset: offset, .. } | Instr::Goto { offset } => {
                    starts.push(self.target(at, offset)?);
                    starts.push(at + 1);
                }
                Instr::Ret { .. } => starts.push(at + 1),
                Instr::Call { .. } => {}
            }
        }
        starts.retain(|&at| at < self.function.instrs.len());
        starts.sort_unstable();
        starts.dedup();
        Ok(starts)
    }

    fn successors(&self, at: usize) -> Vec<usize> {
        let jump = |offset: i32| (at as i64 + i64::from(offset)) as usize;
        match self.function.instrs[at] {
            Instr::Ret { .. } => vec![],
            Instr::Goto { offset } => vec![jump(offset)],
            Instr::If { false_offset, .. } => vec![at + 1, jump(false_offset)],
            Instr::Call { .. } => vec![at + 1],
        }
    }

    /// Checks that one instruction reads only registers in `written`, and adds the register that the instruction writes to
    /// `written`. Returns the number of operands.
    fn step(&self, at: usize, written: &mut [u64]) -> Result<usize, ExecError> {
        let read = |reg: Reg, written: &[u64]| {
            if is_set(written, reg.0) {
                return Ok(());
            }
            Err(self.fail(at, format!("register {reg} is read before it is written")))
        };
        match self.function.instrs[at] {
            Instr::Call { args_start, args_len, dst, .. } => {
                let args = self.operands(at, args_start, args_len)?;
                for arg in args {
                    if let Some(ArgValue::Reg(reg)) = arg.decode() {
                        read(reg, written)?;
                    }
                }
                if !dst.is_void() {
                    set(written, dst.0);
                }
                Ok(args.len())
            }
            Instr::Ret { reg } | Instr::If { cond: reg, .. } => read(reg, written).map(|()| 0),
            Instr::Goto { .. } => Ok(0),
        }
    }
}

fn set(bits: &mut [u64], index: u32) {
    bits[index as usize / 64] |= 1 << (index % 64);
}

fn is_set(bits: &[u64], index: u32) -> bool {
    bits[index as usize / 64] >> (index % 64) & 1 != 0
}

/// Merges the registers written on two paths: intersects the bitset `into` with `other`. Returns whether `into` changed.
fn meet(into: &mut Option<Vec<u64>>, other: &[u64]) -> bool {
    let Some(bits) = into else {
        *into = Some(other.to_vec());
        return true;
    };
    let mut changed = false;
    for (bit, &other) in bits.iter_mut().zip(other) {
        changed |= *bit & !other != 0;
        *bit &= other;
    }
    changed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rustc_hash::FxHashMap;

    use super::*;

    fn program(args: Vec<Arg>, ranges: &[(u32, u32)]) -> Executable {
        let call =
            |&(args_start, args_len)| Instr::Call { func: 1, args_start, args_len, dst: Reg(0) };
        let mut instrs: Vec<Instr> = ranges.iter().map(call).collect();
        instrs.push(Instr::Ret { reg: Reg(0) });
        let name = "main".to_string();
        let main = VmFunction { name, num_regs: 1, instrs, args, ..VmFunction::default() };
        Executable {
            funcs: vec![FuncDef::Vm(main), FuncDef::Packed("user.f".into())],
            constants: Vec::new(),
            kernels: Vec::new(),
            metadata: BTreeMap::new(),
            files: Vec::new(),
            by_name: FxHashMap::default(),
        }
    }

    #[test]
    fn calls_cannot_share_or_skip_operands() {
        let args = || (0..4).map(|i| Arg::imm(i).unwrap()).collect::<Vec<_>>();
        assert!(validate(&program(args(), &[(0, 2), (2, 0), (2, 2)])).is_ok());
        for (ranges, expected) in [
            (&[(0, 4), (0, 4)][..], "are not directly after"),
            (&[(0, 2), (1, 3)], "are not directly after"),
            (&[(2, 2), (0, 2)], "are not directly after"),
            (&[(0, 2), (3, 1)], "are not directly after"),
            (&[(0, 2)], "belong to no call"),
            (&[(0, 5)], "after the end of the function's list of operands"),
        ] {
            let error = validate(&program(args(), ranges)).unwrap_err().to_string();
            assert!(error.contains(expected), "{ranges:?}: {error}");
        }
    }
}
