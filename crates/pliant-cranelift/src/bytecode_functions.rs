//! Compiles bytecode functions to native bodies (machine code). `pliant_exec::native_body_abi` defines their calling convention.

use std::any::Any;
use std::mem::offset_of;
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, InstBuilder, SigRef, Signature, Value, types,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, ModuleError};
use pliant_codegen::{CodegenError, CodegenOptions, CompiledBodies};
use pliant_exec::native_body_abi::{
    ATTENTION, BODY_PIECE, BodyEntries, BodyFn, FAILED, JUMP, OFFSET_ATTENTION, OFFSET_ENTRIES,
    OFFSET_SEEN, RETURN,
};
use pliant_exec::{Executable, FuncDef, Instr, VmFunction, builtin_arity};
use pliant_pool::parallel_map;

use crate::code_target::host_isa;
use crate::compilation_unit::UnitMemory;
use crate::function_builder::{constant_mem_flags, mem_flags};

/// A piece of a bytecode function: a range of its instructions that is compiled to one machine function. The fields are the
/// bytecode function and the index of the piece in the function.
type Piece<'a> = (&'a VmFunction, usize);

/// Maximum number of pieces (ranges of instructions of bytecode functions) in a compilation unit. Units are compiled in parallel.
/// Each unit has its own executable pages, so small units waste memory.
const PIECES_PER_UNIT: usize = 32;

/// Compiles all bytecode functions of the executable `exe` to native bodies (machine code).
pub(crate) fn compile(
    exe: &Executable,
    options: &CodegenOptions,
) -> Result<CompiledBodies, CodegenError> {
    let isa = host_isa()?;
    let pieces: Vec<Piece<'_>> = exe
        .vm_functions()
        .flat_map(|f| (0..f.instrs.len().div_ceil(BODY_PIECE)).map(move |k| (f, k)))
        .collect();
    let unit = |pieces: &[Piece<'_>]| {
        crate::check_memory()?;
        compile_pieces(&isa, exe, pieces)
    };
    let units: Vec<Result<CompiledUnit, CodegenError>> = if options.compile_threads == 1 {
        pieces.chunks(PIECES_PER_UNIT).map(unit).collect()
    } else {
        parallel_map(pieces.chunks(PIECES_PER_UNIT).collect(), unit)
    };
    let (mut entries, mut memory) = (Vec::with_capacity(pieces.len()), Vec::new());
    for unit in units {
        let (unit_entries, owner) = unit?;
        entries.extend(unit_entries);
        memory.push(owner);
    }
    let mut entries = entries.into_iter();
    let bodies = exe
        .vm_functions()
        .map(|f| entries.by_ref().take(f.instrs.len().div_ceil(BODY_PIECE)).collect())
        .collect();
    Ok(CompiledBodies::new(bodies, memory))
}

/// The entry points of the pieces (ranges of instructions of bytecode functions) in one compilation unit, and the executable
/// memory that contains their code.
type CompiledUnit = (Vec<BodyFn>, Arc<dyn Any + Send + Sync>);

fn compile_pieces(
    isa: &OwnedTargetIsa,
    exe: &Executable,
    pieces: &[Piece<'_>],
) -> Result<CompiledUnit, CodegenError> {
    let builder = JITBuilder::with_isa(isa.clone(), cranelift_module::default_libcall_names());
    let mut module = JITModule::new(builder);
    let mut frontend = FunctionBuilderContext::new();
    let mut ids: Vec<FuncId> = Vec::with_capacity(pieces.len());
    for &(function, piece) in pieces {
        match generate(&mut module, &mut frontend, exe, function, piece) {
            Ok(id) => ids.push(id),
            Err(error) => {
                // SAFETY: no address of the unit's code has been returned.
                unsafe { module.free_memory() };
                return Err(CodegenError::Internal {
                    function: function.name.as_str().into(),
                    message: error.to_string(),
                    ir: String::new(),
                });
            }
        }
    }
    if let Err(error) = module.finalize_definitions() {
        return Err(CodegenError::Host(error.to_string()));
    }
    let entries = ids.into_iter().map(|id| {
        let code = module.get_finalized_function(id);
        // SAFETY: `generate` created this function with the signature of `BodyFn`.
        unsafe { std::mem::transmute::<*const u8, BodyFn>(code) }
    });
    let entries = entries.collect();
    Ok((entries, Arc::new(UnitMemory::new(module))))
}

/// Generates and compiles the machine function of one piece (a range of instructions) of a bytecode function.
fn generate(
    module: &mut JITModule,
    frontend: &mut FunctionBuilderContext,
    exe: &Executable,
    function: &VmFunction,
    piece: usize,
) -> Result<FuncId, Box<ModuleError>> {
    let mut sig = module.make_signature();
    sig.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I32)]);
    sig.returns.push(AbiParam::new(types::I64));
    let id = module.declare_anonymous_function(&sig)?;
    let mut ctx = Context::new();
    ctx.func.signature = sig.clone();
    let first = piece * BODY_PIECE;
    let end = function.instrs.len().min(first + BODY_PIECE);
    let mut b = FunctionBuilder::new(&mut ctx.func, frontend);
    let mut body = BodyGen::begin(&mut b, &sig, first, end);
    for at in first..end {
        b.switch_to_block(body.blocks[at - first]);
        body.instruction(&mut b, exe, at, function.instrs[at]);
    }
    for (block, at) in std::mem::take(&mut body.exits) {
        b.switch_to_block(block);
        body.exit_with(&mut b, JUMP | at as u64);
    }
    b.switch_to_block(body.exit);
    let code = b.block_params(body.exit)[0];
    b.ins().return_(&[code]);
    b.seal_all_blocks();
    b.finalize(module.target_config());
    module.define_function(id, &mut ctx)?;
    Ok(id)
}

