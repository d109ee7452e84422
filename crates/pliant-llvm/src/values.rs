//! LLVM types and values of expressions, and operations that work on scalars and on vectors.
//!
//! A float16 or bfloat16 value is a float32 that the 16-bit type can represent. A bool is an `i1`.

use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType, VectorType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, InstructionOpcode, IntValue, PointerValue,
};
use inkwell::{AddressSpace, FloatPredicate, IntPredicate};
use pliant_ir::tir::Ty;
use pliant_kernels::{ExternFn, ExternTy};
use pliant_tensor::DType;

use crate::compilation_unit::Unit;
use crate::function_builder::{FuncGen, Gen, internal};

/// The value of an expression: a scalar or a vector.
pub(crate) type Value<'ctx> = BasicValueEnum<'ctx>;

/// Returns a vector type with `lanes` lanes of a scalar type; the scalar type itself for one lane.
pub(crate) fn with_lanes(scalar: BasicTypeEnum<'_>, lanes: u32) -> BasicTypeEnum<'_> {
    if lanes == 1 {
        return scalar;
    }
    match scalar {
        BasicTypeEnum::FloatType(t) => t.vec_type(lanes).into(),
        BasicTypeEnum::PointerType(t) => t.vec_type(lanes).into(),
        other => other.into_int_type().vec_type(lanes).into(),
    }
}

/// Returns the type of the lanes of a value; its own type for a scalar.
pub(crate) fn lane_type(ty: BasicTypeEnum<'_>) -> BasicTypeEnum<'_> {
    match ty {
        BasicTypeEnum::VectorType(t) => t.get_element_type(),
        other => other,
    }
}

/// Returns the number of lanes of a value; 1 for a scalar.
pub(crate) fn lane_count(ty: BasicTypeEnum<'_>) -> u32 {
    match ty {
        BasicTypeEnum::VectorType(t) => t.get_size(),
        _ => 1,
    }
}

impl<'ctx> Unit<'ctx> {
    /// Returns the integer type of this width.
    pub fn int_type(&self, bits: u32) -> BasicTypeEnum<'ctx> {
        match bits {
            1 => self.context.bool_type().into(),
            8 => self.context.i8_type().into(),
            16 => self.context.i16_type().into(),
            32 => self.context.i32_type().into(),
            _ => self.context.i64_type().into(),
        }
    }

    /// Returns the type of a scalar of an element type.
    pub fn scalar_type(&self, dtype: DType) -> BasicTypeEnum<'ctx> {
        match dtype {
            DType::Bool => self.int_type(1),
            DType::Float16 | DType::BFloat16 | DType::Float32 => self.context.f32_type().into(),
            DType::Float64 => self.context.f64_type().into(),
            int => self.int_type(8 * int.size() as u32),
        }
    }

    /// Returns the type of a value.
    pub fn value_type(&self, ty: Ty) -> BasicTypeEnum<'ctx> {
        with_lanes(self.scalar_type(ty.dtype), u32::from(ty.lanes))
    }

    /// Returns the type of an element in memory: 8 bits for a bool, 16 bits for a 16-bit float.
    pub fn memory_type(&self, dtype: DType) -> BasicTypeEnum<'ctx> {
        match dtype {
            DType::Bool => self.int_type(8),
            DType::Float16 | DType::BFloat16 => self.int_type(16),
            other => self.scalar_type(other),
        }
    }

    /// Returns the type of addresses.
    pub fn pointer_type(&self) -> BasicTypeEnum<'ctx> {
        self.context.ptr_type(AddressSpace::default()).into()
    }

    /// Returns the type of a machine function with these parameters and result.
    pub fn function_type(
        &self,
        params: &[BasicTypeEnum<'ctx>],
        result: BasicTypeEnum<'ctx>,
    ) -> FunctionType<'ctx> {
        let params: Vec<BasicMetadataTypeEnum<'ctx>> = params.iter().map(|&t| t.into()).collect();
        result.fn_type(&params, false)
    }

    /// Returns the type of an external native function.
    pub fn extern_type(&self, f: &ExternFn) -> FunctionType<'ctx> {
        let runtime = f.runtime.then(|| self.pointer_type());
        let params = f.params.iter().map(|&p| self.extern_param(p));
        let params: Vec<_> = runtime.into_iter().chain(params).collect();
        self.function_type(&params, self.extern_param(f.result))
    }

    fn extern_param(&self, ty: ExternTy) -> BasicTypeEnum<'ctx> {
        match ty {
            ExternTy::I32 => self.int_type(32),
            ExternTy::I64 => self.int_type(64),
            ExternTy::Ptr => self.pointer_type(),
            ExternTy::F32 => self.context.f32_type().into(),
            ExternTy::F64 => self.context.f64_type().into(),
        }
    }
}

