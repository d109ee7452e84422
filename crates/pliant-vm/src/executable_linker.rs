//! Links an executable: resolves indices and names in its bytecode to pointers, once per VM. [`LoopFuncTable`] contains the machine
//! code of the loop functions; [`LoopFuncTable::replace`] swaps the code of a function while programs run.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use pliant_exec::abi::LoopFn;
use pliant_exec::native_body_abi::{BODY_PIECE, BodyFn};
use pliant_exec::{Arg, ArgValue, Executable, FuncDef, Instr, LoopFuncInfo, VmFunction};
use rustc_hash::FxHashMap;

use crate::builtins::{Builtin, BuiltinFn, BuiltinKind, alloc_tensor_unwritten, find_builtin};
use crate::host_function_registry::{HostFunc, find_func};
use crate::loop_function_code::CodeSlot;
use crate::runtime_value::FuncTarget;
use crate::uninitialized_read_analysis::FirstUse;
use crate::virtual_machine::Inner;
use crate::{FuncValue, PackedFunc, Value, VmError};

/// Machine code for an executable: its loop functions, and optionally its bytecode functions (native bodies). The table also
/// keeps the owners of the code alive.
#[derive(Default, Clone)]
pub struct LoopFuncTable {
    functions: FxHashMap<String, Arc<CodeSlot>>,
    bodies: FxHashMap<String, Arc<[BodyFn]>>,
    full_writes: FxHashMap<String, Box<[bool]>>,
    owners: Vec<Arc<dyn Any + Send + Sync>>,
}

impl LoopFuncTable {
    /// Creates a table without functions.
    pub fn new() -> LoopFuncTable {
        LoopFuncTable::default()
    }

    /// Adds the machine code of the loop function `name`.
    ///
    /// # Safety
    /// `function` must follow the ABI, accept arguments as described in the executable, and stay
    /// callable as long as the owners passed to [`LoopFuncTable::keep_alive`] exist.
    pub unsafe fn insert(&mut self, name: impl Into<String>, function: LoopFn) {
        self.functions.insert(name.into(), Arc::new(CodeSlot::new(function)));
    }

    /// Replaces the machine code of the loop function `name`, also in all VMs and clones that share the table, while they run.
    /// Calls in progress finish in the old code. `messages` are the error messages of the new code's checks, by their status, and
    /// `owner` keeps the code alive. Returns whether the table contains the function.
    ///
    /// # Safety
    /// `function` must follow the ABI, accept arguments as described in the executable, write the parameters that
    /// [`LoopFuncTable::set_full_writes`] declares, and stay callable as long as `owner` exists.
    pub unsafe fn replace(
        &self,
        name: &str,
        function: LoopFn,
        messages: Arc<[Arc<str>]>,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> bool {
        let slot = self.functions.get(name);
        slot.map(|slot| slot.replace(function, messages, owner)).is_some()
    }

    /// Adds the native body (the machine code) of the bytecode function `name`, split into pieces: machine functions for
    /// consecutive ranges of the function's instructions. A VM uses native bodies only if every bytecode function of the
    /// executable has one.
    ///
    /// # Safety
    /// The pieces must follow the ABI in `pliant_exec::native_body_abi` and be generated from
    /// exactly this function of this executable. They must stay callable as long as the owners
    /// passed to [`LoopFuncTable::keep_alive`] exist.
    pub unsafe fn insert_body(&mut self, name: impl Into<String>, pieces: Arc<[BodyFn]>) {
        self.bodies.insert(name.into(), pieces);
    }

    /// Declares which parameters of the loop function `name` are written completely before any element is read, in every successful
    /// call. A tensor whose first use is such a parameter is not zero-filled on allocation, so a wrong declaration exposes old
    /// memory contents. Default: none.
    pub fn set_full_writes(&mut self, name: impl Into<String>, params: impl Into<Box<[bool]>>) {
        self.full_writes.insert(name.into(), params.into());
    }

    /// Whether the loop function `name` writes parameter `param` completely before it reads it.
    pub(crate) fn writes_all(&self, name: &str, param: usize) -> bool {
        self.full_writes.get(name).and_then(|params| params.get(param)).copied().unwrap_or(false)
    }

    /// Keeps `owner` (such as code memory or a library) alive as long as a VM uses the table.
    pub fn keep_alive(&mut self, owner: Arc<dyn Any + Send + Sync>) {
        self.owners.push(owner);
    }

    /// Returns the current machine code of the loop function `name`; `None` if it was not added.
    pub fn get(&self, name: &str) -> Option<LoopFn> {
        self.functions.get(name).map(|slot| slot.load().function)
    }

    /// Returns the number of loop functions in the table.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether the table contains no loop functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

impl fmt::Debug for LoopFuncTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopFuncTable({} functions)", self.functions.len())
    }
}

