//! Code generation for simple expressions: constants, variables, selection and vector constructors.
//! Operators, casts, intrinsics and buffer accesses are in separate modules.

use std::rc::Rc;

use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};
use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Expr, ExprData, Intrin, Ty};
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::value_representations::{ExprValue, fills_chunks, scalar_type};

/// A constructor of [`ExprValue`], such as [`ExprValue::Chunks`]. Its argument is the list of machine values of a vector: one per
/// chunk or per lane.
type ValueConstructor = fn(Rc<[Value]>) -> ExprValue;

impl FuncGen<'_, '_> {
    /// Returns the value of an expression. An expression that occurs several times in a statement is computed once.
    pub fn expr(&mut self, e: Expr) -> Gen<ExprValue> {
        // An explicit stack replaces recursion, because expressions of fused operators can be deep.
        let mut stack = vec![(e, false)];
        while let Some((e, ready)) = stack.pop() {
            if self.memo.contains_key(&e) {
                continue;
            }
            if ready {
                let v = self.compute(e)?;
                self.memo.insert(e, v);
            } else {
                stack.push((e, true));
                self.strict_operands(e, &mut stack);
            }
        }
        Ok(self.memo[&e].clone())
    }

    /// Pushes the operands of an expression that are evaluated whenever the expression is evaluated onto `stack`, the list of
    /// expressions for which code must be generated next.
    fn strict_operands(&self, e: Expr, stack: &mut Vec<(Expr, bool)>) {
        let f = self.f;
        let mut push = |e: Expr| match f.expr(e) {
            // An access with a vector index computes its address from base and stride.
            ExprData::Ramp(base, ..) => stack.push((*base, false)),
            ExprData::Str(_) => {}
            _ => stack.push((e, false)),
        };
        match f.expr(e) {
            // The integers of an assertion message are computed only if the condition fails.
            ExprData::Call(Intrin::IfThenElse | Intrin::Explain, args, _) => push(args[0]),
            ExprData::Call(Intrin::AddressOf, args, _) => {
                if let ExprData::Load(_, indices) = f.expr(args[0]) {
                    indices.iter().copied().for_each(push);
                }
            }
            data => for_each_operand(data, push),
        }
    }

    /// Generates code for an expression and returns its value. The code for the operands that are always evaluated must have been
    /// generated before.
    fn compute(&mut self, e: Expr) -> Gen<ExprValue> {
        let f = self.f;
        let ty = f.expr_ty(e);
        match f.expr(e) {
            ExprData::Int(value, ty) => Ok(self.int_const(*value, *ty)),
            ExprData::Float(bits, ty) => self.float_const(f64::from_bits(*bits), *ty),
            ExprData::Str(_) => {
                internal("a string constant occurs outside of the arguments of a call")
            }
            ExprData::Var(v) => match self.vars.get(v) {
                Some(value) => Ok(value.clone()),
                None => unsupported(format!(
                    "the variable '{}' is not defined where it is used; declare it as a scalar parameter, or as the size of a \
                     dim of a buffer parameter",
                    f.var(*v).name
                )),
            },
            ExprData::Cast(to, a) => {
                let from = f.expr_ty(*a);
                let a = self.expr(*a)?;
                self.cast(a, from, *to)
            }
            ExprData::Binary(op, a, b) => self.binary(*op, *a, *b, ty),
            ExprData::Not(a) => {
                let a = self.expr(*a)?;
                Ok(match a {
                    ExprValue::Mask(bits, chunks) => ExprValue::Mask(
                        bits,
                        chunks.iter().map(|&c| self.b.ins().bnot(c)).collect(),
                    ),
                    ExprValue::Scalar(v) => ExprValue::Scalar(self.b.ins().bxor_imm_s(v, 1)),
                    a => self.map_lanes(&[(a, ty)], ty, |g, l| g.b.ins().bxor_imm_s(l[0], 1)),
                })
            }
            ExprData::Select(c, a, b) => self.select(*c, *a, *b, ty),
            ExprData::Load(buffer, indices) => self.load(*buffer, indices),
            ExprData::Ramp(base, stride, lanes)
                if ty.dtype == DType::Int64 && fills_chunks(ty.with_lanes(*lanes)) =>
            {
                self.ramp_chunks(*base, *stride, *lanes)
            }
            ExprData::Ramp(base, stride, lanes) => {
                let (mut at, stride) = (self.scalar(*base)?, self.scalar(*stride)?);
                let mut out = vec![at];
                for _ in 1..*lanes {
                    at = self.b.ins().iadd(at, stride);
                    out.push(at);
                }
                Ok(ExprValue::Lanes(out.into()))
            }
            ExprData::Broadcast(a, lanes) => {
                let a = self.scalar(*a)?;
                let ty = ty.with_lanes(*lanes);
                Ok(if fills_chunks(ty) {
                    ExprValue::Chunks(self.chunks(&ExprValue::Scalar(a), ty))
                } else if ty.dtype.is_bool() {
                    ExprValue::Scalar(a)
                } else {
                    ExprValue::Lanes(vec![a; *lanes as usize].into())
                })
            }
            ExprData::Call(intrin, args, _) => self.call(*intrin, args, ty),
        }
    }

