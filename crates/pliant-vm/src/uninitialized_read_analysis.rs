//! Analyzes the first use of a newly allocated tensor. Memory is reused, so a tensor must be zero-filled on allocation if an
//! element may be read before it is written. The linker runs this analysis itself, because the bytecode may come from a
//! hostile file.

use pliant_exec::{Arg, ArgValue, Executable, FuncDef, Instr, Reg, VmFunction};

use crate::executable_linker::LoopFuncTable;

/// Maximum number of instructions that are searched for the first use of a tensor. The limit keeps the time of linking linear.
const LOOKAHEAD: usize = 64;

/// The way in which the first use of a new tensor accesses its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FirstUse {
    /// The first use writes all elements before it reads any, or the tensor is not used at all.
    WritesAll,
    /// The first use may read elements that were never written.
    Unknown,
}

impl FirstUse {
    /// Returns how the first use of the tensor that the call at index `at` of `function` returns accesses the tensor's
    /// elements.
    pub(crate) fn of(
        exe: &Executable,
        loop_funcs: &LoopFuncTable,
        function: &VmFunction,
        at: usize,
    ) -> FirstUse {
        let Some(Instr::Call { dst, .. }) = function.instrs.get(at) else {
            return FirstUse::Unknown;
        };
        if dst.is_void() {
            return FirstUse::WritesAll;
        }
        for instr in function.instrs[at + 1..].iter().take(LOOKAHEAD) {
            match *instr {
                Instr::Ret { reg } if reg == *dst => return FirstUse::Unknown,
                Instr::Ret { .. } => return FirstUse::WritesAll,
                // Another path may use the tensor earlier.
                Instr::If { .. } | Instr::Goto { .. } => return FirstUse::Unknown,
                Instr::Call { func, dst: result, .. } => {
                    let args = function.call_args(instr);
                    let uses = args.iter().filter(|a| is_reg(**a, *dst)).count();
                    if uses > 0 {
                        return call(exe, loop_funcs, (func, args, result), *dst);
                    }
                    if result == *dst {
                        return FirstUse::WritesAll;
                    }
                }
            }
        }
        FirstUse::Unknown
    }
}

fn is_reg(arg: Arg, reg: Reg) -> bool {
    matches!(arg.decode(), Some(ArgValue::Reg(r)) if r == reg)
}

/// Returns how a call accesses the elements of the tensor in register `tensor`, which is one of its arguments.
fn call(
    exe: &Executable,
    loop_funcs: &LoopFuncTable,
    (func, args, result): (u32, &[Arg], Reg),
    tensor: Reg,
) -> FirstUse {
    // `call_tir_dyn(function, arguments..., sizes)` forwards its arguments.
    let (func, args) = match (exe.funcs().get(func as usize), args.split_first()) {
        (Some(FuncDef::Packed(name)), Some((loop_func, rest)))
            if name == "vm.builtin.call_tir_dyn" =>
        {
            match loop_func.decode() {
                Some(ArgValue::Func(index)) => (index, rest),
                _ => return FirstUse::Unknown,
            }
        }
        _ => (func, args),
    };
    // If they have another destination, these builtins return the tensor, so it stays in use.
    let releases = |name: &str| {
        matches!(name, "vm.builtin.kill_object" | "vm.builtin.free_tensor")
            && (result.is_void() || result == tensor)
    };
    let writes_all = match exe.funcs().get(func as usize) {
        Some(FuncDef::Packed(name)) => releases(name),
        Some(FuncDef::LoopFunc(info)) => {
            let mut uses = args.iter().enumerate().filter(|(_, a)| is_reg(**a, tensor));
            let (first, second) = (uses.next(), uses.next());
            second.is_none() && first.is_some_and(|(at, _)| loop_funcs.writes_all(&info.name, at))
        }
        _ => false,
    };
    if writes_all { FirstUse::WritesAll } else { FirstUse::Unknown }
}
