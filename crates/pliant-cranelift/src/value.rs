//! Values of expressions: scalars, 128-bit chunks, masks and single lanes, and the conversions between these forms.
//!
//! float16 and bfloat16 values are held as float32 values that the narrow type can represent, and bools as 0 or 1 in 8 bits.

use std::rc::Rc;

use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use pliant_ir::tir::Ty;
use pliant_tensor::DType;

use crate::function::FuncGen;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum V {
    /// One scalar.
    S(Value),
    /// A vector in 128-bit chunks of the element type's machine type.
    X(Rc<[Value]>),
    /// A mask: a vector of bools in 128-bit chunks of integers of that many bits, each all ones or all zeros.
    M(u8, Rc<[Value]>),
    /// A vector as one scalar per lane.
    L(Rc<[Value]>),
}

/// The machine type of a scalar of this element type.
pub(crate) fn clif(dtype: DType) -> Type {
    match dtype {
        DType::Bool | DType::Int8 | DType::UInt8 => types::I8,
        DType::Int16 | DType::UInt16 => types::I16,
        DType::Int32 | DType::UInt32 => types::I32,
        DType::Int64 | DType::UInt64 => types::I64,
        DType::Float16 | DType::BFloat16 | DType::Float32 => types::F32,
        DType::Float64 => types::F64,
    }
}

/// The machine type of a 128-bit chunk.
pub(crate) fn chunk(dtype: DType) -> Type {
    chunk_of(clif(dtype))
}

pub(crate) fn chunk_of(scalar: Type) -> Type {
    scalar.by(128 / scalar.bits()).expect("every scalar type divides 128 bits")
}

/// The lanes of a chunk of this element type.
pub(crate) fn chunk_lanes(dtype: DType) -> usize {
    chunk(dtype).lane_count() as usize
}

/// Whether vectors of this type are held in chunks.
pub(crate) fn packable(ty: Ty) -> bool {
    !ty.dtype.is_bool() && (ty.lanes as usize).is_multiple_of(chunk_lanes(ty.dtype))
}

/// The element width in bits with which a mask of that many bools fills exactly one chunk, or several chunks of bytes. `None` if
/// there is no such width; such vectors are held lane by lane.
pub(crate) fn mask_bits(lanes: u16) -> Option<u32> {
    match lanes {
        4 => Some(32),
        8 => Some(16),
        n if n > 0 && n.is_multiple_of(16) => Some(8),
        _ => None,
    }
}

/// Flags for reinterpreting the bits of a vector.
pub(crate) fn cast_flags() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

impl FuncGen<'_, '_> {
    /// The lanes of a value of type `ty`. A scalar is broadcast.
    pub fn lanes(&mut self, v: &V, ty: Ty) -> Vec<Value> {
        match v {
            V::S(v) => vec![*v; ty.lanes as usize],
            V::L(l) => l.to_vec(),
            V::X(chunks) => {
                let per = chunk_lanes(ty.dtype);
                let mut out = Vec::with_capacity(ty.lanes as usize);
                for &c in chunks.iter() {
                    for lane in 0..per {
                        out.push(self.b.ins().extractlane(c, lane as u8));
                    }
                }
                out
            }
            V::M(bits, chunks) => {
                let per = 128 / u32::from(*bits);
                let mut out = Vec::with_capacity(ty.lanes as usize);
                for &c in chunks.iter() {
                    for lane in 0..per {
                        let x = self.b.ins().extractlane(c, lane as u8);
                        let x = if *bits > 8 { self.b.ins().ireduce(types::I8, x) } else { x };
                        out.push(self.b.ins().band_imm_s(x, 1));
                    }
                }
                out
            }
        }
    }

    /// The chunks of a value of type `ty`, which must be [`packable`].
    pub fn chunks(&mut self, v: &V, ty: Ty) -> Rc<[Value]> {
        let per = chunk_lanes(ty.dtype);
        let count = ty.lanes as usize / per;
        match v {
            V::X(chunks) => chunks.clone(),
            V::S(s) => {
                let one = self.b.ins().splat(chunk(ty.dtype), *s);
                vec![one; count].into()
            }
            V::L(lanes) => {
                let packed = lanes.chunks(per).map(|lanes| self.pack(lanes, chunk(ty.dtype)));
                packed.collect()
            }
            V::M(..) => unreachable!("bools are not packable"),
        }
    }

