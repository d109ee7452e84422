//! The state of a machine function under construction, and the generation of its error checks.

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, InstBuilder, MemFlagsData, Signature, Type, Value, types,
};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::{Module, ModuleError};
use pliant_codegen::call_arguments::message_status;
use pliant_codegen::interrupt_polling::POLL_PERIOD_LOG2;
use pliant_exec::abi::{MAX_ASSERT_ARGS, OFFSET_ASSERT_ARGS};
use pliant_exec::ahead_of_time_abi::Import;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, PrimFunc, Ty, Var, VarTy};
use pliant_kernels::{ExternFn, ExternTy, extern_fn};
use pliant_tensor::CheckFailure;
use pliant_tir::overflow_analysis::checked_terms;
use rustc_hash::FxHashMap;

use crate::buffer_accesses::{BufferLocation, SizeLocation};
use crate::compilation_unit::Unit;
use crate::debug_bounds_checks::Limits;
use crate::value_representations::{ExprValue, scalar_type};

/// The reason why a function could not be generated.
pub(crate) enum GenError {
    /// The function uses a construct that this backend does not support.
    Unsupported(String),
    /// A bug in the compiler: the message, and the intermediate code of the function, which may be empty.
    Internal(String, String),
}

impl From<ModuleError> for GenError {
    fn from(error: ModuleError) -> Self {
        GenError::Internal(error.to_string(), String::new())
    }
}

/// The result of generating code: a value, or the reason why no code could be generated.
pub(crate) type Gen<T> = Result<T, GenError>;

/// Returns an internal error without intermediate code.
pub(crate) fn internal<T>(message: impl Into<String>) -> Gen<T> {
    Err(GenError::Internal(message.into(), String::new()))
}

/// Returns the error for a construct that this backend does not support.
pub(crate) fn unsupported<T>(description: impl Into<String>) -> Gen<T> {
    Err(GenError::Unsupported(description.into()))
}

/// Returns the machine type of a parameter or result of an external (linked) native function.
pub(crate) fn extern_type(ty: ExternTy) -> Type {
    match ty {
        ExternTy::I32 => types::I32,
        ExternTy::I64 | ExternTy::Ptr => types::I64,
        ExternTy::F32 => types::F32,
        ExternTy::F64 => types::F64,
    }
}

/// Returns the signature of a machine function that follows the C calling convention.
pub(crate) fn abi_signature(module: &dyn Module, params: &[Type], result: Type) -> Signature {
    let mut sig = module.make_signature();
    sig.params.extend(params.iter().map(|&t| AbiParam::new(t)));
    sig.returns.push(AbiParam::new(result));
    sig
}

/// Memory flags of loads and stores that cannot trap, because their bounds were checked before. The
/// address may have any alignment.
pub(crate) fn mem_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Memory flags of loads from memory that does not change during a call of the loop function: the argument array and the
/// `KernelRuntime` struct.
pub(crate) fn constant_mem_flags() -> MemFlagsData {
    MemFlagsData::trusted().with_readonly().with_can_move()
}

/// The state of one machine function under construction.
pub(crate) struct FuncGen<'a, 'b> {
    /// The loop function that is compiled.
    pub f: &'a PrimFunc,
    /// The name of the loop function.
    pub name: &'a str,
    /// The builder of the machine function.
    pub b: FunctionBuilder<'b>,
    /// The compilation unit to which the machine function belongs.
    pub unit: &'a mut Unit,
    /// The error messages of all checks of the loop function. A check that fails returns the 1-based position of its
    /// message as the status.
    pub messages: &'a mut Vec<Arc<str>>,
    /// The machine value that contains the address of the
    /// [`KernelRuntime`](pliant_exec::abi::KernelRuntime).
    pub runtime: Value,
    /// The values of the variables in scope.
    pub vars: FxHashMap<Var, ExprValue>,
    /// The locations of the buffers in scope.
    pub locations: FxHashMap<Buffer, BufferLocation>,
    /// The range of valid linear indices of each buffer, if the options request access checks.
    pub limits: FxHashMap<Buffer, Limits>,
    /// For each variable that stands for a dim or stride, where its value is stored in the arguments. Statements load the values
    /// that they use. Empty unless [`many_arguments`](Self::many_arguments) is set.
    pub size_locations: FxHashMap<Var, SizeLocation>,
    /// The values of expressions already computed for the current statement, in blocks that dominate the current block.
    pub memo: FxHashMap<Expr, ExprValue>,
    /// The block to which failed checks branch. Its parameter is the status of the failed check. The block frees open workspaces,
    /// if any, and returns the status.
    pub fail: Block,
    /// Number of bytes of the machine function's stack frame that buffers occupy so far.
    pub stack_bytes: u64,
    /// Number of bytes of the machine function's stack frame that are allocated so far for operands that calls receive by address.
    pub call_stack_bytes: u64,
    /// The number of loops around the current statement in this machine function.
    pub loop_depth: usize,
    /// Whether each statement loads the argument addresses and sizes that it uses. Set for
    /// functions with many arguments, because preloaded values would spill.
    pub many_arguments: bool,
    /// Whether this function is the body of a parallel loop.
    pub in_parallel: bool,
    /// The buffers that the body of a parallel loop shares with other threads.
    pub shared_buffers: Vec<Buffer>,
}