/// A linked operand: a register index, or the index of a linked constant if the top bit is set.
#[derive(Clone, Copy)]
pub(crate) struct Operand(pub(crate) u32);

const CONST_BIT: u32 = 1 << 31;

impl Operand {
    #[inline]
    pub(crate) fn get<'a>(self, regs: &'a [Value], consts: &'a [Value]) -> &'a Value {
        if self.0 & CONST_BIT == 0 {
            &regs[self.0 as usize]
        } else {
            &consts[(self.0 & !CONST_BIT) as usize]
        }
    }
}

/// The destination register of a call whose result is discarded.
pub(crate) const VOID: u32 = u32::MAX;

/// The target of a linked call.
#[derive(Clone, Copy)]
pub(crate) enum Callee {
    /// The call executes a builtin that is a plain function of its operands, as opposed to one that calls a closure or loop
    /// function.
    Builtin(&'static Builtin, BuiltinFn),
    /// The call executes a compiled loop function, the one with this index in [`Linked::loop_funcs`].
    LoopFunc(u32),
    /// The call is a `call_tir_dyn`: it executes the loop function in its first operand. The dims of the shape in its last operand
    /// become trailing integer arguments.
    LoopFuncDyn,
    /// The call executes the packed function or library function with this index in [`Linked::packed`].
    Packed(u32),
    /// The call executes the bytecode function with this index in [`Linked::functions`].
    Vm(u32),
    /// The call executes the closure in its first operand. The other operands are the arguments of the closure.
    Closure,
    /// The call allocates a tensor with its own storage. The tensor is zero-filled unless its first use writes all elements.
    Alloc(&'static Builtin, FirstUse),
    /// The call is a `null_value` or `kill_object`. The linker replaces it by clearing the register with this index.
    Kill(u32),
}

/// A linked instruction. Jump targets are absolute instruction indices.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Call {
        callee: Callee,
        args_start: u32,
        args_len: u32,
        dst: u32,
    },
    /// A call in tail position, whose result is the result of the running function. A bytecode
    /// callee replaces the running frame. The result of any other callee is stored in `dst`.
    TailCall {
        callee: Callee,
        args_start: u32,
        args_len: u32,
        dst: u32,
    },
    Ret {
        reg: u32,
    },
    If {
        cond: u32,
        other: u32,
    },
    Goto {
        target: u32,
    },
}

pub(crate) struct LinkedFunction {
    pub(crate) name: String,
    pub(crate) num_params: usize,
    pub(crate) num_regs: usize,
    pub(crate) ops: Box<[Op]>,
    pub(crate) operands: Box<[Operand]>,
    /// The machine code of the function: one machine function for each range of [`BODY_PIECE`] instructions. Empty if the
    /// function is only interpreted.
    pub(crate) native: Arc<[BodyFn]>,
    /// The index of the function in the executable's function table, for error messages.
    pub(crate) index: u32,
}

pub(crate) struct LinkedLoopFunc {
    pub(crate) code: Arc<CodeSlot>,
    pub(crate) info: LoopFuncInfo,
}

/// An entry of the executable's function table after linking.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    Vm(u32),
    LoopFunc(u32),
    Packed(u32),
    Builtin(&'static Builtin),
}

/// A program after linking: its functions, constants and call targets.
pub(crate) struct Linked {
    pub(crate) functions: Vec<LinkedFunction>,
    /// Whether all bytecode functions of the program have machine code (native bodies).
    pub(crate) native: bool,
    pub(crate) loop_funcs: Vec<LinkedLoopFunc>,
    pub(crate) packed: Vec<(String, HostFunc)>,
    pub(crate) entries: Vec<Entry>,
    /// The executable's constants, followed by the immediates and functions used as operands.
    pub(crate) consts: Vec<Value>,
}

/// Looks up a packed function or library function by name. Functions in `local`, which only this VM can call, take precedence over
/// registered functions.
pub(crate) fn find_host(name: &str, local: &FxHashMap<String, PackedFunc>) -> Option<HostFunc> {
    local.get(name).cloned().map(HostFunc::Packed).or_else(|| find_func(name))
}

