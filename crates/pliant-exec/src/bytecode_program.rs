//! The bytecode program in memory: functions, instructions and constants.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use crate::instruction_source_locations::LineRun;

/// The number of a register in the frame of a bytecode function. The first registers contain the
/// parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Reg(pub u32);

impl Reg {
    /// The destination register of a call whose result is discarded.
    pub const VOID: Reg = Reg(u32::MAX);

    /// Whether this register is [`Reg::VOID`], which discards results.
    pub fn is_void(self) -> bool {
        self == Reg::VOID
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_void() { f.pad("%void") } else { f.pad(&format!("%{}", self.0)) }
    }
}

/// The index of a function in [`Executable::funcs`].
pub type FuncId = u32;

/// An encoded operand of a call: the kind in the top byte and a payload of 56 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arg(pub(crate) u64);

/// The value of a call operand, decoded from an [`Arg`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgValue {
    /// The operand is the value of a register.
    Reg(Reg),
    /// The operand is a signed 56-bit integer.
    Imm(i64),
    /// The operand is a constant, given by its index in the constant table.
    Const(u32),
    /// The operand is a function, given by its index in the function table.
    Func(FuncId),
}

const PAYLOAD_BITS: u32 = 56;
const PAYLOAD: u64 = (1 << PAYLOAD_BITS) - 1;

impl Arg {
    /// Encodes the operand "value of register `reg`".
    pub fn reg(reg: Reg) -> Arg {
        Arg(u64::from(reg.0))
    }

    /// Encodes an integer operand. Returns `None` if the integer does not fit in 56 bits; the
    /// caller must then add a constant.
    pub fn imm(value: i64) -> Option<Arg> {
        let shift = 64 - PAYLOAD_BITS;
        let fits = value << shift >> shift == value;
        fits.then_some(Arg(1 << PAYLOAD_BITS | value as u64 & PAYLOAD))
    }

    /// Encodes a constant operand, given its index in the constant table.
    pub fn constant(index: u32) -> Arg {
        Arg(2 << PAYLOAD_BITS | u64::from(index))
    }

    /// Encodes a function operand, given its index in the function table.
    pub fn func(index: FuncId) -> Arg {
        Arg(3 << PAYLOAD_BITS | u64::from(index))
    }

    /// Decodes the operand; `None` if the bits are invalid.
    pub fn decode(self) -> Option<ArgValue> {
        let payload = self.0 & PAYLOAD;
        let index = u32::try_from(payload);
        match self.0 >> PAYLOAD_BITS {
            0 => index.ok().map(|i| ArgValue::Reg(Reg(i))),
            1 => {
                let shift = 64 - PAYLOAD_BITS;
                Some(ArgValue::Imm((payload << shift) as i64 >> shift))
            }
            2 => index.ok().map(ArgValue::Const),
            3 => index.ok().map(ArgValue::Func),
            _ => None,
        }
    }
}

impl fmt::Debug for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.decode())
    }
}

/// A bytecode instruction. Jump offsets count instructions, relative to the jump itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instr {
    /// Calls a function with operands from the operand table.
    Call {
        /// The called function, as an index into the function table of the executable.
        func: FuncId,
        /// The index, in [`VmFunction::args`], of the call's first operand.
        args_start: u32,
        /// The number of operands of the call.
        args_len: u32,
        /// The register that receives the result of the call.
        dst: Reg,
    },
    /// Returns the value of a register to the caller.
    Ret {
        /// The register whose value is returned.
        reg: Reg,
    },
    /// Continues with the next instruction if the condition is true, else jumps.
    If {
        /// The register that contains the condition: a bool or integer scalar, or a tensor with one
        /// element.
        cond: Reg,
        /// The number of instructions to jump if the condition is false, relative to the branch.
        false_offset: i32,
    },
    /// Jumps unconditionally within the bytecode function.
    Goto {
        /// The jump offset in instructions, relative to the jump.
        offset: i32,
    },
}

/// A parameter of a bytecode function: its name and its type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Param {
    /// The parameter's name in the source.
    pub name: String,
    /// The type of the parameter as text, for error messages, such as `Tensor(("n", 4), "float32")`. May be empty.
    pub ty: String,
}

