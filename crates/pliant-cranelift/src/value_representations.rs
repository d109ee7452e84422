//! Values of expressions in four forms (scalar, 128-bit chunks, mask, lanes), and the conversions between these forms.
//!
//! A float16 or bfloat16 value is a float32 that the 16-bit type can represent. A bool is 0 or 1 in 8 bits.

use std::rc::Rc;

use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use pliant_ir::tir::Ty;
use pliant_tensor::DType;

use crate::function_builder::FuncGen;

/// The value of an expression, as one or several machine values in one of four forms.
#[derive(Clone, Debug)]
pub(crate) enum ExprValue {
    /// A scalar, as one machine value.
    Scalar(Value),
    /// A vector, as 128-bit chunks whose lanes have the machine type of the element type.
    Chunks(Rc<[Value]>),
    /// A vector of bools, as 128-bit chunks of integers that are all ones (true) or all zeros (false). The first field
    /// is the width of these integers in bits.
    Mask(u8, Rc<[Value]>),
    /// A vector, as one scalar machine value for each lane.
    Lanes(Rc<[Value]>),
}

/// Returns the machine type of a scalar with a given element type.
pub(crate) fn scalar_type(dtype: DType) -> Type {
    match dtype {
        DType::Bool | DType::Int8 | DType::UInt8 => types::I8,
        DType::Int16 | DType::UInt16 => types::I16,
        DType::Int32 | DType::UInt32 => types::I32,
        DType::Int64 | DType::UInt64 => types::I64,
        DType::Float16 | DType::BFloat16 | DType::Float32 => types::F32,
        DType::Float64 => types::F64,
    }
}

/// Returns the machine type of a 128-bit chunk with a given element type.
pub(crate) fn chunk_type(dtype: DType) -> Type {
    chunk_type_of(scalar_type(dtype))
}

/// Returns the machine type of a 128-bit chunk whose lanes have the type `scalar`.
pub(crate) fn chunk_type_of(scalar: Type) -> Type {
    scalar.by(128 / scalar.bits()).expect("the size of every scalar type divides 128 bits")
}

/// Returns the number of lanes of a 128-bit chunk with a given element type.
pub(crate) fn chunk_lanes(dtype: DType) -> usize {
    chunk_type(dtype).lane_count() as usize
}

/// Whether values of this type are stored as whole 128-bit chunks. Vectors of other types, and of bools, are stored as one scalar
/// per lane.
pub(crate) fn fills_chunks(ty: Ty) -> bool {
    !ty.dtype.is_bool() && (ty.lanes as usize).is_multiple_of(chunk_lanes(ty.dtype))
}

/// Returns the width in bits of the elements of a mask of `lanes` bools: 32 for 4 lanes and 16 for 8 lanes (one 128-bit chunk), 8
/// for multiples of 16 lanes. Returns `None` for other numbers of lanes, which do not fill whole chunks.
pub(crate) fn mask_bits(lanes: u16) -> Option<u32> {
    match lanes {
        4 => Some(32),
        8 => Some(16),
        n if n > 0 && n.is_multiple_of(16) => Some(8),
        _ => None,
    }
}

/// Memory flags for bit casts of vectors. They fix the order of the lanes to little-endian.
pub(crate) fn bitcast_flags() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

impl FuncGen<'_, '_> {
    /// Returns the lanes of a value of type `ty`. If `v` is a scalar, all lanes are this scalar.
    pub fn lanes(&mut self, v: &ExprValue, ty: Ty) -> Vec<Value> {
        match v {
            ExprValue::Scalar(v) => vec![*v; ty.lanes as usize],
            ExprValue::Lanes(l) => l.to_vec(),
            ExprValue::Chunks(chunks) => {
                let lanes_per_chunk = chunk_lanes(ty.dtype);
                let mut out = Vec::with_capacity(ty.lanes as usize);
                for &c in chunks.iter() {
                    for lane in 0..lanes_per_chunk {
                        out.push(self.b.ins().extractlane(c, lane as u8));
                    }
                }
                out
            }
            ExprValue::Mask(bits, chunks) => {
                let lanes_per_chunk = 128 / u32::from(*bits);
                let mut out = Vec::with_capacity(ty.lanes as usize);
                for &c in chunks.iter() {
                    for lane in 0..lanes_per_chunk {
                        let x = self.b.ins().extractlane(c, lane as u8);
                        let x = if *bits > 8 { self.b.ins().ireduce(types::I8, x) } else { x };
                        out.push(self.b.ins().band_imm_s(x, 1));
                    }
                }
                out
            }
        }
    }

    /// Returns the 128-bit chunks of a value of type `ty`, which must satisfy [`fills_chunks`]. If `v` is a scalar, all lanes of
    /// the chunks are this scalar.
    pub fn chunks(&mut self, v: &ExprValue, ty: Ty) -> Rc<[Value]> {
        let lanes_per_chunk = chunk_lanes(ty.dtype);
        let count = ty.lanes as usize / lanes_per_chunk;
        match v {
            ExprValue::Chunks(chunks) => chunks.clone(),
            ExprValue::Scalar(s) => {
                let chunk = self.b.ins().splat(chunk_type(ty.dtype), *s);
                vec![chunk; count].into()
            }
            ExprValue::Lanes(lanes) => {
                let packed = lanes
                    .chunks(lanes_per_chunk)
                    .map(|lanes| self.chunk_of_lanes(lanes, chunk_type(ty.dtype)));
                packed.collect()
            }
            ExprValue::Mask(..) => unreachable!("vectors of bools have no chunks"),
        }
    }

