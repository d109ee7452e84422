//! [`ExecBuilder`]: builds an executable, function by function.

use std::collections::BTreeMap;
use std::sync::Arc;

use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use crate::bytecode_program::{
    Arg, Constant, Executable, FuncDef, FuncId, Instr, LoopFuncInfo, Param, Reg, VmFunction,
};
use crate::bytecode_validator::validate;
use crate::{ArgValue, ExecError};

/// The hash key by which the builder finds equal constants, so that they are stored once. Tensors
/// have no key, because they are not compared.
#[derive(PartialEq, Eq, Hash)]
enum ConstantKey {
    Shape(Arc<[i64]>),
    Int(i64),
    Float(u64),
    Bool(bool),
    Str(Arc<str>),
    DType(DType),
    None,
}

fn constant_key(constant: &Constant) -> Option<ConstantKey> {
    Some(match constant {
        Constant::Tensor(_) => return None,
        Constant::Shape(shape) => ConstantKey::Shape(Arc::clone(shape)),
        Constant::Int(value) => ConstantKey::Int(*value),
        Constant::Float(value) => ConstantKey::Float(value.to_bits()),
        Constant::Bool(value) => ConstantKey::Bool(*value),
        Constant::Str(text) => ConstantKey::Str(Arc::clone(text)),
        Constant::DType(dtype) => ConstantKey::DType(*dtype),
        Constant::None => ConstantKey::None,
    })
}

/// Builds an [`Executable`]: declare functions, emit their instructions, then call [`get`](ExecBuilder::get).
///
/// ```
/// use pliant_exec::{ExecBuilder, Param, Reg};
/// let mut b = ExecBuilder::new();
/// b.begin_function("main", vec![Param::new("x")], "");
/// let args = [b.r(0), b.imm(1)];
/// b.emit_call("my.add", &args, Reg(1));
/// b.emit_ret(Reg(1));
/// b.end_function();
/// let exe = b.get().unwrap();
/// assert!(exe.as_text().contains("my.add"));
/// ```
#[derive(Default)]
pub struct ExecBuilder {
    funcs: Vec<Option<FuncDef>>,
    names: Vec<String>,
    by_name: FxHashMap<String, FuncId>,
    constants: Vec<Constant>,
    shared: FxHashMap<ConstantKey, u32>,
    current: Option<(FuncId, VmFunction)>,
    kernels: Vec<u8>,
    metadata: BTreeMap<String, String>,
    files: Vec<String>,
    file_ids: FxHashMap<String, u32>,
    /// The error of the first wrong use of the builder. [`ExecBuilder::get`] returns this error, so
    /// that the emitting methods need not return a `Result`.
    error: Option<ExecError>,
}

impl ExecBuilder {
    /// Creates a builder of an empty program.
    pub fn new() -> ExecBuilder {
        ExecBuilder::default()
    }

    fn misuse(&mut self, location: &str, message: impl Into<String>) {
        self.error.get_or_insert_with(|| ExecError::invalid(location, message));
    }

