//! Code generation for intrinsics: as LLVM instructions, as sequences of `pliant_kernels::math` expanded inline, or
//! as calls of external native functions.

use inkwell::values::InstructionOpcode;
use inkwell::{FloatPredicate, IntPredicate};
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, Ty};
use pliant_kernels::math::{self, Real};
use pliant_kernels::{ExternTy, extern_fn};
use pliant_tensor::DType;

use crate::elementary_functions::Sequences;
use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::values::{Value, lane_type};

/// Generates code for the intrinsic `$intrin` with the function of `pliant_kernels::math` that the list of pairs
/// `intrinsic = function` states for it. The value is `None` if the list does not contain the intrinsic.
macro_rules! expand {
    ($g:expr, $real:ty, $intrin:expr, $x:expr; $($name:ident = $function:ident),*) => {
        match $intrin {
            $(Intrin::$name => {
                Some(Sequences::<$real>::expand($g, |s| math::$function(s, $x))?)
            })*
            _ => None,
        }
    };
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

/// Returns the name of LLVM's intrinsic for a function that CPUs compute exactly, or `None` for other functions.
fn llvm_name(intrin: Intrin) -> Option<&'static str> {
    Some(match intrin {
        Intrin::Sqrt => "llvm.sqrt",
        Intrin::Abs => "llvm.fabs",
        Intrin::Floor => "llvm.floor",
        Intrin::Ceil => "llvm.ceil",
        Intrin::Trunc => "llvm.trunc",
        Intrin::Round | Intrin::Nearbyint => "llvm.roundeven",
        Intrin::Fma => "llvm.fma",
        _ => return None,
    })
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Generates code for a call of an intrinsic. `ty` is the type of the result.
    pub fn call(&mut self, intrin: Intrin, args: &[Expr], ty: Ty) -> Gen<Value<'ctx>> {
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
                    let index = self.int(index)?;
                    Ok(self.address(buffer, index)?.into())
                }
                _ => internal("the argument of T.address_of is not an element of a buffer"),
            },
            Reinterpret => self.reinterpret(args[0], ty),
            VectorSum | VectorMax | VectorMin => self.reduce_lanes(intrin, args[0], ty),
            IsNan | IsInf | IsFinite => self.classify(intrin, args[0], ty),
            BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight => {
                self.bit_op(intrin, args[0], args[1], ty)
            }
            BitwiseNot => {
                let a = self.expr(args[0])?;
                self.not(a)
            }
            Popcount => {
                let a = self.expr(args[0])?;
                self.same_type_intrinsic("llvm.ctpop", &[a])
            }
            Clz => {
                let a = self.expr(args[0])?;
                let zero_is_undefined = self.unit.context.bool_type().const_zero().into();
                self.intrinsic("llvm.ctlz", &[a.get_type()], &[a, zero_is_undefined])
            }
            _ if ty.dtype.is_float() => {
                let v = self.float_intrin(intrin, args, ty)?;
                self.round_to_type(v, ty.dtype)
            }
            Abs => {
                let a = self.expr(args[0])?;
                if !ty.dtype.is_int() {
                    return Ok(a);
                }
                let min_is_undefined = self.unit.context.bool_type().const_zero().into();
                self.intrinsic("llvm.abs", &[a.get_type()], &[a, min_is_undefined])
            }
            Floor | Ceil | Trunc | Round | Nearbyint => self.expr(args[0]),
            other => unsupported(format!(
                "T.{other} does not support operands of type {ty}; cast the operand to a float type first"
            )),
        }
    }

    /// Generates code for an intrinsic on floats. Results of type float16 and bfloat16 are float32
    /// values that still have to be rounded.
    fn float_intrin(&mut self, intrin: Intrin, args: &[Expr], ty: Ty) -> Gen<Value<'ctx>> {
        let mut values = Vec::with_capacity(args.len());
        for &a in args {
            let v = self.expr(a)?;
            values.push(self.splat(v, ty.lanes)?);
        }
        let sequence = match ty.dtype {
            DType::Float64 => self.sequence::<f64>(intrin, &values)?,
            _ => self.sequence::<f32>(intrin, &values)?,
        };
        if let Some(v) = sequence {
            return Ok(v);
        }
        if let Some(name) = llvm_name(intrin) {
            return self.same_type_intrinsic(name, &values);
        }
        match intrin {
            Intrin::Sin | Intrin::Cos | Intrin::Tan => self.trigonometric(intrin, values[0], ty),
            Intrin::Rsqrt => {
                let root = self.same_type_intrinsic("llvm.sqrt", &values)?;
                let one = self.float_of_type(1.0, root.get_type());
                self.op(InstructionOpcode::FDiv, one, root)
            }
            Intrin::Pow if self.is_two(args[1]) => {
                self.op(InstructionOpcode::FMul, values[0], values[0])
            }
            Intrin::Pow if ty.dtype != DType::Float64 => self.pow(values[0], values[1]),
            _ => {
                let name = format!("pliant_{}_{}", intrin.name(), suffix(ty.dtype));
                let Some(f) = extern_fn(&name) else {
                    return unsupported(format!(
                        "T.{intrin} does not support operands of type {ty}"
                    ));
                };
                self.map_lanes(&values, ty.lanes, |g, l| g.call_extern_fn(f, l))
            }
        }
    }

    /// Expands the power of float32 values inline. It is computed in float64.
    fn pow(&self, x: Value<'ctx>, y: Value<'ctx>) -> Gen<Value<'ctx>> {
        let wide = self.unit.context.f64_type().into();
        let x = self.convert(InstructionOpcode::FPExt, x, wide)?;
        let y = self.convert(InstructionOpcode::FPExt, y, wide)?;
        let power = Sequences::<f64>::expand(self, |s| math::pow(s, &x, &y))?;
        self.convert(InstructionOpcode::FPTrunc, power, self.unit.context.f32_type().into())
    }

    /// Expands an elementary function inline; `None` if it has no sequence that is valid for all arguments.
    fn sequence<R: Real>(
        &self,
        intrin: Intrin,
        values: &[Value<'ctx>],
    ) -> Gen<Option<Value<'ctx>>> {
        if intrin == Intrin::Atan2 {
            let v = Sequences::<R>::expand(self, |s| math::atan2(s, &values[0], &values[1]))?;
            return Ok(Some(v));
        }
        Ok(expand! {
            self, R, intrin, &values[0];
            Exp = exp, Log = log, Log1p = log1p, Sinh = sinh, Cosh = cosh, Tanh = tanh, Asinh = asinh, Acosh = acosh,
            Atanh = atanh, Asin = asin, Acos = acos, Atan = atan, Erf = erf, Gelu = gelu, Sigmoid = sigmoid
        })
    }

    /// Expands sine, cosine or tangent inline. The result is valid for angles of magnitude up to [`Real::TRIG_LIMIT`].
    fn trig_sequence<R: Real>(&self, intrin: Intrin, x: Value<'ctx>) -> Gen<Option<Value<'ctx>>> {
        Ok(expand! { self, R, intrin, &x; Sin = sin, Cos = cos, Tan = tan })
    }

    /// Computes sine, cosine or tangent. Lanes whose angle has a magnitude up to [`Real::TRIG_LIMIT`] use the inline
    /// sequence, whose range reduction is exact enough for them. Other lanes call the platform's function, in a branch
    /// that is rarely taken.
    fn trigonometric(&mut self, intrin: Intrin, x: Value<'ctx>, ty: Ty) -> Gen<Value<'ctx>> {
        let by_sequence = match ty.dtype {
            DType::Float64 => self.trig_sequence::<f64>(intrin, x)?,
            _ => self.trig_sequence::<f32>(intrin, x)?,
        };
        let platform = extern_fn(&format!("pliant_{}_{}", intrin.name(), suffix(ty.dtype)));
        let (Some(by_sequence), Some(platform)) = (by_sequence, platform) else {
            return unsupported(format!("T.{intrin} does not support operands of type {ty}"));
        };
        let magnitude = self.same_type_intrinsic("llvm.fabs", &[x])?;
        let is_large = self.fcmp(FloatPredicate::OGT, magnitude, self.trig_limit(x))?;
        let any_large = self.any_lane(is_large)?;
        let (slow, done) = (self.block("large_angles"), self.block("done"));
        let before = self.current_block()?;
        self.branch(any_large, slow, done)?;
        self.b.position_at_end(slow);
        // The value of a lane does not depend on the other lanes: it equals the value of the scalar function.
        let by_platform = self.map_lanes(&[x], ty.lanes, |g, l| g.call_extern_fn(platform, l))?;
        let selected = self.select(is_large, by_platform, by_sequence)?;
        let after = self.current_block()?;
        self.jump(done)?;
        self.b.position_at_end(done);
        let phi = self.phi(x.get_type(), &[(by_sequence, before), (selected, after)])?;
        Ok(phi.as_basic_value())
    }

    /// Whether an expression is the float constant 2.0 or its broadcast.
    fn is_two(&self, e: Expr) -> bool {
        match self.f.expr(e) {
            ExprData::Float(bits, _) => f64::from_bits(*bits) == 2.0,
            ExprData::Broadcast(a, _) => self.is_two(*a),
            _ => false,
        }
    }

    /// Generates code for `vector_sum`, `vector_max` and `vector_min`: combines the upper half of the lanes with the lower half
    /// until one lane is left.
    fn reduce_lanes(&mut self, intrin: Intrin, a: Expr, ty: Ty) -> Gen<Value<'ctx>> {
        let op = match intrin {
            Intrin::VectorSum => BinOp::Add,
            Intrin::VectorMax => BinOp::Max,
            _ => BinOp::Min,
        };
        let from = self.f.expr_ty(a);
        let v = self.expr(a)?;
        let (mut v, mut count) = (self.splat(v, from.lanes)?, u32::from(from.lanes));
        while count > 2 && count.is_multiple_of(2) {
            count /= 2;
            let half = from.with_lanes(count as u16);
            let low = self.shuffle(v, v, &(0..count).collect::<Vec<_>>())?;
            let high = self.shuffle(v, v, &(count..2 * count).collect::<Vec<_>>())?;
            v = self.apply(op, low, high, half)?;
        }
        let mut lanes = self.lanes(v, count as u16)?;
        while lanes.len() > 1 {
            let half = lanes.len().div_ceil(2);
            for i in half..lanes.len() {
                lanes[i - half] = self.apply(op, lanes[i - half], lanes[i], from.with_lanes(1))?;
            }
            lanes.truncate(half);
        }
        let out = self.round_to_type(lanes[0], from.dtype)?;
        self.cast(out, from.with_lanes(1), ty)
    }

    /// Generates code for the float classifications `IsNan`, `IsInf` and `IsFinite`.
    fn classify(&mut self, intrin: Intrin, a: Expr, ty: Ty) -> Gen<Value<'ctx>> {
        let from = self.f.expr_ty(a);
        let v = self.expr(a)?;
        if !from.dtype.is_float() {
            let is_finite = i64::from(intrin == Intrin::IsFinite);
            return Ok(self.int_of_type(is_finite, self.unit.value_type(ty)));
        }
        if intrin == Intrin::IsNan {
            return self.fcmp(FloatPredicate::UNO, v, v);
        }
        let magnitude = self.same_type_intrinsic("llvm.fabs", &[v])?;
        let infinity = self.float_of_type(f64::INFINITY, v.get_type());
        let predicate =
            if intrin == Intrin::IsInf { FloatPredicate::OEQ } else { FloatPredicate::OLT };
        self.fcmp(predicate, magnitude, infinity)
    }

    /// Generates code for a bitwise operation or a shift.
    fn bit_op(&mut self, intrin: Intrin, a: Expr, b: Expr, ty: Ty) -> Gen<Value<'ctx>> {
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        let (a, b) = (self.splat(a, ty.lanes)?, self.splat(b, ty.lanes)?);
        let instruction = match intrin {
            Intrin::BitwiseAnd => InstructionOpcode::And,
            Intrin::BitwiseOr => InstructionOpcode::Or,
            Intrin::BitwiseXor => InstructionOpcode::Xor,
            Intrin::ShiftLeft => InstructionOpcode::Shl,
            _ if ty.dtype.is_int() => InstructionOpcode::AShr,
            _ => InstructionOpcode::LShr,
        };
        if !matches!(intrin, Intrin::ShiftLeft | Intrin::ShiftRight) {
            return self.op(instruction, a, b);
        }
        // The result of an instruction with a larger shift amount is undefined. A larger amount must shift out all bits.
        let bits = i64::from(lane_type(b.get_type()).into_int_type().get_bit_width());
        let last = self.int_of_type(bits - 1, b.get_type());
        let too_large = self.icmp(IntPredicate::UGT, b, last)?;
        let safe = self.select(too_large, last, b)?;
        let shifted = self.op(instruction, a, safe)?;
        if instruction == InstructionOpcode::AShr {
            return Ok(shifted);
        }
        let zero = self.int_of_type(0, shifted.get_type());
        self.select(too_large, zero, shifted)
    }

    /// Generates code for `T.call_extern`, a call of a native function by name.
    fn call_extern(&mut self, args: &[Expr], ty: Ty) -> Gen<Value<'ctx>> {
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
            let v = self.expr(arg)?;
            let parameter = self.unit.scalar_type(extern_dtype(expected));
            if !is_address && v.get_type() != parameter {
                return unsupported(format!(
                    "argument {position} of the function '{name}' has type {}, but the parameter has type {}",
                    f.expr_ty(arg),
                    extern_dtype(expected)
                ));
            }
            values.push(v);
        }
        let result = self.call_extern_fn(callee, &values)?;
        self.cast(result, Ty::scalar(extern_dtype(callee.result)), ty)
    }
}

/// Returns the suffix of the native functions for values of this element type, which are float32 or float64 in registers.
fn suffix(dtype: DType) -> &'static str {
    if dtype == DType::Float64 { "f64" } else { "f32" }
}
