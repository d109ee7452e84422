//! The prologue of a loop function: loads the arguments, defines the size variables, and checks all properties of the
//! arguments that the body relies on.

use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use cranelift_module::FuncId;
use pliant_codegen::prologue_plan::{
    LoadedSize, PrologueStep, RangeCheck, SizeCheck, SizeList, SizeUse, TENSOR_REQUIREMENTS,
    prologue_plan,
};
use pliant_exec::abi::{OFFSET_TENSOR_SHAPE, OFFSET_TENSOR_STRIDES};
use pliant_ir::tir::{PrimFunc, Ty};
use pliant_kernels::tensor_argument_check::{TENSOR_FAULTS, dtype_word};
use pliant_tensor::DType;
use pliant_tir::overflow_analysis::SIZE_LIMIT;
use rustc_hash::FxHashMap;

use crate::buffer_accesses::{BufferLocation, SizeLocation};
use crate::compilation_unit::Unit;
use crate::function_builder::{
    FuncGen, Gen, GenError, abi_signature, constant_mem_flags, mem_flags,
};
use crate::value_representations::{ExprValue, scalar_type};

/// Maximum number of tensor arguments whose addresses and sizes the prologue loads. If there are
/// more, each statement loads the addresses and sizes that it uses.
const MAX_PRELOADED_ARGUMENTS: usize = 16;

/// Generates the machine function of a loop function. Returns the id of the machine function and the error messages of
/// its checks.
pub(crate) fn generate(unit: &mut Unit, name: &str, f: &PrimFunc) -> Gen<(FuncId, Vec<Arc<str>>)> {
    let sig = abi_signature(&*unit.module, &[types::I64; 2], types::I64);
    let id = unit.declare_function(name, &sig)?;
    let mut ctx = Context::new();
    ctx.func.signature = sig;
    let mut frontend = unit.take_context();
    let mut messages = Vec::new();
    {
        let mut b = FunctionBuilder::new(&mut ctx.func, &mut frontend);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let fail = FuncGen::fail_block(&mut b);
        let (args, runtime) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        let mut g = FuncGen {
            f,
            name,
            b,
            unit: &mut *unit,
            messages: &mut messages,
            runtime,
            vars: FxHashMap::default(),
            locations: FxHashMap::default(),
            limits: FxHashMap::default(),
            size_locations: FxHashMap::default(),
            memo: FxHashMap::default(),
            fail,
            stack_bytes: 0,
            call_stack_bytes: 0,
            loop_depth: 0,
            many_arguments: f.buffer_map.len() > MAX_PRELOADED_ARGUMENTS,
            in_parallel: false,
            shared_buffers: Vec::new(),
        };
        g.unpack_arguments(args)?;
        g.stmt(f.body)?;
        g.finish_body(fail);
        let config = g.unit.module.target_config();
        g.b.finalize(config);
    }
    unit.return_context(frontend);
    unit.define(id, &mut ctx)?;
    Ok((id, messages))
}

impl FuncGen<'_, '_> {
    /// Emits code that loads and checks the arguments of the loop function, whose array is at the address `args`.
    fn unpack_arguments(&mut self, args: Value) -> Gen<()> {
        let mut deferred = FxHashMap::default();
        for step in prologue_plan(self.f).map_err(GenError::Unsupported)? {
            match step {
                PrologueStep::LoadScalar { position, param: (param, ty), range } => {
                    let value = self.scalar_argument(args, (position * 8) as i32, ty)?;
                    if let Some(range) = range {
                        self.check_range(value, &range);
                    }
                    self.vars.insert(param, ExprValue::Scalar(value));
                }
                PrologueStep::CheckTensor { position, ndim, dtype, compact, messages } => {
                    let words = tensor_words(ndim, dtype, compact);
                    self.check_descriptor((args, position), words, messages)?;
                }
                PrologueStep::LoadSizes { position, list, sizes } => {
                    self.load_sizes((args, position), list, sizes, &mut deferred)?;
                }
                PrologueStep::DefineZero(var) => {
                    let zero = self.b.ins().iconst(types::I64, 0);
                    self.vars.insert(var, ExprValue::Scalar(zero));
                }
                PrologueStep::CheckDeferred(number, check) => {
                    self.check_size(deferred[&number], &check)?;
                }
                PrologueStep::CheckZero(check) => {
                    let zero = self.b.ins().iconst(types::I64, 0);
                    self.check_size(zero, &check)?;
                }
                PrologueStep::BindBuffer { position, buffer } => {
                    let location = BufferLocation::Argument(args, (position * 8) as i32);
                    self.locations.insert(buffer, location);
                    if !self.many_arguments {
                        let base = self.base_address(buffer)?;
                        self.locations.insert(buffer, BufferLocation::Address(base));
                    }
                    self.record_limits(buffer)?;
                }
            }
        }
        Ok(())
    }

