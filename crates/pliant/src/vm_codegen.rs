//! Generates bytecode from fully lowered graph functions.
//!
//! Registers are reused: a variable's register is free after the last read of the variable and its aliases. A free register keeps
//! its value until it is written again. The pass `KillAfterLastUse` therefore inserts bindings called kills, which clear the
//! registers of dead tensors.

mod alias_checks;
mod loop_inlining;
mod source_locations;
mod tail_position;
mod while_loop;

use std::sync::Arc;

use pliant_diag::SourceMap;
use pliant_exec::{
    Arg, Constant, ExecBuilder, ExecError, Executable, LoopFuncInfo, LoopFuncParam, Param, Reg,
};
use pliant_ir::op::{CALL_BUILTIN_WITH_CTX, CALL_PURE_PACKED};
use pliant_ir::relax::visit::{bindings, operand_vars};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Seq, TypeData, Var};
use pliant_ir::tir::{PrimFunc, VarTy};
use pliant_ir::{DType, IRModule, Op};
use pliant_pass::{PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use pliant_opt::analysis::liveness::{AT_RESULT, Liveness, plain_alias};
use pliant_opt::analysis::result_binding::is_kill;
use pliant_opt::analysis::while_loop_closures::{LoopClosure, loop_closures, loop_operands};
use pliant_opt::common::operators_after_lowering::{
    MEMORY_KILL_STORAGE, MEMORY_KILL_TENSOR, NULL_VALUE, VM_ALLOC_STORAGE, VM_ALLOC_TENSOR,
    VM_KILL_OBJECT,
};
use pliant_opt::lower::lower_runtime_builtin::BUILTIN_OPS;

use loop_inlining::InlinedFunctions;
use tail_position::Exit;

/// A function that formats a type of a graph function as text for the executable.
pub type TypeText<'a> = dyn Fn(&Function, pliant_ir::relax::Type) -> String + 'a;

/// The inputs of the code generator besides the module.
pub struct CodegenInputs<'a> {
    /// A function that returns the signature and the error messages of the compiled loop function with a given name, or `None` to
    /// derive them from the source of the loop function.
    pub kernel_info: &'a dyn Fn(&str) -> Option<LoopFuncInfo>,
    /// A function that formats a type of a graph function as text for the executable.
    pub type_text: &'a TypeText<'a>,
    /// The encoded loop functions, the section `kernels` of the executable.
    pub kernels: Vec<u8>,
    /// The metadata of the executable, as keys and values.
    pub metadata: Vec<(String, String)>,
    /// The sources to which spans refer; `None` if run-time errors need no source lines.
    pub sources: Option<&'a SourceMap>,
}

/// Generates the executable of a fully lowered module.
///
/// # Errors
/// A user error if the program calls an unknown function or an operator was not legalized, an
/// unsupported-feature error for local functions, an internal error if a pass left other constructs
/// unlowered, and cancellation.
pub fn codegen(
    module: &IRModule,
    inputs: CodegenInputs<'_>,
    ctx: &PassContext,
) -> Result<Executable, PassError> {
    let mut exec = ExecBuilder::new();
    let mut kernels = FxHashMap::default();
    for (name, func) in module.prim_funcs() {
        let info = (inputs.kernel_info)(name);
        let info = info.unwrap_or_else(|| default_kernel_info(name, func));
        kernels.insert(name.clone(), info.clone());
        exec.loop_func(info);
    }
    let inlined = InlinedFunctions::of(module);
    for (name, func) in module.relax_funcs().filter(|(name, _)| !inlined.is_moved(name)) {
        ctx.check_cancelled()?;
        FunctionGen::new((module, &kernels), func, &inlined, inputs.sources, &mut exec)
            .function(name, inputs.type_text)
            .map_err(|e| e.in_function(name))?;
    }
    exec.set_kernels(inputs.kernels);
    for (key, value) in inputs.metadata {
        exec.set_metadata(key, value);
    }
    exec.get().map_err(|e: ExecError| PassError::internal(e.to_string()))
}

