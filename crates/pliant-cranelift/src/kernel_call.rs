//! Calls of library kernels: operands and attributes are contiguous on the stack, as `pliant_kernels::entry` reads them.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use pliant_exec::abi::{
    PACKED_ABSENT, PACKED_FLOAT, PACKED_INT, PACKED_MEMORY, PACKED_STRIDED, PACKED_VIEW, PackedWord,
};
use pliant_ir::tir::{Buffer, BufferView, Expr, KernelCall, KernelOperand};

use crate::function::{FuncGen, Gen, abi_signature, internal, mem, unsupported};
use crate::value::V;

/// The size of an argument in bytes.
const WORD: usize = size_of::<PackedWord>();

impl FuncGen<'_, '_> {
    /// Calls a kernel, and fails the loop function with the kernel's status unless that is 0.
    pub fn call_kernel(&mut self, args: &[Expr]) -> Gen<V> {
        let f = self.f;
        let call = KernelCall::of_args(f, args).or_else(internal)?;
        let name = call.kernel.name;
        let Some(entry) = pliant_kernels::entry_of(name) else {
            return unsupported(format!("kernel {name}, which this build does not have"));
        };
        let count = call.kernel.arity();
        let slot = self.call_slot((WORD * count) as u32)?;
        let first = self.b.ins().stack_addr(types::I64, slot, 0);
        let zero = self.b.ins().iconst(types::I64, 0);
        for (i, &operand) in call.operands.iter().enumerate() {
            let (kind, word, len) = match operand {
                Some(operand) => self.kernel_operand(operand)?,
                None => (PACKED_ABSENT, zero, zero),
            };
            self.packed_word(first, i, kind, word, len);
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
            self.packed_word(first, call.operands.len() + i, kind, word, zero);
        }
        let callee = self.b.ins().iconst(types::I64, entry as usize as i64);
        let sig = abi_signature(&self.unit.module, &[types::I64; 3], types::I64);
        let sig = self.b.import_signature(sig);
        let count = self.b.ins().iconst(types::I64, count as i64);
        let call = self.b.ins().call_indirect(sig, callee, &[self.runtime, first, count]);
        let status = self.b.inst_results(call)[0];
        let bad = self.b.ins().icmp_imm_s(IntCC::NotEqual, status, 0);
        self.fail_if(bad, status);
        // The kernel has written its results, so memoized loads may be stale.
        self.memo.clear();
        Ok(V::S(status))
    }

    /// An operand: its kind, the address of the words that describe it, and its rank.
    fn kernel_operand(&mut self, operand: KernelOperand<'_>) -> Gen<(u64, Value, Value)> {
        let buffer = operand.buffer;
        if let Some(view) = operand.view {
            return self.view_words(buffer, view);
        }
        let strides = self.f.buffer(buffer).strides.clone();
        if strides.is_empty() {
            let (word, rank) = self.memory_words(buffer, &[])?;
            return Ok((PACKED_MEMORY, word, rank));
        }
        let (word, rank) = self.memory_words(buffer, &strides)?;
        Ok((PACKED_STRIDED, word, rank))
    }

    /// Writes the words of a view to the stack.
    fn view_words(&mut self, buffer: Buffer, view: BufferView<'_>) -> Gen<(u64, Value, Value)> {
        let mut words = self.buffer_words(buffer)?;
        let mut elements = self.b.ins().iconst(types::I64, 1);
        for &dim in &self.f.buffer(buffer).shape.clone() {
            let dim = self.size(dim, "the size of a buffer")?;
            elements = self.b.ins().imul(elements, dim);
        }
        words.push(elements);
        words.push(self.scalar(view.offset)?);
        for &number in view.dims.iter().chain(view.strides) {
            words.push(self.scalar(number)?);
        }
        let at = self.words_on_stack(&words)?;
        let rank = self.b.ins().iconst(types::I64, view.dims.len() as i64);
        Ok((PACKED_VIEW, at, rank))
    }

    /// The address and the data type of a buffer.
    fn buffer_words(&mut self, buffer: Buffer) -> Gen<Vec<Value>> {
        let start = self.b.ins().iconst(types::I64, 0);
        let address = self.address(buffer, start)?;
        let (code, bits) = self.f.buffer(buffer).dtype.to_dlpack();
        let dtype = self.b.ins().iconst(types::I64, i64::from(u16::from_le_bytes([code, bits])));
        Ok(vec![address, dtype])
    }

    /// Writes words to the stack, and returns their address.
    fn words_on_stack(&mut self, words: &[Value]) -> Gen<Value> {
        let slot = self.call_slot((8 * words.len()) as u32)?;
        let at = self.b.ins().stack_addr(types::I64, slot, 0);
        for (k, &word) in words.iter().enumerate() {
            self.b.ins().store(mem(), word, at, (8 * k) as i32);
        }
        Ok(at)
    }

    /// Writes the address, the data type, the dims and the `more` sizes of a buffer to the stack. Returns the address of
    /// these words and the rank.
    pub fn memory_words(&mut self, buffer: Buffer, more: &[Expr]) -> Gen<(Value, Value)> {
        let shape = self.f.buffer(buffer).shape.clone();
        let mut words = self.buffer_words(buffer)?;
        for &size in shape.iter().chain(more) {
            words.push(self.size(size, "the size of a buffer")?);
        }
        let at = self.words_on_stack(&words)?;
        let rank = self.b.ins().iconst(types::I64, shape.len() as i64);
        Ok((at, rank))
    }
}
