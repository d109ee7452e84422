//! Code generation for the allocation of buffers: in registers, on the stack or in workspaces (scratch memory of the runtime), with
//! checks of their sizes.

use std::rc::Rc;

use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use pliant_exec::abi::{OFFSET_ALLOC_WORKSPACE, OFFSET_FREE_WORKSPACE, STATUS_NO_MEMORY};
use pliant_ir::tir::{Buffer, Stmt, Ty};
use pliant_tensor::{POISON_WORD, POISONS};
use pliant_tir::buffer_accesses::{STACK_BYTES, constant_size, register_slots};
use pliant_tir::overflow_analysis::SIZE_LIMIT;
use rustc_hash::FxHashMap;

use crate::buffer_accesses::BufferLocation;
use crate::function_builder::{FuncGen, Gen};

/// Maximum total size in bytes of the stack buffers of a machine function. Further buffers are allocated in workspaces (scratch
/// memory of the runtime).
const MAX_STACK_BYTES: u64 = 64 * 1024;

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Allocates a buffer in registers, on the stack or in a workspace, and generates code for `body`, the statement
    /// that uses the buffer.
    pub fn alloc(&mut self, buffer: Buffer, body: Stmt) -> Gen<()> {
        if let Some(slots) = register_slots(self.f, buffer, body) {
            let dtype = self.f.buffer(buffer).dtype;
            let mut registers = FxHashMap::default();
            for (first, lanes) in slots {
                let ty = self.unit.value_type(Ty::scalar(dtype).with_lanes(lanes));
                let register = self.register(ty)?;
                // A program that reads the buffer before it writes to it gets zeros, not an undefined value.
                self.b.build_store(register, ty.const_zero())?;
                registers.insert((first, lanes), register);
            }
            if constant_size(self.f, buffer).is_none() {
                // Bounds checks rely on sizes within limits, although no memory is allocated.
                self.buffer_bytes(buffer)?;
            }
            self.locations.insert(buffer, BufferLocation::Registers(Rc::new(registers)));
            return self.stmt(body);
        }
        self.record_limits(buffer)?;
        let available = MAX_STACK_BYTES - self.stack_bytes;
        if let Some(bytes) =
            constant_size(self.f, buffer).filter(|&b| b <= STACK_BYTES.min(available))
        {
            self.stack_bytes += bytes;
            let padded = bytes.next_multiple_of(8).max(8);
            let address = self.stack_slot(padded)?;
            if POISONS {
                self.poison(address, padded)?;
            }
            self.locations.insert(buffer, BufferLocation::Memory(address));
            return self.stmt(body);
        }
        self.alloc_workspace(buffer, body)
    }

    /// Fills stack memory with the poison pattern ([`POISON_WORD`]), so that tests detect reads of uninitialized elements.
    /// `bytes` is a positive multiple of 8.
    fn poison(&mut self, address: PointerValue<'ctx>, bytes: u64) -> Gen<()> {
        let (head, done) = (self.block("poison"), self.block("done"));
        let before = self.current_block()?;
        self.jump(head)?;
        self.b.position_at_end(head);
        let phi = self.phi(self.unit.int_type(64), &[(self.i64(0).into(), before)])?;
        let at = phi.as_basic_value().into_int_value();
        let word = self.i64(POISON_WORD.cast_signed());
        self.store_value(word.into(), self.offset(address, at)?)?;
        let next = self.b.build_int_add(at, self.i64(8), "")?;
        let end = self.i64(bytes as i64);
        let more = self.b.build_int_compare(IntPredicate::ULT, next, end, "")?;
        phi.add_incoming(&[(&next, head)]);
        self.branch(more, head, done)?;
        self.b.position_at_end(done);
        Ok(())
    }

    /// Generates code that allocates a buffer in a workspace (scratch memory of the runtime), then code for `body`, the statement
    /// that uses the buffer. The workspace is freed on every path out of `body`.
    fn alloc_workspace(&mut self, buffer: Buffer, body: Stmt) -> Gen<()> {
        let bytes = self.buffer_bytes(buffer)?;
        let alloc = self.load_pointer(self.runtime, OFFSET_ALLOC_WORKSPACE)?;
        let ty = self.unit.function_type(&[self.unit.int_type(64)], self.unit.pointer_type());
        let address = self.call_address(ty, alloc, &[bytes.into()])?.into_pointer_value();
        let null = self.b.build_is_null(address, "")?;
        self.fail_if(null, self.i64(STATUS_NO_MEMORY))?;
        self.locations.insert(buffer, BufferLocation::Memory(address));

        let release = self.fail_block()?;
        let outer = std::mem::replace(&mut self.fail, release);
        self.stmt(body)?;
        self.free_workspace(address)?;
        let done = self.block("done");
        self.jump(done)?;
        self.fail = outer;
        self.b.position_at_end(release.block);
        self.free_workspace(address)?;
        let status = release.status.as_basic_value();
        outer.status.add_incoming(&[(&status, release.block)]);
        self.jump(outer.block)?;
        self.b.position_at_end(done);
        self.memo.clear();
        Ok(())
    }

    /// Generates code that frees a workspace (scratch memory of the runtime).
    fn free_workspace(&self, address: PointerValue<'ctx>) -> Gen<()> {
        let free = self.load_pointer(self.runtime, OFFSET_FREE_WORKSPACE)?;
        let params = [self.unit.pointer_type().into()];
        let ty = self.unit.context.void_type().fn_type(&params, false);
        self.b.build_indirect_call(ty, free, &[address.into()], "")?;
        Ok(())
    }

    /// Emits code that computes the size of a buffer in bytes. At run time, the loop function fails if a dim is negative or larger
    /// than [`SIZE_LIMIT`], or if the size overflows.
    fn buffer_bytes(&mut self, buffer: Buffer) -> Gen<IntValue<'ctx>> {
        let data = self.f.buffer(buffer);
        let mut bytes = self.i64(data.dtype.size() as i64);
        for &dim in &data.shape {
            let overflow_message =
                format!("the size of the buffer '{}' overflows 64 bits", data.name);
            let dim = self.checked_size(dim, &overflow_message)?;
            let negative = self.b.build_int_compare(IntPredicate::SLT, dim, self.i64(0), "")?;
            self.shape_error_if(
                negative,
                &format!("a dim of the buffer '{}' is negative", data.name),
            )?;
            let limit = self.i64(SIZE_LIMIT);
            let too_large = self.b.build_int_compare(IntPredicate::SGT, dim, limit, "")?;
            self.shape_error_if(
                too_large,
                &format!("a dim of the buffer '{}' is larger than 2**40", data.name),
            )?;
            bytes =
                self.with_overflow("llvm.smul.with.overflow", (bytes, dim), &overflow_message)?;
        }
        Ok(bytes)
    }
}
