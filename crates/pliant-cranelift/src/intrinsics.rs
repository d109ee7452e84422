//! Code generation for intrinsics: as machine instructions, as sequences of `pliant_kernels::math` expanded inline, or
//! as calls of external native functions.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Type, Value, types};
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, Ty};
use pliant_kernels::math::{self, MathOps, Real};
use pliant_kernels::{ExternTy, extern_fn};
use pliant_tensor::DType;

use crate::elementary_functions::Sequences;
use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::value_representations::{
    ExprValue, chunk_type, chunk_type_of, fills_chunks, scalar_type,
};

/// A function that emits the instructions of a math function of one argument inline, in place of a call.
type Sequence = fn(&mut FuncGen<'_, '_>, Value) -> Value;

/// Maps intrinsics to the functions that emit their instructions.
macro_rules! sequences {
    ($intrin:expr; $($name:ident = $function:ident),*) => {
        match $intrin {
            $(Intrin::$name => |g, x| math::$function(&mut Sequences::<R>::new(g), &x),)*
            _ => return None,
        }
    };
}

/// Returns the function that emits the intrinsic `intrin` inline; `None` if the intrinsic has no inline sequence that is valid
/// for all arguments.
fn sequence<R: Real>(intrin: Intrin) -> Option<Sequence> {
    let sequence: Sequence = sequences! {
        intrin;
        Exp = exp, Log = log, Log1p = log1p, Sinh = sinh, Cosh = cosh, Tanh = tanh, Asinh = asinh, Acosh = acosh,
        Atanh = atanh, Asin = asin, Acos = acos, Atan = atan, Erf = erf, Gelu = gelu, Sigmoid = sigmoid
    };
    Some(sequence)
}

/// Returns the function that emits `sin`, `cos` or `tan` inline; `None` for other intrinsics. The inline sequence is valid only
/// for arguments of magnitude up to [`Real::TRIG_LIMIT`].
fn trigonometric_sequence<R: Real>(intrin: Intrin) -> Option<Sequence> {
    let sequence: Sequence = sequences!(intrin; Sin = sin, Cos = cos, Tan = tan);
    Some(sequence)
}

/// Returns the element type of a parameter or result of an external native function; int64 for an address.
fn extern_dtype(ty: ExternTy) -> DType {
    match ty {
        ExternTy::F32 => DType::Float32,
        ExternTy::F64 => DType::Float64,
        ExternTy::I32 => DType::Int32,
        ExternTy::I64 | ExternTy::Ptr => DType::Int64,
    }
}

impl FuncGen<'_, '_> {
    /// Generates code for a call of an intrinsic. `ty` is the type of the result.
    pub fn call(&mut self, intrin: Intrin, args: &[Expr], ty: Ty) -> Gen<ExprValue> {
        use Intrin::*;
        match intrin {
            IfThenElse => self.if_then_else(args[0], args[1], args[2], ty),
            Likely | Explain => self.expr(args[0]),
            CallExtern => self.call_extern(args, ty),
            CallPacked => self.call_packed(args, ty),
            CallKernel => self.call_kernel(args),
            AddressOf => match self.f.expr(args[0]) {
                ExprData::Load(buffer, indices) => {
                    let (buffer, index) = (*buffer, indices[0]);
                    let index = self.scalar(index)?;
                    Ok(ExprValue::Scalar(self.address(buffer, index)?))
                }
                _ => internal("the argument of T.address_of is not an element of a buffer"),
            },
            Reinterpret => self.reinterpret(args[0], ty),
            VectorSum | VectorMax | VectorMin => self.reduce_lanes(intrin, args[0], ty),
            IsNan | IsInf | IsFinite => self.classify(intrin, args[0], ty),
            BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight => {
                self.bit_op(intrin, args[0], args[1], ty)
            }
            BitwiseNot | Popcount | Clz => {
                let a = self.expr(args[0])?;
                let a = match a {
                    ExprValue::Mask(bits, chunks) if intrin == BitwiseNot => {
                        let chunks = chunks.iter().map(|&c| self.b.ins().bnot(c));
                        return Ok(ExprValue::Mask(bits, chunks.collect()));
                    }
                    ExprValue::Chunks(chunks) if intrin == BitwiseNot => {
                        return Ok(ExprValue::Chunks(
                            chunks.iter().map(|&c| self.b.ins().bnot(c)).collect(),
                        ));
                    }
                    a => a,
                };
                Ok(self.map_lanes(&[(a, ty)], ty, |g, l| match intrin {
                    BitwiseNot if ty.dtype.is_bool() => g.b.ins().bxor_imm_s(l[0], 1),
                    BitwiseNot => g.b.ins().bnot(l[0]),
                    Popcount => g.b.ins().popcnt(l[0]),
                    _ => g.b.ins().clz(l[0]),
                }))
            }
            _ if ty.dtype.is_float() => {
                let v = self.float_intrin(intrin, args, ty)?;
                self.round_to_type(v, ty)
            }
            Abs => {
                let a = self.expr(args[0])?;
                if !ty.dtype.is_int() {
                    return Ok(a);
                }
                Ok(self.map_chunks(&[a], ty, |g, v| g.b.ins().iabs(v[0])))
            }
            Floor | Ceil | Trunc | Round | Nearbyint => self.expr(args[0]),
            other => unsupported(format!(
                "T.{other} does not support operands of type {ty}; cast the operand to a float type first"
            )),
        }
    }

