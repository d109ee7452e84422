//! Buffers: their locations, loads and stores, and allocation on the stack, in registers and in workspaces.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    BlockArg, InstBuilder, StackSlotData, StackSlotKind, Type, Value, types,
};
use cranelift_frontend::Variable;
use pliant_exec::abi::{
    OFFSET_ALLOC_WORKSPACE, OFFSET_FREE_WORKSPACE, OFFSET_TENSOR_DATA, STATUS_NO_MEMORY,
};
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Stmt, Ty, Var};
use pliant_tensor::{DType, POISON_WORD, POISONS};
use pliant_tir::accesses::{STACK_BYTES, constant_size, free_names, register_slots};
use pliant_tir::overflow_analysis::{SIZE_LIMIT, checked_terms};
use rustc_hash::FxHashMap;

use crate::function::{FuncGen, Gen, abi_signature, constant_mem, internal, mem, unsupported};
use crate::value::{V, chunk, chunk_lanes, clif, mask_bits, packable};

/// Maximum bytes of buffers on the stack of one function. Further buffers go to workspaces.
const STACK_TOTAL: u64 = 64 * 1024;

/// Maximum magnitude of a stride with which constant offsets from the first element address the lanes of a vector.
const MAX_STRIDE: i64 = 1 << 16;

/// The location of a buffer's elements.
#[derive(Clone)]
pub(crate) enum Place {
    /// In memory, from this address.
    Address(Value),
    /// In memory that a tensor argument describes: the array of arguments, and the byte offset of this one. Functions with many
    /// arguments load the address in each statement that uses it.
    Argument(Value, i32),
    /// In machine registers: one variable per scalar or chunk, by first element and lanes.
    Registers(Rc<FxHashMap<(i64, u16), Vec<Variable>>>),
}

/// The location of a dim or stride of a tensor argument. All offsets are in bytes.
#[derive(Clone, Copy)]
pub(crate) struct SizeAt {
    /// The array of arguments.
    pub args: Value,
    /// The offset of the argument in the array.
    pub argument: i32,
    /// The offset of the pointer to the dims or strides in the descriptor.
    pub list: i32,
    /// The offset of the size among the dims or strides.
    pub index: i32,
}

/// The entries that the addresses and sizes loaded for one statement replaced.
#[derive(Default)]
pub(crate) struct AtHand {
    places: Vec<(Buffer, Place)>,
    vars: Vec<(Var, V)>,
}

/// The machine type of an element in memory.
fn stored(dtype: DType) -> Type {
    match dtype {
        DType::Float16 | DType::BFloat16 => types::I16,
        other => clif(other),
    }
}

/// Whether this is a 16-bit float type, whose values are held as float32 but stored as 16 bits.
fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::BFloat16)
}

impl FuncGen<'_, '_> {
    /// The address of a buffer's first element.
    pub fn base(&mut self, buffer: Buffer) -> Gen<Value> {
        match self.places.get(&buffer) {
            Some(&Place::Address(base)) => Ok(base),
            Some(&Place::Argument(args, offset)) => {
                // These flags do not let the loads move, so they are not merged with those of other statements.
                let descriptor = self.b.ins().load(types::I64, mem(), args, offset);
                Ok(self.b.ins().load(types::I64, mem(), descriptor, OFFSET_TENSOR_DATA as i32))
            }
            Some(Place::Registers(_)) => internal("the address of a buffer in registers"),
            None => {
                let name = &self.f.buffer(buffer).name;
                unsupported(format!("the buffer '{name}' is neither a parameter nor allocated"))
            }
        }
    }

    /// Loads the addresses and sizes of the arguments that a statement uses, and returns the entries that they replace. So values
    /// computed from sizes are not kept in registers from one statement to the next.
    pub fn load_arguments(&mut self, s: Stmt) -> Gen<AtHand> {
        let mut old = AtHand::default();
        if !self.many_arguments {
            return Ok(old);
        }
        let names = free_names(self.f, s);
        for buffer in names.buffers {
            if let Some(Place::Argument(..)) = self.places.get(&buffer) {
                let base = self.base(buffer)?;
                old.places
                    .extend(self.places.insert(buffer, Place::Address(base)).map(|p| (buffer, p)));
            }
        }
        for var in names.vars {
            if let Some(at) = self.sizes.get(&var).copied() {
                let size = self.load_size(at);
                old.vars.extend(self.vars.insert(var, V::S(size)).map(|v| (var, v)));
            }
        }
        Ok(old)
    }

