//! Code generation for the allocation of buffers: in registers, on the stack or in workspaces (scratch memory of the runtime), with
//! checks of their sizes.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::Variable;
use pliant_exec::abi::{OFFSET_ALLOC_WORKSPACE, OFFSET_FREE_WORKSPACE, STATUS_NO_MEMORY};
use pliant_ir::tir::{Buffer, Stmt, Ty};
use pliant_tensor::{POISON_WORD, POISONS};
use pliant_tir::buffer_accesses::{STACK_BYTES, constant_size, register_slots};
use pliant_tir::overflow_analysis::SIZE_LIMIT;
use rustc_hash::FxHashMap;

use crate::buffer_accesses::BufferLocation;
use crate::function_builder::{FuncGen, Gen, abi_signature, mem_flags};
use crate::value_representations::{chunk_lanes, chunk_type, fills_chunks, scalar_type};

/// Maximum total size in bytes of the stack buffers of a machine function. Further buffers are allocated in workspaces (scratch
/// memory of the runtime).
const MAX_STACK_BYTES: u64 = 64 * 1024;

impl FuncGen<'_, '_> {
    /// Allocates a buffer in registers, on the stack or in a workspace, and generates code for `body`, the statement
    /// that uses the buffer.
    pub fn alloc(&mut self, buffer: Buffer, body: Stmt) -> Gen<()> {
        if let Some(slots) = register_slots(self.f, buffer, body) {
            let dtype = self.f.buffer(buffer).dtype;
            let mut variables = FxHashMap::default();
            for (first, lanes) in slots {
                let vars = self.declare_register_slot(Ty::scalar(dtype).with_lanes(lanes));
                variables.insert((first, lanes), vars);
            }
            if constant_size(self.f, buffer).is_none() {
                // Bounds checks rely on sizes within limits, although no memory is allocated.
                self.buffer_bytes(buffer)?;
            }
            self.locations.insert(buffer, BufferLocation::Registers(Rc::new(variables)));
            return self.stmt(body);
        }
        self.record_limits(buffer)?;
        let available = MAX_STACK_BYTES - self.stack_bytes;
        if let Some(bytes) =
            constant_size(self.f, buffer).filter(|&b| b <= STACK_BYTES.min(available))
        {
            self.stack_bytes += bytes;
            let padded = (bytes as u32).next_multiple_of(8).max(8);
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, padded, 4);
            let slot = self.b.create_sized_stack_slot(data);
            let address = self.b.ins().stack_addr(types::I64, slot, 0);
            if POISONS {
                self.poison(address, padded);
            }
            self.locations.insert(buffer, BufferLocation::Address(address));
            return self.stmt(body);
        }
        self.alloc_workspace(buffer, body)
    }

    /// Fills stack memory with the poison pattern ([`POISON_WORD`]), so that tests detect reads of uninitialized elements.
    /// `bytes` is a positive multiple of 8.
    fn poison(&mut self, address: Value, bytes: u32) {
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(head, types::I64);
        let word = self.b.ins().iconst(types::I64, POISON_WORD.cast_signed());
        let end = self.b.ins().iadd_imm_s(address, i64::from(bytes));
        self.b.ins().jump(head, &[BlockArg::Value(address)]);
        self.b.switch_to_block(head);
        self.b.ins().store(mem_flags(), word, at, 0);
        let next = self.b.ins().iadd_imm_s(at, 8);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.b.ins().brif(more, head, &[BlockArg::Value(next)], done, &[]);
        self.b.seal_block(head);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
    }

    /// Declares variables that hold one scalar or vector of type `ty` in registers, and initializes them with zero. A scalar has
    /// one variable; a vector has one per 128-bit chunk, or one per lane if its lanes do not fill chunks.
    fn declare_register_slot(&mut self, ty: Ty) -> Vec<Variable> {
        let (machine_type, count) = match ty.lanes {
            1 => (scalar_type(ty.dtype), 1),
            _ if fills_chunks(ty) => {
                (chunk_type(ty.dtype), ty.lanes as usize / chunk_lanes(ty.dtype))
            }
            lanes => (scalar_type(ty.dtype), lanes as usize),
        };
        (0..count)
            .map(|_| {
                let var = self.b.declare_var(machine_type);
                // A program that reads the buffer before it writes to it gets zeros, not an undefined variable.
                let zero = self.zero(machine_type);
                self.b.def_var(var, zero);
                var
            })
            .collect()
    }

    /// Generates code that allocates a buffer in a workspace (scratch memory of the runtime), then code for `body`, the statement
    /// that uses the buffer. The workspace is freed on every path out of `body`.
    fn alloc_workspace(&mut self, buffer: Buffer, body: Stmt) -> Gen<()> {
        let bytes = self.buffer_bytes(buffer)?;
        let alloc = self.runtime_fn(OFFSET_ALLOC_WORKSPACE);
        let sig = abi_signature(&*self.unit.module, &[types::I64], types::I64);
        let sig = self.b.import_signature(sig);
        let call = self.b.ins().call_indirect(sig, alloc, &[bytes]);
        let address = self.b.inst_results(call)[0];
        let null = self.b.ins().icmp_imm_s(IntCC::Equal, address, 0);
        let status = self.b.ins().iconst(types::I64, STATUS_NO_MEMORY);
        self.fail_if(null, status);
        self.locations.insert(buffer, BufferLocation::Address(address));

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

    /// Generates code that frees a workspace (scratch memory of the runtime).
    fn free_workspace(&mut self, address: Value) {
        let free = self.runtime_fn(OFFSET_FREE_WORKSPACE);
        let mut sig = abi_signature(&*self.unit.module, &[types::I64], types::I64);
        sig.returns.clear();
        let sig = self.b.import_signature(sig);
        self.b.ins().call_indirect(sig, free, &[address]);
    }

    /// Emits code that computes the size of a buffer in bytes. At run time, the loop function fails if a dim is negative or larger
    /// than [`SIZE_LIMIT`], or if the size overflows.
    fn buffer_bytes(&mut self, buffer: Buffer) -> Gen<Value> {
        let data = self.f.buffer(buffer);
        let mut bytes = self.b.ins().iconst(types::I64, data.dtype.size() as i64);
        for &dim in &data.shape {
            let overflow_message =
                format!("the size of the buffer '{}' overflows 64 bits", data.name);
            let dim = self.checked_size(dim, &overflow_message)?;
            let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, dim, 0);
            self.shape_error_if(
                negative,
                &format!("a dim of the buffer '{}' is negative", data.name),
            );
            let too_large = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, dim, SIZE_LIMIT);
            self.shape_error_if(
                too_large,
                &format!("a dim of the buffer '{}' is larger than 2**40", data.name),
            );
            let (product, overflow) = self.b.ins().smul_overflow(bytes, dim);
            self.shape_error_if(overflow, &overflow_message);
            bytes = product;
        }
        Ok(bytes)
    }
}
