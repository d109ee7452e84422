//! Linking: resolves an executable's indices and names to pointers, once per VM.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use pliant_exec::abi::KernelFn;
use pliant_exec::body::{BODY_PIECE, BodyFn};
use pliant_exec::{Arg, ArgValue, Executable, FuncDef, Instr, KernelInfo, VmFunction};
use rustc_hash::FxHashMap;

use crate::builtins::{Builtin, BuiltinFn, BuiltinKind, alloc_tensor_unwritten, find_builtin};
use crate::first_use::FirstUse;
use crate::machine::Inner;
use crate::registry::{HostFunc, find_func};
use crate::value::FuncTarget;
use crate::{FuncValue, PackedFunc, Value, VmError};

/// The machine code of an executable's loop functions, and of its bytecode functions if they have
/// native bodies. Also keeps alive whatever owns that code.
#[derive(Default, Clone)]
pub struct KernelTable {
    functions: FxHashMap<String, KernelFn>,
    bodies: FxHashMap<String, Arc<[BodyFn]>>,
    full_writes: FxHashMap<String, Box<[bool]>>,
    owners: Vec<Arc<dyn Any + Send + Sync>>,
}

impl KernelTable {
    /// Creates an empty table.
    pub fn new() -> KernelTable {
        KernelTable::default()
    }

    /// Adds a loop function.
    ///
    /// # Safety
    /// `function` must follow the ABI, accept arguments as described in the executable, and stay
    /// callable as long as the owners passed to [`KernelTable::keep_alive`] exist.
    pub unsafe fn insert(&mut self, name: impl Into<String>, function: KernelFn) {
        self.functions.insert(name.into(), function);
    }

    /// Adds the native body of the bytecode function `name`, in pieces. A VM uses native bodies
    /// only if all bytecode functions of its executable have one.
    ///
    /// # Safety
    /// The pieces must be as described in `pliant_exec::body`, generated from exactly this function
    /// of this executable, and stay callable as long as the owners passed to
    /// [`KernelTable::keep_alive`] exist.
    pub unsafe fn insert_body(&mut self, name: impl Into<String>, pieces: Arc<[BodyFn]>) {
        self.bodies.insert(name.into(), pieces);
    }

    /// Sets which parameters the loop function `name` writes completely before it reads them, in
    /// every successful call. A tensor whose first use is such a parameter is not cleared on
    /// allocation, so a wrong value exposes old memory contents. By default, no parameter is
    /// assumed to be written completely.
    pub fn set_full_writes(&mut self, name: impl Into<String>, params: impl Into<Box<[bool]>>) {
        self.full_writes.insert(name.into(), params.into());
    }

    /// Whether the loop function `name` writes a parameter completely before reading it.
    pub(crate) fn writes_all(&self, name: &str, param: usize) -> bool {
        self.full_writes.get(name).and_then(|params| params.get(param)).copied().unwrap_or(false)
    }

    /// Keeps `owner` (such as code memory or a library) alive as long as a VM uses the table.
    pub fn keep_alive(&mut self, owner: Arc<dyn Any + Send + Sync>) {
        self.owners.push(owner);
    }

    /// The loop function `name`.
    pub fn get(&self, name: &str) -> Option<KernelFn> {
        self.functions.get(name).copied()
    }

    /// The number of loop functions.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there are no loop functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

impl fmt::Debug for KernelTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelTable({} kernels)", self.functions.len())
    }
}

/// The location of an operand: a register, or (if the top bit is set) a linked constant.
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

/// A destination that discards the result.
pub(crate) const VOID: u32 = u32::MAX;

