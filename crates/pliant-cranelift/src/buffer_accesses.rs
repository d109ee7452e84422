//! Code generation for accesses to buffers: where their elements are, loads and stores.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::Variable;
use pliant_exec::abi::OFFSET_TENSOR_DATA;
use pliant_ir::tir::{Buffer, Expr, ExprData, Stmt, Ty, Var};
use pliant_tensor::DType;
use pliant_tir::buffer_accesses::free_names;
use rustc_hash::FxHashMap;

use crate::function_builder::{FuncGen, Gen, internal, mem_flags, unsupported};
use crate::value_representations::{
    ExprValue, chunk_lanes, chunk_type, fills_chunks, mask_bits, scalar_type,
};

/// Maximum magnitude of a constant stride, in elements, for which the lanes of a vector are addressed by constant
/// offsets from the first element.
const MAX_CONSTANT_STRIDE: i64 = 1 << 16;

/// Where the elements of a buffer are.
#[derive(Clone)]
pub(crate) enum BufferLocation {
    /// The elements are in memory. The value is the address of the first element.
    Address(Value),
    /// The elements are in the memory of a tensor argument. The first field is the address of the argument array. The second is
    /// the byte offset of this argument in the array. Used in functions with many arguments, where each statement that uses the
    /// buffer loads the address of its elements.
    Argument(Value, i32),
    /// The elements are in registers. A key is the index of the first element and the number of lanes of an access. Its variables
    /// contain these elements: one variable for a scalar, one per chunk or lane for a vector.
    Registers(Rc<FxHashMap<(i64, u16), Vec<Variable>>>),
}

/// Where a dim or stride of a tensor argument is stored. All offsets are in bytes.
#[derive(Clone, Copy)]
pub(crate) struct SizeLocation {
    /// The address of the argument array.
    pub args: Value,
    /// The offset of the tensor argument in the argument array.
    pub argument: i32,
    /// The offset, in the descriptor of the tensor argument, of the pointer to the list of dims or strides.
    pub list: i32,
    /// The offset of the dim or stride in its list.
    pub index: i32,
}

/// The buffer locations and variable values that [`FuncGen::load_arguments`] has overwritten.
/// [`FuncGen::restore_entries`] restores them.
#[derive(Default)]
pub(crate) struct ReplacedEntries {
    locations: Vec<(Buffer, BufferLocation)>,
    vars: Vec<(Var, ExprValue)>,
}

/// Returns the machine type of an element in memory.
fn memory_type(dtype: DType) -> Type {
    match dtype {
        DType::Float16 | DType::BFloat16 => types::I16,
        other => scalar_type(other),
    }
}

/// Whether this is a 16-bit float type, whose values are float32 in registers and 16 bits in memory.
fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::BFloat16)
}

impl FuncGen<'_, '_> {
    /// Returns the address of a buffer's first element.
    pub fn base_address(&mut self, buffer: Buffer) -> Gen<Value> {
        match self.locations.get(&buffer) {
            Some(&BufferLocation::Address(base)) => Ok(base),
            Some(&BufferLocation::Argument(args, offset)) => {
                // These flags prevent merging with the loads of other statements.
                let descriptor = self.b.ins().load(types::I64, mem_flags(), args, offset);
                Ok(self.b.ins().load(
                    types::I64,
                    mem_flags(),
                    descriptor,
                    OFFSET_TENSOR_DATA as i32,
                ))
            }
            Some(BufferLocation::Registers(_)) => internal("a buffer in registers has no address"),
            None => {
                let name = &self.f.buffer(buffer).name;
                unsupported(format!(
                    "the buffer '{name}' is neither a parameter of the function nor allocated in it"
                ))
            }
        }
    }

    /// If the function has many arguments, loads the addresses and sizes of the arguments that statement `s` uses into
    /// `locations` and `vars`, so that loaded values do not stay live from one statement to the next. Returns the entries that it
    /// overwrote.
    pub fn load_arguments(&mut self, s: Stmt) -> Gen<ReplacedEntries> {
        let mut replaced = ReplacedEntries::default();
        if !self.many_arguments {
            return Ok(replaced);
        }
        let names = free_names(self.f, s);
        for buffer in names.buffers {
            if let Some(BufferLocation::Argument(..)) = self.locations.get(&buffer) {
                let base = self.base_address(buffer)?;
                replaced.locations.extend(
                    self.locations
                        .insert(buffer, BufferLocation::Address(base))
                        .map(|p| (buffer, p)),
                );
            }
        }
        for var in names.vars {
            if let Some(location) = self.size_locations.get(&var).copied() {
                let size = self.load_size(location);
                replaced
                    .vars
                    .extend(self.vars.insert(var, ExprValue::Scalar(size)).map(|v| (var, v)));
            }
        }
        Ok(replaced)
    }

