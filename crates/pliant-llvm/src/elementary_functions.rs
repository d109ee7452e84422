//! Inline expansion of elementary functions such as `exp`. Each operation of their definitions in `pliant_kernels::math` becomes
//! an LLVM instruction on scalars or vectors of one float type.

use std::marker::PhantomData;

use inkwell::FloatPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::InstructionOpcode;
use pliant_kernels::math::{MathOps, Real, scale_by_parts};

use crate::function_builder::{FuncGen, Gen, GenError};
use crate::values::{Value, lane_count, lane_type};

/// Expands sequences of operations on floats of type `R`, such as the polynomial of `exp`, into instructions.
pub(crate) struct Sequences<'g, 'a, 'ctx, R> {
    g: &'g FuncGen<'a, 'ctx>,
    /// The first error. After an error, the operations return arbitrary values.
    error: Option<GenError>,
    real: PhantomData<R>,
}

impl<'g, 'a, 'ctx, R: Real> Sequences<'g, 'a, 'ctx, R> {
    /// Expands a sequence at the end of the current block of `g`.
    ///
    /// # Errors
    /// LLVM rejects an instruction.
    pub fn expand(
        g: &'g FuncGen<'a, 'ctx>,
        sequence: impl FnOnce(&mut Self) -> Value<'ctx>,
    ) -> Gen<Value<'ctx>> {
        let mut sequences = Sequences { g, error: None, real: PhantomData };
        let value = sequence(&mut sequences);
        sequences.error.map_or(Ok(value), Err)
    }

    /// Returns the types of a float and of an integer of the same width.
    fn scalar_types(&self) -> (BasicTypeEnum<'ctx>, BasicTypeEnum<'ctx>) {
        let context = self.g.unit.context;
        match R::BITS {
            32 => (context.f32_type().into(), context.i32_type().into()),
            _ => (context.f64_type().into(), context.i64_type().into()),
        }
    }

    /// Returns the value in `result`. If `result` is an error, records the error and returns `fallback`.
    fn value(&mut self, result: Gen<Value<'ctx>>, fallback: Value<'ctx>) -> Value<'ctx> {
        result.unwrap_or_else(|e| {
            self.error.get_or_insert(e);
            fallback
        })
    }

    /// Broadcasts scalar operands if one operand is a vector. Constants stay scalars until an operation combines them with a
    /// vector.
    fn same_lanes<const N: usize>(&mut self, operands: [&Value<'ctx>; N]) -> [Value<'ctx>; N] {
        let lanes = operands.iter().map(|v| lane_count(v.get_type())).max().unwrap_or(1);
        operands.map(|&v| {
            let wide = self.g.splat(v, lanes as u16);
            self.value(wide, v)
        })
    }

    fn op(&mut self, op: InstructionOpcode, a: &Value<'ctx>, b: &Value<'ctx>) -> Value<'ctx> {
        let [a, b] = self.same_lanes([a, b]);
        let result = self.g.op(op, a, b);
        self.value(result, a)
    }

    /// Returns `y * 2^n`, computed by an instruction of AVX-512 for each 512 bits; `None` if the CPU has no such instruction or
    /// if the vectors are narrower.
    fn scale_instruction(&self, y: &Value<'ctx>, n: &Value<'ctx>) -> Option<Gen<Value<'ctx>>> {
        let per_vector = 512 / R::BITS as u32;
        let lanes = lane_count(y.get_type());
        let whole = lanes.is_multiple_of(per_vector)
            && (lanes / per_vector).is_power_of_two()
            && lane_count(n.get_type()) == lanes;
        if !self.g.unit.target.has_avx512 || !whole {
            return None;
        }
        Some(self.g.map_parts([*y, *n], per_vector, |g, [y, n]| {
            let (name, mask) = match R::BITS {
                32 => {
                    ("llvm.x86.avx512.mask.scalef.ps.512", g.int_of_type(-1, g.unit.int_type(16)))
                }
                _ => ("llvm.x86.avx512.mask.scalef.pd.512", g.int_of_type(-1, g.unit.int_type(8))),
            };
            // The rounding mode of the CPU's control register.
            let rounding = g.int_of_type(4, g.unit.int_type(32));
            g.intrinsic(name, &[], &[y, n, y, mask, rounding])
        }))
    }

    fn shift(&mut self, op: InstructionOpcode, a: &Value<'ctx>, by: u8) -> Value<'ctx> {
        let by = self.g.int_of_type(i64::from(by), a.get_type());
        self.op(op, a, &by)
    }

    fn select(
        &mut self,
        (predicate, a, b): (FloatPredicate, &Value<'ctx>, &Value<'ctx>),
        x: &Value<'ctx>,
        y: &Value<'ctx>,
    ) -> Value<'ctx> {
        let [a, b, x, y] = self.same_lanes([a, b, x, y]);
        let selected = self.g.fcmp(predicate, a, b).and_then(|c| self.g.select(c, x, y));
        self.value(selected, x)
    }
}