    /// Restores the entries that [`load_arguments`](Self::load_arguments) returned.
    pub fn give_back(&mut self, old: AtHand) {
        self.places.extend(old.places);
        self.vars.extend(old.vars);
    }

    /// Loads a size again. The flags do not let the loads move, so they are not merged with those of other statements.
    pub fn load_size(&mut self, at: SizeAt) -> Value {
        let descriptor = self.b.ins().load(types::I64, mem(), at.args, at.argument);
        let list = self.b.ins().load(types::I64, mem(), descriptor, at.list);
        self.b.ins().load(types::I64, mem(), list, at.index)
    }

    /// The address of the element at a linear index.
    pub fn address(&mut self, buffer: Buffer, index: Value) -> Gen<Value> {
        let base = self.base(buffer)?;
        let size = self.f.buffer(buffer).dtype.size() as i64;
        let offset = if size == 1 {
            index
        } else {
            self.b.ins().ishl_imm_s(index, i64::from(size.trailing_zeros()))
        };
        Ok(self.b.ins().iadd(base, offset))
    }

    /// The linear index of an access. Accesses in lowered functions have exactly one index.
    fn linear(&self, indices: &[Expr]) -> Gen<Expr> {
        match indices {
            [index] => Ok(*index),
            _ => internal("a buffer access is not flattened"),
        }
    }

    /// The first element and the number of lanes, if the index is a contiguous vector or a scalar.
    fn contiguous(&self, index: Expr) -> Option<(Expr, u16)> {
        match self.f.expr(index) {
            ExprData::Ramp(base, stride, lanes) => {
                (self.f.as_int(*stride) == Some(1)).then_some((*base, *lanes))
            }
            _ if self.f.expr_ty(index).lanes == 1 => Some((index, 1)),
            _ => None,
        }
    }

    fn registers(&self, buffer: Buffer, index: Expr) -> Option<Gen<Vec<Variable>>> {
        let Some(Place::Registers(slots)) = self.places.get(&buffer) else { return None };
        let slot = self
            .contiguous(index)
            .and_then(|(base, lanes)| slots.get(&(self.f.as_int(base)?, lanes)).cloned());
        Some(slot.map_or_else(|| internal("an access misses its register slot"), Ok))
    }

    pub fn load(&mut self, buffer: Buffer, indices: &[Expr]) -> Gen<V> {
        self.load_as(buffer, indices, self.f.buffer(buffer).dtype)
    }

    /// Loads elements as those of another type of the same size.
    fn load_as(&mut self, buffer: Buffer, indices: &[Expr], dtype: DType) -> Gen<V> {
        let index = self.linear(indices)?;
        let ty = Ty::scalar(dtype).with_lanes(self.f.expr_ty(index).lanes);
        if let Some(slot) = self.registers(buffer, index) {
            let values: Vec<Value> = slot?.iter().map(|&v| self.b.use_var(v)).collect();
            return Ok(match ty.lanes {
                1 => V::S(values[0]),
                _ if packable(ty) => V::X(values.into()),
                _ => V::L(values.into()),
            });
        }
        self.check_access(buffer, index)?;
        let Some((base, lanes)) = self.contiguous(index) else {
            if let Some((base, stride)) = self.strided(index) {
                return self.load_strided(buffer, base, stride, ty);
            }
            if let ExprData::Ramp(base, stride, _) = *self.f.expr(index) {
                return self.load_apart(buffer, base, stride, ty);
            }
            let indices = self.expr(index)?;
            let indices = self.lanes(&indices, Ty::I64.with_lanes(ty.lanes));
            let mut out = Vec::with_capacity(indices.len());
            for i in indices {
                let at = self.address(buffer, i)?;
                out.push(self.load_stored(at, 0, ty.dtype));
            }
            return Ok(self.of_stored(out, ty));
        };
        let base = self.scalar(base)?;
        let at = self.address(buffer, base)?;
        if lanes == 1 {
            return Ok(V::S(self.load_scalar(at, 0, ty.dtype)));
        }
        if packable(ty) {
            let bytes = chunk_lanes(ty.dtype) * ty.dtype.size();
            let count = lanes as usize / chunk_lanes(ty.dtype);
            let out = (0..count).map(|i| self.load_chunk(at, (i * bytes) as i32, ty.dtype));
            return Ok(V::X(out.collect()));
        }
        if ty.dtype.is_bool() && mask_bits(lanes).is_some() {
            return Ok(self.load_mask(at, lanes));
        }
        let mut out = Vec::with_capacity(lanes as usize);
        for lane in 0..lanes as usize {
            out.push(self.load_stored(at, (lane * ty.dtype.size()) as i32, ty.dtype));
        }
        Ok(self.of_stored(out, ty))
    }

