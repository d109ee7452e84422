//! Intrinsics: machine instructions, the shared sequences of `pliant_kernels::math`, and linked functions.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Type, Value, types};
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, Ty};
use pliant_kernels::math::{self, MathOps, Real};
use pliant_kernels::{ExternTy, extern_fn};
use pliant_tensor::DType;

use crate::function::{FuncGen, Gen, internal, unsupported};
use crate::sequences::Sequences;
use crate::value::{V, chunk, chunk_of, clif, packable};

/// Expands a one-argument sequence inline.
type Sequence = fn(&mut FuncGen<'_, '_>, Value) -> Value;

macro_rules! sequences {
    ($intrin:expr; $($name:ident = $function:ident),*) => {
        match $intrin {
            $(Intrin::$name => |g, x| math::$function(&mut Sequences::<R>::new(g), &x),)*
            _ => return None,
        }
    };
}

/// The sequence of an intrinsic that is valid for all arguments.
fn sequence<R: Real>(intrin: Intrin) -> Option<Sequence> {
    let sequence: Sequence = sequences! {
        intrin;
        Exp = exp, Log = log, Log1p = log1p, Sinh = sinh, Cosh = cosh, Tanh = tanh, Asinh = asinh, Acosh = acosh,
        Atanh = atanh, Asin = asin, Acos = acos, Atan = atan, Erf = erf, Gelu = gelu, Sigmoid = sigmoid
    };
    Some(sequence)
}

/// The sequence of an intrinsic that is valid for arguments up to [`Real::TRIG_LIMIT`].
fn angle_sequence<R: Real>(intrin: Intrin) -> Option<Sequence> {
    let sequence: Sequence = sequences!(intrin; Sin = sin, Cos = cos, Tan = tan);
    Some(sequence)
}