    pub fn pack(&mut self, lanes: &[Value], ty: Type) -> Value {
        let mut out = self.b.ins().splat(ty, lanes[0]);
        for (i, &lane) in lanes.iter().enumerate().skip(1) {
            if lane != lanes[0] {
                out = self.b.ins().insertlane(out, lane, i as u8);
            }
        }
        out
    }

    /// Whether a vector of bools is a mask, or can be converted to one without packing lanes.
    pub fn is_mask(&self, v: &V) -> bool {
        matches!(v, V::M(..) | V::S(_))
    }

    /// Converts a value to the form that variables and memory hold: a scalar, chunks if the type is packable, otherwise lanes.
    pub fn canonical(&mut self, v: &V, ty: Ty) -> V {
        if ty.lanes == 1 {
            v.clone()
        } else if packable(ty) {
            V::X(self.chunks(v, ty))
        } else {
            V::L(self.lanes(v, ty).into())
        }
    }

    /// Converts a vector of bools to a mask with elements of `bits` bits, which fill whole chunks.
    pub fn mask(&mut self, v: &V, lanes: u16, bits: u32) -> Rc<[Value]> {
        let int = Type::int(bits as u16).expect("element types have 8 to 64 bits");
        let count = (u32::from(lanes) * bits / 128) as usize;
        match v {
            V::M(have, chunks) => {
                let (mut have, mut chunks) = (u32::from(*have), chunks.to_vec());
                while have < bits {
                    have *= 2;
                    chunks = chunks.into_iter().flat_map(|c| self.widened_mask(c)).collect();
                }
                while have > bits {
                    have /= 2;
                    let pairs = chunks.chunks(2);
                    chunks = pairs.map(|p| self.narrowed_mask(p[0], p[p.len() - 1])).collect();
                }
                chunks.into()
            }
            V::S(one) => {
                let one = self.wide_bool(*one, int);
                let one = self.b.ins().splat(chunk_of(int), one);
                vec![one; count].into()
            }
            _ => {
                let lanes = self.lanes(v, Ty::BOOL.with_lanes(lanes));
                let wide: Vec<Value> = lanes.iter().map(|&l| self.wide_bool(l, int)).collect();
                let per = (128 / bits) as usize;
                wide.chunks(per).map(|lanes| self.pack(lanes, chunk_of(int))).collect()
            }
        }
    }

    /// Converts a bool to an integer of all ones or all zeros.
    fn wide_bool(&mut self, v: Value, int: Type) -> Value {
        let x = if int.bits() > 8 { self.b.ins().uextend(int, v) } else { v };
        self.b.ins().ineg(x)
    }

    /// Converts a chunk of a mask to two chunks of elements twice as wide.
    fn widened_mask(&mut self, c: Value) -> [Value; 2] {
        [self.b.ins().swiden_low(c), self.b.ins().swiden_high(c)]
    }

    /// Converts two chunks of a mask to one chunk of elements half as wide.
    fn narrowed_mask(&mut self, a: Value, b: Value) -> Value {
        if self.b.func.dfg.value_type(a) != types::I64X2 {
            return self.b.ins().snarrow(a, b);
        }
        self.low_halves(a, b)
    }

    /// The low halves of the 64-bit elements of two chunks. This is a shuffle, because no instruction narrows 64-bit elements.
    pub fn low_halves(&mut self, a: Value, b: Value) -> Value {
        let [a, b] = [a, b].map(|c| self.recast(c, types::I8X16));
        let low = [0u8, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
        let low = self.b.func.dfg.immediates.push(low.to_vec().into());
        let picked = self.b.ins().shuffle(a, b, low);
        self.recast(picked, types::I32X4)
    }

    /// Reinterprets the bits as another 128-bit type.
    pub fn recast(&mut self, v: Value, ty: Type) -> Value {
        if self.b.func.dfg.value_type(v) == ty {
            v
        } else {
            self.b.ins().bitcast(ty, cast_flags(), v)
        }
    }
}
