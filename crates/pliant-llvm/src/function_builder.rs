//! The state of a machine function under construction, and the generation of its error checks.

use std::sync::Arc;

use inkwell::AtomicOrdering;
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicValue, FunctionValue, InstructionValue, IntValue, PhiValue, PointerValue,
};
use pliant_codegen::call_arguments::message_status;
use pliant_exec::abi::{MAX_ASSERT_ARGS, OFFSET_ASSERT_ARGS, OFFSET_INTERRUPT, STATUS_CANCELLED};
use pliant_exec::ahead_of_time_abi::Import;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, PrimFunc, Ty, Var, VarTy};
use pliant_kernels::{ExternFn, extern_fn};
use pliant_tensor::CheckFailure;
use pliant_tir::overflow_analysis::checked_terms;
use rustc_hash::FxHashMap;

use crate::buffer_accesses::BufferLocation;
use crate::compilation_unit::Unit;
use crate::debug_bounds_checks::Limits;
use crate::values::Value;

/// The reason why a function could not be generated.
pub(crate) enum GenError {
    /// The function uses a construct that this backend does not support.
    Unsupported(String),
    /// A bug in the compiler.
    Internal(String),
}

impl From<BuilderError> for GenError {
    fn from(error: BuilderError) -> Self {
        GenError::Internal(format!("LLVM rejects an instruction of the generated code: {error}"))
    }
}

/// The result of generating code: a value, or the reason why no code could be generated.
pub(crate) type Gen<T> = Result<T, GenError>;

/// Returns an internal error.
pub(crate) fn internal<T>(message: impl Into<String>) -> Gen<T> {
    Err(GenError::Internal(message.into()))
}

/// Returns the error for a construct that this backend does not support.
pub(crate) fn unsupported<T>(description: impl Into<String>) -> Gen<T> {
    Err(GenError::Unsupported(description.into()))
}

/// A basic block to which failed checks branch, and the phi instruction in it that receives the status of the failed check.
#[derive(Clone, Copy)]
pub(crate) struct FailBlock<'ctx> {
    pub block: BasicBlock<'ctx>,
    pub status: PhiValue<'ctx>,
}

/// The values of expressions computed so far, in a stack of scopes. Each scope belongs to blocks that do not dominate the code
/// after the scope, so its values are dropped at its end.
pub(crate) struct Memo<'ctx>(Vec<FxHashMap<Expr, Value<'ctx>>>);

impl Default for Memo<'_> {
    fn default() -> Self {
        Memo(vec![FxHashMap::default()])
    }
}

impl<'ctx> Memo<'ctx> {
    pub fn get(&self, e: Expr) -> Option<Value<'ctx>> {
        self.0.iter().rev().find_map(|scope| scope.get(&e).copied())
    }

    pub fn insert(&mut self, e: Expr, v: Value<'ctx>) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(e, v);
        }
    }

    pub fn push_scope(&mut self) {
        self.0.push(FxHashMap::default());
    }

    pub fn pop_scope(&mut self) {
        self.0.pop();
    }

    /// Removes the recorded values of all expressions, also those of outer scopes, so that later uses compute the expressions
    /// again.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(FxHashMap::clear);
    }
}

/// The state of one machine function under construction.
pub(crate) struct FuncGen<'a, 'ctx> {
    /// The loop function that is compiled.
    pub f: &'a PrimFunc,
    /// The name of the loop function.
    pub name: &'a str,
    /// The builder of instructions, at the end of the current block.
    pub b: Builder<'ctx>,
    /// The builder that adds stack slots to the entry block.
    stack: Builder<'ctx>,
    /// The compilation unit to which the machine function belongs.
    pub unit: &'a Unit<'ctx>,
    /// The machine function.
    pub function: FunctionValue<'ctx>,
    /// The block after the entry block with the stack slots. The code of the function begins in it.
    start: BasicBlock<'ctx>,
    /// The error messages of all checks of the loop function. A check that fails returns the 1-based position of its
    /// message as the status.
    pub messages: &'a mut Vec<Arc<str>>,
    /// The address of the [`KernelRuntime`](pliant_exec::abi::KernelRuntime).
    pub runtime: PointerValue<'ctx>,
    /// The values of the variables in scope.
    pub vars: FxHashMap<Var, Value<'ctx>>,
    /// The locations of the buffers in scope.
    pub locations: FxHashMap<Buffer, BufferLocation<'ctx>>,
    /// The range of valid linear indices of each buffer, if the options request access checks.
    pub limits: FxHashMap<Buffer, Limits<'ctx>>,
    /// The values of expressions already computed for the current statement, in blocks that dominate the current block.
    pub memo: Memo<'ctx>,
    /// The block to which failed checks branch. It frees open workspaces, if any, and returns the status.
    pub fail: FailBlock<'ctx>,
    /// Number of bytes of the machine function's stack frame that buffers occupy so far.
    pub stack_bytes: u64,
    /// Number of bytes of the machine function's stack frame that are allocated so far for operands that calls receive by address.
    pub call_stack_bytes: u64,
    /// The number of loops around the current statement in this machine function.
    pub loop_depth: usize,
    /// Whether this function is the body of a parallel loop.
    pub in_parallel: bool,
    /// The buffers that the body of a parallel loop shares with other threads.
    pub shared_buffers: Vec<Buffer>,
}