    /// Returns the int64 vector `base`, `base + stride`, ..., in chunks of two lanes.
    fn ramp_chunks(&mut self, base: Expr, stride: Expr, lanes: u16) -> Gen<ExprValue> {
        let (base, stride) = (self.scalar(base)?, self.scalar(stride)?);
        let next = self.b.ins().iadd(base, stride);
        let two = self.b.ins().iadd(stride, stride);
        let first = self.b.ins().splat(types::I64X2, base);
        let mut at = self.b.ins().insertlane(first, next, 1);
        let step = self.b.ins().splat(types::I64X2, two);
        let mut out = vec![at];
        for _ in 1..lanes / 2 {
            at = self.b.ins().iadd(at, step);
            out.push(at);
        }
        Ok(ExprValue::Chunks(out.into()))
    }

    /// Returns an integer constant of type `ty`. If `ty` is a vector type, all lanes have the
    /// value.
    pub fn int_const(&mut self, value: i64, ty: Ty) -> ExprValue {
        let machine_type = scalar_type(ty.dtype);
        // The bits of an immediate beyond the width of its type must be 0.
        let masked = match machine_type.bits() {
            64 => value,
            bits => value & ((1i64 << bits) - 1),
        };
        let s = self.b.ins().iconst(machine_type, masked);
        self.broadcast(s, ty)
    }

    /// Returns a float constant, rounded to the type `ty`. If `ty` is a vector type, all lanes have
    /// the value.
    pub fn float_const(&mut self, value: f64, ty: Ty) -> Gen<ExprValue> {
        let s = match ty.dtype {
            DType::Float64 => self.b.ins().f64const(value),
            DType::Float32 => self.b.ins().f32const(value as f32),
            DType::Float16 => {
                let v = pliant_kernels::scalar_math::f64_round_f16(value);
                self.b.ins().f32const(v)
            }
            DType::BFloat16 => self.b.ins().f32const(pliant_tensor::round_to_bf16(value).to_f32()),
            other => {
                return internal(format!(
                    "a float constant has type {other}, expected a float type"
                ));
            }
        };
        Ok(self.broadcast(s, ty))
    }

    /// Broadcasts a scalar to all lanes of `ty`.
    pub fn broadcast(&mut self, s: Value, ty: Ty) -> ExprValue {
        if ty.lanes == 1 || ty.dtype.is_bool() {
            ExprValue::Scalar(s)
        } else if fills_chunks(ty) {
            ExprValue::Chunks(self.chunks(&ExprValue::Scalar(s), ty))
        } else {
            ExprValue::Lanes(vec![s; ty.lanes as usize].into())
        }
    }

    /// Generates code that applies an operation to each lane of vectors, or once to scalars. `ty` is the type of the result.
    pub fn map_lanes(
        &mut self,
        args: &[(ExprValue, Ty)],
        ty: Ty,
        mut op: impl FnMut(&mut Self, &[Value]) -> Value,
    ) -> ExprValue {
        if ty.lanes == 1 {
            let scalars: Vec<Value> = args.iter().map(|(v, t)| self.lanes(v, *t)[0]).collect();
            return ExprValue::Scalar(op(self, &scalars));
        }
        let lanes: Vec<Vec<Value>> =
            args.iter().map(|(v, t)| self.lanes(v, t.with_lanes(ty.lanes))).collect();
        let out: Rc<[Value]> = (0..ty.lanes as usize)
            .map(|i| {
                let args: Vec<Value> = lanes.iter().map(|l| l[i]).collect();
                op(self, &args)
            })
            .collect();
        ExprValue::Lanes(out)
    }

    /// Generates code that applies an operation to each lane of vectors, or once to scalars, as [`FuncGen::map_lanes`] does. Fails
    /// with the first error of the operation. `ty` is the type of the result.
    pub fn try_map_lanes(
        &mut self,
        args: &[(ExprValue, Ty)],
        ty: Ty,
        mut op: impl FnMut(&mut Self, &[Value]) -> Gen<Value>,
    ) -> Gen<ExprValue> {
        let mut error = None;
        let v = self.map_lanes(args, ty, |g, l| match op(g, l) {
            Ok(v) => v,
            Err(e) => {
                error.get_or_insert(e);
                l[0]
            }
        });
        error.map_or(Ok(v), Err)
    }