    /// Restores the entries of `locations` and `vars` that [`load_arguments`](Self::load_arguments) has overwritten.
    pub fn restore_entries(&mut self, replaced: ReplacedEntries) {
        self.locations.extend(replaced.locations);
        self.vars.extend(replaced.vars);
    }

    /// Loads a dim or stride of a tensor argument. The memory flags of the load prevent Cranelift from merging it with the loads
    /// of other statements, so that the loaded value is live only in the statement that uses it.
    pub fn load_size(&mut self, location: SizeLocation) -> Value {
        let descriptor =
            self.b.ins().load(types::I64, mem_flags(), location.args, location.argument);
        let list = self.b.ins().load(types::I64, mem_flags(), descriptor, location.list);
        self.b.ins().load(types::I64, mem_flags(), list, location.index)
    }

    /// Returns the address of the element of a buffer at a linear index.
    pub fn address(&mut self, buffer: Buffer, index: Value) -> Gen<Value> {
        let base = self.base_address(buffer)?;
        let size = self.f.buffer(buffer).dtype.size() as i64;
        let offset = if size == 1 {
            index
        } else {
            self.b.ins().ishl_imm_s(index, i64::from(size.trailing_zeros()))
        };
        Ok(self.b.ins().iadd(base, offset))
    }

    /// Returns the linear index of an access. Accesses in lowered functions have exactly one index.
    fn flat_index(&self, indices: &[Expr]) -> Gen<Expr> {
        match indices {
            [index] => Ok(*index),
            _ => internal("a buffer access in lowered form must have exactly one index"),
        }
    }

    /// Returns the index of the first element and the number of lanes of an access whose index is a scalar or a vector
    /// of consecutive integers.
    fn contiguous_start(&self, index: Expr) -> Option<(Expr, u16)> {
        match self.f.expr(index) {
            ExprData::Ramp(base, stride, lanes) => {
                (self.f.as_int(*stride) == Some(1)).then_some((*base, *lanes))
            }
            _ if self.f.expr_ty(index).lanes == 1 => Some((index, 1)),
            _ => None,
        }
    }

    /// If a buffer is in registers, returns the variables that contain the accessed elements; otherwise `None`.
    fn register_slot(&self, buffer: Buffer, index: Expr) -> Option<Gen<Vec<Variable>>> {
        let Some(BufferLocation::Registers(slots)) = self.locations.get(&buffer) else {
            return None;
        };
        let slot = self
            .contiguous_start(index)
            .and_then(|(base, lanes)| slots.get(&(self.f.as_int(base)?, lanes)).cloned());
        Some(slot.map_or_else(
            || internal("an access of a buffer in registers has no matching register"),
            Ok,
        ))
    }

    /// Emits a load of the elements of a buffer at scalar or vector indices. Returns the loaded value.
    pub fn load(&mut self, buffer: Buffer, indices: &[Expr]) -> Gen<ExprValue> {
        self.load_as(buffer, indices, self.f.buffer(buffer).dtype)
    }

    /// Emits a load of elements of a buffer as elements of type `dtype`, which has the same size as the buffer's element type.
    fn load_as(&mut self, buffer: Buffer, indices: &[Expr], dtype: DType) -> Gen<ExprValue> {
        let index = self.flat_index(indices)?;
        let ty = Ty::scalar(dtype).with_lanes(self.f.expr_ty(index).lanes);
        if let Some(slot) = self.register_slot(buffer, index) {
            let values: Vec<Value> = slot?.iter().map(|&v| self.b.use_var(v)).collect();
            return Ok(match ty.lanes {
                1 => ExprValue::Scalar(values[0]),
                _ if fills_chunks(ty) => ExprValue::Chunks(values.into()),
                _ => ExprValue::Lanes(values.into()),
            });
        }
        self.check_access(buffer, index)?;
        let Some((base, lanes)) = self.contiguous_start(index) else {
            if let Some((base, stride)) = self.small_constant_stride(index) {
                return self.load_constant_stride(buffer, base, stride, ty);
            }
            if let ExprData::Ramp(base, stride, _) = *self.f.expr(index) {
                return self.load_dynamic_stride(buffer, base, stride, ty);
            }
            let indices = self.expr(index)?;
            let indices = self.lanes(&indices, Ty::I64.with_lanes(ty.lanes));
            let mut out = Vec::with_capacity(indices.len());
            for i in indices {
                let at = self.address(buffer, i)?;
                out.push(self.load_raw(at, 0, ty.dtype));
            }
            return Ok(self.vector_from_raw(out, ty));
        };
        let base = self.scalar(base)?;
        let at = self.address(buffer, base)?;
        if lanes == 1 {
            return Ok(ExprValue::Scalar(self.load_scalar(at, 0, ty.dtype)));
        }
        if fills_chunks(ty) {
            let bytes = chunk_lanes(ty.dtype) * ty.dtype.size();
            let count = lanes as usize / chunk_lanes(ty.dtype);
            let out = (0..count).map(|i| self.load_chunk(at, (i * bytes) as i32, ty.dtype));
            return Ok(ExprValue::Chunks(out.collect()));
        }
        if ty.dtype.is_bool() && mask_bits(lanes).is_some() {
            return Ok(self.load_mask(at, lanes));
        }
        let mut out = Vec::with_capacity(lanes as usize);
        for lane in 0..lanes as usize {
            out.push(self.load_raw(at, (lane * ty.dtype.size()) as i32, ty.dtype));
        }
        Ok(self.vector_from_raw(out, ty))
    }