    /// The first element and the stride of a vector, if the stride is constant and at most [`MAX_STRIDE`].
    fn strided(&self, index: Expr) -> Option<(Expr, i32)> {
        match self.f.expr(index) {
            ExprData::Ramp(base, stride, _) => {
                let stride = self.f.as_int(*stride).filter(|s| s.abs() <= MAX_STRIDE)?;
                Some((*base, stride as i32))
            }
            _ => None,
        }
    }

    /// Loads elements at a constant stride: lane by lane, but at stride -1 in chunks whose lanes are then reversed.
    fn load_strided(&mut self, buffer: Buffer, base: Expr, stride: i32, ty: Ty) -> Gen<V> {
        let base = self.scalar(base)?;
        let at = self.address(buffer, base)?;
        let size = ty.dtype.size() as i32;
        if stride == -1 && packable(ty) && !is_half(ty.dtype) {
            let per = chunk_lanes(ty.dtype) as i32;
            let starts = (0..i32::from(ty.lanes) / per).map(|i| -((i + 1) * per - 1) * size);
            let chunks = starts.map(|offset| {
                let c = self.load_chunk(at, offset, ty.dtype);
                self.turned(c)
            });
            return Ok(V::X(chunks.collect()));
        }
        let mut out = Vec::with_capacity(ty.lanes as usize);
        for lane in 0..i32::from(ty.lanes) {
            out.push(self.load_stored(at, lane * stride * size, ty.dtype));
        }
        Ok(self.of_stored(out, ty))
    }

    /// Loads elements at a stride that is non-constant or beyond [`MAX_STRIDE`].
    fn load_apart(&mut self, buffer: Buffer, base: Expr, stride: Expr, ty: Ty) -> Gen<V> {
        let (base, stride) = (self.scalar(base)?, self.scalar(stride)?);
        let mut at = self.address(buffer, base)?;
        let size = ty.dtype.size().trailing_zeros();
        let step = self.b.ins().ishl_imm_s(stride, i64::from(size));
        let mut out = Vec::with_capacity(ty.lanes as usize);
        for lane in 0..ty.lanes {
            if lane > 0 {
                at = self.b.ins().iadd(at, step);
            }
            out.push(self.load_stored(at, 0, ty.dtype));
        }
        Ok(self.of_stored(out, ty))
    }

    /// Reverses the lanes of a chunk.
    fn turned(&mut self, c: Value) -> Value {
        let ty = self.b.func.dfg.value_type(c);
        let size = ty.lane_bits() / 8;
        let places = (0..16u32).map(|byte| (15 - byte) / size * size + byte % size);
        let places: Vec<u8> = places.map(|p| p as u8).collect();
        let places = self.b.func.dfg.immediates.push(places.into());
        let bytes = self.recast(c, types::I8X16);
        let turned = self.b.ins().shuffle(bytes, bytes, places);
        self.recast(turned, ty)
    }

    fn load_chunk(&mut self, at: Value, offset: i32, dtype: DType) -> Value {
        if is_half(dtype) {
            let words = self.b.ins().uload16x4(mem(), at, offset);
            return self.widen_half(words, dtype);
        }
        self.b.ins().load(chunk(dtype), mem(), at, offset)
    }

    /// Loads bools as a mask. Every nonzero byte is true.
    fn load_mask(&mut self, at: Value, lanes: u16) -> V {
        let chunks: Vec<Value> = match lanes {
            4 => {
                let word = self.b.ins().load(types::I32, mem(), at, 0);
                let word = self.b.ins().scalar_to_vector(types::I32X4, word);
                let bytes = self.recast(word, types::I8X16);
                let wide = self.b.ins().uwiden_low(bytes);
                vec![self.b.ins().uwiden_low(wide)]
            }
            8 => vec![self.b.ins().uload8x8(mem(), at, 0)],
            _ => {
                let starts = (0..i32::from(lanes)).step_by(16);
                starts.map(|offset| self.b.ins().load(types::I8X16, mem(), at, offset)).collect()
            }
        };
        let ty = self.b.func.dfg.value_type(chunks[0]);
        let zero = self.zero(ty);
        let holds = |g: &mut Self, c| g.b.ins().icmp(IntCC::NotEqual, c, zero);
        V::M(ty.lane_bits() as u8, chunks.into_iter().map(|c| holds(self, c)).collect())
    }