/// Returns the signature of a loop function as its source declares it.
pub fn default_kernel_info(name: &str, func: &PrimFunc) -> LoopFuncInfo {
    let written = pliant_tir::buffer_accesses::written_buffers(func);
    let args = func
        .params
        .iter()
        .map(|&p| match func.var(p).ty {
            VarTy::Value(ty) if ty.dtype.is_float() => LoopFuncParam::Float,
            VarTy::Value(ty) if ty.dtype.is_bool() => LoopFuncParam::Bool,
            VarTy::Value(ty) => LoopFuncParam::Int(ty.dtype),
            VarTy::Handle => match func.buffer_map.get(&p) {
                Some(&b) => LoopFuncParam::Tensor {
                    dtype: Some(func.buffer(b).dtype),
                    ndim: u8::try_from(func.buffer(b).shape.len()).ok(),
                    written: written.contains(&b),
                    strided: !func.buffer(b).strides.is_empty(),
                },
                None => LoopFuncParam::Any,
            },
        })
        .collect();
    LoopFuncInfo { name: name.into(), args, checks: Vec::new() }
}

/// The allocation of a tensor together with its storage, which contains no other tensor.
struct SingleTensorStorage {
    var: Var,
    bytes: Expr,
    shape: Expr,
    dtype: Expr,
}

/// Recognizes the allocation of a tensor with its own storage: three consecutive bindings that allocate a storage,
/// allocate a tensor at its start, and kill the storage.
fn single_tensor_storage(func: &Function, bindings: &[Binding]) -> Option<SingleTensorStorage> {
    let [storage, tensor, kill, ..] = bindings else { return None };
    if [storage, tensor, kill].iter().any(|b| b.cast.is_some()) {
        return None;
    }
    let operands = |binding: &Binding, op: Op| match func.expr(binding.value) {
        ExprData::Call { callee: Callee::Op(o), args, .. } if *o == op => Some(func.list(*args)),
        _ => None,
    };
    let is_storage = |e: Expr| matches!(func.expr(e), ExprData::Var(v) if *v == storage.var);
    let &[bytes, ..] = operands(storage, VM_ALLOC_STORAGE)? else { return None };
    let &[of, offset, shape, dtype] = operands(tensor, VM_ALLOC_TENSOR)? else { return None };
    let &[killed] = operands(kill, VM_KILL_OBJECT)? else { return None };
    let at_start =
        matches!(func.expr(offset), ExprData::Int(v, _) if func.syms.as_int(*v) == Some(0));
    let in_bytes =
        matches!(func.types.get(func.expr_ty(bytes)), TypeData::Shape { ndim: Some(1), .. });
    let matches = at_start && in_bytes && is_storage(of) && is_storage(killed);
    matches.then_some(SingleTensorStorage { var: tensor.var, bytes, shape, dtype })
}

struct FunctionGen<'a> {
    module: &'a IRModule,
    /// The signatures of the loop functions, by name.
    kernels: &'a FxHashMap<Arc<str>, LoopFuncInfo>,
    func: &'a Function,
    sources: Option<&'a SourceMap>,
    exec: &'a mut ExecBuilder,
    live: Liveness,
    /// The location of each variable: its register, or a constant.
    locations: FxHashMap<Var, Operand>,
    free: Vec<Reg>,
    next: u32,
    /// How the code that follows the body of the current function consumes the function's result, for example by returning it.
    exit: Exit,
    /// The functions that are inlined into loops.
    inlined: &'a InlinedFunctions,
    /// The closures that only one loop calls, by the variables to which they are bound.
    closures: FxHashMap<Var, LoopClosure>,
    captured: FxHashMap<Var, Vec<Reg>>,
    /// The variables that are computed directly into a register of the loop state, with that register.
    in_place: FxHashMap<Var, Reg>,
    /// Registers that hold values of the function and that no kill clears. A kill is a binding that clears the register of a dead
    /// value. The return of a function clears all registers, but an inlined function has no return.
    unkilled: Vec<Reg>,
    /// Registers that an iteration must not clear: the registers of the captured values of an inlined function, which every
    /// iteration reads. In a loop condition, also the registers of the loop state, which the body reads next.
    pinned: Vec<Reg>,
    /// The variables whose registers a kill (a binding that clears the register of a dead value) clears.
    killed: FxHashSet<Var>,
    /// The variables that hold tensors allocated by the function.
    allocated: FxHashSet<Var>,
}