/// Resolves all names of the executable `exe`.
///
/// # Errors
/// `MissingFunctions` with all names that were not found.
pub(crate) fn link(
    exe: &Executable,
    loop_funcs: &LoopFuncTable,
    local: &FxHashMap<String, PackedFunc>,
    vm: &Weak<Inner>,
) -> Result<Linked, VmError> {
    let mut linked = Linked {
        functions: Vec::new(),
        native: false,
        loop_funcs: Vec::new(),
        packed: Vec::new(),
        entries: Vec::new(),
        consts: exe.constants().iter().map(Value::from).collect(),
    };
    let (mut missing_packed, mut missing_loop_funcs) = (Vec::new(), Vec::new());
    let mut vm_count = 0u32;
    for def in exe.funcs() {
        let entry = match def {
            FuncDef::Vm(_) => {
                vm_count += 1;
                Entry::Vm(vm_count - 1)
            }
            FuncDef::LoopFunc(info) => {
                match loop_funcs.functions.get(&info.name) {
                    Some(code) => {
                        let code = code.clone();
                        linked.loop_funcs.push(LinkedLoopFunc { code, info: info.clone() });
                    }
                    None => missing_loop_funcs.push(info.name.clone()),
                }
                Entry::LoopFunc((linked.loop_funcs.len() as u32).wrapping_sub(1))
            }
            FuncDef::Packed(name) => match find_builtin(name) {
                Some(builtin) => Entry::Builtin(builtin),
                None => match find_host(name, local) {
                    Some(func) => {
                        linked.packed.push((name.clone(), func));
                        Entry::Packed(linked.packed.len() as u32 - 1)
                    }
                    None => match legacy_builtin(name) {
                        Some(builtin) => Entry::Builtin(builtin),
                        None => {
                            missing_packed.push(name.clone());
                            Entry::Packed(u32::MAX)
                        }
                    },
                },
            },
        };
        linked.entries.push(entry);
    }
    if !missing_packed.is_empty() || !missing_loop_funcs.is_empty() {
        return Err(VmError::MissingFunctions {
            packed: missing_packed,
            loop_funcs: missing_loop_funcs,
        });
    }
    let mut linker = Linker {
        exe,
        loop_funcs,
        vm,
        linked,
        immediates: FxHashMap::default(),
        func_values: FxHashMap::default(),
    };
    for (index, def) in (0u32..).zip(exe.funcs()) {
        if let FuncDef::Vm(function) = def {
            let mut linked = linker.function(function, index)?;
            if let Some(pieces) = loop_funcs.bodies.get(&function.name)
                && pieces.len() == function.instrs.len().div_ceil(BODY_PIECE)
            {
                linked.native = Arc::clone(pieces);
            }
            linker.linked.functions.push(linked);
        }
    }
    let mut linked = linker.linked;
    linked.native = linked.functions.iter().all(|f| !f.native.is_empty());
    Ok(linked)
}

/// Converts a call of a bytecode function or closure whose result is returned immediately into a tail call.
fn mark_tail_calls(ops: &mut [Op]) {
    for at in 1..ops.len() {
        let (Op::Call { callee, args_start, args_len, dst }, Op::Ret { reg }) =
            (ops[at - 1], ops[at])
        else {
            continue;
        };
        if dst == reg && matches!(callee, Callee::Vm(_) | Callee::Closure) {
            ops[at - 1] = Op::TailCall { callee, args_start, args_len, dst };
        }
    }
}

/// Finds a builtin by the short name that executables of TVM from 2022 use.
fn legacy_builtin(name: &str) -> Option<&'static Builtin> {
    const NAMES: &[&str] =
        &["alloc_shape_heap", "free_storage", "free_tensor", "load_shape", "store_shape"];
    if !NAMES.contains(&name) {
        return None;
    }
    find_builtin(&format!("vm.builtin.{name}"))
}

struct Linker<'a> {
    exe: &'a Executable,
    loop_funcs: &'a LoopFuncTable,
    vm: &'a Weak<Inner>,
    linked: Linked,
    immediates: FxHashMap<i64, Operand>,
    func_values: FxHashMap<u32, Operand>,
}