impl FuncGen<'_, '_> {
    /// Emits a check: at run time, the loop function returns `status` as an error if `failed` is nonzero.
    pub fn fail_if(&mut self, failed: Value, status: Value) {
        let ok = self.b.create_block();
        self.b.ins().brif(failed, self.fail, &[BlockArg::Value(status)], ok, &[]);
        self.b.seal_block(ok);
        self.b.switch_to_block(ok);
    }

    /// Emits a check: at run time, the loop function fails with `message` if `failed` is nonzero. The error is a shape error,
    /// unless a prefix of the message marks it as another kind ([`CheckFailure`]).
    pub fn shape_error_if(&mut self, failed: Value, message: &str) {
        self.error_if(failed, CheckFailure::Shape.mark(message));
    }

    /// Emits a check: at run time, the loop function fails with exactly this message, without an added prefix, if `failed` is
    /// nonzero.
    pub fn error_if(&mut self, failed: Value, message: impl Into<Arc<str>>) {
        let status = message_status(self.messages, message);
        let status = self.b.ins().iconst(types::I64, status);
        self.fail_if(failed, status);
    }

    /// Emits checks: at run time, the loop function fails if any of the values `failed` is nonzero. The error message contains the
    /// values of the first [`MAX_ASSERT_ARGS`] of the integer expressions `values`.
    pub fn error_with_exprs_if(
        &mut self,
        failed: &[Value],
        message: impl Into<Arc<str>>,
        values: &[Expr],
    ) -> Gen<()> {
        let values = &values[..values.len().min(MAX_ASSERT_ARGS)];
        self.error_with_values_if(failed, message, |g| {
            values.iter().map(|&e| g.scalar(e)).collect()
        })
    }

    /// Emits checks: at run time, the loop function fails if any of the values `failed` is nonzero; each is tested by a branch of
    /// its own. The failure path computes the integers that the message contains, and stores the status and the integers in the
    /// runtime, which formats the message.
    pub fn error_with_values_if(
        &mut self,
        failed: &[Value],
        message: impl Into<Arc<str>>,
        values: impl FnOnce(&mut Self) -> Gen<Vec<Value>>,
    ) -> Gen<()> {
        let status = message_status(self.messages, message);
        let (failure, done) = (self.b.create_block(), self.b.create_block());
        for &value in failed {
            let ok = self.b.create_block();
            self.b.ins().brif(value, failure, &[], ok, &[]);
            self.b.seal_block(ok);
            self.b.switch_to_block(ok);
        }
        self.b.ins().jump(done, &[]);
        self.b.seal_block(failure);
        self.b.seal_block(done);
        self.b.switch_to_block(failure);
        self.b.set_cold_block(failure);
        let memo = self.memo.clone();
        let status = self.b.ins().iconst(types::I64, status);
        let offset = OFFSET_ASSERT_ARGS as i32;
        let assert_args = self.b.ins().load(types::I64, constant_mem_flags(), self.runtime, offset);
        self.b.ins().store(mem_flags(), status, assert_args, 0);
        for (i, value) in values(self)?.into_iter().enumerate() {
            self.b.ins().store(mem_flags(), value, assert_args, (i as i32 + 1) * 8);
        }
        self.b.ins().jump(self.fail, &[BlockArg::Value(status)]);
        self.memo = memo;
        self.b.switch_to_block(done);
        Ok(())
    }

    /// Ends the machine function: the current block returns success, and the block `outer_fail` returns the status that
    /// it receives.
    pub fn finish_body(&mut self, outer_fail: Block) {
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.ins().return_(&[zero]);
        self.b.switch_to_block(outer_fail);
        let status = self.b.block_params(outer_fail)[0];
        self.b.ins().return_(&[status]);
        self.b.seal_all_blocks();
    }

    /// Creates a block for failed checks, marked as rarely executed. Its parameter is the status.
    pub fn fail_block(b: &mut FunctionBuilder<'_>) -> Block {
        let block = b.create_block();
        b.append_block_param(block, types::I64);
        b.set_cold_block(block);
        block
    }

    /// Emits a poll of the interrupt flag: at run time, the loop function fails with `STATUS_CANCELLED` if the flag is set. Emits
    /// nothing if the options disable polls.
    pub fn poll_interrupt(&mut self) {
        if !self.unit.check_interrupt {
            return;
        }
        let offset = pliant_exec::abi::OFFSET_INTERRUPT as i32;
        let flag = self.b.ins().load(types::I64, constant_mem_flags(), self.runtime, offset);
        // Cranelift would merge plain loads of this address across iterations that store nothing.
        let is_set = self.b.ins().atomic_load(types::I8, mem_flags(), flag);
        let status = self.b.ins().iconst(types::I64, pliant_exec::abi::STATUS_CANCELLED);
        self.fail_if(is_set, status);
    }

