//! Expressions: constants, variables, selection and vectors. Other families of expressions have their own modules.

use std::rc::Rc;

use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};
use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Expr, ExprData, Intrin, Ty};
use pliant_tensor::DType;

use crate::function::{FuncGen, Gen, internal, unsupported};
use crate::value::{V, clif, packable};

/// Builds a value from its machine values.
type Wrap = fn(Rc<[Value]>) -> V;

impl FuncGen<'_, '_> {
    /// The value of an expression, computed once per statement.
    pub fn expr(&mut self, e: Expr) -> Gen<V> {
        // Operands are computed first, with an explicit stack instead of recursion: expressions of fused operators can be deep.
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

    /// Pushes the operands that are evaluated unconditionally.
    fn strict_operands(&self, e: Expr, stack: &mut Vec<(Expr, bool)>) {
        let f = self.f;
        let mut push = |e: Expr| match f.expr(e) {
            // The access itself splits the index of a vector into base and stride.
            ExprData::Ramp(base, ..) => stack.push((*base, false)),
            ExprData::Str(_) => {}
            _ => stack.push((e, false)),
        };
        match f.expr(e) {
            // The integers of an assertion's message are only computed if its condition fails.
            ExprData::Call(Intrin::IfThenElse | Intrin::Explain, args, _) => push(args[0]),
            ExprData::Call(Intrin::AddressOf, args, _) => {
                if let ExprData::Load(_, indices) = f.expr(args[0]) {
                    indices.iter().copied().for_each(push);
                }
            }
            data => for_each_operand(data, push),
        }
    }

    fn compute(&mut self, e: Expr) -> Gen<V> {
        let f = self.f;
        let ty = f.expr_ty(e);
        match f.expr(e) {
            ExprData::Int(value, ty) => Ok(self.int_const(*value, *ty)),
            ExprData::Float(bits, ty) => self.float_const(f64::from_bits(*bits), *ty),
            ExprData::Str(_) => internal("a string stands outside the arguments of a call"),
            ExprData::Var(v) => match self.vars.get(v) {
                Some(value) => Ok(value.clone()),
                None => unsupported(format!(
                    "the variable '{}' is not defined where it is used: a size must stand alone in a dim of a parameter, \
                     or be a parameter",
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
                    V::M(bits, chunks) => {
                        V::M(bits, chunks.iter().map(|&c| self.b.ins().bnot(c)).collect())
                    }
                    V::S(v) => V::S(self.b.ins().bxor_imm_s(v, 1)),
                    a => self.map_lanes(&[(a, ty)], ty, |g, l| g.b.ins().bxor_imm_s(l[0], 1)),
                })
            }
            ExprData::Select(c, a, b) => self.select(*c, *a, *b, ty),
            ExprData::Load(buffer, indices) => self.load(*buffer, indices),
            ExprData::Ramp(base, stride, lanes)
                if ty.dtype == DType::Int64 && packable(ty.with_lanes(*lanes)) =>
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
                Ok(V::L(out.into()))
            }
            ExprData::Broadcast(a, lanes) => {
                let a = self.scalar(*a)?;
                let ty = ty.with_lanes(*lanes);
                Ok(if packable(ty) {
                    V::X(self.chunks(&V::S(a), ty))
                } else if ty.dtype.is_bool() {
                    V::S(a)
                } else {
                    V::L(vec![a; *lanes as usize].into())
                })
            }
            ExprData::Call(intrin, args, _) => self.call(*intrin, args, ty),
        }
    }

    /// The int64 vector `base`, `base + stride`, ... in chunks of two lanes.
    fn ramp_chunks(&mut self, base: Expr, stride: Expr, lanes: u16) -> Gen<V> {
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
        Ok(V::X(out.into()))
    }

    pub fn int_const(&mut self, value: i64, ty: Ty) -> V {
        let machine = clif(ty.dtype);
        // An immediate has no bits beyond the width of its type.
        let masked = match machine.bits() {
            64 => value,
            bits => value & ((1i64 << bits) - 1),
        };
        let s = self.b.ins().iconst(machine, masked);
        self.repeat(s, ty)
    }

    pub fn float_const(&mut self, value: f64, ty: Ty) -> Gen<V> {
        let s = match ty.dtype {
            DType::Float64 => self.b.ins().f64const(value),
            DType::Float32 => self.b.ins().f32const(value as f32),
            DType::Float16 => {
                let v = pliant_kernels::scalar::f64_round_f16(value);
                self.b.ins().f32const(v)
            }
            DType::BFloat16 => self.b.ins().f32const(pliant_tensor::round_to_bf16(value).to_f32()),
            other => return internal(format!("a float constant of type {other}")),
        };
        Ok(self.repeat(s, ty))
    }

    /// Broadcasts a scalar to all lanes of `ty`.
    pub fn repeat(&mut self, s: Value, ty: Ty) -> V {
        if ty.lanes == 1 || ty.dtype.is_bool() {
            V::S(s)
        } else if packable(ty) {
            V::X(self.chunks(&V::S(s), ty))
        } else {
            V::L(vec![s; ty.lanes as usize].into())
        }
    }