/// The target of a linked call.
#[derive(Clone, Copy)]
pub(crate) enum Callee {
    /// A builtin that only needs its operands.
    Builtin(&'static Builtin, BuiltinFn),
    /// A compiled loop function, as an index into [`Linked::kernels`].
    Kernel(u32),
    /// `call_tir_dyn`: calls a loop function passed as an operand, and expands a shape to trailing
    /// integers.
    KernelDyn,
    /// A host function, as an index into [`Linked::packed`].
    Packed(u32),
    /// A bytecode function, as an index into [`Linked::functions`].
    Vm(u32),
    /// A closure passed as an operand.
    Closure,
    /// Allocates a tensor with its own storage. It is cleared unless its first use writes all of
    /// it.
    Alloc(&'static Builtin, FirstUse),
    /// Clears a register.
    Kill(u32),
}

/// A linked instruction; jump targets are absolute.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Call {
        callee: Callee,
        args_start: u32,
        args_len: u32,
        dst: u32,
    },
    /// A call whose result is the result of the running function. If it calls a bytecode function,
    /// the new frame replaces the running one. Any other result is stored as that of a normal call.
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
    /// The pieces of the native body; empty if there is none.
    pub(crate) native: Arc<[BodyFn]>,
    /// The index in the executable's function table, used to print the signature in messages.
    pub(crate) index: u32,
}

pub(crate) struct LinkedKernel {
    pub(crate) function: KernelFn,
    pub(crate) info: KernelInfo,
}

/// A linked entry of the function table.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    Vm(u32),
    Kernel(u32),
    Packed(u32),
    Builtin(&'static Builtin),
}

/// A linked program.
pub(crate) struct Linked {
    pub(crate) functions: Vec<LinkedFunction>,
    /// Whether all functions have native bodies.
    pub(crate) native: bool,
    pub(crate) kernels: Vec<LinkedKernel>,
    pub(crate) packed: Vec<(String, HostFunc)>,
    pub(crate) entries: Vec<Entry>,
    /// The executable's constants, followed by immediates and functions that are used as operands.
    pub(crate) consts: Vec<Value>,
}

/// Looks up a host function by name. Functions of this VM take precedence over registered ones.
pub(crate) fn find_host(name: &str, local: &FxHashMap<String, PackedFunc>) -> Option<HostFunc> {
    local.get(name).cloned().map(HostFunc::Packed).or_else(|| find_func(name))
}