    /// If `index` is a vector of equidistant indices whose stride is a constant of magnitude at most [`MAX_CONSTANT_STRIDE`],
    /// returns the first index and the stride.
    fn small_constant_stride(&self, index: Expr) -> Option<(Expr, i32)> {
        match self.f.expr(index) {
            ExprData::Ramp(base, stride, _) => {
                let stride = self.f.as_int(*stride).filter(|s| s.abs() <= MAX_CONSTANT_STRIDE)?;
                Some((*base, stride as i32))
            }
            _ => None,
        }
    }

    /// Loads a vector of type `ty` from equidistant elements of a buffer, starting at index `base`. For stride -1, loads whole
    /// 128-bit chunks and reverses their lanes. For other strides, loads lane by lane.
    fn load_constant_stride(
        &mut self,
        buffer: Buffer,
        base: Expr,
        stride: i32,
        ty: Ty,
    ) -> Gen<ExprValue> {
        let base = self.scalar(base)?;
        let at = self.address(buffer, base)?;
        let size = ty.dtype.size() as i32;
        if stride == -1 && fills_chunks(ty) && !is_half(ty.dtype) {
            let lanes = chunk_lanes(ty.dtype) as i32;
            let starts = (0..i32::from(ty.lanes) / lanes).map(|i| -((i + 1) * lanes - 1) * size);
            let chunks = starts.map(|offset| {
                let c = self.load_chunk(at, offset, ty.dtype);
                self.reverse_lanes(c)
            });
            return Ok(ExprValue::Chunks(chunks.collect()));
        }
        let mut out = Vec::with_capacity(ty.lanes as usize);
        for lane in 0..i32::from(ty.lanes) {
            out.push(self.load_raw(at, lane * stride * size, ty.dtype));
        }
        Ok(self.vector_from_raw(out, ty))
    }

    /// Loads a vector lane by lane from equidistant elements of a buffer. The stride is non-constant or larger than
    /// [`MAX_CONSTANT_STRIDE`].
    fn load_dynamic_stride(
        &mut self,
        buffer: Buffer,
        base: Expr,
        stride: Expr,
        ty: Ty,
    ) -> Gen<ExprValue> {
        let (base, stride) = (self.scalar(base)?, self.scalar(stride)?);
        let mut at = self.address(buffer, base)?;
        let log2_size = ty.dtype.size().trailing_zeros();
        let step = self.b.ins().ishl_imm_s(stride, i64::from(log2_size));
        let mut out = Vec::with_capacity(ty.lanes as usize);
        for lane in 0..ty.lanes {
            if lane > 0 {
                at = self.b.ins().iadd(at, step);
            }
            out.push(self.load_raw(at, 0, ty.dtype));
        }
        Ok(self.vector_from_raw(out, ty))
    }

    /// Reverses the order of the lanes of a 128-bit chunk.
    fn reverse_lanes(&mut self, c: Value) -> Value {
        let ty = self.b.func.dfg.value_type(c);
        let size = ty.lane_bits() / 8;
        let sources = (0..16u32).map(|byte| (15 - byte) / size * size + byte % size);
        let sources: Vec<u8> = sources.map(|p| p as u8).collect();
        let sources = self.b.func.dfg.immediates.push(sources.into());
        let bytes = self.bitcast_chunk(c, types::I8X16);
        let reversed = self.b.ins().shuffle(bytes, bytes, sources);
        self.bitcast_chunk(reversed, ty)
    }