    /// Applies an operation lane by lane.
    pub fn map_lanes(
        &mut self,
        args: &[(V, Ty)],
        ty: Ty,
        mut op: impl FnMut(&mut Self, &[Value]) -> Value,
    ) -> V {
        if ty.lanes == 1 {
            let scalars: Vec<Value> = args.iter().map(|(v, t)| self.lanes(v, *t)[0]).collect();
            return V::S(op(self, &scalars));
        }
        let lanes: Vec<Vec<Value>> =
            args.iter().map(|(v, t)| self.lanes(v, t.with_lanes(ty.lanes))).collect();
        let out: Rc<[Value]> = (0..ty.lanes as usize)
            .map(|i| {
                let args: Vec<Value> = lanes.iter().map(|l| l[i]).collect();
                op(self, &args)
            })
            .collect();
        V::L(out)
    }

    /// As [`FuncGen::map_lanes`], for operations whose code generation may fail.
    pub fn try_map_lanes(
        &mut self,
        args: &[(V, Ty)],
        ty: Ty,
        mut op: impl FnMut(&mut Self, &[Value]) -> Gen<Value>,
    ) -> Gen<V> {
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

    fn select(&mut self, c: Expr, a: Expr, b: Expr, ty: Ty) -> Gen<V> {
        let cty = self.f.expr_ty(c);
        let (c, a, b) = (self.expr(c)?, self.expr(a)?, self.expr(b)?);
        self.select_values(&c, cty, &a, &b, ty)
    }

    pub fn select_values(&mut self, c: &V, cty: Ty, a: &V, b: &V, ty: Ty) -> Gen<V> {
        if ty.dtype.is_bool()
            && ty.lanes > 1
            && let Some(v) = self.select_masks(c, a, b, ty.lanes)
        {
            return Ok(v);
        }
        if !packable(ty) || ty.lanes == 1 {
            let args = [(c.clone(), cty), (a.clone(), ty), (b.clone(), ty)];
            return Ok(self.map_lanes(&args, ty, |g, l| g.b.ins().select(l[0], l[1], l[2])));
        }
        let (a, b) = (self.chunks(a, ty), self.chunks(b, ty));
        if let V::S(c) = c {
            let out = a.iter().zip(b.iter()).map(|(&a, &b)| self.b.ins().select(*c, a, b));
            return Ok(V::X(out.collect()));
        }
        let mask = self.mask(c, ty.lanes, clif(ty.dtype).bits());
        let out = (0..a.len()).map(|i| {
            let ty = self.b.func.dfg.value_type(a[i]);
            let m = self.recast(mask[i], ty);
            self.b.ins().bitselect(m, a[i], b[i])
        });
        Ok(V::X(out.collect()))
    }

    /// Selects between two vectors of bools if the condition is a mask and each vector is a mask or a scalar.
    fn select_masks(&mut self, c: &V, a: &V, b: &V, lanes: u16) -> Option<V> {
        let V::M(bits, c) = c else { return None };
        if !self.is_mask(a) || !self.is_mask(b) {
            return None;
        }
        let (a, b) = (self.mask(a, lanes, (*bits).into()), self.mask(b, lanes, (*bits).into()));
        let chunks = (0..c.len()).map(|i| self.b.ins().bitselect(c[i], a[i], b[i]));
        Some(V::M(*bits, chunks.collect()))
    }

    /// `c ? a : b`, which evaluates only the selected side.
    pub fn if_then_else(&mut self, c: Expr, a: Expr, b: Expr, ty: Ty) -> Gen<V> {
        if self.f.expr_ty(c).lanes != 1 {
            return unsupported("if_then_else over a vector of conditions; use T.Select");
        }
        let c = self.scalar(c)?;
        let (then, other, done) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(c, then, &[], other, &[]);
        self.b.seal_block(then);
        self.b.seal_block(other);
        let saved = self.memo.clone();
        let mut form = None;
        for (block, side) in [(then, a), (other, b)] {
            self.b.switch_to_block(block);
            let v = self.expr(side)?;
            let v = if ty.lanes == 1 { v } else { self.canonical(&v, ty) };
            let (values, wrap): (Vec<Value>, Wrap) = match v {
                V::S(v) => (vec![v], |v| V::S(v[0])),
                V::X(v) => (v.to_vec(), V::X),
                V::L(v) => (v.to_vec(), V::L),
                V::M(..) => return internal("a mask is not a canonical value"),
            };
            if form.is_none() {
                for &v in &values {
                    let ty = self.b.func.dfg.value_type(v);
                    self.b.append_block_param(done, ty);
                }
                form = Some(wrap);
            }
            let args: Vec<BlockArg> = values.into_iter().map(BlockArg::Value).collect();
            self.b.ins().jump(done, &args);
            self.memo = saved.clone();
        }
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        let wrap = form.expect("both sides have been generated");
        Ok(wrap(self.b.block_params(done).into()))
    }

    /// The condition of a branch: a bool scalar.
    pub fn condition(&mut self, e: Expr) -> Gen<Value> {
        let v = self.scalar(e)?;
        if self.b.func.dfg.value_type(v) == types::I8 {
            Ok(v)
        } else {
            internal("a condition is not a bool")
        }
    }
}