    fn select(&mut self, c: Expr, a: Expr, b: Expr, ty: Ty) -> Gen<ExprValue> {
        let cty = self.f.expr_ty(c);
        let (c, a, b) = (self.expr(c)?, self.expr(a)?, self.expr(b)?);
        self.select_values(&c, cty, &a, &b, ty)
    }

    /// Generates code that computes `c ? a : b` for each lane. `c` has the type `cty`, and `a` and `b` have the type `ty`.
    pub fn select_values(
        &mut self,
        c: &ExprValue,
        cty: Ty,
        a: &ExprValue,
        b: &ExprValue,
        ty: Ty,
    ) -> Gen<ExprValue> {
        if ty.dtype.is_bool()
            && ty.lanes > 1
            && let Some(v) = self.select_masks(c, a, b, ty.lanes)
        {
            return Ok(v);
        }
        if !fills_chunks(ty) || ty.lanes == 1 {
            let args = [(c.clone(), cty), (a.clone(), ty), (b.clone(), ty)];
            return Ok(self.map_lanes(&args, ty, |g, l| g.b.ins().select(l[0], l[1], l[2])));
        }
        let (a, b) = (self.chunks(a, ty), self.chunks(b, ty));
        if let ExprValue::Scalar(c) = c {
            let out = a.iter().zip(b.iter()).map(|(&a, &b)| self.b.ins().select(*c, a, b));
            return Ok(ExprValue::Chunks(out.collect()));
        }
        let mask = self.mask(c, ty.lanes, scalar_type(ty.dtype).bits());
        let out = (0..a.len()).map(|i| {
            let ty = self.b.func.dfg.value_type(a[i]);
            let m = self.bitcast_chunk(mask[i], ty);
            self.b.ins().bitselect(m, a[i], b[i])
        });
        Ok(ExprValue::Chunks(out.collect()))
    }

    /// Computes `c ? a : b` for each lane of two bool vectors in mask form ([`ExprValue::Mask`]). Returns `None` unless `c` is a
    /// mask and each of `a` and `b` is a mask or a scalar.
    fn select_masks(
        &mut self,
        c: &ExprValue,
        a: &ExprValue,
        b: &ExprValue,
        lanes: u16,
    ) -> Option<ExprValue> {
        let ExprValue::Mask(bits, c) = c else { return None };
        if !self.is_mask(a) || !self.is_mask(b) {
            return None;
        }
        let (a, b) = (self.mask(a, lanes, (*bits).into()), self.mask(b, lanes, (*bits).into()));
        let chunks = (0..c.len()).map(|i| self.b.ins().bitselect(c[i], a[i], b[i]));
        Some(ExprValue::Mask(*bits, chunks.collect()))
    }

    /// Generates code for `c ? a : b` that evaluates only the selected operand at run time.
    pub fn if_then_else(&mut self, c: Expr, a: Expr, b: Expr, ty: Ty) -> Gen<ExprValue> {
        if self.f.expr_ty(c).lanes != 1 {
            return unsupported(
                "the condition of T.if_then_else must be a scalar, but is a vector; use T.Select, which accepts vectors",
            );
        }
        let c = self.scalar(c)?;
        let (then_block, else_block, done) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(c, then_block, &[], else_block, &[]);
        self.b.seal_block(then_block);
        self.b.seal_block(else_block);
        let saved_memo = self.memo.clone();
        let mut constructor = None;
        for (block, side) in [(then_block, a), (else_block, b)] {
            self.b.switch_to_block(block);
            let v = self.expr(side)?;
            let v = if ty.lanes == 1 { v } else { self.storage_form(&v, ty) };
            let (values, construct): (Vec<Value>, ValueConstructor) = match v {
                ExprValue::Scalar(v) => (vec![v], |v| ExprValue::Scalar(v[0])),
                ExprValue::Chunks(v) => (v.to_vec(), ExprValue::Chunks),
                ExprValue::Lanes(v) => (v.to_vec(), ExprValue::Lanes),
                ExprValue::Mask(..) => {
                    return internal(
                        "a vector of bools in storage form is a mask, expected one value per lane",
                    );
                }
            };
            if constructor.is_none() {
                for &v in &values {
                    let ty = self.b.func.dfg.value_type(v);
                    self.b.append_block_param(done, ty);
                }
                constructor = Some(construct);
            }
            let args: Vec<BlockArg> = values.into_iter().map(BlockArg::Value).collect();
            self.b.ins().jump(done, &args);
            self.memo = saved_memo.clone();
        }
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        let construct = constructor.expect("the code of both branches has been generated");
        Ok(construct(self.b.block_params(done).into()))
    }

    /// Returns the value of a branch condition, which must be a scalar bool.
    pub fn condition(&mut self, e: Expr) -> Gen<Value> {
        let v = self.scalar(e)?;
        if self.b.func.dfg.value_type(v) == types::I8 {
            Ok(v)
        } else {
            internal("the condition of a branch is not a bool")
        }
    }
}