    /// Emits a load of a 128-bit chunk of contiguous elements from memory.
    fn load_chunk(&mut self, at: Value, offset: i32, dtype: DType) -> Value {
        if is_half(dtype) {
            let words = self.b.ins().uload16x4(mem_flags(), at, offset);
            return self.half_bits_to_f32(words, dtype);
        }
        self.b.ins().load(chunk_type(dtype), mem_flags(), at, offset)
    }

    /// Loads contiguous bools as a mask. Every nonzero byte is true.
    fn load_mask(&mut self, at: Value, lanes: u16) -> ExprValue {
        let chunks: Vec<Value> = match lanes {
            4 => {
                let word = self.b.ins().load(types::I32, mem_flags(), at, 0);
                let word = self.b.ins().scalar_to_vector(types::I32X4, word);
                let bytes = self.bitcast_chunk(word, types::I8X16);
                let wide = self.b.ins().uwiden_low(bytes);
                vec![self.b.ins().uwiden_low(wide)]
            }
            8 => vec![self.b.ins().uload8x8(mem_flags(), at, 0)],
            _ => {
                let starts = (0..i32::from(lanes)).step_by(16);
                starts
                    .map(|offset| self.b.ins().load(types::I8X16, mem_flags(), at, offset))
                    .collect()
            }
        };
        let ty = self.b.func.dfg.value_type(chunks[0]);
        let zero = self.zero(ty);
        let is_true = |g: &mut Self, c| g.b.ins().icmp(IntCC::NotEqual, c, zero);
        ExprValue::Mask(
            ty.lane_bits() as u8,
            chunks.into_iter().map(|c| is_true(self, c)).collect(),
        )
    }

    /// Stores a mask with elements of `bits` bits as contiguous bools: bytes of 0 and 1.
    fn store_mask(&mut self, v: &ExprValue, at: Value, lanes: u16, bits: u32) {
        let one = self.b.ins().iconst(types::I8, 1);
        let one = self.b.ins().splat(types::I8X16, one);
        let mut chunks = self.mask(v, lanes, bits).to_vec();
        for _ in 0..(bits / 8).ilog2() {
            chunks = chunks.iter().map(|&c| self.b.ins().snarrow(c, c)).collect();
        }
        for (i, c) in chunks.into_iter().enumerate() {
            let c = self.b.ins().band(c, one);
            let c = match lanes {
                4 => self.bitcast_chunk(c, types::I32X4),
                8 => self.bitcast_chunk(c, types::I64X2),
                _ => c,
            };
            let c = if lanes < 16 { self.b.ins().extractlane(c, 0) } else { c };
            self.b.ins().store(mem_flags(), c, at, (i * 16) as i32);
        }
    }

    /// Emits a load of an element in the form in which memory holds it, such as 16 bits for a float16.
    fn load_raw(&mut self, at: Value, offset: i32, dtype: DType) -> Value {
        self.b.ins().load(memory_type(dtype), mem_flags(), at, offset)
    }

    /// Emits the conversion of an element from the form in which memory holds it, such as 16 bits for a float16, to the form in
    /// which registers hold it.
    fn scalar_from_raw(&mut self, raw: Value, dtype: DType) -> Value {
        match dtype {
            DType::Float16 | DType::BFloat16 => {
                let wide = self.b.ins().uextend(types::I32, raw);
                self.half_bits_to_f32(wide, dtype)
            }
            // Every nonzero byte is true, as in `load_mask`.
            DType::Bool => self.b.ins().icmp_imm_s(IntCC::NotEqual, raw, 0),
            _ => raw,
        }
    }

    /// Builds a vector from elements in their memory representation.
    fn vector_from_raw(&mut self, raw: Vec<Value>, ty: Ty) -> ExprValue {
        if is_half(ty.dtype) && fills_chunks(ty) {
            let wide: Vec<Value> =
                raw.iter().map(|&v| self.b.ins().uextend(types::I32, v)).collect();
            let chunks = wide.chunks(4).map(|lanes| {
                let words = self.chunk_of_lanes(lanes, types::I32X4);
                self.half_bits_to_f32(words, ty.dtype)
            });
            return ExprValue::Chunks(chunks.collect());
        }
        ExprValue::Lanes(raw.into_iter().map(|v| self.scalar_from_raw(v, ty.dtype)).collect())
    }

    /// Emits a load of one element from memory, and its conversion to the form in which registers hold it.
    fn load_scalar(&mut self, at: Value, offset: i32, dtype: DType) -> Value {
        let raw = self.load_raw(at, offset, dtype);
        self.scalar_from_raw(raw, dtype)
    }