impl Param {
    /// Creates a parameter without a type.
    pub fn new(name: impl Into<String>) -> Param {
        Param { name: name.into(), ty: String::new() }
    }

    /// Creates a parameter with the given type.
    pub fn typed(name: impl Into<String>, ty: impl Into<String>) -> Param {
        Param { name: name.into(), ty: ty.into() }
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.ty.is_empty() { Ok(()) } else { write!(f, ": {}", self.ty) }
    }
}

/// A function that consists of bytecode, as opposed to loop functions, builtins and packed functions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VmFunction {
    /// The name of the bytecode function.
    pub name: String,
    /// The parameters of the function. Their values are passed in the first registers.
    pub params: Vec<Param>,
    /// The type of the function's result as text, for error messages. May be empty.
    pub ret_ty: String,
    /// The number of registers in a frame of the function.
    pub num_regs: u32,
    /// The bytecode instructions of the function.
    pub instrs: Vec<Instr>,
    /// The operands of all calls in the function's body.
    pub args: Vec<Arg>,
    /// The source locations of the instructions, in the order of the instructions.
    pub lines: Vec<LineRun>,
}

/// The arguments that a loop function accepts for one parameter. The VM checks every argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopFuncParam {
    /// The parameter accepts any scalar or row-major tensor.
    Any,
    /// The parameter accepts tensors that have the properties in the fields of this variant.
    Tensor {
        /// The required element type, if any.
        dtype: Option<DType>,
        /// The required rank of the tensor; `None` accepts any rank.
        ndim: Option<u8>,
        /// Whether the function writes to the tensor. If it does, read-only tensors are rejected.
        written: bool,
        /// Whether the loop function uses the strides. If it does not, the VM passes a strided
        /// tensor as a row-major copy.
        strided: bool,
    },
    /// The parameter accepts an integer in the range of this dtype.
    Int(DType),
    /// The parameter accepts a float, or an integer, which is converted.
    Float,
    /// The parameter accepts only a bool.
    Bool,
}

/// The signature of a compiled loop function. The machine code is restored from the `kernels`
/// section of the executable.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoopFuncInfo {
    /// The name of the loop function.
    pub name: String,
    /// For each parameter of the loop function, the arguments that it accepts.
    pub args: Vec<LoopFuncParam>,
    /// The error messages of the function's checks. If a call returns status `k > 0`, the check
    /// with message `checks[k - 1]` failed.
    pub checks: Vec<String>,
}

/// An entry of the function table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FuncDef {
    /// A function that consists of bytecode.
    Vm(VmFunction),
    /// A compiled loop function, with its signature.
    LoopFunc(LoopFuncInfo),
    /// A builtin, or a packed function (a Rust or Python function), looked up by this name when the executable is linked.
    Packed(String),
}

impl FuncDef {
    /// The name under which the function table lists the function.
    pub fn name(&self) -> &str {
        match self {
            FuncDef::Vm(f) => &f.name,
            FuncDef::LoopFunc(k) => &k.name,
            FuncDef::Packed(name) => name,
        }
    }
}

/// A compile-time constant of a program.
#[derive(Clone, Debug)]
pub enum Constant {
    /// A tensor constant, which is read-only.
    Tensor(Tensor),
    /// A shape constant (a list of dims).
    Shape(Arc<[i64]>),
    /// An integer constant.
    Int(i64),
    /// A float constant.
    Float(f64),
    /// A bool constant.
    Bool(bool),
    /// A string constant.
    Str(Arc<str>),
    /// An element type (dtype) as a constant.
    DType(DType),
    /// The constant that stands for "no value", such as an absent operand.
    None,
}

/// The metadata key under which the execution mode is stored. See [`Executable::exec_mode`].
pub const EXEC_MODE: &str = "exec_mode";