    /// Emits a check: at run time, the loop function fails unless the dim, stride or offset `actual` has its expected value.
    fn check_size(&mut self, actual: Value, check: &SizeCheck) -> Gen<()> {
        self.memo.clear();
        let expected = self.checked_size(check.expected, &check.message)?;
        let differs = self.b.ins().icmp(IntCC::NotEqual, actual, expected);
        self.shape_error_if(differs, &check.message);
        Ok(())
    }

    /// Emits a load of a scalar argument, which the caller passes as int64 or float64. `offset` is its byte offset in the array
    /// `args`.
    fn scalar_argument(&mut self, args: Value, offset: i32, ty: Ty) -> Gen<Value> {
        let machine_type = scalar_type(ty.dtype);
        if ty.dtype.is_float() {
            let wide = self.b.ins().load(types::F64, constant_mem_flags(), args, offset);
            return match self.cast(ExprValue::Scalar(wide), Ty::scalar(DType::Float64), ty)? {
                ExprValue::Scalar(v) => Ok(v),
                _ => unreachable!("a cast of a scalar is a scalar"),
            };
        }
        let wide = self.b.ins().load(types::I64, constant_mem_flags(), args, offset);
        if machine_type == types::I64 {
            Ok(wide)
        } else {
            Ok(self.b.ins().ireduce(machine_type, wide))
        }
    }

    /// Emits a check of rank, element type and layout of the tensor argument at a position of the argument array: a call of a
    /// runtime function that returns 0 or the number of the violated requirement.
    fn check_descriptor(
        &mut self,
        (args, position): (Value, usize),
        words: [i64; TENSOR_REQUIREMENTS],
        messages: [String; TENSOR_REQUIREMENTS],
    ) -> Gen<()> {
        let descriptor =
            self.b.ins().load(types::I64, constant_mem_flags(), args, (position * 8) as i32);
        let first_message = self.messages.len() as i64;
        self.messages.extend(messages.into_iter().map(Arc::from));
        let words = words.map(|w| self.b.ins().iconst(types::I64, w));
        let fault =
            self.call_linked("pliant_check_tensor", &[descriptor, words[0], words[1], words[2]])?;
        let failed = self.b.ins().icmp_imm_s(IntCC::NotEqual, fault, 0);
        let status = self.b.ins().iadd_imm_s(fault, first_message);
        self.fail_if(failed, status);
        Ok(())
    }

    /// Emits loads of the dims or strides of the tensor argument at a position of the argument array. A size that can only be
    /// checked after later arguments are loaded is added to `deferred`, under the number in [`SizeUse::Defer`].
    fn load_sizes(
        &mut self,
        (args, position): (Value, usize),
        list: SizeList,
        sizes: Vec<LoadedSize>,
        deferred: &mut FxHashMap<usize, Value>,
    ) -> Gen<()> {
        let list = match list {
            SizeList::Shape => OFFSET_TENSOR_SHAPE as i32,
            SizeList::Strides => OFFSET_TENSOR_STRIDES as i32,
        };
        // These flags prevent merging with the load in the descriptor's check, so the address occupies no register
        // while the other arguments are checked.
        let argument = (position * 8) as i32;
        let descriptor = self.b.ins().load(types::I64, mem_flags(), args, argument);
        let values = self.b.ins().load(types::I64, mem_flags(), descriptor, list);
        for (index, size) in sizes.into_iter().enumerate() {
            let index = (index * 8) as i32;
            let actual = self.b.ins().load(types::I64, mem_flags(), values, index);
            self.check_range(actual, &size.range);
            match size.usage {
                SizeUse::Define(v) => {
                    self.vars.insert(v, ExprValue::Scalar(actual));
                    if self.many_arguments {
                        self.size_locations.insert(v, SizeLocation { args, argument, list, index });
                    }
                }
                SizeUse::Check(check) => self.check_size(actual, &check)?,
                SizeUse::Defer(number) => {
                    deferred.insert(number, actual);
                }
            }
        }
        Ok(())
    }

    /// Emits a check: at run time, the loop function fails unless `value` is in a range.
    fn check_range(&mut self, value: Value, range: &RangeCheck) {
        let shifted = self.b.ins().iadd_imm_s(value, -range.min);
        let limit = SIZE_LIMIT - range.min;
        let out_of_range = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, shifted, limit);
        self.shape_error_if(out_of_range, &range.message);
    }
}

/// Returns the requirements on a tensor argument (the rank, the element type, and whether it must be contiguous) as the words that
/// `pliant_check_tensor` takes.
fn tensor_words(ndim: usize, dtype: DType, compact: bool) -> [i64; TENSOR_REQUIREMENTS] {
    const { assert!(TENSOR_FAULTS == TENSOR_REQUIREMENTS) }
    let (code, bits) = dtype.to_dlpack();
    [ndim as i64, dtype_word(code, bits), i64::from(compact)]
}