/// Emits a comparison of two scalars or two vectors with a method of the builder. Fails with an internal error for other operands.
macro_rules! compare {
    ($g:expr, $method:ident, $predicate:expr, $a:expr, $b:expr, $variant:ident) => {
        match ($a, $b) {
            (BasicValueEnum::$variant(a), BasicValueEnum::$variant(b)) => {
                Ok($g.b.$method($predicate, a, b, "")?.into())
            }
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                Ok($g.b.$method($predicate, a, b, "")?.into())
            }
            (a, b) => internal(format!(
                "a comparison has the operands {a} and {b}, expected two scalars or two vectors"
            )),
        }
    };
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Returns an int64 constant.
    pub fn i64(&self, value: i64) -> IntValue<'ctx> {
        self.unit.context.i64_type().const_int(value as u64, false)
    }

    /// Returns an integer constant of the type `ty`, in all lanes if it is a vector type.
    pub fn int_of_type(&self, value: i64, ty: BasicTypeEnum<'ctx>) -> Value<'ctx> {
        let scalar = lane_type(ty).into_int_type();
        let mask = u64::MAX >> (64 - scalar.get_bit_width());
        let constant = scalar.const_int(value as u64 & mask, false);
        constant_splat(constant.into(), lane_count(ty))
    }

    /// Returns a float constant of the type `ty`, in all lanes if it is a vector type.
    pub fn float_of_type(&self, value: f64, ty: BasicTypeEnum<'ctx>) -> Value<'ctx> {
        let scalar = lane_type(ty).into_float_type();
        constant_splat(scalar.const_float(value).into(), lane_count(ty))
    }

    /// Applies an operator to two values with equal types.
    pub fn op(&self, op: InstructionOpcode, a: Value<'ctx>, b: Value<'ctx>) -> Gen<Value<'ctx>> {
        Ok(self.b.build_binop(op, a, b, "")?)
    }

    /// Emits a comparison of integers or of vectors of integers.
    pub fn icmp(
        &self,
        predicate: IntPredicate,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Gen<Value<'ctx>> {
        compare!(self, build_int_compare, predicate, a, b, IntValue)
    }

    /// Emits a comparison of floats or of vectors of floats.
    pub fn fcmp(
        &self,
        predicate: FloatPredicate,
        a: Value<'ctx>,
        b: Value<'ctx>,
    ) -> Gen<Value<'ctx>> {
        compare!(self, build_float_compare, predicate, a, b, FloatValue)
    }

    /// Returns `c ? a : b` for each lane. A scalar condition selects whole vectors.
    pub fn select(&self, c: Value<'ctx>, a: Value<'ctx>, b: Value<'ctx>) -> Gen<Value<'ctx>> {
        match c {
            BasicValueEnum::IntValue(c) => Ok(self.b.build_select(c, a, b, "")?),
            BasicValueEnum::VectorValue(c) => Ok(self.b.build_select(c, a, b, "")?),
            c => internal(format!(
                "the condition of a selection is {c}, expected a bool or a vector of bools"
            )),
        }
    }

    /// Returns the bitwise complement of integers or bools.
    pub fn not(&self, v: Value<'ctx>) -> Gen<Value<'ctx>> {
        let ones = self.int_of_type(-1, v.get_type());
        self.op(InstructionOpcode::Xor, v, ones)
    }

    /// Converts a value by a conversion instruction. `scalar` is the type of one lane of the result.
    pub fn convert(
        &self,
        op: InstructionOpcode,
        v: Value<'ctx>,
        scalar: BasicTypeEnum<'ctx>,
    ) -> Gen<Value<'ctx>> {
        let ty = with_lanes(scalar, lane_count(v.get_type()));
        if ty == v.get_type() {
            return Ok(v);
        }
        Ok(self.b.build_cast(op, v, ty, "")?)
    }

    /// Reinterprets the bits of a scalar or of the lanes of a vector as the type `scalar`.
    pub fn bits_as(&self, v: Value<'ctx>, scalar: BasicTypeEnum<'ctx>) -> Gen<Value<'ctx>> {
        self.convert(InstructionOpcode::BitCast, v, scalar)
    }

    /// Returns a value with `lanes` lanes. A scalar is repeated in all lanes; a vector is returned unchanged.
    pub fn splat(&self, v: Value<'ctx>, lanes: u16) -> Gen<Value<'ctx>> {
        if lanes == 1 || v.is_vector_value() {
            return Ok(v);
        }
        if is_constant(v) {
            return Ok(constant_splat(v, u32::from(lanes)));
        }
        let ty = with_lanes(v.get_type(), u32::from(lanes)).into_vector_type();
        let zero = self.unit.context.i32_type().const_zero();
        let first = self.b.build_insert_element(ty.get_poison(), v, zero, "")?;
        self.shuffle(first.into(), first.into(), &vec![0; lanes as usize])
    }

    /// Returns the lanes of a value. A scalar stands for `lanes` equal lanes.
    pub fn lanes(&self, v: Value<'ctx>, lanes: u16) -> Gen<Vec<Value<'ctx>>> {
        let BasicValueEnum::VectorValue(vector) = v else { return Ok(vec![v; lanes as usize]) };
        let extract = |i: u16| {
            let i = self.unit.context.i32_type().const_int(u64::from(i), false);
            Ok(self.b.build_extract_element(vector, i, "")?)
        };
        (0..lanes).map(extract).collect()
    }

    /// Builds a vector from the values of its lanes. A single lane is returned as a scalar.
    pub fn vector_of_lanes(&self, lanes: &[Value<'ctx>]) -> Gen<Value<'ctx>> {
        if let [one] = lanes {
            return Ok(*one);
        }
        let ty = with_lanes(lanes[0].get_type(), lanes.len() as u32).into_vector_type();
        let mut out = ty.get_poison();
        for (i, &lane) in lanes.iter().enumerate() {
            let i = self.unit.context.i32_type().const_int(i as u64, false);
            out = self.b.build_insert_element(out, lane, i, "")?;
        }
        Ok(out.into())
    }

    /// Applies an operation to each lane of vectors, or once to scalars. `lanes` is the number of lanes of the result.
    pub fn map_lanes(
        &mut self,
        args: &[Value<'ctx>],
        lanes: u16,
        mut op: impl FnMut(&mut Self, &[Value<'ctx>]) -> Gen<Value<'ctx>>,
    ) -> Gen<Value<'ctx>> {
        let args: Vec<Vec<Value<'ctx>>> =
            args.iter().map(|&a| self.lanes(a, lanes)).collect::<Gen<_>>()?;
        let out: Vec<Value<'ctx>> = (0..lanes as usize)
            .map(|i| op(self, &args.iter().map(|a| a[i]).collect::<Vec<_>>()))
            .collect::<Gen<_>>()?;
        self.vector_of_lanes(&out)
    }

    /// Applies an operation to consecutive parts of two vectors, of `lanes` lanes each, and concatenates the results. The number of
    /// parts is a power of two.
    pub fn map_parts(
        &self,
        [a, b]: [Value<'ctx>; 2],
        lanes: u32,
        op: impl Fn(&Self, [Value<'ctx>; 2]) -> Gen<Value<'ctx>>,
    ) -> Gen<Value<'ctx>> {
        let total = lane_count(a.get_type());
        if total == lanes {
            return op(self, [a, b]);
        }
        let half = total / 2;
        let part = |first: u32, end: u32| {
            let positions: Vec<u32> = (first..end).collect();
            let parts = [self.shuffle(a, a, &positions)?, self.shuffle(b, b, &positions)?];
            self.map_parts(
                parts,
                lanes,
                &op as &dyn Fn(&Self, [Value<'ctx>; 2]) -> Gen<Value<'ctx>>,
            )
        };
        let (low, high) = (part(0, half)?, part(half, total)?);
        let positions: Vec<u32> = (0..total).collect();
        self.shuffle(low, high, &positions)
    }

    /// Returns the lanes with these positions in the concatenation of two vectors.
    pub fn shuffle(&self, a: Value<'ctx>, b: Value<'ctx>, positions: &[u32]) -> Gen<Value<'ctx>> {
        let i32_type = self.unit.context.i32_type();
        let positions: Vec<_> =
            positions.iter().map(|&p| i32_type.const_int(u64::from(p), false)).collect();
        let mask = VectorType::const_vector(&positions);
        let (a, b) = (a.into_vector_value(), b.into_vector_value());
        Ok(self.b.build_shuffle_vector(a, b, mask, "")?.into())
    }

    /// Calls an intrinsic of LLVM. `types` are the types that select its overload.
    pub fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'ctx>],
        args: &[Value<'ctx>],
    ) -> Gen<Value<'ctx>> {
        let declaration =
            Intrinsic::find(name).and_then(|i| i.get_declaration(&self.unit.module, types));
        let Some(declaration) = declaration else {
            return internal(format!("LLVM has no intrinsic {name} for these types"));
        };
        let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&a| a.into()).collect();
        let call = self.b.build_call(declaration, &args, "")?;
        match call.try_as_basic_value().basic() {
            Some(v) => Ok(v),
            None => internal(format!("the intrinsic {name} has no result")),
        }
    }

    /// Calls an intrinsic of LLVM whose operands and result have the same type.
    pub fn same_type_intrinsic(&self, name: &str, args: &[Value<'ctx>]) -> Gen<Value<'ctx>> {
        self.intrinsic(name, &[args[0].get_type()], args)
    }

    /// Emits a call of the function at an address. Returns its result.
    pub fn call_address(
        &self,
        ty: FunctionType<'ctx>,
        callee: PointerValue<'ctx>,
        args: &[Value<'ctx>],
    ) -> Gen<Value<'ctx>> {
        let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&a| a.into()).collect();
        let call = self.b.build_indirect_call(ty, callee, &args, "")?;
        match call.try_as_basic_value().basic() {
            Some(v) => Ok(v),
            None => internal("a called function has no result"),
        }
    }

    /// Returns a bool that is true at run time if any lane of a vector of bools is true. Returns a scalar bool unchanged.
    pub fn any_lane(&self, v: Value<'ctx>) -> Gen<IntValue<'ctx>> {
        match v {
            BasicValueEnum::VectorValue(_) => {
                let any = self.same_type_intrinsic("llvm.vector.reduce.or", &[v])?;
                Ok(any.into_int_value())
            }
            v => Ok(v.into_int_value()),
        }
    }
}

/// Whether a scalar is a constant.
fn is_constant(v: Value<'_>) -> bool {
    match v {
        BasicValueEnum::IntValue(v) => v.is_const(),
        BasicValueEnum::FloatValue(v) => v.is_const(),
        _ => false,
    }
}

/// Returns a constant vector whose lanes all have the value of a scalar constant; the scalar itself for one lane.
fn constant_splat(v: Value<'_>, lanes: u32) -> Value<'_> {
    match v {
        _ if lanes == 1 => v,
        BasicValueEnum::IntValue(v) => {
            VectorType::const_vector(&vec![v; lanes as usize]).as_basic_value_enum()
        }
        BasicValueEnum::FloatValue(v) => {
            VectorType::const_vector(&vec![v; lanes as usize]).as_basic_value_enum()
        }
        v => v,
    }
}