    /// Emits a poll of the interrupt flag that runs in the iterations whose loop variable is a multiple of `2 ** POLL_PERIOD_LOG2`.
    pub fn poll_interrupt_periodically(&mut self, loop_var: Value) {
        if !self.unit.check_interrupt {
            return;
        }
        let (poll, resume) = (self.b.create_block(), self.b.create_block());
        let low = self.b.ins().band_imm_s(loop_var, (1 << POLL_PERIOD_LOG2) - 1);
        self.b.ins().brif(low, resume, &[], poll, &[]);
        self.b.seal_block(poll);
        self.b.switch_to_block(poll);
        self.poll_interrupt();
        self.b.ins().jump(resume, &[]);
        self.b.seal_block(resume);
        self.b.switch_to_block(resume);
    }

    /// Emits a call of the external native function `name`, as [`call_extern_fn`](Self::call_extern_fn) does. An unknown name is
    /// an internal error.
    pub fn call_linked(&mut self, name: &str, args: &[Value]) -> Gen<Value> {
        let Some(f) = extern_fn(name) else {
            return internal(format!("there is no library function named '{name}'"));
        };
        self.call_extern_fn(f, args)
    }

    /// Emits a call of an external native function. If the function takes the runtime, the call passes the runtime as an additional
    /// first argument. At run time, a nonzero result of such a function fails the loop function with the result as its status.
    pub fn call_extern_fn(&mut self, f: &'static ExternFn, args: &[Value]) -> Gen<Value> {
        let import = Import::Function(f.name.to_string());
        let callee = self.unit.import_address(&mut self.b, import, f.address);
        let mut params = Vec::with_capacity(f.params.len() + 1);
        if f.runtime {
            params.push(extern_type(ExternTy::Ptr));
        }
        params.extend(f.params.iter().map(|&p| extern_type(p)));
        let sig = abi_signature(&*self.unit.module, &params, extern_type(f.result));
        let sig = self.b.import_signature(sig);
        let mut all = Vec::with_capacity(args.len() + 1);
        if f.runtime {
            all.push(self.runtime);
        }
        all.extend_from_slice(args);
        let call = self.b.ins().call_indirect(sig, callee, &all);
        let result = self.b.inst_results(call)[0];
        if f.runtime {
            let failed = self.b.ins().icmp_imm_s(IntCC::NotEqual, result, 0);
            self.fail_if(failed, result);
        }
        Ok(result)
    }

    /// Generates code for a scalar expression and returns its value. Returns an internal error if the expression is a vector.
    pub fn scalar(&mut self, e: Expr) -> Gen<Value> {
        match self.expr(e)? {
            ExprValue::Scalar(v) => Ok(v),
            _ => internal("the value of an expression is a vector, expected a scalar"),
        }
    }

    /// Returns the machine type of a scalar variable.
    pub fn var_type(&self, v: Var) -> Type {
        match self.f.var(v).ty {
            VarTy::Value(Ty { dtype, .. }) => scalar_type(dtype),
            VarTy::Handle => types::I64,
        }
    }

    /// Returns the constant 0 of a machine type; for a vector type, 0 in all lanes.
    pub fn zero(&mut self, ty: Type) -> Value {
        let lane = ty.lane_type();
        let zero = match lane {
            types::F32 => self.b.ins().f32const(0.0),
            types::F64 => self.b.ins().f64const(0.0),
            int => self.b.ins().iconst(int, 0),
        };
        if ty.is_vector() { self.b.ins().splat(ty, zero) } else { zero }
    }

    /// Emits a load of the address of a runtime function. `offset` is the byte offset of its pointer in the `KernelRuntime` struct.
    pub fn runtime_fn(&mut self, offset: usize) -> Value {
        self.b.ins().load(types::I64, constant_mem_flags(), self.runtime, offset as i32)
    }

    /// Generates code for an expression that is a size. At run time, an overflow in its sums and products fails the loop function
    /// with `overflow_message`, because bounds checks rely on exact sizes.
    pub fn checked_size(&mut self, e: Expr, overflow_message: &str) -> Gen<Value> {
        let mut terms = Vec::new();
        checked_terms(self.f, e, &mut |term| terms.push(term));
        for term in terms {
            let ExprData::Binary(op, a, b) = *self.f.expr(term) else { continue };
            let (a, b) = (self.scalar(a)?, self.scalar(b)?);
            let (_, overflow) = match op {
                BinOp::Add => self.b.ins().sadd_overflow(a, b),
                BinOp::Sub => self.b.ins().ssub_overflow(a, b),
                _ => self.b.ins().smul_overflow(a, b),
            };
            self.shape_error_if(overflow, overflow_message);
        }
        self.scalar(e)
    }
}
