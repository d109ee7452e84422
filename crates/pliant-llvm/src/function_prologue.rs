//! The prologue of a loop function: loads the arguments, defines the size variables, and checks all properties of the
//! arguments that the body relies on.

use std::sync::Arc;

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use pliant_codegen::prologue_plan::{
    LoadedSize, PrologueStep, RangeCheck, SizeCheck, SizeList, SizeUse, TENSOR_REQUIREMENTS,
    prologue_plan,
};
use pliant_exec::abi::{OFFSET_TENSOR_DATA, OFFSET_TENSOR_SHAPE, OFFSET_TENSOR_STRIDES};
use pliant_ir::tir::{PrimFunc, Ty};
use pliant_kernels::tensor_argument_check::{TENSOR_FAULTS, dtype_word};
use pliant_tensor::DType;
use pliant_tir::overflow_analysis::SIZE_LIMIT;
use rustc_hash::FxHashMap;

use crate::buffer_accesses::BufferLocation;
use crate::compilation_unit::Unit;
use crate::function_builder::{FuncGen, Gen, GenError};
use crate::values::Value;

/// Generates the machine function of a loop function. Returns its symbol and the error messages of its checks.
pub(crate) fn generate(unit: &Unit<'_>, name: &str, f: &PrimFunc) -> Gen<(String, Vec<Arc<str>>)> {
    let params = [unit.pointer_type(); 2];
    let function = unit.add_function(name, unit.function_type(&params, unit.int_type(64)));
    let mut messages = Vec::new();
    let mut g = FuncGen::new(unit, f, name, function, &mut messages)?;
    let [args, runtime] = [0, 1].map(|i| function.get_nth_param(i).map(|p| p.into_pointer_value()));
    let (Some(args), Some(runtime)) = (args, runtime) else {
        return crate::function_builder::internal("a machine function has no parameters");
    };
    g.runtime = runtime;
    g.unpack_arguments(args)?;
    g.stmt(f.body)?;
    g.finish()?;
    Ok((function.get_name().to_string_lossy().into_owned(), messages))
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Emits code that loads and checks the arguments of the loop function, whose array is at the address `args`.
    fn unpack_arguments(&mut self, args: PointerValue<'ctx>) -> Gen<()> {
        let mut deferred = FxHashMap::default();
        for step in prologue_plan(self.f).map_err(GenError::Unsupported)? {
            match step {
                PrologueStep::LoadScalar { position, param: (param, ty), range } => {
                    let value = self.scalar_argument(args, position, ty)?;
                    if let Some(range) = range {
                        self.check_range(value.into_int_value(), &range)?;
                    }
                    self.vars.insert(param, value);
                }
                PrologueStep::CheckTensor { position, ndim, dtype, compact, messages } => {
                    let descriptor = self.load_pointer(args, position * 8)?;
                    let words = tensor_words(ndim, dtype, compact);
                    self.check_descriptor(descriptor, words, messages)?;
                }
                PrologueStep::LoadSizes { position, list, sizes } => {
                    let descriptor = self.load_pointer(args, position * 8)?;
                    self.load_sizes(descriptor, list, sizes, &mut deferred)?;
                }
                PrologueStep::DefineZero(var) => {
                    self.vars.insert(var, self.i64(0).into());
                }
                PrologueStep::CheckDeferred(number, check) => {
                    self.check_size(deferred[&number], &check)?;
                }
                PrologueStep::CheckZero(check) => self.check_size(self.i64(0), &check)?,
                PrologueStep::BindBuffer { position, buffer } => {
                    let descriptor = self.load_pointer(args, position * 8)?;
                    let base = self.load_pointer(descriptor, OFFSET_TENSOR_DATA)?;
                    self.locations.insert(buffer, BufferLocation::Memory(base));
                    self.record_limits(buffer)?;
                }
            }
        }
        Ok(())
    }

    /// Emits a check: at run time, the loop function fails unless the dim, stride or offset `actual` has its expected value.
    fn check_size(&mut self, actual: IntValue<'ctx>, check: &SizeCheck) -> Gen<()> {
        self.memo.clear();
        let expected = self.checked_size(check.expected, &check.message)?;
        let differs = self.b.build_int_compare(IntPredicate::NE, actual, expected, "")?;
        self.shape_error_if(differs, &check.message)
    }

    /// Emits a load of the scalar argument at a position of the array `args`. The caller passes it as int64 or float64.
    fn scalar_argument(
        &mut self,
        args: PointerValue<'ctx>,
        position: usize,
        ty: Ty,
    ) -> Gen<Value<'ctx>> {
        let passed = if ty.dtype.is_float() { DType::Float64 } else { DType::Int64 };
        let wide = self.load_constant(self.unit.scalar_type(passed), args, position * 8)?;
        self.cast(wide, Ty::scalar(passed), ty)
    }

    /// Emits a check of rank, element type and layout of a tensor argument: a call of a runtime function that returns 0 or the
    /// number of the violated requirement.
    fn check_descriptor(
        &mut self,
        descriptor: PointerValue<'ctx>,
        words: [i64; TENSOR_REQUIREMENTS],
        messages: [String; TENSOR_REQUIREMENTS],
    ) -> Gen<()> {
        let first_message = self.messages.len() as i64;
        self.messages.extend(messages.into_iter().map(Arc::from));
        let [ndim, dtype, compact] = words.map(|w| self.i64(w).into());
        let args = [descriptor.into(), ndim, dtype, compact];
        let fault = self.call_linked("pliant_check_tensor", &args)?.into_int_value();
        let failed = self.b.build_int_compare(IntPredicate::NE, fault, self.i64(0), "")?;
        let status = self.b.build_int_add(fault, self.i64(first_message), "")?;
        self.fail_if(failed, status)
    }

    /// Emits loads of the dims or strides of a tensor argument. A size that can only be checked after later arguments are loaded is
    /// added to `deferred`, under the number in [`SizeUse::Defer`].
    fn load_sizes(
        &mut self,
        descriptor: PointerValue<'ctx>,
        list: SizeList,
        sizes: Vec<LoadedSize>,
        deferred: &mut FxHashMap<usize, IntValue<'ctx>>,
    ) -> Gen<()> {
        let list = match list {
            SizeList::Shape => OFFSET_TENSOR_SHAPE,
            SizeList::Strides => OFFSET_TENSOR_STRIDES,
        };
        let values = self.load_pointer(descriptor, list)?;
        for (index, size) in sizes.into_iter().enumerate() {
            // The caller may change these lists during the call, so each size is loaded exactly once.
            let at = self.offset(values, self.i64(index as i64 * 8))?;
            let actual = self.load_once(self.unit.int_type(64), at, 8)?;
            self.check_range(actual, &size.range)?;
            match size.usage {
                SizeUse::Define(v) => {
                    self.vars.insert(v, actual.into());
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
    fn check_range(&mut self, value: IntValue<'ctx>, range: &RangeCheck) -> Gen<()> {
        let shifted = self.b.build_int_add(value, self.i64(-range.min), "")?;
        let limit = self.i64(SIZE_LIMIT - range.min);
        let out_of_range = self.b.build_int_compare(IntPredicate::UGT, shifted, limit, "")?;
        self.shape_error_if(out_of_range, &range.message)
    }
}

/// Returns the requirements on a tensor argument (the rank, the element type, and whether it must be contiguous) as the words that
/// `pliant_check_tensor` takes.
fn tensor_words(ndim: usize, dtype: DType, compact: bool) -> [i64; TENSOR_REQUIREMENTS] {
    const { assert!(TENSOR_FAULTS == TENSOR_REQUIREMENTS) }
    let (code, bits) = dtype.to_dlpack();
    [ndim as i64, dtype_word(code, bits), i64::from(compact)]
}
