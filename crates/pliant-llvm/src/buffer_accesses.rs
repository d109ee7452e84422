//! Code generation for accesses to buffers: where their elements are, loads and stores.

use std::rc::Rc;

use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue};
use pliant_ir::tir::{Buffer, Expr, ExprData, Ty};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::half_floats::is_half;
use crate::values::{Value, with_lanes};

/// Maximum magnitude of a constant stride, in elements, for which a vector is loaded as one contiguous block of memory, of which a
/// shuffle selects the lanes.
const MAX_SHUFFLED_STRIDE: i64 = 4;

/// Where the elements of a buffer are.
#[derive(Clone)]
pub(crate) enum BufferLocation<'ctx> {
    /// The elements are in memory. The value is the address of the first element.
    Memory(PointerValue<'ctx>),
    /// The elements are in registers. A key is the index of the first element and the number of lanes of an access. Its stack slot
    /// contains these elements; LLVM replaces it by registers.
    Registers(Rc<FxHashMap<(i64, u16), PointerValue<'ctx>>>),
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Returns the address of a buffer's first element.
    pub fn base_address(&self, buffer: Buffer) -> Gen<PointerValue<'ctx>> {
        match self.locations.get(&buffer) {
            Some(&BufferLocation::Memory(base)) => Ok(base),
            Some(BufferLocation::Registers(_)) => internal("a buffer in registers has no address"),
            None => {
                let name = &self.f.buffer(buffer).name;
                unsupported(format!(
                    "the buffer '{name}' is neither a parameter of the function nor allocated in it"
                ))
            }
        }
    }

    /// Returns the address of the element of a buffer at a linear index.
    pub fn address(&self, buffer: Buffer, index: IntValue<'ctx>) -> Gen<PointerValue<'ctx>> {
        let ty = self.unit.memory_type(self.f.buffer(buffer).dtype);
        self.element(ty, self.base_address(buffer)?, index)
    }

    /// Returns the linear index of an access. Accesses in lowered functions have exactly one index.
    fn flat_index(&self, indices: &[Expr]) -> Gen<Expr> {
        match indices {
            [index] => Ok(*index),
            _ => internal("a buffer access in lowered form must have exactly one index"),
        }
    }

    /// Returns the index of the first element, the constant stride and the number of lanes of an access whose lanes are
    /// equidistant. A scalar access has stride 1.
    fn constant_stride(&self, index: Expr) -> Option<(Expr, i64, u16)> {
        match self.f.expr(index) {
            ExprData::Ramp(base, stride, lanes) => Some((*base, self.f.as_int(*stride)?, *lanes)),
            _ if self.f.expr_ty(index).lanes == 1 => Some((index, 1, 1)),
            _ => None,
        }
    }

    /// If a buffer is in registers, returns the stack slot that stands for the register of the accessed elements; otherwise
    /// `None`.
    fn register_slot(&self, buffer: Buffer, index: Expr) -> Option<Gen<PointerValue<'ctx>>> {
        let Some(BufferLocation::Registers(slots)) = self.locations.get(&buffer) else {
            return None;
        };
        let slot = self
            .constant_stride(index)
            .filter(|&(_, stride, _)| stride == 1)
            .and_then(|(base, _, lanes)| slots.get(&(self.f.as_int(base)?, lanes)).copied());
        Some(slot.map_or_else(
            || internal("an access of a buffer in registers has no matching register"),
            Ok,
        ))
    }

    /// Emits a load of the elements of a buffer at scalar or vector indices. Returns the loaded value.
    pub fn load(&mut self, buffer: Buffer, indices: &[Expr]) -> Gen<Value<'ctx>> {
        let dtype = self.f.buffer(buffer).dtype;
        let index = self.flat_index(indices)?;
        if let Some(slot) = self.register_slot(buffer, index) {
            let ty = Ty::scalar(dtype).with_lanes(self.f.expr_ty(index).lanes);
            return Ok(self.b.build_load(self.unit.value_type(ty), slot?, "")?);
        }
        let raw = self.load_raw(buffer, index)?;
        self.memory_to_register(raw, dtype)
    }

    /// Emits a load of elements of a buffer without converting them from the form in which memory holds them, such as 16 bits for a
    /// float16.
    fn load_raw(&mut self, buffer: Buffer, index: Expr) -> Gen<Value<'ctx>> {
        self.check_access(buffer, index)?;
        let ty = self.unit.memory_type(self.f.buffer(buffer).dtype);
        let Some((base, stride, lanes)) = self.constant_stride(index) else {
            let lanes = self.f.expr_ty(index).lanes;
            let indices = self.expr(index)?;
            return self.map_lanes(&[indices], lanes, |g, index| {
                let at = g.address(buffer, index[0].into_int_value())?;
                g.load_value(ty, at)
            });
        };
        let base = self.int(base)?;
        if lanes == 1 {
            return self.load_value(ty, self.address(buffer, base)?);
        }
        if stride != 0 && stride.abs() <= MAX_SHUFFLED_STRIDE {
            return self.load_shuffled((buffer, base), stride, lanes, ty);
        }
        let out: Vec<Value<'ctx>> = (0..i64::from(lanes))
            .map(|lane| {
                let index = self.b.build_int_add(base, self.i64(lane * stride), "")?;
                self.load_value(ty, self.address(buffer, index)?)
            })
            .collect::<Gen<_>>()?;
        self.vector_of_lanes(&out)
    }

    /// Emits a load of a vector with a small constant stride: the code loads all elements from the first to the last lane, and
    /// selects the lanes. Every loaded element is between two elements of the access, so it is in bounds.
    fn load_shuffled(
        &mut self,
        (buffer, base): (Buffer, IntValue<'ctx>),
        stride: i64,
        lanes: u16,
        ty: BasicTypeEnum<'ctx>,
    ) -> Gen<Value<'ctx>> {
        let last = i64::from(lanes - 1);
        let first = if stride < 0 { last * stride } else { 0 };
        let start = self.b.build_int_add(base, self.i64(first), "")?;
        let at = self.address(buffer, start)?;
        let block = with_lanes(ty, (last * stride.abs() + 1) as u32);
        let block = self.load_value(block, at)?;
        if stride == 1 {
            return Ok(block);
        }
        let positions: Vec<u32> = (0..=last).map(|lane| (lane * stride - first) as u32).collect();
        self.shuffle(block, block, &positions)
    }

    /// Converts elements from their memory representation to their register representation. Every nonzero byte is a true bool.
    fn memory_to_register(&self, raw: Value<'ctx>, dtype: DType) -> Gen<Value<'ctx>> {
        match dtype {
            DType::Float16 | DType::BFloat16 => self.half_bits_to_f32(raw, dtype),
            DType::Bool => {
                let zero = self.int_of_type(0, raw.get_type());
                self.icmp(inkwell::IntPredicate::NE, raw, zero)
            }
            _ => Ok(raw),
        }
    }

    /// Converts elements from their register representation to their memory representation.
    fn register_to_memory(&self, v: Value<'ctx>, dtype: DType) -> Gen<Value<'ctx>> {
        match dtype {
            DType::Float16 | DType::BFloat16 => self.f32_to_half_bits(v, dtype),
            DType::Bool => {
                self.convert(inkwell::values::InstructionOpcode::ZExt, v, self.unit.int_type(8))
            }
            _ => Ok(v),
        }
    }

    /// Emits a store of a scalar or vector to elements of a buffer.
    pub fn store(&mut self, buffer: Buffer, indices: &[Expr], value: Expr) -> Gen<()> {
        let index = self.flat_index(indices)?;
        let lanes = self.f.expr_ty(index).lanes;
        let dtype = self.f.buffer(buffer).dtype;
        let raw = match self.half_copy_source(buffer, value) {
            Some((from, index)) => self.load_raw(from, index)?,
            None => {
                let value = self.expr(value)?;
                let value = self.splat(value, lanes)?;
                if let Some(slot) = self.register_slot(buffer, index) {
                    self.b.build_store(slot?, value)?;
                    return Ok(());
                }
                self.register_to_memory(value, dtype)?
            }
        };
        self.check_access(buffer, index)?;
        if let Some((base, 1, _)) = self.constant_stride(index) {
            let base = self.int(base)?;
            return self.store_value(self.splat(raw, lanes)?, self.address(buffer, base)?);
        }
        let indices = self.expr(index)?;
        let (indices, values) = (self.lanes(indices, lanes)?, self.lanes(raw, lanes)?);
        for (i, v) in indices.into_iter().zip(values) {
            self.store_value(v, self.address(buffer, i.into_int_value())?)?;
        }
        Ok(())
    }

    /// Returns the source buffer and index of a store that copies 16-bit floats from memory to memory, since such a
    /// copy needs no conversion. Returns `None` for other stores.
    fn half_copy_source(&self, to: Buffer, value: Expr) -> Option<(Buffer, Expr)> {
        let ExprData::Load(from, indices) = self.f.expr(value) else { return None };
        let dtype = self.f.buffer(*from).dtype;
        let in_memory =
            |b: &Buffer| !matches!(self.locations.get(b), Some(BufferLocation::Registers(_)));
        let same_half_type = is_half(dtype) && dtype == self.f.buffer(to).dtype;
        let index = self.flat_index(indices).ok()?;
        (same_half_type && in_memory(from) && in_memory(&to)).then_some((*from, index))
    }
}