impl<'a> FunctionGen<'a> {
    fn new(
        (module, kernels): (&'a IRModule, &'a FxHashMap<Arc<str>, LoopFuncInfo>),
        func: &'a Function,
        inlined: &'a InlinedFunctions,
        sources: Option<&'a SourceMap>,
        exec: &'a mut ExecBuilder,
    ) -> Self {
        FunctionGen {
            module,
            kernels,
            func,
            sources,
            exec,
            live: Liveness::new(func, plain_alias),
            locations: FxHashMap::default(),
            free: Vec::new(),
            next: 0,
            exit: Exit::Return,
            inlined,
            closures: loop_closures(func),
            captured: FxHashMap::default(),
            in_place: FxHashMap::default(),
            unkilled: Vec::new(),
            pinned: Vec::new(),
            killed: killed_vars(func),
            allocated: alias_checks::allocated(func),
        }
    }
}

impl FunctionGen<'_> {
    fn function(mut self, name: &Arc<str>, type_text: &TypeText<'_>) -> Result<(), PassError> {
        let func = self.func;
        let params = func
            .params()
            .iter()
            .map(|&p| Param::typed(&*func.var(p).name, type_text(func, func.var(p).ty)))
            .collect();
        self.exec.begin_function(name, params, type_text(func, func.ret_ty()));
        for &param in func.params() {
            let reg = self.alloc_register();
            self.locations.insert(param, Operand::Reg(reg));
        }
        self.tail_sequence(func.body(), true)?;
        self.exec.end_function();
        Ok(())
    }

    fn alloc_register(&mut self) -> Reg {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            Reg(self.next - 1)
        })
    }

    /// Emits the bindings of a sequence. Returns its result.
    fn sequence(&mut self, seq: Seq) -> Result<Operand, PassError> {
        let func = self.func;
        let mut expiring: FxHashMap<usize, Vec<Reg>> = FxHashMap::default();
        let blocks = func.seq(seq).blocks.iter();
        let bindings: Vec<Binding> =
            blocks.flat_map(|&b| func.block(b).bindings.iter().copied()).collect();
        self.bindings(&bindings, &mut expiring)?;
        let mut temps = Vec::new();
        let result = self.operand(func.seq(seq).result, &mut temps)?;
        // The result is read directly after this, before any other write.
        self.free.extend(temps);
        self.free.extend(expiring.remove(&AT_RESULT).into_iter().flatten());
        Ok(result)
    }

    /// Emits `bindings`, which are the first bindings of a sequence. A register becomes free after its last read. If that read is
    /// in a later binding, adds the register to `expiring` at the index of that binding.
    fn bindings(
        &mut self,
        bindings: &[Binding],
        expiring: &mut FxHashMap<usize, Vec<Reg>>,
    ) -> Result<(), PassError> {
        let spans = self.spans(bindings);
        let mut index = 0;
        while index < bindings.len() {
            self.set_location(spans[index]);
            let single = single_tensor_storage(self.func, &bindings[index..]);
            let single = single.filter(|_| {
                // Nothing else reads the storage, or the result of killing it.
                self.live.last_read(bindings[index].var) == Some(index + 2)
                    && self.live.last_read(bindings[index + 2].var).is_none()
            });
            let (var, regs, end) = match single {
                Some(tensor) => (tensor.var, self.alloc_tensor_with_storage(&tensor)?, index + 3),
                None => (bindings[index].var, self.binding(&bindings[index])?, index + 1),
            };
            if !regs.is_empty() {
                let last = self.live.last_read(var).unwrap_or(index);
                expiring.entry(last.max(index)).or_default().extend(regs);
            }
            for position in index..end {
                self.free.extend(expiring.remove(&position).into_iter().flatten());
            }
            index = end;
        }
        Ok(())
    }

    /// Emits the allocation of a tensor together with its storage. Returns the registers that the
    /// tensor's variable owns.
    fn alloc_tensor_with_storage(
        &mut self,
        tensor: &SingleTensorStorage,
    ) -> Result<Vec<Reg>, PassError> {
        let mut temps = Vec::new();
        let dst = self.in_place.get(&tensor.var).copied().unwrap_or_else(|| self.alloc_register());
        let operands = [tensor.bytes, tensor.shape, tensor.dtype];
        self.emit("vm.builtin.alloc_tensor_with_storage", &operands, dst, &mut temps)?;
        self.free.extend(temps);
        Ok(self.define_register(tensor.var, dst))
    }

    /// Emits one binding. Returns the registers that its variable owns; none if the binding only renames a value.
    fn binding(&mut self, binding: &Binding) -> Result<Vec<Reg>, PassError> {
        if binding.cast.is_some() {
            return Err(PassError::internal(
                "a match_cast is left in the module: VMShapeLower must lower it before code generation",
            ));
        }
        let func = self.func;
        if let Some(location) = self.existing_location(binding.value)? {
            self.locations.insert(binding.var, location);
            return Ok(Vec::new());
        }
        if let Some(operands) = loop_operands(func, binding.value) {
            let reg = self.while_loop(binding.var, operands)?;
            return Ok(self.define_register(binding.var, reg));
        }
        if let Some(regs) = self.keep_captured(binding.var)? {
            return Ok(regs);
        }
        let mut temps = Vec::new();
        let unused = self.live.last_read(binding.var).is_none();
        let is_if = matches!(func.expr(binding.value), ExprData::If { .. });
        // Allocating the destination before freeing the operands' temporary registers keeps it
        // distinct from them.
        let dst = match self.in_place.get(&binding.var) {
            Some(&reg) => reg,
            None if unused && !is_if => Reg::VOID,
            None => self.alloc_register(),
        };
        match func.expr(binding.value) {
            ExprData::If { cond, then_seq, else_seq } => {
                self.branch(*cond, *then_seq, *else_seq, dst)?;
            }
            _ => self.value(binding.value, dst, &mut temps)?,
        }
        self.free.extend(temps);
        if dst.is_void() {
            return Ok(Vec::new());
        }
        Ok(self.define_register(binding.var, dst))
    }

    /// Records the register of a variable. Returns the register, unless another variable owns it.
    fn define_register(&mut self, var: Var, reg: Reg) -> Vec<Reg> {
        self.locations.insert(var, Operand::Reg(reg));
        if self.in_place.contains_key(&var) {
            return Vec::new();
        }
        let is_plain =
            matches!(self.func.var_ty(var), TypeData::Prim { .. } | TypeData::Shape { .. });
        if !is_plain && !self.killed.contains(&var) {
            self.unkilled.push(reg);
        }
        vec![reg]
    }

    /// Returns the location of a binding's value if the value exists already, as another variable
    /// or a constant.
    fn existing_location(&mut self, value: Expr) -> Result<Option<Operand>, PassError> {
        match self.func.expr(value) {
            ExprData::Var(source) => self.var(*source).map(Some),
            ExprData::Call { callee: Callee::Op(NULL_VALUE), .. } => {
                Ok(Some(Operand::Arg(self.exec.c(Constant::None))))
            }
            ExprData::Call { .. }
            | ExprData::Tuple(_)
            | ExprData::TupleGetItem(..)
            | ExprData::If { .. }
            | ExprData::Func(_) => Ok(None),
            _ => self.operand(value, &mut Vec::new()).map(Some),
        }
    }

    fn branch(
        &mut self,
        cond: Expr,
        then_seq: Seq,
        else_seq: Seq,
        dst: Reg,
    ) -> Result<(), PassError> {
        let jump_else = self.jump_unless(cond)?;
        self.copy_result(then_seq, dst)?;
        let jump_end = self.exec.emit_goto(1);
        let here = self.exec.here();
        self.exec.patch(jump_else, here);
        self.copy_result(else_seq, dst)?;
        let here = self.exec.here();
        self.exec.patch(jump_end, here);
        Ok(())
    }

    /// Emits a jump that is taken if the condition is false. Returns its position, because its target is patched later.
    fn jump_unless(&mut self, cond: Expr) -> Result<usize, PassError> {
        let mut temps = Vec::new();
        let cond = self.operand(cond, &mut temps)?;
        let cond = self.in_register(cond, &mut temps);
        let jump = self.exec.emit_if(cond, 1);
        self.free.extend(temps);
        Ok(jump)
    }

    fn copy_result(&mut self, seq: Seq, dst: Reg) -> Result<(), PassError> {
        let outer = self.unkilled.len();
        let result = self.sequence(seq)?.arg();
        self.exec.emit_call("vm.builtin.copy", &[result], dst);
        // Code after the branch does not know whether the branch was taken, so the branch itself
        // clears its registers.
        let inner = self.unkilled.split_off(outer);
        if !matches!(self.exit, Exit::Return) {
            self.kill_except(inner, &[dst]);
        }
        Ok(())
    }

    /// Emits the evaluation of an expression into the register `dst`. Variables and constants are copied.
    fn value(&mut self, e: Expr, dst: Reg, temps: &mut Vec<Reg>) -> Result<(), PassError> {
        match self.func.expr(e) {
            ExprData::Call { callee, args, .. } => {
                let args = self.func.list(*args).to_vec();
                self.call(*callee, &args, dst, temps)
            }
            ExprData::TupleGetItem(tuple, index) => {
                let (tuple, index) = (*tuple, i64::from(*index));
                let tuple = self.operand(tuple, temps)?.arg();
                let index = self.exec.imm(index);
                self.exec.emit_call("vm.builtin.tuple_getitem", &[tuple, index], dst);
                Ok(())
            }
            ExprData::Tuple(list) => {
                let fields = self.func.list(*list).to_vec();
                self.emit("vm.builtin.make_tuple", &fields, dst, temps)
            }
            ExprData::Func(_) => Err(PassError::unsupported(
                "compiling a local function to bytecode is not supported",
                "run the pass LambdaLift first, which turns local functions into functions of the module",
            )),
            ExprData::If { .. } => Err(PassError::internal(
                "an If is nested in another expression instead of being bound to a variable",
            )),
            _ => {
                let value = self.operand(e, temps)?.arg();
                self.exec.emit_call("vm.builtin.copy", &[value], dst);
                Ok(())
            }
        }
    }

    fn call(
        &mut self,
        callee: Callee,
        args: &[Expr],
        dst: Reg,
        temps: &mut Vec<Reg>,
    ) -> Result<(), PassError> {
        match callee {
            Callee::Op(op) => self.call_op(op, args, dst, temps),
            Callee::Expr(callee) => match self.func.expr(callee) {
                ExprData::Global(name) => {
                    let name = self.func.str(*name).clone();
                    if self.module.get(&name).is_none() {
                        return Err(PassError::user(format!(
                            "function '{name}' is called, but the module has no function of this name"
                        )));
                    }
                    if let Some(kernel) = self.kernels.get(&name) {
                        self.check_output_aliases(kernel, args, temps)?;
                    }
                    self.emit(&name, args, dst, temps)
                }
                ExprData::Extern(name) => {
                    let name = self.func.str(*name).clone();
                    self.emit(&name, args, dst, temps)
                }
                _ => {
                    let all: Vec<Expr> = [callee].into_iter().chain(args.iter().copied()).collect();
                    self.emit("vm.builtin.invoke_closure", &all, dst, temps)
                }
            },
        }
    }

    fn call_op(
        &mut self,
        op: Op,
        args: &[Expr],
        dst: Reg,
        temps: &mut Vec<Reg>,
    ) -> Result<(), PassError> {
        match (op, args) {
            (VM_ALLOC_STORAGE, _) => self.emit("vm.builtin.alloc_storage", args, dst, temps),
            (VM_ALLOC_TENSOR, _) => self.emit("vm.builtin.alloc_tensor", args, dst, temps),
            (VM_KILL_OBJECT | MEMORY_KILL_TENSOR | MEMORY_KILL_STORAGE, &[object]) => {
                // Only registers can be cleared, not constants.
                match self.operand(object, temps)? {
                    Operand::Reg(reg) => {
                        self.exec.emit_call("vm.builtin.kill_object", &[Arg::reg(reg)], Reg::VOID);
                        if !dst.is_void() {
                            let none = self.exec.c(Constant::None);
                            self.exec.emit_call("vm.builtin.copy", &[none], dst);
                        }
                        Ok(())
                    }
                    Operand::Arg(_) => Ok(()),
                }
            }
            (CALL_BUILTIN_WITH_CTX | CALL_PURE_PACKED, [callee, rest @ ..]) => {
                let rest = match (op, rest) {
                    (CALL_BUILTIN_WITH_CTX, &[tuple, ..]) => {
                        self.func.tuple_fields(tuple).map_or_else(|| vec![tuple], <[Expr]>::to_vec)
                    }
                    _ => rest.to_vec(),
                };
                self.call(Callee::Expr(*callee), &rest, dst, temps)
            }
            _ => match BUILTIN_OPS.iter().find(|(other, _)| *other == op) {
                Some((_, builtin)) => self.emit(builtin, args, dst, temps),
                None => Err(PassError::user(format!(
                    "operator {op} was not lowered: run the pass LegalizeOps first, which lowers operators to calls of functions"
                ))),
            },
        }
    }

    fn emit(
        &mut self,
        name: &str,
        args: &[Expr],
        dst: Reg,
        temps: &mut Vec<Reg>,
    ) -> Result<(), PassError> {
        let mut operands = Vec::with_capacity(args.len());
        for &arg in args {
            operands.push(self.operand(arg, temps)?.arg());
        }
        // A function that is inlined into a loop does not return.
        let name = match name {
            "vm.builtin.invoke_closure_tail" if !matches!(self.exit, Exit::Return) => {
                "vm.builtin.invoke_closure"
            }
            name => name,
        };
        self.exec.emit_call(name, &operands, dst);
        Ok(())
    }

    fn var(&self, var: Var) -> Result<Operand, PassError> {
        self.locations.get(&var).copied().ok_or_else(|| {
            let name = &self.func.var(var).name;
            PassError::internal(format!("variable '{name}' is read before it is defined"))
        })
    }

    /// Returns the operand for an expression. Tuples and calls are evaluated into a register, which
    /// is added to `temps`.
    fn operand(&mut self, e: Expr, temps: &mut Vec<Reg>) -> Result<Operand, PassError> {
        let func = self.func;
        let arg = match func.expr(e) {
            ExprData::Var(v) => return self.var(*v),
            ExprData::Constant(c) => self.exec.c(Constant::Tensor(func.const_tensor(*c).clone())),
            ExprData::Shape(dims) => {
                let dims: Option<Vec<i64>> = dims.iter().map(|&d| func.syms.as_int(d)).collect();
                let dims = dims.ok_or_else(symbolic_size_left)?;
                self.exec.shape(&dims)
            }
            ExprData::Int(value, dtype) => {
                let value = func.syms.as_int(*value).ok_or_else(symbolic_size_left)?;
                match dtype {
                    DType::Bool => self.exec.c(Constant::Bool(value != 0)),
                    _ => self.exec.imm(value),
                }
            }
            ExprData::Float(bits, _) => self.exec.c(Constant::Float(f64::from_bits(*bits))),
            ExprData::Str(s) => self.exec.str(func.str(*s)),
            ExprData::DType(d) => self.exec.c(Constant::DType(*d)),
            ExprData::Global(name) | ExprData::Extern(name) => self.exec.f(func.str(*name)),
            ExprData::Tuple(list) => {
                let fields = func.list(*list).to_vec();
                let reg = self.alloc_register();
                self.emit("vm.builtin.make_tuple", &fields, reg, temps)?;
                self.unkilled.push(reg);
                temps.push(reg);
                return Ok(Operand::Reg(reg));
            }
            ExprData::TupleGetItem(..) | ExprData::Call { .. } => {
                let reg = self.alloc_register();
                self.value(e, reg, temps)?;
                self.unkilled.push(reg);
                temps.push(reg);
                return Ok(Operand::Reg(reg));
            }
            ExprData::If { .. } | ExprData::Func(_) => {
                return Err(PassError::internal(
                    "an If or a function is an operand instead of being bound to a variable",
                ));
            }
        };
        Ok(Operand::Arg(arg))
    }

    fn in_register(&mut self, operand: Operand, temps: &mut Vec<Reg>) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            Operand::Arg(arg) => self.copy_to_register(arg, temps),
        }
    }

    /// Emits a copy of a constant operand to a new register, which is added to `temps`.
    fn copy_to_register(&mut self, arg: Arg, temps: &mut Vec<Reg>) -> Reg {
        let reg = self.alloc_register();
        self.exec.emit_call("vm.builtin.copy", &[arg], reg);
        temps.push(reg);
        reg
    }
}

/// An operand of an instruction: a register, or a constant argument.
#[derive(Clone, Copy)]
enum Operand {
    Reg(Reg),
    Arg(Arg),
}

impl Operand {
    fn arg(self) -> Arg {
        match self {
            Operand::Reg(reg) => Arg::reg(reg),
            Operand::Arg(arg) => arg,
        }
    }
}

/// Returns the variables whose registers a kill (a binding that clears the register of a dead value) clears.
fn killed_vars(func: &Function) -> FxHashSet<Var> {
    let mut out = FxHashSet::default();
    for (_, binding) in bindings(func) {
        if is_kill(func, &binding) {
            out.extend(operand_vars(func, binding.value));
        }
    }
    out
}

fn symbolic_size_left() -> PassError {
    PassError::internal(
        "a symbolic size is left in the module: VMShapeLower must lower it before code generation",
    )
}