    /// Emits a store of one element, after its conversion to the form in which memory holds it, such as 16 bits for a float16.
    fn store_scalar(&mut self, v: Value, at: Value, offset: i32, dtype: DType) {
        let raw = match dtype {
            DType::Float16 | DType::BFloat16 => {
                let bits = self.f32_to_half_bits(v, dtype);
                self.b.ins().ireduce(types::I16, bits)
            }
            _ => v,
        };
        self.b.ins().store(mem_flags(), raw, at, offset);
    }

    /// Emits a store of a scalar or vector to elements of a buffer.
    pub fn store(&mut self, buffer: Buffer, indices: &[Expr], value: Expr) -> Gen<()> {
        let index = self.flat_index(indices)?;
        let lanes = self.f.expr_ty(index).lanes;
        let mut ty = Ty::scalar(self.f.buffer(buffer).dtype).with_lanes(lanes);
        let value = match self.half_copy_source(buffer, value) {
            Some((from, indices)) => {
                ty.dtype = DType::UInt16;
                self.load_as(from, &indices, ty.dtype)?
            }
            None => self.expr(value)?,
        };
        if let Some(slot) = self.register_slot(buffer, index) {
            let slot = slot?;
            let values: Vec<Value> = match self.storage_form(&value, ty) {
                ExprValue::Scalar(v) => vec![v],
                ExprValue::Chunks(v) | ExprValue::Lanes(v) => v.to_vec(),
                ExprValue::Mask(..) => return internal("a stored vector of bools is a mask"),
            };
            for (var, v) in slot.into_iter().zip(values) {
                self.b.def_var(var, v);
            }
            return Ok(());
        }
        self.check_access(buffer, index)?;
        let Some((base, _)) = self.contiguous_start(index) else {
            let indices = self.expr(index)?;
            let indices = self.lanes(&indices, Ty::I64.with_lanes(lanes));
            let values = self.lanes(&value, ty);
            for (i, v) in indices.into_iter().zip(values) {
                let at = self.address(buffer, i)?;
                self.store_scalar(v, at, 0, ty.dtype);
            }
            return Ok(());
        };
        let base = self.scalar(base)?;
        let at = self.address(buffer, base)?;
        if fills_chunks(ty) && !matches!(value, ExprValue::Lanes(_)) {
            let chunks = self.chunks(&value, ty);
            if is_half(ty.dtype) {
                self.store_halves(&chunks, at, ty.dtype);
                return Ok(());
            }
            for (i, &c) in chunks.iter().enumerate() {
                self.b.ins().store(mem_flags(), c, at, (i * 16) as i32);
            }
            return Ok(());
        }
        if ty.dtype.is_bool()
            && self.is_mask(&value)
            && let Some(bits) = mask_bits(lanes)
        {
            self.store_mask(&value, at, lanes, bits);
            return Ok(());
        }
        for (lane, v) in self.lanes(&value, ty).into_iter().enumerate() {
            self.store_scalar(v, at, (lane * ty.dtype.size()) as i32, ty.dtype);
        }
        Ok(())
    }

    /// Returns the source buffer and indices of a store that copies 16-bit floats from memory to memory, since such a
    /// copy needs no conversion. Returns `None` for other stores.
    fn half_copy_source(&self, to: Buffer, value: Expr) -> Option<(Buffer, Box<[Expr]>)> {
        let ExprData::Load(from, indices) = self.f.expr(value) else { return None };
        let dtype = self.f.buffer(*from).dtype;
        let in_memory =
            |b: &Buffer| !matches!(self.locations.get(b), Some(BufferLocation::Registers(_)));
        let same_half_type = is_half(dtype) && dtype == self.f.buffer(to).dtype;
        (same_half_type && in_memory(from) && in_memory(&to)).then(|| (*from, indices.clone()))
    }

    /// Stores 128-bit chunks of float32 as contiguous 16-bit floats of type `dtype`.
    fn store_halves(&mut self, chunks: &[Value], at: Value, dtype: DType) {
        for (i, pair) in chunks.chunks(2).enumerate() {
            let low = self.f32_to_half_bits(pair[0], dtype);
            let offset = (i * 16) as i32;
            // The narrowing instruction saturates, but the values fit in 16 bits.
            if let Some(&high) = pair.get(1) {
                let high = self.f32_to_half_bits(high, dtype);
                let words = self.b.ins().unarrow(low, high);
                self.b.ins().store(mem_flags(), words, at, offset);
            } else {
                let words = self.b.ins().unarrow(low, low);
                let words = self.bitcast_chunk(words, types::I64X2);
                let words = self.b.ins().extractlane(words, 0);
                self.b.ins().store(mem_flags(), words, at, offset);
            }
        }
    }
}
