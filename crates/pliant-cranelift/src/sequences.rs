//! Inline expansion of the shared sequences of elementary functions: each operation becomes a machine instruction on scalars or
//! 128-bit chunks of one float type.

use std::marker::PhantomData;

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use pliant_kernels::math::{MathOps, Real};

use crate::function::FuncGen;
use crate::value::{cast_flags, chunk_of};

/// Expands sequences over floats of type `R`.
pub(crate) struct Sequences<'g, 'a, 'b, R> {
    g: &'g mut FuncGen<'a, 'b>,
    real: PhantomData<R>,
}

impl<'g, 'a, 'b, R: Real> Sequences<'g, 'a, 'b, R> {
    /// An expansion that appends to the function under construction.
    pub fn new(g: &'g mut FuncGen<'a, 'b>) -> Self {
        Sequences { g, real: PhantomData }
    }

    /// The machine types of a float and of an integer of the same width.
    fn scalars(&self) -> (Type, Type) {
        if R::BITS == 32 { (types::F32, types::I32) } else { (types::F64, types::I64) }
    }

    fn is_vector(&self, v: Value) -> bool {
        self.g.b.func.dfg.value_type(v).is_vector()
    }

    /// Broadcasts the scalar if only one operand is a vector. Constants are scalars until then.
    fn meet(&mut self, a: Value, b: Value) -> (Value, Value) {
        match (self.is_vector(a), self.is_vector(b)) {
            (true, false) => (a, self.repeated(b)),
            (false, true) => (self.repeated(a), b),
            _ => (a, b),
        }
    }

    fn repeated(&mut self, v: Value) -> Value {
        let ty = self.g.b.func.dfg.value_type(v);
        if ty.is_vector() { v } else { self.g.b.ins().splat(chunk_of(ty), v) }
    }

    /// Reinterprets the bits as floats or integers.
    fn recast(&mut self, v: Value, scalar: Type) -> Value {
        let ty = self.g.b.func.dfg.value_type(v);
        match ty.is_vector() {
            true => self.g.recast(v, chunk_of(scalar)),
            false if ty == scalar => v,
            false => self.g.b.ins().bitcast(scalar, MemFlagsData::new(), v),
        }
    }

    fn select(&mut self, condition: Value, x: Value, y: Value) -> Value {
        if !self.is_vector(condition) {
            return self.g.b.ins().select(condition, x, y);
        }
        let (x, y) = (self.repeated(x), self.repeated(y));
        let ty = self.g.b.func.dfg.value_type(x);
        let mask = self.g.b.ins().bitcast(ty, cast_flags(), condition);
        self.g.b.ins().bitselect(mask, x, y)
    }
}

/// Defines operations that are one instruction with two operands.
macro_rules! binary {
    ($($name:ident = $instruction:ident;)*) => {
        $(
            fn $name(&mut self, a: &Value, b: &Value) -> Value {
                let (a, b) = self.meet(*a, *b);
                self.g.b.ins().$instruction(a, b)
            }
        )*
    };
}

impl<R: Real> MathOps for Sequences<'_, '_, '_, R> {
    type Real = R;
    type V = Value;

    binary! {
        add = fadd;
        sub = fsub;
        mul = fmul;
        div = fdiv;
        iadd = iadd;
        isub = isub;
        iand = band;
        ior = bor;
    }

    fn f(&mut self, value: f64) -> Value {
        if R::BITS == 32 {
            self.g.b.ins().f32const(value as f32)
        } else {
            self.g.b.ins().f64const(value)
        }
    }
    fn i(&mut self, value: i64) -> Value {
        // An immediate has no bits beyond the width of its type.
        let masked = if R::BITS == 32 { value & 0xffff_ffff } else { value };
        let (_, int) = self.scalars();
        self.g.b.ins().iconst(int, masked)
    }
    fn sqrt(&mut self, a: &Value) -> Value {
        self.g.b.ins().sqrt(*a)
    }
    fn fma(&mut self, a: &Value, b: &Value, c: &Value) -> Value {
        let (a, b) = self.meet(*a, *b);
        let (a, c) = self.meet(a, *c);
        let (a, b) = self.meet(a, b);
        if self.g.unit.has_fma {
            self.g.b.ins().fma(a, b, c)
        } else {
            let product = self.g.b.ins().fmul(a, b);
            self.g.b.ins().fadd(product, c)
        }
    }
    fn select_lt(&mut self, a: &Value, b: &Value, x: &Value, y: &Value) -> Value {
        let (a, b) = self.meet(*a, *b);
        let less = self.g.b.ins().fcmp(FloatCC::LessThan, a, b);
        self.select(less, *x, *y)
    }
    fn keep_nan(&mut self, x: &Value, y: &Value) -> Value {
        let nan = self.g.b.ins().fcmp(FloatCC::Unordered, *x, *x);
        self.select(nan, *x, *y)
    }
    fn bits(&mut self, a: &Value) -> Value {
        let (_, int) = self.scalars();
        self.recast(*a, int)
    }
    fn float_of_bits(&mut self, a: &Value) -> Value {
        let (float, _) = self.scalars();
        self.recast(*a, float)
    }
    fn ishl(&mut self, a: &Value, by: u8) -> Value {
        let by = self.g.b.ins().iconst(types::I32, i64::from(by));
        self.g.b.ins().ishl(*a, by)
    }
    fn ishr(&mut self, a: &Value, by: u8) -> Value {
        let by = self.g.b.ins().iconst(types::I32, i64::from(by));
        self.g.b.ins().ushr(*a, by)
    }
}