impl FuncGen<'_, '_> {
    pub fn call(&mut self, intrin: Intrin, args: &[Expr], ty: Ty) -> Gen<V> {
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
                    Ok(V::S(self.address(buffer, index)?))
                }
                _ => internal("address_of takes a buffer element"),
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
                    V::M(bits, chunks) if intrin == BitwiseNot => {
                        let chunks = chunks.iter().map(|&c| self.b.ins().bnot(c));
                        return Ok(V::M(bits, chunks.collect()));
                    }
                    V::X(chunks) if intrin == BitwiseNot => {
                        return Ok(V::X(chunks.iter().map(|&c| self.b.ins().bnot(c)).collect()));
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
                self.narrow(v, ty)
            }
            Abs => {
                let a = self.expr(args[0])?;
                if !ty.dtype.is_int() {
                    return Ok(a);
                }
                Ok(self.per_chunk(&[a], ty, |g, v| g.b.ins().iabs(v[0])))
            }
            Floor | Ceil | Trunc | Round | Nearbyint => self.expr(args[0]),
            other => unsupported(format!("T.{other} on {ty}; convert to a float type first")),
        }
    }

    /// An intrinsic on floats. float16 and bfloat16 results are not yet rounded.
    fn float_intrin(&mut self, intrin: Intrin, args: &[Expr], ty: Ty) -> Gen<V> {
        use Intrin::*;
        let mut values = Vec::with_capacity(args.len());
        for &a in args {
            values.push(self.expr(a)?);
        }
        let single = clif(ty.dtype) == types::F32;
        let by_type = |single32: Option<Sequence>, double: Option<Sequence>| {
            if single { single32 } else { double }
        };
        if let Some(f) = by_type(sequence::<f32>(intrin), sequence::<f64>(intrin)) {
            return Ok(self.per_chunk(&values, ty, |g, v| f(g, v[0])));
        }
        if let Some(f) = by_type(angle_sequence::<f32>(intrin), angle_sequence::<f64>(intrin)) {
            let x = &values[0];
            return match single {
                true => self.angle_function::<f32>(intrin, f, x, ty),
                false => self.angle_function::<f64>(intrin, f, x, ty),
            };
        }
        match intrin {
            Sqrt => Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().sqrt(v[0]))),
            Abs => Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().fabs(v[0]))),
            Floor => Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().floor(v[0]))),
            Ceil => Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().ceil(v[0]))),
            Trunc => Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().trunc(v[0]))),
            Round | Nearbyint => Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().nearest(v[0]))),
            Rsqrt => Ok(self.per_chunk(&values, ty, |g, v| {
                let root = g.b.ins().sqrt(v[0]);
                let one = g.one_like(root);
                g.b.ins().fdiv(one, root)
            })),
            Fma => Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().fma(v[0], v[1], v[2]))),
            Atan2 if single => Ok(self.per_chunk(&values, ty, |g, v| {
                math::atan2(&mut Sequences::<f32>::new(g), &v[0], &v[1])
            })),
            Atan2 => Ok(self.per_chunk(&values, ty, |g, v| {
                math::atan2(&mut Sequences::<f64>::new(g), &v[0], &v[1])
            })),
            Pow if self.is_two(args[1]) => {
                Ok(self.per_chunk(&values, ty, |g, v| g.b.ins().fmul(v[0], v[0])))
            }
            _ => {
                let suffix = if single { "f32" } else { "f64" };
                let name = format!("pliant_{}_{suffix}", intrin.name());
                let Some(f) = extern_fn(&name) else {
                    return unsupported(format!("T.{intrin} on {ty}"));
                };
                let args: Vec<(V, Ty)> = values.into_iter().map(|v| (v, ty)).collect();
                self.try_map_lanes(&args, ty, |g, l| g.call_extern_fn(f, l))
            }
        }
    }

    /// Sine, cosine or tangent: a sequence, and the platform's function for lanes whose angle is beyond [`Real::TRIG_LIMIT`], up
    /// to which the sequence can reduce it.
    fn angle_function<R: Real>(&mut self, intrin: Intrin, f: Sequence, x: &V, ty: Ty) -> Gen<V> {
        let fast = self.per_chunk(std::slice::from_ref(x), ty, |g, v| f(g, v[0]));
        let (dtype, suffix) =
            if R::BITS == 32 { (DType::Float32, "f32") } else { (DType::Float64, "f64") };
        let platform = format!("pliant_{}_{suffix}", intrin.name());
        let Some(platform) = extern_fn(&platform) else {
            return unsupported(format!("T.{intrin} on {ty}"));
        };
        let wide = Ty::scalar(dtype).with_lanes(ty.lanes);
        let (xs, fast) = (self.lanes(x, wide), self.canonical(&fast, wide));
        let beyond = self.any_beyond::<R>(x, wide);
        let (slow, done) = (self.b.create_block(), self.b.create_block());
        let quick = match &fast {
            V::X(chunks) | V::L(chunks) => chunks.to_vec(),
            V::S(v) => vec![*v],
            V::M(..) => return internal("a mask is no angle"),
        };
        for &v in &quick {
            let machine = self.b.func.dfg.value_type(v);
            self.b.append_block_param(done, machine);
        }
        let args: Vec<BlockArg> = quick.iter().map(|&v| BlockArg::Value(v)).collect();
        self.b.ins().brif(beyond, slow, &[], done, &args);
        self.b.seal_block(slow);
        self.b.switch_to_block(slow);
        let quick_lanes = self.lanes(&fast, wide);
        let mut lanes = Vec::with_capacity(xs.len());
        for (x, quick) in xs.into_iter().zip(quick_lanes) {
            // Each lane gets the value that it would have as a scalar, whatever the other lanes are.
            let exact = self.call_extern_fn(platform, &[x])?;
            let huge = self.is_beyond::<R>(x);
            lanes.push(self.b.ins().select(huge, exact, quick));
        }
        let chosen = match &fast {
            V::X(_) => self.chunks(&V::L(lanes.into()), wide).to_vec(),
            _ => lanes,
        };
        let args: Vec<BlockArg> = chosen.into_iter().map(BlockArg::Value).collect();
        self.b.ins().jump(done, &args);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        let params: Rc<[Value]> = self.b.block_params(done).into();
        Ok(match fast {
            V::X(_) => V::X(params),
            V::L(_) => V::L(params),
            _ => V::S(params[0]),
        })
    }

    /// Whether the magnitude of an angle is beyond [`Real::TRIG_LIMIT`].
    fn is_beyond<R: Real>(&mut self, x: Value) -> Value {
        let size = self.b.ins().fabs(x);
        let limit = Sequences::<R>::new(self).f(R::TRIG_LIMIT);
        self.b.ins().fcmp(FloatCC::GreaterThan, size, limit)
    }

    /// Whether the angle in any lane is beyond the limit.
    fn any_beyond<R: Real>(&mut self, x: &V, ty: Ty) -> Value {
        if ty.lanes == 1 || !packable(ty) {
            let lanes = self.lanes(x, ty);
            let all: Vec<Value> = lanes.into_iter().map(|l| self.is_beyond::<R>(l)).collect();
            return all.into_iter().reduce(|a, b| self.b.ins().bor(a, b)).expect("there is a lane");
        }
        let limit = Sequences::<R>::new(self).f(R::TRIG_LIMIT);
        let limit = self.b.ins().splat(chunk(ty.dtype), limit);
        let mut any: Option<Value> = None;
        for &chunk in self.chunks(x, ty).iter() {
            let size = self.b.ins().fabs(chunk);
            let mask = self.b.ins().fcmp(FloatCC::GreaterThan, size, limit);
            any = Some(any.map_or(mask, |a| self.b.ins().bor(a, mask)));
        }
        let any = any.expect("there is a chunk");
        self.b.ins().vany_true(any)
    }

    fn is_two(&self, e: Expr) -> bool {
        match self.f.expr(e) {
            ExprData::Float(bits, _) => f64::from_bits(*bits) == 2.0,
            ExprData::Broadcast(a, _) => self.is_two(*a),
            _ => false,
        }
    }

    fn one_like(&mut self, v: Value) -> Value {
        let ty = self.b.func.dfg.value_type(v);
        let one = if ty.lane_type() == types::F64 {
            self.b.ins().f64const(1.0)
        } else {
            self.b.ins().f32const(1.0)
        };
        if ty.is_vector() { self.b.ins().splat(ty, one) } else { one }
    }

    /// Broadcasts a scalar to a vector type. For a scalar type, returns it unchanged.
    fn like(&mut self, scalar: Value, ty: Type) -> Value {
        if ty.is_vector() { self.b.ins().splat(ty, scalar) } else { scalar }
    }

    /// Applies an operation that works on both scalars and chunks: to each chunk of packable vectors, otherwise to each lane.
    fn per_chunk(
        &mut self,
        values: &[V],
        ty: Ty,
        mut op: impl FnMut(&mut Self, &[Value]) -> Value,
    ) -> V {
        if ty.lanes == 1 || !packable(ty) {
            let args: Vec<(V, Ty)> = values.iter().map(|v| (v.clone(), ty)).collect();
            return self.map_lanes(&args, ty, op);
        }
        let all: Vec<Rc<[Value]>> = values.iter().map(|v| self.chunks(v, ty)).collect();
        let out = (0..all[0].len()).map(|i| {
            let args: Vec<Value> = all.iter().map(|c| c[i]).collect();
            op(self, &args)
        });
        V::X(out.collect())
    }

    fn reinterpret(&mut self, a: Expr, ty: Ty) -> Gen<V> {
        let from = self.f.expr_ty(a);
        let narrow = |d: DType| matches!(d, DType::Float16 | DType::BFloat16 | DType::Bool);
        if from.dtype.size() != ty.dtype.size() || narrow(from.dtype) || narrow(ty.dtype) {
            return unsupported(format!("reinterpreting {from} as {ty}"));
        }
        let v = self.expr(a)?;
        if ty.lanes > 1 && packable(ty) {
            let chunks = self.chunks(&v, from);
            let to = chunk_of(clif(ty.dtype));
            return Ok(V::X(chunks.iter().map(|&c| self.recast(c, to)).collect()));
        }
        let to = clif(ty.dtype);
        Ok(self.map_lanes(&[(v, from)], ty, |g, l| {
            if g.b.func.dfg.value_type(l[0]) == to {
                l[0]
            } else {
                g.b.ins().bitcast(to, MemFlagsData::new(), l[0])
            }
        }))
    }

    /// Reduces the lanes of a vector: combines chunks pairwise, then lanes pairwise.
    fn reduce_lanes(&mut self, intrin: Intrin, a: Expr, ty: Ty) -> Gen<V> {
        let op = match intrin {
            Intrin::VectorSum => BinOp::Add,
            Intrin::VectorMax => BinOp::Max,
            _ => BinOp::Min,
        };
        let from = self.f.expr_ty(a);
        let v = self.expr(a)?;
        let mut lanes: Vec<Value> = self.lanes(&v, from);
        if from.lanes > 1 && packable(from) && (clif(from.dtype).is_float() || op == BinOp::Add) {
            let mut chunks = self.chunks(&v, from).to_vec();
            while chunks.len() > 1 {
                let half = chunks.len().div_ceil(2);
                for i in half..chunks.len() {
                    chunks[i - half] = self.chunk_op(op, chunks[i - half], chunks[i]);
                }
                chunks.truncate(half);
            }
            let one = from.with_lanes(crate::value::chunk_lanes(from.dtype) as u16);
            lanes = self.lanes(&V::X(chunks.into()), one);
        }
        while lanes.len() > 1 {
            let half = lanes.len().div_ceil(2);
            for i in half..lanes.len() {
                lanes[i - half] = self.scalar_op(op, lanes[i - half], lanes[i], from.dtype)?;
            }
            lanes.truncate(half);
        }
        let out = self.narrow(V::S(lanes[0]), from.with_lanes(1))?;
        self.cast(out, from.with_lanes(1), ty)
    }

    fn chunk_op(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let float = self.b.func.dfg.value_type(a).lane_type().is_float();
        match op {
            BinOp::Add if float => self.b.ins().fadd(a, b),
            BinOp::Add => self.b.ins().iadd(a, b),
            BinOp::Max => self.greater(a, b),
            _ => self.lesser(a, b),
        }
    }

    fn classify(&mut self, intrin: Intrin, a: Expr, ty: Ty) -> Gen<V> {
        let from = self.f.expr_ty(a);
        let v = self.expr(a)?;
        if !from.dtype.is_float() {
            return Ok(self.int_const(i64::from(intrin == Intrin::IsFinite), ty));
        }
        let test = |g: &mut Self, v: Value| {
            if intrin == Intrin::IsNan {
                return g.b.ins().fcmp(FloatCC::Unordered, v, v);
            }
            let size = g.b.ins().fabs(v);
            let ty = g.b.func.dfg.value_type(size);
            let inf = if ty.lane_type() == types::F64 {
                g.b.ins().f64const(f64::INFINITY)
            } else {
                g.b.ins().f32const(f32::INFINITY)
            };
            let inf = g.like(inf, ty);
            let cc = if intrin == Intrin::IsInf { FloatCC::Equal } else { FloatCC::LessThan };
            g.b.ins().fcmp(cc, size, inf)
        };
        if from.lanes > 1 && packable(from) {
            let chunks = self.chunks(&v, from);
            let bits = clif(from.dtype).bits() as u8;
            return Ok(V::M(bits, chunks.iter().map(|&c| test(self, c)).collect()));
        }
        Ok(self.map_lanes(&[(v, from)], ty, |g, l| test(g, l[0])))
    }

    fn bit_op(&mut self, intrin: Intrin, a: Expr, b: Expr, ty: Ty) -> Gen<V> {
        let tb = self.f.expr_ty(b);
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        if ty.lanes > 1
            && let Some(v) = self.bit_op_of_vectors(intrin, &a, &b, ty)
        {
            return Ok(v);
        }
        let bits = i64::from(clif(ty.dtype).bits());
        Ok(self.map_lanes(&[(a, ty), (b, tb)], ty, |g, l| match intrin {
            Intrin::BitwiseAnd => g.b.ins().band(l[0], l[1]),
            Intrin::BitwiseOr => g.b.ins().bor(l[0], l[1]),
            Intrin::BitwiseXor => g.b.ins().bxor(l[0], l[1]),
            // The instruction takes the shift distance modulo the width. From the width on, all bits are shifted out.
            shift => {
                let zero = g.int_zero(l[0]);
                let outside = g.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, l[1], bits);
                let (moved, gone) = if shift == Intrin::ShiftLeft {
                    (g.b.ins().ishl(l[0], l[1]), zero)
                } else if ty.dtype.is_int() {
                    let sign = g.b.ins().sshr_imm_s(l[0], bits - 1);
                    (g.b.ins().sshr(l[0], l[1]), sign)
                } else {
                    (g.b.ins().ushr(l[0], l[1]), zero)
                };
                g.b.ins().select(outside, gone, moved)
            }
        }))
    }

    /// Bitwise operations on masks and chunks.
    fn bit_op_of_vectors(&mut self, intrin: Intrin, a: &V, b: &V, ty: Ty) -> Option<V> {
        if ty.dtype.is_bool() {
            let op = match intrin {
                Intrin::BitwiseAnd => BinOp::And,
                Intrin::BitwiseOr => BinOp::Or,
                Intrin::BitwiseXor => BinOp::Ne,
                _ => return None,
            };
            return self.connect_masks(op, a, b, ty.lanes);
        }
        if !packable(ty) {
            return None;
        }
        let one = match intrin {
            Intrin::BitwiseAnd => |g: &mut Self, x, y| g.b.ins().band(x, y),
            Intrin::BitwiseOr => |g: &mut Self, x, y| g.b.ins().bor(x, y),
            Intrin::BitwiseXor => |g: &mut Self, x, y| g.b.ins().bxor(x, y),
            _ => return None,
        };
        let (x, y) = (self.chunks(a, ty), self.chunks(b, ty));
        Some(V::X((0..x.len()).map(|i| one(self, x[i], y[i])).collect()))
    }

    fn int_zero(&mut self, like: Value) -> Value {
        let ty = self.b.func.dfg.value_type(like);
        self.b.ins().iconst(ty, 0)
    }

    fn call_extern(&mut self, args: &[Expr], ty: Ty) -> Gen<V> {
        let f = self.f;
        let Some((&name, rest)) = args.split_first() else {
            return internal("call_extern without a name");
        };
        let ExprData::Str(name) = f.expr(name) else {
            return internal("call_extern without a name");
        };
        let linked = extern_fn(name).filter(|callee| callee.from_script());
        let Some(callee) = linked else {
            return unsupported(format!(
                "the function '{name}' called by T.call_extern is not linked: a Rust program registers it with \
                 pliant::register_symbol"
            ));
        };
        if callee.params.len() != rest.len() {
            return unsupported(format!(
                "'{name}' takes {} arguments, not {}",
                callee.params.len(),
                rest.len()
            ));
        }
        let mut values = Vec::with_capacity(rest.len());
        for (position, (&arg, &want)) in rest.iter().zip(callee.params).enumerate() {
            // CheckBounds has checked accesses through the addresses of elements, and no others.
            let address = matches!(f.expr(arg), ExprData::Call(Intrin::AddressOf, ..));
            if address != (want == ExternTy::Ptr) {
                let takes =
                    if address { "takes no address" } else { "is an address: T.address_of" };
                return unsupported(format!("argument {position} of '{name}' {takes}"));
            }
            let v = self.scalar(arg)?;
            let have = self.b.func.dfg.value_type(v);
            if have != crate::function::extern_type(want) {
                return unsupported(format!("an argument of '{name}' has type {}", f.expr_ty(arg)));
            }
            values.push(v);
        }
        let result = self.call_extern_fn(callee, &values)?;
        let expected = match callee.result {
            ExternTy::F32 => DType::Float32,
            ExternTy::F64 => DType::Float64,
            ExternTy::I32 => DType::Int32,
            ExternTy::I64 | ExternTy::Ptr => DType::Int64,
        };
        self.cast(V::S(result), Ty::scalar(expected), ty)
    }
}