    /// Generates code for an intrinsic on floats. Results of type float16 and bfloat16 are float32
    /// values that still have to be rounded.
    fn float_intrin(&mut self, intrin: Intrin, args: &[Expr], ty: Ty) -> Gen<ExprValue> {
        use Intrin::*;
        let mut values = Vec::with_capacity(args.len());
        for &a in args {
            values.push(self.expr(a)?);
        }
        let single = scalar_type(ty.dtype) == types::F32;
        let by_type = |f32_sequence: Option<Sequence>, f64_sequence: Option<Sequence>| {
            if single { f32_sequence } else { f64_sequence }
        };
        if let Some(f) = by_type(sequence::<f32>(intrin), sequence::<f64>(intrin)) {
            return Ok(self.map_chunks(&values, ty, |g, v| f(g, v[0])));
        }
        if let Some(f) =
            by_type(trigonometric_sequence::<f32>(intrin), trigonometric_sequence::<f64>(intrin))
        {
            let x = &values[0];
            return match single {
                true => self.trigonometric::<f32>(intrin, f, x, ty),
                false => self.trigonometric::<f64>(intrin, f, x, ty),
            };
        }
        match intrin {
            Sqrt => Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().sqrt(v[0]))),
            Abs => Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().fabs(v[0]))),
            Floor => Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().floor(v[0]))),
            Ceil => Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().ceil(v[0]))),
            Trunc => Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().trunc(v[0]))),
            Round | Nearbyint => Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().nearest(v[0]))),
            Rsqrt => Ok(self.map_chunks(&values, ty, |g, v| {
                let root = g.b.ins().sqrt(v[0]);
                let one = g.one_like(root);
                g.b.ins().fdiv(one, root)
            })),
            Fma => Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().fma(v[0], v[1], v[2]))),
            Atan2 if single => Ok(self.map_chunks(&values, ty, |g, v| {
                math::atan2(&mut Sequences::<f32>::new(g), &v[0], &v[1])
            })),
            Atan2 => Ok(self.map_chunks(&values, ty, |g, v| {
                math::atan2(&mut Sequences::<f64>::new(g), &v[0], &v[1])
            })),
            Pow if self.is_two(args[1]) => {
                Ok(self.map_chunks(&values, ty, |g, v| g.b.ins().fmul(v[0], v[0])))
            }
            _ => {
                let suffix = if single { "f32" } else { "f64" };
                let name = format!("pliant_{}_{suffix}", intrin.name());
                let Some(f) = extern_fn(&name) else {
                    return unsupported(format!(
                        "T.{intrin} does not support operands of type {ty}"
                    ));
                };
                let args: Vec<(ExprValue, Ty)> = values.into_iter().map(|v| (v, ty)).collect();
                self.try_map_lanes(&args, ty, |g, l| g.call_extern_fn(f, l))
            }
        }
    }

    /// Computes sine, cosine or tangent. Lanes whose angle has a magnitude up to [`Real::TRIG_LIMIT`] use the inline
    /// sequence, whose range reduction is exact enough for them. Other lanes call the platform's function, in a branch
    /// that is rarely taken.
    fn trigonometric<R: Real>(
        &mut self,
        intrin: Intrin,
        f: Sequence,
        x: &ExprValue,
        ty: Ty,
    ) -> Gen<ExprValue> {
        let by_sequence = self.map_chunks(std::slice::from_ref(x), ty, |g, v| f(g, v[0]));
        let (dtype, suffix) =
            if R::BITS == 32 { (DType::Float32, "f32") } else { (DType::Float64, "f64") };
        let platform = format!("pliant_{}_{suffix}", intrin.name());
        let Some(platform) = extern_fn(&platform) else {
            return unsupported(format!("T.{intrin} does not support operands of type {ty}"));
        };
        let wide = Ty::scalar(dtype).with_lanes(ty.lanes);
        let (xs, by_sequence) = (self.lanes(x, wide), self.storage_form(&by_sequence, wide));
        let any_large = self.any_exceeds_trig_limit::<R>(x, wide);
        let (slow, done) = (self.b.create_block(), self.b.create_block());
        let sequence_values = match &by_sequence {
            ExprValue::Chunks(chunks) | ExprValue::Lanes(chunks) => chunks.to_vec(),
            ExprValue::Scalar(v) => vec![*v],
            ExprValue::Mask(..) => {
                return internal(
                    "the operand of a trigonometric function is a vector of bools, expected floats",
                );
            }
        };
        for &v in &sequence_values {
            let machine_type = self.b.func.dfg.value_type(v);
            self.b.append_block_param(done, machine_type);
        }
        let args: Vec<BlockArg> = sequence_values.iter().map(|&v| BlockArg::Value(v)).collect();
        self.b.ins().brif(any_large, slow, &[], done, &args);
        self.b.seal_block(slow);
        self.b.switch_to_block(slow);
        let sequence_lanes = self.lanes(&by_sequence, wide);
        let mut lanes = Vec::with_capacity(xs.len());
        for (x, sequence_value) in xs.into_iter().zip(sequence_lanes) {
            // The value of a lane does not depend on the other lanes: it equals the value of the scalar function.
            let platform_value = self.call_extern_fn(platform, &[x])?;
            let is_large = self.exceeds_trig_limit::<R>(x);
            lanes.push(self.b.ins().select(is_large, platform_value, sequence_value));
        }
        let selected = match &by_sequence {
            ExprValue::Chunks(_) => self.chunks(&ExprValue::Lanes(lanes.into()), wide).to_vec(),
            _ => lanes,
        };
        let args: Vec<BlockArg> = selected.into_iter().map(BlockArg::Value).collect();
        self.b.ins().jump(done, &args);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        let params: Rc<[Value]> = self.b.block_params(done).into();
        Ok(match by_sequence {
            ExprValue::Chunks(_) => ExprValue::Chunks(params),
            ExprValue::Lanes(_) => ExprValue::Lanes(params),
            _ => ExprValue::Scalar(params[0]),
        })
    }

    /// Emits a comparison: whether the magnitude of an angle (a scalar) exceeds [`Real::TRIG_LIMIT`].
    fn exceeds_trig_limit<R: Real>(&mut self, x: Value) -> Value {
        let magnitude = self.b.ins().fabs(x);
        let limit = Sequences::<R>::new(self).f(R::TRIG_LIMIT);
        self.b.ins().fcmp(FloatCC::GreaterThan, magnitude, limit)
    }

    /// Emits code that computes whether the magnitude of the angle in any lane exceeds [`Real::TRIG_LIMIT`].
    fn any_exceeds_trig_limit<R: Real>(&mut self, x: &ExprValue, ty: Ty) -> Value {
        if ty.lanes == 1 || !fills_chunks(ty) {
            let lanes = self.lanes(x, ty);
            let all: Vec<Value> =
                lanes.into_iter().map(|l| self.exceeds_trig_limit::<R>(l)).collect();
            return all
                .into_iter()
                .reduce(|a, b| self.b.ins().bor(a, b))
                .expect("a vector value has at least one lane");
        }
        let limit = Sequences::<R>::new(self).f(R::TRIG_LIMIT);
        let limit = self.b.ins().splat(chunk_type(ty.dtype), limit);
        let mut any: Option<Value> = None;
        for &chunk in self.chunks(x, ty).iter() {
            let magnitude = self.b.ins().fabs(chunk);
            let mask = self.b.ins().fcmp(FloatCC::GreaterThan, magnitude, limit);
            any = Some(any.map_or(mask, |a| self.b.ins().bor(a, mask)));
        }
        let any = any.expect("a vector value has at least one 128-bit chunk");
        self.b.ins().vany_true(any)
    }

    /// Whether an expression is the float constant 2.0 or its broadcast.
    fn is_two(&self, e: Expr) -> bool {
        match self.f.expr(e) {
            ExprData::Float(bits, _) => f64::from_bits(*bits) == 2.0,
            ExprData::Broadcast(a, _) => self.is_two(*a),
            _ => false,
        }
    }

    /// Returns the constant 1.0 in the type of `v`, broadcast if `v` is a vector.
    fn one_like(&mut self, v: Value) -> Value {
        let ty = self.b.func.dfg.value_type(v);
        let one = if ty.lane_type() == types::F64 {
            self.b.ins().f64const(1.0)
        } else {
            self.b.ins().f32const(1.0)
        };
        if ty.is_vector() { self.b.ins().splat(ty, one) } else { one }
    }

    /// Broadcasts a scalar to all lanes if `ty` is a vector type; otherwise returns the scalar.
    fn splat_to(&mut self, scalar: Value, ty: Type) -> Value {
        if ty.is_vector() { self.b.ins().splat(ty, scalar) } else { scalar }
    }

    /// Applies an operation to each chunk of a vector if its type [`fills_chunks`], otherwise to
    /// each lane. The operation must accept both scalars and chunks.
    fn map_chunks(
        &mut self,
        values: &[ExprValue],
        ty: Ty,
        mut op: impl FnMut(&mut Self, &[Value]) -> Value,
    ) -> ExprValue {
        if ty.lanes == 1 || !fills_chunks(ty) {
            let args: Vec<(ExprValue, Ty)> = values.iter().map(|v| (v.clone(), ty)).collect();
            return self.map_lanes(&args, ty, op);
        }
        let all: Vec<Rc<[Value]>> = values.iter().map(|v| self.chunks(v, ty)).collect();
        let out = (0..all[0].len()).map(|i| {
            let args: Vec<Value> = all.iter().map(|c| c[i]).collect();
            op(self, &args)
        });
        ExprValue::Chunks(out.collect())
    }

    /// Reinterprets the bits of numbers as another type of the same size.
    fn reinterpret(&mut self, a: Expr, ty: Ty) -> Gen<ExprValue> {
        let from = self.f.expr_ty(a);
        let has_other_bits = |d: DType| matches!(d, DType::Float16 | DType::BFloat16 | DType::Bool);
        // The values of these types do not have the bits of the elements in memory.
        if from.dtype.size() != ty.dtype.size()
            || has_other_bits(from.dtype)
            || has_other_bits(ty.dtype)
        {
            return unsupported(format!(
                "T.reinterpret cannot convert {from} to {ty}: the types must have the same size, and neither may be bool, \
                 float16 or bfloat16"
            ));
        }
        let v = self.expr(a)?;
        if ty.lanes > 1 && fills_chunks(ty) {
            let chunks = self.chunks(&v, from);
            let to = chunk_type_of(scalar_type(ty.dtype));
            return Ok(ExprValue::Chunks(
                chunks.iter().map(|&c| self.bitcast_chunk(c, to)).collect(),
            ));
        }
        let to = scalar_type(ty.dtype);
        Ok(self.map_lanes(&[(v, from)], ty, |g, l| {
            if g.b.func.dfg.value_type(l[0]) == to {
                l[0]
            } else {
                g.b.ins().bitcast(to, MemFlagsData::new(), l[0])
            }
        }))
    }

    /// Generates code for `vector_sum`, `vector_max` and `vector_min`: combines the 128-bit chunks of the vector pairwise, then
    /// the lanes of the last chunk pairwise.
    fn reduce_lanes(&mut self, intrin: Intrin, a: Expr, ty: Ty) -> Gen<ExprValue> {
        let op = match intrin {
            Intrin::VectorSum => BinOp::Add,
            Intrin::VectorMax => BinOp::Max,
            _ => BinOp::Min,
        };
        let from = self.f.expr_ty(a);
        let v = self.expr(a)?;
        let mut lanes: Vec<Value> = self.lanes(&v, from);
        if from.lanes > 1
            && fills_chunks(from)
            && (scalar_type(from.dtype).is_float() || op == BinOp::Add)
        {
            let mut chunks = self.chunks(&v, from).to_vec();
            while chunks.len() > 1 {
                let half = chunks.len().div_ceil(2);
                for i in half..chunks.len() {
                    chunks[i - half] = self.reduce_chunks(op, chunks[i - half], chunks[i]);
                }
                chunks.truncate(half);
            }
            let one = from.with_lanes(crate::value_representations::chunk_lanes(from.dtype) as u16);
            lanes = self.lanes(&ExprValue::Chunks(chunks.into()), one);
        }
        while lanes.len() > 1 {
            let half = lanes.len().div_ceil(2);
            for i in half..lanes.len() {
                lanes[i - half] = self.scalar_op(op, lanes[i - half], lanes[i], from.dtype)?;
            }
            lanes.truncate(half);
        }
        let out = self.round_to_type(ExprValue::Scalar(lanes[0]), from.with_lanes(1))?;
        self.cast(out, from.with_lanes(1), ty)
    }

    /// Combines two 128-bit chunks lane by lane with the operator of a reduction: addition, maximum or minimum.
    fn reduce_chunks(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let float = self.b.func.dfg.value_type(a).lane_type().is_float();
        match op {
            BinOp::Add if float => self.b.ins().fadd(a, b),
            BinOp::Add => self.b.ins().iadd(a, b),
            BinOp::Max => self.float_max(a, b),
            _ => self.float_min(a, b),
        }
    }

    /// Generates code for the float classifications `IsNan`, `IsInf` and `IsFinite`.
    fn classify(&mut self, intrin: Intrin, a: Expr, ty: Ty) -> Gen<ExprValue> {
        let from = self.f.expr_ty(a);
        let v = self.expr(a)?;
        if !from.dtype.is_float() {
            return Ok(self.int_const(i64::from(intrin == Intrin::IsFinite), ty));
        }
        let test = |g: &mut Self, v: Value| {
            if intrin == Intrin::IsNan {
                return g.b.ins().fcmp(FloatCC::Unordered, v, v);
            }
            let magnitude = g.b.ins().fabs(v);
            let ty = g.b.func.dfg.value_type(magnitude);
            let inf = if ty.lane_type() == types::F64 {
                g.b.ins().f64const(f64::INFINITY)
            } else {
                g.b.ins().f32const(f32::INFINITY)
            };
            let inf = g.splat_to(inf, ty);
            let cc = if intrin == Intrin::IsInf { FloatCC::Equal } else { FloatCC::LessThan };
            g.b.ins().fcmp(cc, magnitude, inf)
        };
        if from.lanes > 1 && fills_chunks(from) {
            let chunks = self.chunks(&v, from);
            let bits = scalar_type(from.dtype).bits() as u8;
            return Ok(ExprValue::Mask(bits, chunks.iter().map(|&c| test(self, c)).collect()));
        }
        Ok(self.map_lanes(&[(v, from)], ty, |g, l| test(g, l[0])))
    }

    /// Generates code for a bitwise operation or a shift.
    fn bit_op(&mut self, intrin: Intrin, a: Expr, b: Expr, ty: Ty) -> Gen<ExprValue> {
        let tb = self.f.expr_ty(b);
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        if ty.lanes > 1
            && let Some(v) = self.bit_op_of_vectors(intrin, &a, &b, ty)
        {
            return Ok(v);
        }
        let bits = i64::from(scalar_type(ty.dtype).bits());
        Ok(self.map_lanes(&[(a, ty), (b, tb)], ty, |g, l| match intrin {
            Intrin::BitwiseAnd => g.b.ins().band(l[0], l[1]),
            Intrin::BitwiseOr => g.b.ins().bor(l[0], l[1]),
            Intrin::BitwiseXor => g.b.ins().bxor(l[0], l[1]),
            // The instruction takes the shift amount modulo the width, but a larger amount must shift out all bits.
            shift => {
                let zero = g.int_zero(l[0]);
                let too_large = g.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, l[1], bits);
                let (shifted, all_shifted_out) = if shift == Intrin::ShiftLeft {
                    (g.b.ins().ishl(l[0], l[1]), zero)
                } else if ty.dtype.is_int() {
                    let sign = g.b.ins().sshr_imm_s(l[0], bits - 1);
                    (g.b.ins().sshr(l[0], l[1]), sign)
                } else {
                    (g.b.ins().ushr(l[0], l[1]), zero)
                };
                g.b.ins().select(too_large, all_shifted_out, shifted)
            }
        }))
    }

    /// Computes a bitwise operation on vectors whose values are masks or 128-bit chunks. Returns `None` for shifts, and for
    /// vectors that are stored as one scalar per lane.
    fn bit_op_of_vectors(
        &mut self,
        intrin: Intrin,
        a: &ExprValue,
        b: &ExprValue,
        ty: Ty,
    ) -> Option<ExprValue> {
        if ty.dtype.is_bool() {
            let op = match intrin {
                Intrin::BitwiseAnd => BinOp::And,
                Intrin::BitwiseOr => BinOp::Or,
                Intrin::BitwiseXor => BinOp::Ne,
                _ => return None,
            };
            return self.mask_op(op, a, b, ty.lanes);
        }
        if !fills_chunks(ty) {
            return None;
        }
        let chunk_op = match intrin {
            Intrin::BitwiseAnd => |g: &mut Self, x, y| g.b.ins().band(x, y),
            Intrin::BitwiseOr => |g: &mut Self, x, y| g.b.ins().bor(x, y),
            Intrin::BitwiseXor => |g: &mut Self, x, y| g.b.ins().bxor(x, y),
            _ => return None,
        };
        let (x, y) = (self.chunks(a, ty), self.chunks(b, ty));
        Some(ExprValue::Chunks((0..x.len()).map(|i| chunk_op(self, x[i], y[i])).collect()))
    }

    /// Returns an integer 0 in the type of `like`.
    fn int_zero(&mut self, like: Value) -> Value {
        let ty = self.b.func.dfg.value_type(like);
        self.b.ins().iconst(ty, 0)
    }

    /// Generates code for `T.call_extern`, a call of a native function by name.
    fn call_extern(&mut self, args: &[Expr], ty: Ty) -> Gen<ExprValue> {
        let f = self.f;
        let Some((&name, rest)) = args.split_first() else {
            return internal("the first argument of T.call_extern is not the name of a function");
        };
        let ExprData::Str(name) = f.expr(name) else {
            return internal("the first argument of T.call_extern is not the name of a function");
        };
        let linked = extern_fn(name).filter(|callee| callee.from_script());
        let Some(callee) = linked else {
            return unsupported(format!(
                "the function '{name}' called by T.call_extern is not linked; register it in the Rust \
                 program with pliant::register_symbol"
            ));
        };
        if callee.params.len() != rest.len() {
            return unsupported(format!(
                "the function '{name}' called by T.call_extern takes {} arguments, but {} were passed",
                callee.params.len(),
                rest.len()
            ));
        }
        let mut values = Vec::with_capacity(rest.len());
        for (position, (&arg, &expected)) in rest.iter().zip(callee.params).enumerate() {
            // CheckBounds checks only the accesses through addresses of elements.
            let is_address = matches!(f.expr(arg), ExprData::Call(Intrin::AddressOf, ..));
            if is_address != (expected == ExternTy::Ptr) {
                let argument = format!("argument {position} of the function '{name}'");
                return unsupported(if is_address {
                    format!("{argument} is an address, but the parameter is a number")
                } else {
                    format!("{argument} must be an address; pass T.address_of of an element")
                });
            }
            let v = self.scalar(arg)?;
            let actual = self.b.func.dfg.value_type(v);
            if actual != crate::function_builder::extern_type(expected) {
                return unsupported(format!(
                    "argument {position} of the function '{name}' has type {}, but the parameter has type {}",
                    f.expr_ty(arg),
                    extern_dtype(expected)
                ));
            }
            values.push(v);
        }
        let result = self.call_extern_fn(callee, &values)?;
        self.cast(ExprValue::Scalar(result), Ty::scalar(extern_dtype(callee.result)), ty)
    }
}
