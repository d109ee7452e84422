//! Code generation for calls of library kernels (`T.call_kernel`). Operands and attributes are written contiguously to
//! the stack as packed words, the format that `pliant_kernels::kernel_entry_points` reads.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use pliant_exec::abi::{
    PACKED_ABSENT, PACKED_FLOAT, PACKED_INT, PACKED_MEMORY, PACKED_STRIDED, PACKED_VIEW, PackedWord,
};
use pliant_exec::ahead_of_time_abi::Import;
use pliant_ir::tir::{Buffer, BufferView, Expr, KernelCall, KernelOperand};

use crate::function_builder::{FuncGen, Gen, abi_signature, internal, mem_flags, unsupported};
use crate::value_representations::ExprValue;

/// The size in bytes of a [`PackedWord`], which passes one operand or attribute.
const WORD_BYTES: usize = size_of::<PackedWord>();

impl FuncGen<'_, '_> {
    /// Emits a call of a library kernel. At run time, a nonzero status of the kernel fails the loop function with that status.
    pub fn call_kernel(&mut self, args: &[Expr]) -> Gen<ExprValue> {
        let f = self.f;
        let call = KernelCall::of_args(f, args).or_else(internal)?;
        let name = call.kernel.name;
        let Some(entry) = pliant_kernels::entry_of(name) else {
            return unsupported(format!(
                "T.call_kernel names the kernel '{name}', which this build of Pliant does not contain"
            ));
        };
        let count = call.kernel.arity();
        let slot = self.call_slot((WORD_BYTES * count) as u32)?;
        let first = self.b.ins().stack_addr(types::I64, slot, 0);
        let zero = self.b.ins().iconst(types::I64, 0);
        for (i, &operand) in call.operands.iter().enumerate() {
            let (kind, word, len) = match operand {
                Some(operand) => self.kernel_operand(operand)?,
                None => (PACKED_ABSENT, zero, zero),
            };
            self.store_call_word(first, i, kind, word, len);
        }
        for (i, &number) in call.numbers.iter().enumerate() {
            let value = self.scalar(number)?;
            let (kind, word) = match f.expr_ty(number).dtype.is_float() {
                true => {
                    let bits = self.b.ins().bitcast(types::I64, MemFlagsData::new(), value);
                    (PACKED_FLOAT, bits)
                }
                false => (PACKED_INT, value),
            };
            self.store_call_word(first, call.operands.len() + i, kind, word, zero);
        }
        let import = Import::Kernel(name.to_string());
        let callee = self.unit.import_address(&mut self.b, import, entry as usize);
        let sig = abi_signature(&*self.unit.module, &[types::I64; 3], types::I64);
        let sig = self.b.import_signature(sig);
        let count = self.b.ins().iconst(types::I64, count as i64);
        let call = self.b.ins().call_indirect(sig, callee, &[self.runtime, first, count]);
        let status = self.b.inst_results(call)[0];
        let failed = self.b.ins().icmp_imm_s(IntCC::NotEqual, status, 0);
        self.fail_if(failed, status);
        // The kernel has written its results, so memoized loads may be stale.
        self.memo.clear();
        Ok(ExprValue::Scalar(status))
    }

    /// Emits code for a kernel operand. Returns the kind of the operand, the address of its descriptor, and its rank.
    fn kernel_operand(&mut self, operand: KernelOperand<'_>) -> Gen<(u64, Value, Value)> {
        let buffer = operand.buffer;
        if let Some(view) = operand.view {
            return self.view_descriptor(buffer, view);
        }
        let strides = self.f.buffer(buffer).strides.clone();
        if strides.is_empty() {
            let (word, rank) = self.buffer_descriptor(buffer, &[])?;
            return Ok((PACKED_MEMORY, word, rank));
        }
        let (word, rank) = self.buffer_descriptor(buffer, &strides)?;
        Ok((PACKED_STRIDED, word, rank))
    }

    /// Emits code that writes the descriptor of a view to the stack: address and data type of the buffer, number of elements of the
    /// buffer, then offset, dims and strides of the view. Returns the operand kind, the address of the descriptor and the rank.
    fn view_descriptor(
        &mut self,
        buffer: Buffer,
        view: BufferView<'_>,
    ) -> Gen<(u64, Value, Value)> {
        let mut words = self.address_and_dtype(buffer)?;
        let mut elements = self.b.ins().iconst(types::I64, 1);
        let data = self.f.buffer(buffer);
        let overflow_message = format!("a dim of the buffer '{}' overflows 64 bits", data.name);
        for &dim in &data.shape {
            let dim = self.checked_size(dim, &overflow_message)?;
            elements = self.b.ins().imul(elements, dim);
        }
        words.push(elements);
        words.push(self.scalar(view.offset)?);
        for &number in view.dims.iter().chain(view.strides) {
            words.push(self.scalar(number)?);
        }
        let at = self.store_words(&words)?;
        let rank = self.b.ins().iconst(types::I64, view.dims.len() as i64);
        Ok((PACKED_VIEW, at, rank))
    }

    /// Returns the address and the data type of a buffer, the first two words of its descriptor.
    fn address_and_dtype(&mut self, buffer: Buffer) -> Gen<Vec<Value>> {
        let start = self.b.ins().iconst(types::I64, 0);
        let address = self.address(buffer, start)?;
        let (code, bits) = self.f.buffer(buffer).dtype.to_dlpack();
        let dtype = self.b.ins().iconst(types::I64, i64::from(u16::from_le_bytes([code, bits])));
        Ok(vec![address, dtype])
    }

    /// Emits stores of 64-bit words to adjacent stack memory. Returns the address of the first word.
    fn store_words(&mut self, words: &[Value]) -> Gen<Value> {
        let slot = self.call_slot((8 * words.len()) as u32)?;
        let at = self.b.ins().stack_addr(types::I64, slot, 0);
        for (k, &word) in words.iter().enumerate() {
            self.b.ins().store(mem_flags(), word, at, (8 * k) as i32);
        }
        Ok(at)
    }

    /// Emits code that writes the descriptor of a buffer to the stack: address, data type, dims and `strides`. Returns the address
    /// of the descriptor and the rank.
    pub fn buffer_descriptor(&mut self, buffer: Buffer, strides: &[Expr]) -> Gen<(Value, Value)> {
        let data = self.f.buffer(buffer);
        let shape = data.shape.clone();
        let overflow_message =
            format!("a dim or stride of the buffer '{}' overflows 64 bits", data.name);
        let mut words = self.address_and_dtype(buffer)?;
        for &size in shape.iter().chain(strides) {
            words.push(self.checked_size(size, &overflow_message)?);
        }
        let at = self.store_words(&words)?;
        let rank = self.b.ins().iconst(types::I64, shape.len() as i64);
        Ok((at, rank))
    }
}