    /// Stores a mask as bools: bytes of 0 and 1.
    fn store_mask(&mut self, v: &V, at: Value, lanes: u16, bits: u32) {
        let one = self.b.ins().iconst(types::I8, 1);
        let one = self.b.ins().splat(types::I8X16, one);
        let mut chunks = self.mask(v, lanes, bits).to_vec();
        for _ in 0..(bits / 8).ilog2() {
            chunks = chunks.iter().map(|&c| self.b.ins().snarrow(c, c)).collect();
        }
        for (i, c) in chunks.into_iter().enumerate() {
            let c = self.b.ins().band(c, one);
            let c = match lanes {
                4 => self.recast(c, types::I32X4),
                8 => self.recast(c, types::I64X2),
                _ => c,
            };
            let c = if lanes < 16 { self.b.ins().extractlane(c, 0) } else { c };
            self.b.ins().store(mem(), c, at, (i * 16) as i32);
        }
    }

    /// Loads an element in its memory representation.
    fn load_stored(&mut self, at: Value, offset: i32, dtype: DType) -> Value {
        self.b.ins().load(stored(dtype), mem(), at, offset)
    }

    /// Converts an element from its memory representation.
    fn scalar_of_stored(&mut self, raw: Value, dtype: DType) -> Value {
        match dtype {
            DType::Float16 | DType::BFloat16 => {
                let wide = self.b.ins().uextend(types::I32, raw);
                self.widen_half(wide, dtype)
            }
            // As in vectors of bools, every nonzero byte is true.
            DType::Bool => self.b.ins().icmp_imm_s(IntCC::NotEqual, raw, 0),
            _ => raw,
        }
    }

    /// Builds a vector from elements in their memory representation.
    fn of_stored(&mut self, raw: Vec<Value>, ty: Ty) -> V {
        if is_half(ty.dtype) && packable(ty) {
            let wide: Vec<Value> =
                raw.iter().map(|&v| self.b.ins().uextend(types::I32, v)).collect();
            let chunks = wide.chunks(4).map(|lanes| {
                let words = self.pack(lanes, types::I32X4);
                self.widen_half(words, ty.dtype)
            });
            return V::X(chunks.collect());
        }
        V::L(raw.into_iter().map(|v| self.scalar_of_stored(v, ty.dtype)).collect())
    }

    fn load_scalar(&mut self, at: Value, offset: i32, dtype: DType) -> Value {
        let raw = self.load_stored(at, offset, dtype);
        self.scalar_of_stored(raw, dtype)
    }

    fn store_scalar(&mut self, v: Value, at: Value, offset: i32, dtype: DType) {
        let raw = match dtype {
            DType::Float16 | DType::BFloat16 => {
                let bits = self.half_bits(v, dtype);
                self.b.ins().ireduce(types::I16, bits)
            }
            _ => v,
        };
        self.b.ins().store(mem(), raw, at, offset);
    }