/// Defines methods for operations with two operands. Each method emits one instruction.
macro_rules! binary {
    ($($name:ident = $instruction:ident;)*) => {
        $(
            fn $name(&mut self, a: &Value<'ctx>, b: &Value<'ctx>) -> Value<'ctx> {
                self.op(InstructionOpcode::$instruction, a, b)
            }
        )*
    };
}

impl<'ctx, R: Real> MathOps for Sequences<'_, '_, 'ctx, R> {
    type Real = R;
    type V = Value<'ctx>;

    binary! {
        add = FAdd;
        sub = FSub;
        mul = FMul;
        div = FDiv;
        iadd = Add;
        isub = Sub;
        iand = And;
        ior = Or;
    }

    fn f(&mut self, value: f64) -> Value<'ctx> {
        let rounded = if R::BITS == 32 { f64::from(value as f32) } else { value };
        self.g.float_of_type(rounded, self.scalar_types().0)
    }
    fn i(&mut self, value: i64) -> Value<'ctx> {
        self.g.int_of_type(value, self.scalar_types().1)
    }
    fn sqrt(&mut self, a: &Value<'ctx>) -> Value<'ctx> {
        let root = self.g.same_type_intrinsic("llvm.sqrt", &[*a]);
        self.value(root, *a)
    }
    fn fma(&mut self, a: &Value<'ctx>, b: &Value<'ctx>, c: &Value<'ctx>) -> Value<'ctx> {
        if !self.g.unit.target.has_fma {
            let product = self.mul(a, b);
            return self.add(&product, c);
        }
        let [a, b, c] = self.same_lanes([a, b, c]);
        let sum = self.g.same_type_intrinsic("llvm.fma", &[a, b, c]);
        self.value(sum, a)
    }
    fn select_lt(
        &mut self,
        a: &Value<'ctx>,
        b: &Value<'ctx>,
        x: &Value<'ctx>,
        y: &Value<'ctx>,
    ) -> Value<'ctx> {
        self.select((FloatPredicate::OLT, a, b), x, y)
    }
    fn keep_nan(&mut self, x: &Value<'ctx>, y: &Value<'ctx>) -> Value<'ctx> {
        self.select((FloatPredicate::UNO, x, x), x, y)
    }
    fn bits(&mut self, a: &Value<'ctx>) -> Value<'ctx> {
        let bits = self.g.bits_as(*a, self.scalar_types().1);
        self.value(bits, *a)
    }
    fn float_of_bits(&mut self, a: &Value<'ctx>) -> Value<'ctx> {
        let float = self.g.bits_as(*a, self.scalar_types().0);
        self.value(float, *a)
    }
    fn scale(&mut self, y: &Value<'ctx>, n: &Value<'ctx>, t: &Value<'ctx>) -> Value<'ctx> {
        match self.scale_instruction(y, n) {
            Some(Ok(scaled)) => scaled,
            Some(Err(e)) => self.value(Err(e), *y),
            None => scale_by_parts(self, y, n, t),
        }
    }
    fn ishl(&mut self, a: &Value<'ctx>, by: u8) -> Value<'ctx> {
        self.shift(InstructionOpcode::Shl, a, by)
    }
    fn ishr(&mut self, a: &Value<'ctx>, by: u8) -> Value<'ctx> {
        self.shift(InstructionOpcode::LShr, a, by)
    }
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Returns the largest magnitude of an angle for which the inline sequences of sine, cosine and tangent are exact enough, in
    /// the type of `x`.
    pub fn trig_limit(&self, x: Value<'ctx>) -> Value<'ctx> {
        let limit = match lane_type(x.get_type()) == self.unit.context.f32_type().into() {
            true => f64::from(<f32 as Real>::TRIG_LIMIT as f32),
            false => <f64 as Real>::TRIG_LIMIT,
        };
        self.float_of_type(limit, x.get_type())
    }
}
