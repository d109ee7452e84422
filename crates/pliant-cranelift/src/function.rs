//! The state of one machine function under construction, and its failure paths.

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, InstBuilder, MemFlagsData, Signature, Type, Value, types,
};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::{Module, ModuleError};
use pliant_exec::abi::{MAX_ASSERT_ARGS, OFFSET_ASSERT_ARGS};
use pliant_ir::tir::{Buffer, Expr, PrimFunc, Ty, Var, VarTy};
use pliant_kernels::{ExternFn, ExternTy, extern_fn};
use pliant_tensor::CheckFailure;
use rustc_hash::FxHashMap;

use crate::access_checks::Limits;
use crate::memory::{Place, SizeAt};
use crate::unit::Unit;
use crate::value::{V, clif};

/// Why a function could not be generated.
pub(crate) enum GenError {
    /// This backend has no code for something.
    Unsupported(String),
    /// A defect: message and intermediate code.
    Internal(String, String),
}

impl From<ModuleError> for GenError {
    fn from(error: ModuleError) -> Self {
        GenError::Internal(error.to_string(), String::new())
    }
}

pub(crate) type Gen<T> = Result<T, GenError>;

/// A defect without intermediate code.
pub(crate) fn internal<T>(message: impl Into<String>) -> Gen<T> {
    Err(GenError::Internal(message.into(), String::new()))
}

/// Something that this backend has no code for.
pub(crate) fn unsupported<T>(what: impl Into<String>) -> Gen<T> {
    Err(GenError::Unsupported(what.into()))
}

pub(crate) fn extern_type(ty: ExternTy) -> Type {
    match ty {
        ExternTy::I32 => types::I32,
        ExternTy::I64 | ExternTy::Ptr => types::I64,
        ExternTy::F32 => types::F32,
        ExternTy::F64 => types::F64,
    }
}

/// A C function of these types.
pub(crate) fn abi_signature(module: &impl Module, params: &[Type], result: Type) -> Signature {
    let mut sig = module.make_signature();
    sig.params.extend(params.iter().map(|&t| AbiParam::new(t)));
    sig.returns.push(AbiParam::new(result));
    sig
}

/// The flags of accesses to memory that checks have shown to be valid, at any alignment.
pub(crate) fn mem() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// The flags of accesses to memory that does not change while the function runs: arguments and the runtime.
pub(crate) fn constant_mem() -> MemFlagsData {
    MemFlagsData::trusted().with_readonly().with_can_move()
}

/// One machine function under construction.
pub(crate) struct FuncGen<'a, 'b> {
    pub f: &'a PrimFunc,
    pub b: FunctionBuilder<'b>,
    pub unit: &'a mut Unit,
    /// The messages of the whole loop function. The status of a failed check is the position of its message, counted from 1.
    pub messages: &'a mut Vec<Arc<str>>,
    pub runtime: Value,
    pub vars: FxHashMap<Var, V>,
    pub places: FxHashMap<Buffer, Place>,
    /// The range of each buffer's linear indices, if accesses are checked.
    pub limits: FxHashMap<Buffer, Limits>,
    /// The locations of the size variables in the arguments. Empty unless there are many arguments, whose sizes each statement
    /// loads for itself.
    pub sizes: FxHashMap<Var, SizeAt>,
    /// The values of this statement's expressions that were computed in blocks dominating the current one.
    pub memo: FxHashMap<Expr, V>,
    /// The block that failures branch to with their status: the function's exit, or the release of a workspace.
    pub fail: Block,
    /// Bytes of stack that the buffers of this function take so far.
    pub stack_bytes: u64,
    /// Bytes of stack that operands passed by address to calls take so far.
    pub call_stack_bytes: u64,
    /// The number of loops around the current statement, in this machine function.
    pub depth: usize,
    /// Whether there are so many tensor arguments that each statement loads the addresses and sizes that it uses.
    pub many_arguments: bool,
    /// Whether this function is the body of a parallel loop.
    pub in_parallel: bool,
    /// The buffers that a parallel body shares with other threads.
    pub shared: Vec<Buffer>,
}

impl FuncGen<'_, '_> {
    /// Branches to the failure path with `status` if `bad` holds.
    pub fn fail_if(&mut self, bad: Value, status: Value) {
        let ok = self.b.create_block();
        self.b.ins().brif(bad, self.fail, &[BlockArg::Value(status)], ok, &[]);
        self.b.seal_block(ok);
        self.b.switch_to_block(ok);
    }

    /// Fails the loop function with a message if `bad` holds. A message without a mark becomes a shape error.
    pub fn check_not(&mut self, bad: Value, message: &str) {
        self.assert_not(bad, CheckFailure::Shape.mark(message));
    }

    /// Fails the loop function with exactly this message if `bad` holds.
    pub fn assert_not(&mut self, bad: Value, message: impl Into<Arc<str>>) {
        let status = self.message_status(message);
        let status = self.b.ins().iconst(types::I64, status);
        self.fail_if(bad, status);
    }

    /// Fails the loop function if `bad` holds, with a message that contains the first [`MAX_ASSERT_ARGS`] of these integers.
    pub fn check_telling(
        &mut self,
        bad: Value,
        message: impl Into<Arc<str>>,
        values: &[Expr],
    ) -> Gen<()> {
        let values = &values[..values.len().min(MAX_ASSERT_ARGS)];
        self.fail_with(bad, message, |g| values.iter().map(|&e| g.scalar(e)).collect())
    }