    pub fn store(&mut self, buffer: Buffer, indices: &[Expr], value: Expr) -> Gen<()> {
        let index = self.linear(indices)?;
        let lanes = self.f.expr_ty(index).lanes;
        let mut ty = Ty::scalar(self.f.buffer(buffer).dtype).with_lanes(lanes);
        let value = match self.copied_half(buffer, value) {
            Some((from, indices)) => {
                ty.dtype = DType::UInt16;
                self.load_as(from, &indices, ty.dtype)?
            }
            None => self.expr(value)?,
        };
        if let Some(slot) = self.registers(buffer, index) {
            let slot = slot?;
            let values: Vec<Value> = match self.canonical(&value, ty) {
                V::S(v) => vec![v],
                V::X(v) | V::L(v) => v.to_vec(),
                V::M(..) => return internal("a mask is not a canonical value"),
            };
            for (var, v) in slot.into_iter().zip(values) {
                self.b.def_var(var, v);
            }
            return Ok(());
        }
        self.check_access(buffer, index)?;
        let Some((base, _)) = self.contiguous(index) else {
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
        if packable(ty) && !matches!(value, V::L(_)) {
            let chunks = self.chunks(&value, ty);
            if is_half(ty.dtype) {
                self.store_halves(&chunks, at, ty.dtype);
                return Ok(());
            }
            for (i, &c) in chunks.iter().enumerate() {
                self.b.ins().store(mem(), c, at, (i * 16) as i32);
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

    /// The source of a store that copies 16-bit floats of the same type from memory to memory, without conversion.
    fn copied_half(&self, to: Buffer, value: Expr) -> Option<(Buffer, Box<[Expr]>)> {
        let ExprData::Load(from, indices) = self.f.expr(value) else { return None };
        let dtype = self.f.buffer(*from).dtype;
        let in_memory = |b: &Buffer| !matches!(self.places.get(b), Some(Place::Registers(_)));
        let alike = is_half(dtype) && dtype == self.f.buffer(to).dtype;
        (alike && in_memory(from) && in_memory(&to)).then(|| (*from, indices.clone()))
    }

    /// Stores chunks of float32 as contiguous 16-bit floats.
    fn store_halves(&mut self, chunks: &[Value], at: Value, dtype: DType) {
        for (i, pair) in chunks.chunks(2).enumerate() {
            let low = self.half_bits(pair[0], dtype);
            let offset = (i * 16) as i32;
            // The narrowing instruction saturates, but the bits are within its range.
            if let Some(&high) = pair.get(1) {
                let high = self.half_bits(high, dtype);
                let words = self.b.ins().unarrow(low, high);
                self.b.ins().store(mem(), words, at, offset);
            } else {
                let words = self.b.ins().unarrow(low, low);
                let words = self.recast(words, types::I64X2);
                let words = self.b.ins().extractlane(words, 0);
                self.b.ins().store(mem(), words, at, offset);
            }
        }
    }

    /// Allocates a buffer and generates the statement that uses it.
    pub fn alloc(&mut self, buffer: Buffer, body: Stmt) -> Gen<()> {
        if let Some(slots) = register_slots(self.f, buffer, body) {
            let dtype = self.f.buffer(buffer).dtype;
            let mut places = FxHashMap::default();
            for (first, lanes) in slots {
                let vars = self.declare_slot(Ty::scalar(dtype).with_lanes(lanes));
                places.insert((first, lanes), vars);
            }
            if constant_size(self.f, buffer).is_none() {
                // No memory is allocated, but the size must be within the limits that bounds checks rely on.
                self.buffer_bytes(buffer)?;
            }
            self.places.insert(buffer, Place::Registers(Rc::new(places)));
            return self.stmt(body);
        }
        self.record_limits(buffer)?;
        let room = STACK_TOTAL - self.stack_bytes;
        if let Some(bytes) = constant_size(self.f, buffer).filter(|&b| b <= STACK_BYTES.min(room)) {
            self.stack_bytes += bytes;
            let room = (bytes as u32).next_multiple_of(8).max(8);
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, room, 4);
            let slot = self.b.create_sized_stack_slot(data);
            let address = self.b.ins().stack_addr(types::I64, slot, 0);
            if POISONS {
                self.poison(address, room);
            }
            self.places.insert(buffer, Place::Address(address));
            return self.stmt(body);
        }
        self.workspace(buffer, body)
    }

    /// Fills stack memory with poison; `bytes` is a multiple of 8.
    fn poison(&mut self, address: Value, bytes: u32) {
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(head, types::I64);
        let word = self.b.ins().iconst(types::I64, POISON_WORD.cast_signed());
        let end = self.b.ins().iadd_imm_s(address, i64::from(bytes));
        self.b.ins().jump(head, &[BlockArg::Value(address)]);
        self.b.switch_to_block(head);
        self.b.ins().store(mem(), word, at, 0);
        let next = self.b.ins().iadd_imm_s(at, 8);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.b.ins().brif(more, head, &[BlockArg::Value(next)], done, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
    }

    fn declare_slot(&mut self, ty: Ty) -> Vec<Variable> {
        let (machine, count) = match ty.lanes {
            1 => (clif(ty.dtype), 1),
            _ if packable(ty) => (chunk(ty.dtype), ty.lanes as usize / chunk_lanes(ty.dtype)),
            lanes => (clif(ty.dtype), lanes as usize),
        };
        (0..count)
            .map(|_| {
                let var = self.b.declare_var(machine);
                // The variable is defined on every path: a read before the first write is an error of the program, but is not
                // undefined.
                let zero = self.zero(machine);
                self.b.def_var(var, zero);
                var
            })
            .collect()
    }

    /// The zero of a machine type.
    pub fn zero(&mut self, ty: Type) -> Value {
        let lane = ty.lane_type();
        let zero = match lane {
            types::F32 => self.b.ins().f32const(0.0),
            types::F64 => self.b.ins().f64const(0.0),
            int => self.b.ins().iconst(int, 0),
        };
        if ty.is_vector() { self.b.ins().splat(ty, zero) } else { zero }
    }

    /// Allocates a buffer in a workspace of the runtime, which is freed on every path out of the body.
    fn workspace(&mut self, buffer: Buffer, body: Stmt) -> Gen<()> {
        let bytes = self.buffer_bytes(buffer)?;
        let alloc = self.runtime_fn(OFFSET_ALLOC_WORKSPACE);
        let sig = abi_signature(&self.unit.module, &[types::I64], types::I64);
        let sig = self.b.import_signature(sig);
        let call = self.b.ins().call_indirect(sig, alloc, &[bytes]);
        let address = self.b.inst_results(call)[0];
        let null = self.b.ins().icmp_imm_s(IntCC::Equal, address, 0);
        let status = self.b.ins().iconst(types::I64, STATUS_NO_MEMORY);
        self.fail_if(null, status);
        self.places.insert(buffer, Place::Address(address));

        let outer = self.fail;
        self.fail = Self::fail_block(&mut self.b);
        self.stmt(body)?;
        self.free_workspace(address);
        let done = self.b.create_block();
        self.b.ins().jump(done, &[]);
        let release = std::mem::replace(&mut self.fail, outer);
        self.b.seal_block(release);
        self.b.switch_to_block(release);
        let status = self.b.block_params(release)[0];
        self.free_workspace(address);
        self.b.ins().jump(outer, &[BlockArg::Value(status)]);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.memo.clear();
        Ok(())
    }

    fn free_workspace(&mut self, address: Value) {
        let free = self.runtime_fn(OFFSET_FREE_WORKSPACE);
        let mut sig = abi_signature(&self.unit.module, &[types::I64], types::I64);
        sig.returns.clear();
        let sig = self.b.import_signature(sig);
        self.b.ins().call_indirect(sig, free, &[address]);
    }

    pub fn runtime_fn(&mut self, offset: usize) -> Value {
        self.b.ins().load(types::I64, constant_mem(), self.runtime, offset as i32)
    }

    /// The size of a buffer in bytes. A negative or too large dim and an overflow fail the loop function.
    fn buffer_bytes(&mut self, buffer: Buffer) -> Gen<Value> {
        let data = self.f.buffer(buffer);
        let mut bytes = self.b.ins().iconst(types::I64, data.dtype.size() as i64);
        for &dim in &data.shape {
            let overflows = format!("the size of the buffer '{}' overflows 64 bits", data.name);
            let dim = self.size(dim, &overflows)?;
            let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, dim, 0);
            self.check_not(negative, &format!("a dim of the buffer '{}' is negative", data.name));
            let beyond = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, dim, SIZE_LIMIT);
            self.check_not(beyond, &format!("a dim of the buffer '{}' is beyond 2**40", data.name));
            let (product, overflow) = self.b.ins().smul_overflow(bytes, dim);
            self.check_not(overflow, &overflows);
            bytes = product;
        }
        Ok(bytes)
    }

    /// Evaluates a size and checks its sums and products for overflow. Bounds checks rely on it.
    pub fn size(&mut self, e: Expr, overflows: &str) -> Gen<Value> {
        let mut terms = Vec::new();
        checked_terms(self.f, e, &mut |term| terms.push(term));
        for term in terms {
            let ExprData::Binary(op, a, b) = *self.f.expr(term) else { continue };
            let (a, b) = (self.scalar(a)?, self.scalar(b)?);
            let (_, overflow) = match op {
                BinOp::Add => self.b.ins().sadd_overflow(a, b),
                BinOp::Sub => self.b.ins().ssub_overflow(a, b),
                _ => self.b.ins().smul_overflow(a, b),
            };
            self.check_not(overflow, overflows);
        }
        self.scalar(e)
    }
}