impl<'a, 'ctx> FuncGen<'a, 'ctx> {
    /// Creates the state of a new machine function without code. The caller must set the field `runtime`, which is null at first.
    pub fn new(
        unit: &'a Unit<'ctx>,
        f: &'a PrimFunc,
        name: &'a str,
        function: FunctionValue<'ctx>,
        messages: &'a mut Vec<Arc<str>>,
    ) -> Gen<Self> {
        let (b, stack) = (unit.context.create_builder(), unit.context.create_builder());
        stack.position_at_end(unit.context.append_basic_block(function, "stack"));
        let start = unit.context.append_basic_block(function, "start");
        let fail = new_fail_block(unit, &b, function)?;
        b.position_at_end(start);
        Ok(FuncGen {
            f,
            name,
            b,
            stack,
            unit,
            function,
            start,
            messages,
            runtime: unit.pointer_type().into_pointer_type().const_null(),
            vars: FxHashMap::default(),
            locations: FxHashMap::default(),
            limits: FxHashMap::default(),
            memo: Memo::default(),
            fail,
            stack_bytes: 0,
            call_stack_bytes: 0,
            loop_depth: 0,
            in_parallel: false,
            shared_buffers: Vec::new(),
        })
    }

    /// Ends the machine function: the current block returns success, and the block for failed checks returns their status.
    pub fn finish(self) -> Gen<()> {
        self.b.build_return(Some(&self.i64(0)))?;
        self.b.position_at_end(self.fail.block);
        let status = self.fail.status.as_basic_value();
        self.b.build_return(Some(&status))?;
        self.stack.build_unconditional_branch(self.start)?;
        Ok(())
    }