    /// Builds a chunk of type `ty` from its lanes.
    pub fn chunk_of_lanes(&mut self, lanes: &[Value], ty: Type) -> Value {
        let mut out = self.b.ins().splat(ty, lanes[0]);
        for (i, &lane) in lanes.iter().enumerate().skip(1) {
            if lane != lanes[0] {
                out = self.b.ins().insertlane(out, lane, i as u8);
            }
        }
        out
    }

    /// Whether a vector of bools is in mask form ([`ExprValue::Mask`]) or is a broadcast scalar. Both forms convert to a mask
    /// without assembling it lane by lane.
    pub fn is_mask(&self, v: &ExprValue) -> bool {
        matches!(v, ExprValue::Mask(..) | ExprValue::Scalar(_))
    }

    /// Converts a value to the form in which variables and register slots store it: a scalar, chunks if the type
    /// [`fills_chunks`], otherwise lanes.
    pub fn storage_form(&mut self, v: &ExprValue, ty: Ty) -> ExprValue {
        if ty.lanes == 1 {
            v.clone()
        } else if fills_chunks(ty) {
            ExprValue::Chunks(self.chunks(v, ty))
        } else {
            ExprValue::Lanes(self.lanes(v, ty).into())
        }
    }

    /// Converts a vector of bools to a mask whose elements have `bits` bits. `lanes` elements of that width must fill
    /// whole chunks.
    pub fn mask(&mut self, v: &ExprValue, lanes: u16, bits: u32) -> Rc<[Value]> {
        let int = Type::int(bits as u16).expect("element types have 8 to 64 bits");
        let count = (u32::from(lanes) * bits / 128) as usize;
        match v {
            ExprValue::Mask(width, chunks) => {
                let (mut width, mut chunks) = (u32::from(*width), chunks.to_vec());
                while width < bits {
                    width *= 2;
                    chunks = chunks.into_iter().flat_map(|c| self.widen_mask_chunk(c)).collect();
                }
                while width > bits {
                    width /= 2;
                    let pairs = chunks.chunks(2);
                    chunks = pairs.map(|p| self.narrow_mask_chunks(p[0], p[p.len() - 1])).collect();
                }
                chunks.into()
            }
            ExprValue::Scalar(v) => {
                let lane = self.bool_to_mask_lane(*v, int);
                let chunk = self.b.ins().splat(chunk_type_of(int), lane);
                vec![chunk; count].into()
            }
            _ => {
                let lanes = self.lanes(v, Ty::BOOL.with_lanes(lanes));
                let wide: Vec<Value> =
                    lanes.iter().map(|&l| self.bool_to_mask_lane(l, int)).collect();
                let lanes_per_chunk = (128 / bits) as usize;
                wide.chunks(lanes_per_chunk)
                    .map(|lanes| self.chunk_of_lanes(lanes, chunk_type_of(int)))
                    .collect()
            }
        }
    }

    /// Converts a bool to a lane of a mask: all ones or all zeros.
    fn bool_to_mask_lane(&mut self, v: Value, int: Type) -> Value {
        let x = if int.bits() > 8 { self.b.ins().uextend(int, v) } else { v };
        self.b.ins().ineg(x)
    }

    /// Converts a chunk of a mask to two chunks whose elements are twice as wide.
    fn widen_mask_chunk(&mut self, c: Value) -> [Value; 2] {
        [self.b.ins().swiden_low(c), self.b.ins().swiden_high(c)]
    }

    /// Converts two chunks of a mask to one chunk whose elements are half as wide.
    fn narrow_mask_chunks(&mut self, a: Value, b: Value) -> Value {
        if self.b.func.dfg.value_type(a) != types::I64X2 {
            return self.b.ins().snarrow(a, b);
        }
        self.low_halves(a, b)
    }

    /// Returns a chunk of the low halves of the 64-bit lanes of two chunks. Emits a shuffle,
    /// because no instruction narrows 64-bit lanes.
    pub fn low_halves(&mut self, a: Value, b: Value) -> Value {
        let [a, b] = [a, b].map(|c| self.bitcast_chunk(c, types::I8X16));
        let low = [0u8, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
        let low = self.b.func.dfg.immediates.push(low.to_vec().into());
        let shuffled = self.b.ins().shuffle(a, b, low);
        self.bitcast_chunk(shuffled, types::I32X4)
    }

    /// Reinterprets the bits of a chunk as another 128-bit type.
    pub fn bitcast_chunk(&mut self, v: Value, ty: Type) -> Value {
        if self.b.func.dfg.value_type(v) == ty {
            v
        } else {
            self.b.ins().bitcast(ty, bitcast_flags(), v)
        }
    }
}