    /// Returns the index of the function `name`. If the name is new, declares it. A declared name that is never defined becomes a
    /// packed function.
    pub fn declare_function(&mut self, name: &str) -> FuncId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = self.funcs.len() as FuncId;
        self.funcs.push(None);
        self.names.push(name.to_string());
        self.by_name.insert(name.to_string(), id);
        id
    }

    fn define(&mut self, id: FuncId, def: FuncDef) {
        let slot = &mut self.funcs[id as usize];
        if slot.is_some() {
            let name = def.name().to_string();
            self.misuse(&name, "the function is already defined");
        } else {
            *slot = Some(def);
        }
    }

    /// Adds a compiled loop function to the program and returns its index.
    pub fn loop_func(&mut self, info: LoopFuncInfo) -> FuncId {
        let id = self.declare_function(&info.name);
        self.define(id, FuncDef::LoopFunc(info));
        id
    }

    /// Starts a bytecode function. The values of its parameters are in the first registers.
    pub fn begin_function(
        &mut self,
        name: &str,
        params: Vec<Param>,
        ret_ty: impl Into<String>,
    ) -> FuncId {
        if let Some((_, open)) = &self.current {
            let open = open.name.clone();
            self.misuse(&open, format!("the function '{name}' was begun before the end of this function (call end_function first)"));
            self.end_function();
        }
        let id = self.declare_function(name);
        let function = VmFunction {
            name: name.to_string(),
            num_regs: params.len() as u32,
            params,
            ret_ty: ret_ty.into(),
            ..VmFunction::default()
        };
        self.current = Some((id, function));
        id
    }

    /// Ends the bytecode function that [`ExecBuilder::begin_function`] started.
    pub fn end_function(&mut self) {
        match self.current.take() {
            Some((id, mut function)) => {
                // Remove a line entry without instructions.
                function.set_lines(None);
                function.lines.pop_if(|run| run.start as usize == function.instrs.len());
                self.define(id, FuncDef::Vm(function));
            }
            None => self.misuse("builder", "end_function was called without begin_function"),
        }
    }

    /// Sets the source location `(file, first line, last line)` of the instructions emitted next in this function. Lines are
    /// counted from 1. `None` marks generated instructions.
    pub fn set_lines(&mut self, location: Option<(&str, u32, u32)>) {
        let location = location.map(|(file, first, last)| (self.file(file), first, last));
        if let Some((_, function)) = &mut self.current {
            function.set_lines(location);
        }
    }

    fn file(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.file_ids.get(name) {
            return id;
        }
        let id = self.files.len() as u32;
        self.files.push(name.to_string());
        self.file_ids.insert(name.to_string(), id);
        id
    }

    fn emit(&mut self, instr: Instr) -> usize {
        match &mut self.current {
            Some((_, function)) => {
                function.instrs.push(instr);
                function.instrs.len() - 1
            }
            None => {
                self.misuse(
                    "builder",
                    "an instruction was emitted outside a function (call begin_function first)",
                );
                0
            }
        }
    }

    fn note_register(&mut self, reg: Reg) {
        if let Some((_, function)) = &mut self.current
            && !reg.is_void()
        {
            function.num_regs = function.num_regs.max(reg.0.saturating_add(1));
        }
    }

    /// Emits a call of the function `name`, which is declared if it is new. Returns the index of the instruction.
    pub fn emit_call(&mut self, name: &str, args: &[Arg], dst: Reg) -> usize {
        let func = self.declare_function(name);
        self.emit_call_id(func, args, dst)
    }

    /// Emits a call of a function given by its index. Returns the index of the instruction.
    pub fn emit_call_id(&mut self, func: FuncId, args: &[Arg], dst: Reg) -> usize {
        self.note_register(dst);
        for arg in args {
            if let Some(ArgValue::Reg(reg)) = arg.decode() {
                self.note_register(reg);
            }
        }
        let mut args_start = 0;
        if let Some((_, function)) = &mut self.current {
            args_start = function.args.len() as u32;
            function.args.extend_from_slice(args);
        }
        self.emit(Instr::Call { func, args_start, args_len: args.len() as u32, dst })
    }

    /// Emits a return of register `reg`. Returns the index of the instruction.
    pub fn emit_ret(&mut self, reg: Reg) -> usize {
        self.note_register(reg);
        self.emit(Instr::Ret { reg })
    }

    /// Emits a jump. `offset` is in instructions, relative to the jump itself. Returns the index of the instruction.
    pub fn emit_goto(&mut self, offset: i32) -> usize {
        self.emit(Instr::Goto { offset })
    }

    /// Emits a branch. If `cond` is true, execution continues with the next instruction, otherwise it jumps by `false_offset`
    /// instructions. Returns the index of the instruction.
    pub fn emit_if(&mut self, cond: Reg, false_offset: i32) -> usize {
        self.note_register(cond);
        self.emit(Instr::If { cond, false_offset })
    }

    /// The index that the next emitted instruction will have in the current function.
    pub fn here(&self) -> usize {
        self.current.as_ref().map_or(0, |(_, function)| function.instrs.len())
    }

    /// Sets the target of the jump or branch at index `at` to the instruction with index `target`.
    pub fn patch(&mut self, at: usize, target: usize) {
        let offset = i32::try_from(target as i64 - at as i64);
        let instr = self.current.as_mut().and_then(|(_, f)| f.instrs.get_mut(at));
        match (instr, offset) {
            (Some(Instr::Goto { offset: slot } | Instr::If { false_offset: slot, .. }), Ok(o)) => {
                *slot = o;
            }
            _ => self.misuse(
                "builder",
                format!("the target of instruction {at} cannot be patched, because the instruction is not a jump or branch"),
            ),
        }
    }

    /// Encodes the value of a register as an operand.
    pub fn r(&self, reg: u32) -> Arg {
        Arg::reg(Reg(reg))
    }

    /// Encodes an integer as an operand. An integer that does not fit in 56 bits is added to the constants.
    pub fn imm(&mut self, value: i64) -> Arg {
        Arg::imm(value).unwrap_or_else(|| self.c(Constant::Int(value)))
    }

    /// Adds a constant and encodes it as an operand. Equal constants are shared, except tensors.
    pub fn c(&mut self, constant: Constant) -> Arg {
        Arg::constant(self.constant(constant))
    }

    /// Adds a string constant and encodes it as an operand.
    pub fn str(&mut self, text: &str) -> Arg {
        self.c(Constant::Str(text.into()))
    }

    /// Adds a shape constant and encodes it as an operand.
    pub fn shape(&mut self, dims: &[i64]) -> Arg {
        self.c(Constant::Shape(dims.into()))
    }

    /// Encodes the function `name` as an operand. The name is declared if it is new.
    pub fn f(&mut self, name: &str) -> Arg {
        Arg::func(self.declare_function(name))
    }

    /// Adds a constant and returns its index. Equal constants are shared, except tensors.
    pub fn constant(&mut self, constant: Constant) -> u32 {
        let key = constant_key(&constant);
        if let Some(&index) = key.as_ref().and_then(|key| self.shared.get(key)) {
            return index;
        }
        let index = self.constants.len() as u32;
        if let Some(key) = key {
            self.shared.insert(key, index);
        }
        let constant = match constant {
            Constant::Tensor(tensor) => Constant::Tensor(self.read_only_row_major(tensor)),
            other => other,
        };
        self.constants.push(constant);
        index
    }

    /// Returns a read-only, row-major version of a constant tensor.
    fn read_only_row_major(&mut self, tensor: Tensor) -> Tensor {
        match tensor.to_contiguous() {
            Ok(tensor) => tensor.as_read_only(),
            Err(error) => {
                self.misuse(
                    "builder",
                    format!("the constant tensor cannot be copied to row-major memory: {error}"),
                );
                tensor
            }
        }
    }

    /// Sets the contents of the `kernels` section, from which the compiler restores machine code.
    pub fn set_kernels(&mut self, kernels: Vec<u8>) {
        self.kernels = kernels;
    }

    /// Sets a metadata entry of the executable.
    pub fn set_metadata(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.metadata.insert(key.into(), value.into());
    }

    /// Builds and validates the executable from the declared and emitted functions.
    ///
    /// # Errors
    /// `Invalid` if the builder was misused or the program violates a rule of the bytecode.
    pub fn get(mut self) -> Result<Executable, ExecError> {
        if let Some((_, open)) = &self.current {
            let name = open.name.clone();
            self.misuse(&name, "the function body is not complete: call end_function before get");
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let funcs = self.funcs.into_iter().zip(self.names);
        let exe = Executable {
            funcs: funcs.map(|(def, name)| def.unwrap_or(FuncDef::Packed(name))).collect(),
            constants: self.constants,
            kernels: self.kernels,
            metadata: self.metadata,
            files: self.files,
            by_name: self.by_name,
        };
        validate(&exe)?;
        Ok(exe)
    }
}