/// Resolves all names of `exe`.
///
/// # Errors
/// `MissingFunctions` with all names that were not found.
pub(crate) fn link(
    exe: &Executable,
    kernels: &KernelTable,
    local: &FxHashMap<String, PackedFunc>,
    machine: &Weak<Inner>,
) -> Result<Linked, VmError> {
    let mut linked = Linked {
        functions: Vec::new(),
        native: false,
        kernels: Vec::new(),
        packed: Vec::new(),
        entries: Vec::new(),
        consts: exe.constants().iter().map(Value::from).collect(),
    };
    let (mut no_packed, mut no_kernel) = (Vec::new(), Vec::new());
    let mut vm_count = 0u32;
    for def in exe.funcs() {
        let entry = match def {
            FuncDef::Vm(_) => {
                vm_count += 1;
                Entry::Vm(vm_count - 1)
            }
            FuncDef::Kernel(info) => {
                match kernels.get(&info.name) {
                    Some(function) => {
                        linked.kernels.push(LinkedKernel { function, info: info.clone() });
                    }
                    None => no_kernel.push(info.name.clone()),
                }
                Entry::Kernel((linked.kernels.len() as u32).wrapping_sub(1))
            }
            FuncDef::Packed(name) => match find_builtin(name) {
                Some(builtin) => Entry::Builtin(builtin),
                None => match find_host(name, local) {
                    Some(func) => {
                        linked.packed.push((name.clone(), func));
                        Entry::Packed(linked.packed.len() as u32 - 1)
                    }
                    None => match oldest_builtin(name) {
                        Some(builtin) => Entry::Builtin(builtin),
                        None => {
                            no_packed.push(name.clone());
                            Entry::Packed(u32::MAX)
                        }
                    },
                },
            },
        };
        linked.entries.push(entry);
    }
    if !no_packed.is_empty() || !no_kernel.is_empty() {
        return Err(VmError::MissingFunctions { packed: no_packed, kernels: no_kernel });
    }
    let mut linker = Linker {
        exe,
        kernels,
        machine,
        linked,
        immediates: FxHashMap::default(),
        func_values: FxHashMap::default(),
    };
    for (index, def) in (0u32..).zip(exe.funcs()) {
        if let FuncDef::Vm(function) = def {
            let mut linked = linker.function(function, index)?;
            if let Some(pieces) = kernels.bodies.get(&function.name)
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

/// Converts calls that can enter bytecode and whose result is returned immediately to tail calls.
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

/// Looks up a builtin by the short name that programs of 2022 use.
fn oldest_builtin(name: &str) -> Option<&'static Builtin> {
    const NAMES: &[&str] =
        &["alloc_shape_heap", "free_storage", "free_tensor", "load_shape", "store_shape"];
    if !NAMES.contains(&name) {
        return None;
    }
    find_builtin(&format!("vm.builtin.{name}"))
}

struct Linker<'a> {
    exe: &'a Executable,
    kernels: &'a KernelTable,
    machine: &'a Weak<Inner>,
    linked: Linked,
    immediates: FxHashMap<i64, Operand>,
    func_values: FxHashMap<u32, Operand>,
}

impl Linker<'_> {
    fn function(&mut self, f: &VmFunction, index: u32) -> Result<LinkedFunction, VmError> {
        let mut operands = Vec::with_capacity(f.args.len());
        let mut ops = Vec::with_capacity(f.instrs.len());
        for (at, instr) in f.instrs.iter().enumerate() {
            // The validator has checked that jump targets are inside the body.
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
                    let callee = self
                        .callee(func, args, dst.0, || FirstUse::of(self.exe, self.kernels, f, at));
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

    /// The target of a call. `first_use` is the first use of the result if it is a new tensor.
    fn callee(
        &self,
        func: u32,
        args: &[Arg],
        dst: u32,
        first_use: impl Fn() -> FirstUse,
    ) -> Callee {
        match self.linked.entries[func as usize] {
            Entry::Vm(i) => Callee::Vm(i),
            Entry::Kernel(i) => Callee::Kernel(i),
            Entry::Packed(i) => Callee::Packed(i),
            Entry::Builtin(builtin) => match (builtin.name, builtin.kind) {
                (_, BuiltinKind::Closure | BuiltinKind::TailClosure) => Callee::Closure,
                (_, BuiltinKind::KernelDyn) => Callee::KernelDyn,
                ("vm.builtin.alloc_tensor_with_storage", _) => Callee::Alloc(builtin, first_use()),
                ("vm.builtin.alloc_tensor", _) if first_use() == FirstUse::WritesAll => {
                    Callee::Builtin(builtin, alloc_tensor_unwritten)
                }
                // The old contents of the register must be released immediately.
                ("vm.builtin.null_value", _) if dst != VOID => Callee::Kill(dst),
                (
                    "vm.builtin.kill_object" | "vm.builtin.free_tensor" | "vm.builtin.free_storage",
                    BuiltinKind::Plain(function),
                ) => match args.first().and_then(|arg| arg.decode()) {
                    // The destination must not keep its previous value.
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
            None => Err(VmError::type_error("an operand of the executable is malformed")),
        }
    }

    fn func_value(&self, index: u32) -> FuncValue {
        let name = self.exe.funcs()[index as usize].name().to_string();
        let target = match self.linked.entries[index as usize] {
            Entry::Packed(i) => FuncTarget::Packed(self.linked.packed[i as usize].1.clone()),
            _ => FuncTarget::Linked { machine: Weak::clone(self.machine), index },
        };
        FuncValue::new(name, target, Vec::new())
    }

    fn constant(&mut self, value: Value) -> Result<Operand, VmError> {
        let index = self.linked.consts.len() as u32;
        if index >= CONST_BIT {
            return Err(VmError::type_error("the executable has too many constants"));
        }
        self.linked.consts.push(value);
        Ok(Operand(CONST_BIT | index))
    }
}
