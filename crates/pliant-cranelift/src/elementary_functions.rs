//! Inline expansion of elementary functions such as `exp`. Each operation of their definitions in `pliant_kernels::math` becomes
//! a machine instruction on scalars or 128-bit chunks of one float type.

use std::marker::PhantomData;

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use pliant_kernels::math::{MathOps, Real};

use crate::function_builder::FuncGen;
use crate::value_representations::{bitcast_flags, chunk_type_of};

/// Expands sequences of operations on floats of type `R`, such as the polynomial of `exp`, into machine instructions.
pub(crate) struct Sequences<'g, 'a, 'b, R> {
    g: &'g mut FuncGen<'a, 'b>,
    real: PhantomData<R>,
}

impl<'g, 'a, 'b, R: Real> Sequences<'g, 'a, 'b, R> {
    /// Creates an expander that appends instructions to the machine function of `g`.
    pub fn new(g: &'g mut FuncGen<'a, 'b>) -> Self {
        Sequences { g, real: PhantomData }
    }

    /// Returns the machine types of a float and of an integer of the same width.
    fn scalar_types(&self) -> (Type, Type) {
        if R::BITS == 32 { (types::F32, types::I32) } else { (types::F64, types::I64) }
    }

    fn is_vector(&self, v: Value) -> bool {
        self.g.b.func.dfg.value_type(v).is_vector()
    }

    /// Broadcasts the scalar operand to a 128-bit chunk if the other operand is a chunk. Constants stay scalars until an operation
    /// combines them with a chunk.
    fn broadcast_operands(&mut self, a: Value, b: Value) -> (Value, Value) {
        match (self.is_vector(a), self.is_vector(b)) {
            (true, false) => (a, self.splat(b)),
            (false, true) => (self.splat(a), b),
            _ => (a, b),
        }
    }

    fn splat(&mut self, v: Value) -> Value {
        let ty = self.g.b.func.dfg.value_type(v);
        if ty.is_vector() { v } else { self.g.b.ins().splat(chunk_type_of(ty), v) }
    }

    /// Reinterprets the bits of a scalar or of the lanes of a chunk as the type `scalar`.
    fn bitcast_to(&mut self, v: Value, scalar: Type) -> Value {
        let ty = self.g.b.func.dfg.value_type(v);
        match ty.is_vector() {
            true => self.g.bitcast_chunk(v, chunk_type_of(scalar)),
            false if ty == scalar => v,
            false => self.g.b.ins().bitcast(scalar, MemFlagsData::new(), v),
        }
    }

    fn select(&mut self, condition: Value, x: Value, y: Value) -> Value {
        if !self.is_vector(condition) {
            return self.g.b.ins().select(condition, x, y);
        }
        let (x, y) = (self.splat(x), self.splat(y));
        let ty = self.g.b.func.dfg.value_type(x);
        let mask = self.g.b.ins().bitcast(ty, bitcast_flags(), condition);
        self.g.b.ins().bitselect(mask, x, y)
    }
}

/// Defines methods for operations with two operands. Each method emits one machine instruction.
macro_rules! binary {
    ($($name:ident = $instruction:ident;)*) => {
        $(
            fn $name(&mut self, a: &Value, b: &Value) -> Value {
                let (a, b) = self.broadcast_operands(*a, *b);
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
        // The bits of an immediate beyond the width of its type must be 0.
        let masked = if R::BITS == 32 { value & 0xffff_ffff } else { value };
        let (_, int) = self.scalar_types();
        self.g.b.ins().iconst(int, masked)
    }
    fn sqrt(&mut self, a: &Value) -> Value {
        self.g.b.ins().sqrt(*a)
    }
    fn fma(&mut self, a: &Value, b: &Value, c: &Value) -> Value {
        let (a, b) = self.broadcast_operands(*a, *b);
        let (a, c) = self.broadcast_operands(a, *c);
        let (a, b) = self.broadcast_operands(a, b);
        if self.g.unit.has_fma {
            self.g.b.ins().fma(a, b, c)
        } else {
            let product = self.g.b.ins().fmul(a, b);
            self.g.b.ins().fadd(product, c)
        }
    }
    fn select_lt(&mut self, a: &Value, b: &Value, x: &Value, y: &Value) -> Value {
        let (a, b) = self.broadcast_operands(*a, *b);
        let less = self.g.b.ins().fcmp(FloatCC::LessThan, a, b);
        self.select(less, *x, *y)
    }
    fn keep_nan(&mut self, x: &Value, y: &Value) -> Value {
        let nan = self.g.b.ins().fcmp(FloatCC::Unordered, *x, *x);
        self.select(nan, *x, *y)
    }
    fn bits(&mut self, a: &Value) -> Value {
        let (_, int) = self.scalar_types();
        self.bitcast_to(*a, int)
    }
    fn float_of_bits(&mut self, a: &Value) -> Value {
        let (float, _) = self.scalar_types();
        self.bitcast_to(*a, float)
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
