//! Code generation for simple expressions: constants, variables, selection and vector constructors.
//! Operators, casts, intrinsics and buffer accesses are in separate modules.

use inkwell::values::{InstructionOpcode, IntValue};
use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Expr, ExprData, Intrin, Ty};
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::values::Value;

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Returns the value of an expression. An expression that occurs several times in a statement is computed once.
    pub fn expr(&mut self, e: Expr) -> Gen<Value<'ctx>> {
        // An explicit stack replaces recursion, because expressions of fused operators can be deep.
        let mut stack = vec![(e, false)];
        while let Some((e, ready)) = stack.pop() {
            if self.memo.get(e).is_some() {
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
        match self.memo.get(e) {
            Some(v) => Ok(v),
            None => internal("an expression has no value after it was computed"),
        }
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
    fn compute(&mut self, e: Expr) -> Gen<Value<'ctx>> {
        let f = self.f;
        let ty = f.expr_ty(e);
        match f.expr(e) {
            ExprData::Int(value, ty) => Ok(self.int_of_type(*value, self.unit.value_type(*ty))),
            ExprData::Float(bits, ty) => self.float_const(f64::from_bits(*bits), *ty),
            ExprData::Str(_) => {
                internal("a string constant occurs outside of the arguments of a call")
            }
            ExprData::Var(v) => match self.vars.get(v) {
                Some(value) => Ok(*value),
                None => unsupported(format!(
                    "the variable '{}' is not defined where it is used; declare it as a scalar parameter, or as the size of a dim \
                     of a buffer parameter",
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
                self.not(a)
            }
            ExprData::Select(c, a, b) => {
                let (c, a, b) = (self.expr(*c)?, self.expr(*a)?, self.expr(*b)?);
                let (a, b) = (self.splat(a, ty.lanes)?, self.splat(b, ty.lanes)?);
                self.select(c, a, b)
            }
            ExprData::Load(buffer, indices) => self.load(*buffer, indices),
            ExprData::Ramp(base, stride, lanes) => {
                let (base, stride) = (self.expr(*base)?, self.expr(*stride)?);
                let scalar = base.get_type();
                let positions: Vec<Value<'ctx>> =
                    (0..i64::from(*lanes)).map(|i| self.int_of_type(i, scalar)).collect();
                let positions = self.vector_of_lanes(&positions)?;
                let (base, stride) = (self.splat(base, *lanes)?, self.splat(stride, *lanes)?);
                let offsets = self.op(InstructionOpcode::Mul, positions, stride)?;
                self.op(InstructionOpcode::Add, base, offsets)
            }
            ExprData::Broadcast(a, lanes) => {
                let a = self.expr(*a)?;
                self.splat(a, *lanes)
            }
            ExprData::Call(intrin, args, _) => self.call(*intrin, args, ty),
        }
    }

    /// Returns a float constant, rounded to the type `ty`. If `ty` is a vector type, all lanes have
    /// the value.
    fn float_const(&self, value: f64, ty: Ty) -> Gen<Value<'ctx>> {
        let rounded = match ty.dtype {
            DType::Float64 => value,
            DType::Float32 => f64::from(value as f32),
            DType::Float16 => f64::from(pliant_kernels::scalar_math::f64_round_f16(value)),
            DType::BFloat16 => f64::from(pliant_tensor::round_to_bf16(value).to_f32()),
            other => {
                return internal(format!(
                    "a float constant has type {other}, expected a float type"
                ));
            }
        };
        Ok(self.float_of_type(rounded, self.unit.value_type(ty)))
    }

    /// Generates code for `c ? a : b` that evaluates only the selected operand at run time.
    pub fn if_then_else(&mut self, c: Expr, a: Expr, b: Expr, ty: Ty) -> Gen<Value<'ctx>> {
        if self.f.expr_ty(c).lanes != 1 {
            return unsupported(
                "the condition of T.if_then_else must be a scalar, but is a vector; use T.Select, which accepts vectors",
            );
        }
        let c = self.condition(c)?;
        let (then_block, else_block, done) =
            (self.block("then"), self.block("else"), self.block("done"));
        self.branch(c, then_block, else_block)?;
        let mut incoming = Vec::with_capacity(2);
        for (block, side) in [(then_block, a), (else_block, b)] {
            self.b.position_at_end(block);
            self.memo.push_scope();
            let v = self.expr(side)?;
            incoming.push((self.splat(v, ty.lanes)?, self.current_block()?));
            self.jump(done)?;
            self.memo.pop_scope();
        }
        self.b.position_at_end(done);
        Ok(self.phi(self.unit.value_type(ty), &incoming)?.as_basic_value())
    }

    /// Returns the value of a branch condition, which must be a scalar bool.
    pub fn condition(&mut self, e: Expr) -> Gen<IntValue<'ctx>> {
        match self.int(e)? {
            v if v.get_type().get_bit_width() == 1 => Ok(v),
            _ => internal("the condition of a branch is not a bool"),
        }
    }

    /// Generates code that reinterprets the bits of the value `a` as the type `ty`, which has the same size.
    pub fn reinterpret(&mut self, a: Expr, ty: Ty) -> Gen<Value<'ctx>> {
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
        self.bits_as(v, self.unit.scalar_type(ty.dtype))
    }
}