/// The state for generating the machine code of a piece (a range of instructions) of a bytecode function. Only the values in
/// this struct are live from one instruction to the next, so execution can start at any instruction.
struct BodyGen {
    /// The address of the [`BodyContext`](pliant_exec::native_body_abi::BodyContext), which the VM passes as an argument to every
    /// machine function of a bytecode function.
    context: Value,
    /// The address of the VM's attention word, an integer that changes when running functions must stop or poll. If the word
    /// changes, the generated code returns to the VM.
    attention: Value,
    /// The address of [`BodyEntries`], the table of runtime functions that the generated code calls.
    entries: Value,
    /// The signature of all functions in [`BodyEntries`].
    entry_sig: SigRef,
    /// For each bytecode instruction of the piece (the range of instructions that is compiled), the first basic block of its
    /// machine code.
    blocks: Vec<Block>,
    /// The index, in the bytecode function, of the first instruction of the piece (the range of instructions that is compiled).
    first: usize,
    /// The basic block through which the piece (the compiled range of instructions) returns to the VM. Its parameter is the
    /// return code.
    exit: Block,
    /// The basic blocks that leave the piece (the compiled range of instructions) for another piece, each with the index of the
    /// instruction at which execution continues.
    exits: Vec<(Block, usize)>,
}

impl BodyGen {
    /// Begins the machine function for the bytecode instructions `first..end`: emits an entry block
    /// that branches to the instruction at which the VM resumes the function.
    fn begin(b: &mut FunctionBuilder<'_>, sig: &Signature, first: usize, end: usize) -> BodyGen {
        let start = b.create_block();
        b.append_block_params_for_function_params(start);
        b.switch_to_block(start);
        let (context, at) = (b.block_params(start)[0], b.block_params(start)[1]);
        let field = |b: &mut FunctionBuilder<'_>, offset: usize| {
            b.ins().load(types::I64, constant_mem_flags(), context, offset as i32)
        };
        let (attention, entries) = (field(b, OFFSET_ATTENTION), field(b, OFFSET_ENTRIES));
        let entry_sig = b.import_signature(sig.clone());
        let blocks: Vec<Block> = (first..end).map(|_| b.create_block()).collect();
        let (exit, invalid) = (b.create_block(), b.create_block());
        b.append_block_param(exit, types::I64);
        let mut switch = Switch::new();
        for (offset, &block) in blocks.iter().enumerate() {
            switch.set_entry((first + offset) as u128, block);
        }
        switch.emit(b, at, invalid);
        b.switch_to_block(invalid);
        b.set_cold_block(invalid);
        let exits = Vec::new();
        let body = BodyGen { context, attention, entries, entry_sig, blocks, first, exit, exits };
        // The driver requests only instructions of this piece. Otherwise, the driver reports that `FAILED` has no
        // recorded error.
        body.exit_with(b, FAILED);
        body
    }

    /// Ends the current basic block: the piece (the compiled range of instructions) returns the constant `code` to the VM.
    fn exit_with(&self, b: &mut FunctionBuilder<'_>, code: u64) {
        let code = b.ins().iconst(types::I64, code as i64);
        b.ins().jump(self.exit, &[BlockArg::Value(code)]);
    }

    /// Returns the basic block to which a branch to instruction `at` jumps. If the instruction is in another piece (range of
    /// instructions) of the bytecode function, returns a new block that leaves the current piece.
    fn target(&mut self, b: &mut FunctionBuilder<'_>, at: usize) -> Block {
        if let Some(&block) = at.checked_sub(self.first).and_then(|k| self.blocks.get(k)) {
            return block;
        }
        let block = b.create_block();
        self.exits.push((block, at));
        block
    }

    /// Generates the code of the bytecode instruction at index `at`.
    fn instruction(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        exe: &Executable,
        at: usize,
        instr: Instr,
    ) {
        // The validator has checked that targets of jumps are in the body.
        let jump_target = |offset: i32| (at as i64 + i64::from(offset)) as usize;
        match instr {
            Instr::Ret { reg } => self.exit_with(b, RETURN | u64::from(reg.0)),
            Instr::Goto { offset } => {
                self.check_backward(b, at, jump_target(offset));
                let block = self.target(b, jump_target(offset));
                b.ins().jump(block, &[]);
            }
            Instr::If { false_offset, .. } => {
                self.check_backward(b, at, jump_target(false_offset));
                let entry = offset_of!(BodyEntries, condition);
                let holds = self.call_entry(b, entry, at as u32);
                let failed = b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, holds, 1);
                self.exit_if(b, failed, holds);
                let (yes, no) = (self.target(b, at + 1), self.target(b, jump_target(false_offset)));
                b.ins().brif(holds, yes, &[], no, &[]);
            }
            Instr::Call { func, .. } => {
                self.check_attention(b, at);
                let entry = entry_of_callee(&exe.funcs()[func as usize]);
                let code = self.call_entry(b, entry, at as u32);
                let next = self.target(b, at + 1);
                b.ins().brif(code, self.exit, &[BlockArg::Value(code)], next, &[]);
            }
        }
    }

    /// Calls the runtime function whose pointer is at byte offset `entry` in [`BodyEntries`], with the execution context and
    /// `operand` as arguments. Returns the result of the function.
    fn call_entry(&self, b: &mut FunctionBuilder<'_>, entry: usize, operand: u32) -> Value {
        let callee = b.ins().load(types::I64, constant_mem_flags(), self.entries, entry as i32);
        let operand = b.ins().iconst(types::I32, i64::from(operand));
        let call = b.ins().call_indirect(self.entry_sig, callee, &[self.context, operand]);
        b.inst_results(call)[0]
    }

    /// Emits a return of `code` from the piece (the compiled range of instructions) to the VM if `condition` is nonzero.
    fn exit_if(&self, b: &mut FunctionBuilder<'_>, condition: Value, code: Value) {
        let next = b.create_block();
        b.ins().brif(condition, self.exit, &[BlockArg::Value(code)], next, &[]);
        b.switch_to_block(next);
    }

    /// Emits an exit from the piece (the compiled range of instructions) for the case that the VM's attention word has changed,
    /// which requests an interrupt or a poll. The VM then resumes at instruction `at`.
    fn check_attention(&self, b: &mut FunctionBuilder<'_>, at: usize) {
        let now = b.ins().atomic_load(types::I64, mem_flags(), self.attention);
        let seen = b.ins().load(types::I64, mem_flags(), self.context, OFFSET_SEEN as i32);
        let differs = b.ins().icmp(IntCC::NotEqual, now, seen);
        let code = b.ins().iconst(types::I64, (ATTENTION | at as u64) as i64);
        self.exit_if(b, differs, code);
    }

    /// If the branch from instruction `at` to `target` goes backward, emits a check for interrupts before it, so that interrupts
    /// also stop loops without calls.
    fn check_backward(&self, b: &mut FunctionBuilder<'_>, at: usize, target: usize) {
        if target <= at {
            self.check_attention(b, at);
        }
    }
}

/// Returns the byte offset in [`BodyEntries`] of the runtime function that executes a call of `callee`.
fn entry_of_callee(callee: &FuncDef) -> usize {
    match callee {
        FuncDef::Vm(_) => offset_of!(BodyEntries, function),
        FuncDef::LoopFunc(_) => offset_of!(BodyEntries, loop_func),
        FuncDef::Packed(name) => match &**name {
            "vm.builtin.invoke_closure"
            | "vm.builtin.invoke_closure_tail"
            | "vm.builtin.invoke_pure_closure" => offset_of!(BodyEntries, closure),
            "vm.builtin.call_tir_dyn" => offset_of!(BodyEntries, dynamic),
            "vm.builtin.kill_object"
            | "vm.builtin.free_tensor"
            | "vm.builtin.free_storage"
            | "vm.builtin.null_value" => offset_of!(BodyEntries, release),
            name if builtin_arity(name).is_some() => offset_of!(BodyEntries, builtin),
            _ => offset_of!(BodyEntries, packed),
        },
    }
}