    /// Fails the loop function if `bad` holds. The status and the integers of the message go to the memory that the runtime
    /// provides (`told`). Only the failure path computes the integers.
    pub fn fail_with(
        &mut self,
        bad: Value,
        message: impl Into<Arc<str>>,
        values: impl FnOnce(&mut Self) -> Gen<Vec<Value>>,
    ) -> Gen<()> {
        let status = self.message_status(message);
        let (failed, ok) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(bad, failed, &[], ok, &[]);
        self.b.seal_block(failed);
        self.b.seal_block(ok);
        self.b.switch_to_block(failed);
        self.b.set_cold_block(failed);
        let memo = self.memo.clone();
        let status = self.b.ins().iconst(types::I64, status);
        let offset = OFFSET_ASSERT_ARGS as i32;
        let room = self.b.ins().load(types::I64, constant_mem(), self.runtime, offset);
        self.b.ins().store(mem(), status, room, 0);
        for (i, value) in values(self)?.into_iter().enumerate() {
            self.b.ins().store(mem(), value, room, (i as i32 + 1) * 8);
        }
        self.b.ins().jump(self.fail, &[BlockArg::Value(status)]);
        self.memo = memo;
        self.b.switch_to_block(ok);
        Ok(())
    }

    /// The status of a message, which is added to the messages if it is new.
    pub fn message_status(&mut self, message: impl Into<Arc<str>>) -> i64 {
        let message = message.into();
        let index = match self.messages.iter().position(|m| *m == message) {
            Some(index) => index,
            None => {
                self.messages.push(message);
                self.messages.len() - 1
            }
        };
        index as i64 + 1
    }

    /// Ends the function: returns success from the current block, and the status from `outer_fail`.
    pub fn finish_body(&mut self, outer_fail: Block) {
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.ins().return_(&[zero]);
        self.b.switch_to_block(outer_fail);
        let status = self.b.block_params(outer_fail)[0];
        self.b.ins().return_(&[status]);
        self.b.seal_all_blocks();
    }

    /// A cold block for failures, whose parameter is the status.
    pub fn fail_block(b: &mut FunctionBuilder<'_>) -> Block {
        let block = b.create_block();
        b.append_block_param(block, types::I64);
        b.set_cold_block(block);
        block
    }

    /// Fails with `STATUS_CANCELLED` if the interrupt flag is set.
    pub fn poll_interrupt(&mut self) {
        if !self.unit.check_interrupt {
            return;
        }
        let offset = pliant_exec::abi::OFFSET_INTERRUPT as i32;
        let flag = self.b.ins().load(types::I64, constant_mem(), self.runtime, offset);
        // The load is atomic, because plain loads of one address are merged across iterations that store nothing.
        let set = self.b.ins().atomic_load(types::I8, mem(), flag);
        let status = self.b.ins().iconst(types::I64, pliant_exec::abi::STATUS_CANCELLED);
        self.fail_if(set, status);
    }

    /// Polls the interrupt flag in iterations whose loop variable is a multiple of `2 ** POLL_SHIFT`.
    pub fn poll_sometimes(&mut self, turn: Value) {
        if !self.unit.check_interrupt {
            return;
        }
        let (look, go_on) = (self.b.create_block(), self.b.create_block());
        let low = self.b.ins().band_imm_s(turn, (1 << crate::stmt::POLL_SHIFT) - 1);
        self.b.ins().brif(low, go_on, &[], look, &[]);
        self.b.seal_block(look);
        self.b.switch_to_block(look);
        self.poll_interrupt();
        self.b.ins().jump(go_on, &[]);
        self.b.seal_block(go_on);
        self.b.switch_to_block(go_on);
    }

    /// Calls a linked function. If the function takes the runtime, the runtime precedes the arguments, and a nonzero result fails
    /// the loop function with that status.
    pub fn call_linked(&mut self, name: &str, args: &[Value]) -> Gen<Value> {
        let Some(f) = extern_fn(name) else {
            return internal(format!("no linked function {name}"));
        };
        self.call_extern_fn(f, args)
    }

    pub fn call_extern_fn(&mut self, f: &'static ExternFn, args: &[Value]) -> Gen<Value> {
        let callee = self.unit.extern_ref(&mut self.b, f)?;
        let mut all = Vec::with_capacity(args.len() + 1);
        if f.runtime {
            all.push(self.runtime);
        }
        all.extend_from_slice(args);
        let call = self.b.ins().call(callee, &all);
        let result = self.b.inst_results(call)[0];
        if f.runtime {
            let bad = self.b.ins().icmp_imm_s(IntCC::NotEqual, result, 0);
            self.fail_if(bad, result);
        }
        Ok(result)
    }

    /// A scalar expression.
    pub fn scalar(&mut self, e: Expr) -> Gen<Value> {
        match self.expr(e)? {
            V::S(v) => Ok(v),
            _ => internal("a vector stands where a scalar is expected"),
        }
    }

    /// The machine type of a scalar variable.
    pub fn var_type(&self, v: Var) -> Type {
        match self.f.var(v).ty {
            VarTy::Value(Ty { dtype, .. }) => clif(dtype),
            VarTy::Handle => types::I64,
        }
    }
}