    /// Adds an empty block to the machine function.
    pub fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.unit.context.append_basic_block(self.function, name)
    }

    /// Creates a block for failed checks. The builder stays at its position.
    pub fn fail_block(&self) -> Gen<FailBlock<'ctx>> {
        let here = self.current_block()?;
        let fail = new_fail_block(self.unit, &self.b, self.function)?;
        self.b.position_at_end(here);
        Ok(fail)
    }

    /// Returns the block in which the next instruction is placed.
    pub fn current_block(&self) -> Gen<BasicBlock<'ctx>> {
        match self.b.get_insert_block() {
            Some(block) => Ok(block),
            None => internal("the builder has no current block"),
        }
    }

    /// Allocates memory in the stack frame, aligned to 64 bytes if it is large enough for a vector.
    pub fn stack_slot(&self, bytes: u64) -> Gen<PointerValue<'ctx>> {
        let ty = self.unit.context.i8_type().array_type(bytes as u32);
        let slot = self.stack.build_alloca(ty, "")?;
        self.align(slot.as_instruction(), if bytes >= 64 { 64 } else { 8 })?;
        Ok(slot)
    }

    /// Allocates a stack slot for one value of type `ty`. LLVM's optimizer replaces the slot by registers.
    pub fn register(&self, ty: BasicTypeEnum<'ctx>) -> Gen<PointerValue<'ctx>> {
        Ok(self.stack.build_alloca(ty, "")?)
    }

    fn align(&self, instruction: Option<InstructionValue<'ctx>>, bytes: u32) -> Gen<()> {
        match instruction.map(|i| i.set_alignment(bytes)) {
            Some(Err(e)) => internal(format!("LLVM rejects an alignment: {e}")),
            _ => Ok(()),
        }
    }

    /// Emits a load of a value from memory that may have any alignment. The access cannot trap, because its bounds were checked
    /// before.
    pub fn load_value(&self, ty: BasicTypeEnum<'ctx>, at: PointerValue<'ctx>) -> Gen<Value<'ctx>> {
        let v = self.b.build_load(ty, at, "")?;
        self.align(v.as_instruction_value(), 1)?;
        Ok(v)
    }

    /// Loads an integer of `bytes` bytes exactly once, although other threads may change it: LLVM neither repeats nor merges atomic
    /// loads. The address is a multiple of its size.
    pub fn load_once(
        &self,
        ty: BasicTypeEnum<'ctx>,
        at: PointerValue<'ctx>,
        bytes: u32,
    ) -> Gen<IntValue<'ctx>> {
        let v = self.b.build_load(ty, at, "")?;
        if let Some(load) = v.as_instruction_value() {
            load.set_atomic_ordering(AtomicOrdering::Monotonic)
                .or_else(|e| internal(e.to_string()))?;
            self.align(Some(load), bytes)?;
        }
        Ok(v.into_int_value())
    }

    /// Loads a value, at a byte offset, from memory that does not change during a call of the loop function: the argument array
    /// and the `KernelRuntime` struct.
    pub fn load_constant(
        &self,
        ty: BasicTypeEnum<'ctx>,
        base: PointerValue<'ctx>,
        offset: usize,
    ) -> Gen<Value<'ctx>> {
        let at = self.offset(base, self.i64(offset as i64))?;
        let v = self.b.build_load(ty, at, "")?;
        if let Some(load) = v.as_instruction_value() {
            let kind = self.unit.context.get_kind_id("invariant.load");
            let none = self.unit.context.metadata_node(&[]);
            load.set_metadata(none, kind).or_else(|e| internal(e.to_string()))?;
        }
        Ok(v)
    }

    /// Loads an address, at a byte offset, from memory that does not change during a call of the loop function: the
    /// argument array and the `KernelRuntime` struct.
    pub fn load_pointer(&self, base: PointerValue<'ctx>, offset: usize) -> Gen<PointerValue<'ctx>> {
        Ok(self.load_constant(self.unit.pointer_type(), base, offset)?.into_pointer_value())
    }

    /// Emits a store of a value to memory that may have any alignment.
    pub fn store_value(&self, v: Value<'ctx>, at: PointerValue<'ctx>) -> Gen<()> {
        let store = self.b.build_store(at, v)?;
        self.align(Some(store), 1)
    }

    /// Emits a store of a value at a byte offset in a stack slot.
    pub fn store_at(
        &self,
        v: impl Into<Value<'ctx>>,
        base: PointerValue<'ctx>,
        offset: usize,
    ) -> Gen<()> {
        let at = self.offset(base, self.i64(offset as i64))?;
        self.store_value(v.into(), at)
    }

    /// Returns the address that is `bytes` bytes after the address `base`.
    pub fn offset(
        &self,
        base: PointerValue<'ctx>,
        bytes: IntValue<'ctx>,
    ) -> Gen<PointerValue<'ctx>> {
        self.element(self.unit.int_type(8), base, bytes)
    }

    /// Returns the address of the element with this index in an array of elements of type `ty`.
    pub fn element(
        &self,
        ty: BasicTypeEnum<'ctx>,
        base: PointerValue<'ctx>,
        index: IntValue<'ctx>,
    ) -> Gen<PointerValue<'ctx>> {
        // SAFETY: one index for a type that is not a struct is always valid.
        Ok(unsafe { self.b.build_gep(ty, base, &[index], "")? })
    }

    /// Ends the current block with a branch on a scalar bool: to `then` if it is true, otherwise to `other`.
    pub fn branch(
        &self,
        condition: IntValue<'ctx>,
        then: BasicBlock<'ctx>,
        other: BasicBlock<'ctx>,
    ) -> Gen<InstructionValue<'ctx>> {
        Ok(self.b.build_conditional_branch(condition, then, other)?)
    }

    /// Ends the current block with a branch on a scalar bool that is almost always false: to `failure` if it is true, otherwise to
    /// `ok`.
    fn branch_if_failed(
        &self,
        failed: IntValue<'ctx>,
        failure: BasicBlock<'ctx>,
        ok: BasicBlock<'ctx>,
    ) -> Gen<()> {
        let branch = self.branch(failed, failure, ok)?;
        let context = self.unit.context;
        let weight = |w: u64| context.i32_type().const_int(w, false).into();
        let weights =
            [context.metadata_string("branch_weights").into(), weight(1), weight(1 << 20)];
        let weights = context.metadata_node(&weights);
        branch
            .set_metadata(weights, context.get_kind_id("prof"))
            .or_else(|e| internal(e.to_string()))
    }

    /// Ends the current block with an unconditional branch to another block.
    pub fn jump(&self, block: BasicBlock<'ctx>) -> Gen<()> {
        self.b.build_unconditional_branch(block)?;
        Ok(())
    }

    /// Creates a phi instruction of type `ty` in the current block. `incoming` lists the predecessors of the block, each with the
    /// value that it passes.
    pub fn phi(
        &self,
        ty: BasicTypeEnum<'ctx>,
        incoming: &[(Value<'ctx>, BasicBlock<'ctx>)],
    ) -> Gen<PhiValue<'ctx>> {
        let phi = self.b.build_phi(ty, "")?;
        for (value, block) in incoming {
            phi.add_incoming(&[(value, *block)]);
        }
        Ok(phi)
    }

    /// Emits a check: at run time, the loop function returns `status` as an error if `failed` is true.
    pub fn fail_if(&mut self, failed: IntValue<'ctx>, status: IntValue<'ctx>) -> Gen<()> {
        let ok = self.block("ok");
        self.fail.status.add_incoming(&[(&status, self.current_block()?)]);
        self.branch_if_failed(failed, self.fail.block, ok)?;
        self.b.position_at_end(ok);
        Ok(())
    }

    /// Emits a check: at run time, the loop function returns `status` as an error if `status` is not 0.
    pub fn fail_if_nonzero(&mut self, status: IntValue<'ctx>) -> Gen<()> {
        let failed = self.b.build_int_compare(IntPredicate::NE, status, self.i64(0), "")?;
        self.fail_if(failed, status)
    }

    /// Emits a check: at run time, the loop function fails with `message` if `failed` is true. The error is a shape error, unless a
    /// prefix of the message marks it as another kind ([`CheckFailure`]).
    pub fn shape_error_if(&mut self, failed: IntValue<'ctx>, message: &str) -> Gen<()> {
        self.error_if(failed, CheckFailure::Shape.mark(message))
    }

    /// Emits a check: at run time, the loop function fails with exactly this message, without an added prefix, if `failed` is true.
    pub fn error_if(&mut self, failed: IntValue<'ctx>, message: impl Into<Arc<str>>) -> Gen<()> {
        let status = message_status(self.messages, message);
        self.fail_if(failed, self.i64(status))
    }

    /// Emits a check: at run time, the loop function fails if `failed` is true. The error message contains the values of the first
    /// [`MAX_ASSERT_ARGS`] of the integer expressions `values`.
    pub fn error_with_exprs_if(
        &mut self,
        failed: IntValue<'ctx>,
        message: impl Into<Arc<str>>,
        values: &[Expr],
    ) -> Gen<()> {
        let values = &values[..values.len().min(MAX_ASSERT_ARGS)];
        self.error_with_values_if(failed, message, |g| values.iter().map(|&e| g.int(e)).collect())
    }

    /// Emits a check: at run time, the loop function fails if `failed` is true. The failure path computes the integers that the
    /// message contains, and stores the status and the integers in the runtime, which formats the message.
    pub fn error_with_values_if(
        &mut self,
        failed: IntValue<'ctx>,
        message: impl Into<Arc<str>>,
        values: impl FnOnce(&mut Self) -> Gen<Vec<IntValue<'ctx>>>,
    ) -> Gen<()> {
        let status = message_status(self.messages, message);
        let status = self.i64(status);
        let (failure, ok) = (self.block("failure"), self.block("ok"));
        self.branch_if_failed(failed, failure, ok)?;
        self.b.position_at_end(failure);
        self.memo.push_scope();
        let assert_args = self.load_pointer(self.runtime, OFFSET_ASSERT_ARGS)?;
        self.store_at(status, assert_args, 0)?;
        for (i, value) in values(self)?.into_iter().enumerate() {
            self.store_at(value, assert_args, (i + 1) * 8)?;
        }
        self.fail.status.add_incoming(&[(&status, self.current_block()?)]);
        self.jump(self.fail.block)?;
        self.memo.pop_scope();
        self.b.position_at_end(ok);
        Ok(())
    }

    /// Emits a poll of the interrupt flag: at run time, the loop function fails with [`STATUS_CANCELLED`] if the flag is set. Emits
    /// nothing if the options disable polls.
    pub fn poll_interrupt(&mut self) -> Gen<()> {
        if !self.unit.check_interrupt {
            return Ok(());
        }
        let flag = self.load_pointer(self.runtime, OFFSET_INTERRUPT)?;
        // LLVM would merge plain loads of this address across iterations that store nothing.
        let is_set = self.load_once(self.unit.int_type(8), flag, 1)?;
        let zero = is_set.get_type().const_zero();
        let is_set = self.b.build_int_compare(IntPredicate::NE, is_set, zero, "")?;
        self.fail_if(is_set, self.i64(STATUS_CANCELLED))
    }

    /// Emits a call of the external native function `name`, as [`call_extern_fn`](Self::call_extern_fn) does. An unknown name is
    /// an internal error.
    pub fn call_linked(&mut self, name: &str, args: &[Value<'ctx>]) -> Gen<Value<'ctx>> {
        let Some(f) = extern_fn(name) else {
            return internal(format!("there is no library function named '{name}'"));
        };
        self.call_extern_fn(f, args)
    }

    /// Emits a call of an external native function. If the function takes the runtime, the call passes the runtime as an additional
    /// first argument. At run time, a nonzero result of such a function fails the loop function with the result as its status.
    pub fn call_extern_fn(
        &mut self,
        f: &'static ExternFn,
        args: &[Value<'ctx>],
    ) -> Gen<Value<'ctx>> {
        let ty = self.unit.extern_type(f);
        let import = Import::Function(f.name.to_string());
        let callee = self.unit.import_address(&self.b, import, f.address, ty)?;
        let runtime = f.runtime.then(|| self.runtime.into());
        let args: Vec<Value<'ctx>> = runtime.into_iter().chain(args.iter().copied()).collect();
        let result = self.call_address(ty, callee, &args)?;
        if f.runtime {
            self.fail_if_nonzero(result.into_int_value())?;
        }
        Ok(result)
    }

    /// Generates code for a scalar integer or bool expression and returns its value. Returns an internal error if the value has
    /// another type.
    pub fn int(&mut self, e: Expr) -> Gen<IntValue<'ctx>> {
        match self.expr(e)? {
            Value::IntValue(v) => Ok(v),
            other => internal(format!("an expression has the value {other}, expected an integer")),
        }
    }

    /// Returns the type of a scalar variable.
    pub fn var_type(&self, v: Var) -> BasicTypeEnum<'ctx> {
        match self.f.var(v).ty {
            VarTy::Value(Ty { dtype, .. }) => self.unit.scalar_type(dtype),
            VarTy::Handle => self.unit.pointer_type(),
        }
    }

    /// Generates code for an expression that is a size. At run time, an overflow in its sums and products fails the loop function
    /// with `overflow_message`, because bounds checks rely on exact sizes.
    pub fn checked_size(&mut self, e: Expr, overflow_message: &str) -> Gen<IntValue<'ctx>> {
        let mut terms = Vec::new();
        checked_terms(self.f, e, &mut |term| terms.push(term));
        for term in terms {
            let ExprData::Binary(op, a, b) = *self.f.expr(term) else { continue };
            let (a, b) = (self.int(a)?, self.int(b)?);
            let operation = match op {
                BinOp::Add => "llvm.sadd.with.overflow",
                BinOp::Sub => "llvm.ssub.with.overflow",
                _ => "llvm.smul.with.overflow",
            };
            self.with_overflow(operation, (a, b), overflow_message)?;
        }
        self.int(e)
    }

    /// Emits an LLVM operation on int64 that reports overflow, and returns its result. At run time, an overflow fails the loop
    /// function with the shape error `message`.
    pub fn with_overflow(
        &mut self,
        operation: &str,
        (a, b): (IntValue<'ctx>, IntValue<'ctx>),
        message: &str,
    ) -> Gen<IntValue<'ctx>> {
        let pair = self.intrinsic(operation, &[a.get_type().into()], &[a.into(), b.into()])?;
        let pair = pair.into_struct_value();
        let result = self.b.build_extract_value(pair, 0, "")?.into_int_value();
        let overflow = self.b.build_extract_value(pair, 1, "")?.into_int_value();
        self.shape_error_if(overflow, message)?;
        Ok(result)
    }
}

fn new_fail_block<'ctx>(
    unit: &Unit<'ctx>,
    b: &Builder<'ctx>,
    function: FunctionValue<'ctx>,
) -> Gen<FailBlock<'ctx>> {
    let block = unit.context.append_basic_block(function, "fail");
    b.position_at_end(block);
    Ok(FailBlock { block, status: b.build_phi(unit.context.i64_type(), "status")? })
}