/// A validated program: functions, constants and the `kernels` section. An executable is immutable,
/// so several VMs can share it.
///
/// # Example
/// ```
/// use pliant_exec::{ExecBuilder, Param, Reg};
///
/// let mut b = ExecBuilder::new();
/// b.begin_function("main", vec![Param::new("x")], "");
/// b.emit_ret(Reg(0));
/// b.end_function();
/// let executable = b.get().unwrap();
/// assert!(executable.as_text().contains("main"));
/// ```
#[derive(Debug)]
pub struct Executable {
    pub(crate) funcs: Vec<FuncDef>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) kernels: Vec<u8>,
    pub(crate) metadata: BTreeMap<String, String>,
    /// The source files to which the line tables of functions refer, by index.
    pub(crate) files: Vec<String>,
    pub(crate) by_name: FxHashMap<String, FuncId>,
}

impl Executable {
    /// The function table of the program.
    pub fn funcs(&self) -> &[FuncDef] {
        &self.funcs
    }

    /// The constant table of the program.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// The contents of the `kernels` section, from which the compiler restores the machine code of loop functions.
    pub fn kernels(&self) -> &[u8] {
        &self.kernels
    }

    /// Metadata of the program: pairs of strings, such as the compilation target.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The execution mode of bytecode functions: `bytecode` if the VM interprets them, or `compiled` if they are compiled to
    /// machine code.
    pub fn exec_mode(&self) -> &str {
        self.metadata.get(EXEC_MODE).map_or("bytecode", |mode| mode)
    }

    /// Returns the index of the function `name`; `None` if there is no such function.
    pub fn find(&self, name: &str) -> Option<FuncId> {
        self.by_name.get(name).copied()
    }

    /// Returns the bytecode function `name`; `None` if there is no such function.
    pub fn vm_function(&self, name: &str) -> Option<&VmFunction> {
        match &self.funcs[self.find(name)? as usize] {
            FuncDef::Vm(function) => Some(function),
            _ => None,
        }
    }

    /// The bytecode functions, in table order.
    pub fn vm_functions(&self) -> impl Iterator<Item = &VmFunction> {
        self.funcs.iter().filter_map(|f| if let FuncDef::Vm(f) = f { Some(f) } else { None })
    }

    /// Returns a copy of the program whose section `kernels` is empty.
    #[must_use]
    pub fn without_loop_functions(&self) -> Executable {
        Executable {
            funcs: self.funcs.clone(),
            constants: self.constants.clone(),
            kernels: Vec::new(),
            metadata: self.metadata.clone(),
            files: self.files.clone(),
            by_name: self.by_name.clone(),
        }
    }

    /// Replaces the check messages of the loop function `name`, because recompiled code may number its checks differently. Does
    /// nothing if there is no such function.
    pub fn set_loop_func_checks(&mut self, name: &str, checks: Vec<String>) {
        let id = self.by_name.get(name).copied();
        if let Some(FuncDef::LoopFunc(info)) = id.and_then(|id| self.funcs.get_mut(id as usize)) {
            info.checks = checks;
        }
    }

    /// The compiled loop functions, in table order.
    pub fn loop_funcs(&self) -> impl Iterator<Item = &LoopFuncInfo> {
        self.funcs.iter().filter_map(|f| if let FuncDef::LoopFunc(k) = f { Some(k) } else { None })
    }

    /// The names of the packed functions, in table order.
    pub fn packed_names(&self) -> impl Iterator<Item = &str> {
        self.funcs.iter().filter_map(|f| if let FuncDef::Packed(n) = f { Some(&**n) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_round_trip() {
        for value in [0, 1, -1, (1 << 55) - 1, -(1 << 55)] {
            assert_eq!(Arg::imm(value).unwrap().decode(), Some(ArgValue::Imm(value)));
        }
        for value in [1 << 55, i64::MAX, i64::MIN] {
            assert!(Arg::imm(value).is_none());
        }
        assert_eq!(Arg::reg(Reg(7)).decode(), Some(ArgValue::Reg(Reg(7))));
        assert_eq!(Arg::constant(3).decode(), Some(ArgValue::Const(3)));
        assert_eq!(Arg::func(u32::MAX).decode(), Some(ArgValue::Func(u32::MAX)));
        assert_eq!(Arg(9 << 56).decode(), None);
        assert_eq!(Arg(1 << 40).decode(), None);
    }
}