impl Linker<'_> {
    fn function(&mut self, f: &VmFunction, index: u32) -> Result<LinkedFunction, VmError> {
        let mut operands = Vec::with_capacity(f.args.len());
        let mut ops = Vec::with_capacity(f.instrs.len());
        for (at, instr) in f.instrs.iter().enumerate() {
            // The validator guarantees that jump targets are inside the body.
            let jump = |offset: i32| (at as i64 + i64::from(offset)) as u32;
            ops.push(match *instr {
                Instr::Ret { reg } => Op::Ret { reg: reg.0 },
                Instr::Goto { offset } => Op::Goto { target: jump(offset) },
                Instr::If { cond, false_offset } => {
                    Op::If { cond: cond.0, other: jump(false_offset) }
                }
                Instr::Call { func, dst, .. } => {
                    let args_start = operands.len() as u32;
                    let args = f.call_args(instr);
                    for arg in args {
                        operands.push(self.operand(*arg)?);
                    }
                    let callee = self.callee(func, args, dst.0, || {
                        FirstUse::of(self.exe, self.loop_funcs, f, at)
                    });
                    let (args_len, dst) = (args.len() as u32, dst.0);
                    if self.is_tail_closure(func) {
                        Op::TailCall { callee, args_start, args_len, dst }
                    } else {
                        Op::Call { callee, args_start, args_len, dst }
                    }
                }
            });
        }
        mark_tail_calls(&mut ops);
        Ok(LinkedFunction {
            name: f.name.clone(),
            num_params: f.params.len(),
            num_regs: f.num_regs as usize,
            ops: ops.into(),
            operands: operands.into(),
            native: Arc::new([]),
            index,
        })
    }

    fn is_tail_closure(&self, func: u32) -> bool {
        match self.linked.entries[func as usize] {
            Entry::Builtin(builtin) => matches!(builtin.kind, BuiltinKind::TailClosure),
            _ => false,
        }
    }

    /// Resolves the target of a call to function `func` of the executable. The target of a call that allocates a tensor depends on
    /// the first use of the tensor: the tensor is zero-filled unless `first_use` returns [`FirstUse::WritesAll`].
    fn callee(
        &self,
        func: u32,
        args: &[Arg],
        dst: u32,
        first_use: impl Fn() -> FirstUse,
    ) -> Callee {
        match self.linked.entries[func as usize] {
            Entry::Vm(i) => Callee::Vm(i),
            Entry::LoopFunc(i) => Callee::LoopFunc(i),
            Entry::Packed(i) => Callee::Packed(i),
            Entry::Builtin(builtin) => match (builtin.name, builtin.kind) {
                (_, BuiltinKind::Closure | BuiltinKind::TailClosure) => Callee::Closure,
                (_, BuiltinKind::LoopFuncDyn) => Callee::LoopFuncDyn,
                ("vm.builtin.alloc_tensor_with_storage", _) => Callee::Alloc(builtin, first_use()),
                ("vm.builtin.alloc_tensor", _) if first_use() == FirstUse::WritesAll => {
                    Callee::Builtin(builtin, alloc_tensor_unwritten)
                }
                // A `Kill` releases the old contents of the register immediately.
                ("vm.builtin.null_value", _) if dst != VOID => Callee::Kill(dst),
                (
                    "vm.builtin.kill_object" | "vm.builtin.free_tensor" | "vm.builtin.free_storage",
                    BuiltinKind::Plain(function),
                ) => match args.first().and_then(|arg| arg.decode()) {
                    // `Kill` writes no destination, so it must be void or the killed register.
                    Some(ArgValue::Reg(reg)) if dst == VOID || dst == reg.0 => Callee::Kill(reg.0),
                    _ => Callee::Builtin(builtin, function),
                },
                (_, BuiltinKind::Plain(function)) => Callee::Builtin(builtin, function),
            },
        }
    }

    fn operand(&mut self, arg: Arg) -> Result<Operand, VmError> {
        match arg.decode() {
            Some(ArgValue::Reg(reg)) => Ok(Operand(reg.0)),
            Some(ArgValue::Const(index)) => Ok(Operand(CONST_BIT | index)),
            Some(ArgValue::Imm(value)) => {
                if let Some(operand) = self.immediates.get(&value) {
                    return Ok(*operand);
                }
                let operand = self.constant(Value::Int(value))?;
                self.immediates.insert(value, operand);
                Ok(operand)
            }
            Some(ArgValue::Func(index)) => {
                if let Some(operand) = self.func_values.get(&index) {
                    return Ok(*operand);
                }
                let value = self.func_value(index);
                let operand = self.constant(Value::Func(value))?;
                self.func_values.insert(index, operand);
                Ok(operand)
            }
            None => Err(VmError::type_error(
                "a call in the executable has an operand that cannot be decoded; compile the model again",
            )),
        }
    }

    fn func_value(&self, index: u32) -> FuncValue {
        let name = self.exe.funcs()[index as usize].name().to_string();
        let target = match self.linked.entries[index as usize] {
            Entry::Packed(i) => FuncTarget::Packed(self.linked.packed[i as usize].1.clone()),
            _ => FuncTarget::Linked { vm: Weak::clone(self.vm), index },
        };
        FuncValue::new(name, target, Vec::new())
    }

    fn constant(&mut self, value: Value) -> Result<Operand, VmError> {
        let index = self.linked.consts.len() as u32;
        if index >= CONST_BIT {
            return Err(VmError::type_error(
                "the executable has too many constants and integer operands (at most 2^31 are possible)",
            ));
        }
        self.linked.consts.push(value);
        Ok(Operand(CONST_BIT | index))
    }
}
