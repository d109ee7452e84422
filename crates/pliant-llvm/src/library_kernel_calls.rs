//! Code generation for calls of library kernels (`T.call_kernel`). Operands and attributes are written contiguously to
//! the stack as packed words, the format that `pliant_kernels::kernel_entry_points` reads.

use inkwell::values::IntValue;
use pliant_exec::abi::{
    PACKED_ABSENT, PACKED_FLOAT, PACKED_INT, PACKED_MEMORY, PACKED_STRIDED, PACKED_VIEW,
};
use pliant_exec::ahead_of_time_abi::Import;
use pliant_ir::tir::{Buffer, BufferView, Expr, KernelCall, KernelOperand};

use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::packed_function_calls::{WORD_BYTES, Word};
use crate::values::Value;

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Emits a call of a library kernel. At run time, a nonzero status of the kernel fails the loop function with that status.
    pub fn call_kernel(&mut self, args: &[Expr]) -> Gen<Value<'ctx>> {
        let f = self.f;
        let call = KernelCall::of_args(f, args).or_else(internal)?;
        let name = call.kernel.name;
        let Some(entry) = pliant_kernels::entry_of(name) else {
            return unsupported(format!(
                "T.call_kernel names the kernel '{name}', which this build of Pliant does not contain"
            ));
        };
        let count = call.kernel.arity();
        let first = self.call_slot((WORD_BYTES * count) as u64)?;
        let zero = self.i64(0).into();
        for (i, &operand) in call.operands.iter().enumerate() {
            let word = match operand {
                Some(operand) => self.kernel_operand(operand)?,
                None => (PACKED_ABSENT, zero, zero),
            };
            self.store_call_word(first, i, word)?;
        }
        for (i, &number) in call.numbers.iter().enumerate() {
            let value = self.expr(number)?;
            let kind = if f.expr_ty(number).dtype.is_float() { PACKED_FLOAT } else { PACKED_INT };
            self.store_call_word(first, call.operands.len() + i, (kind, value, zero))?;
        }
        let (pointer, int) = (self.unit.pointer_type(), self.unit.int_type(64));
        let ty = self.unit.function_type(&[pointer, pointer, int], int);
        let import = Import::Kernel(name.to_string());
        let callee = self.unit.import_address(&self.b, import, entry as usize, ty)?;
        let args = [self.runtime.into(), first.into(), self.i64(count as i64).into()];
        let status = self.call_address(ty, callee, &args)?;
        self.fail_if_nonzero(status.into_int_value())?;
        // The kernel has written its results, so memoized loads may be stale.
        self.memo.clear();
        Ok(status)
    }

    /// Emits code for a kernel operand. Returns its packed word: its kind, the address of its descriptor, and its rank.
    fn kernel_operand(&mut self, operand: KernelOperand<'_>) -> Gen<Word<'ctx>> {
        let buffer = operand.buffer;
        if let Some(view) = operand.view {
            return self.view_descriptor(buffer, view);
        }
        let strides = self.f.buffer(buffer).strides.clone();
        let kind = if strides.is_empty() { PACKED_MEMORY } else { PACKED_STRIDED };
        let (word, rank) = self.buffer_descriptor(buffer, &strides)?;
        Ok((kind, word, rank))
    }

    /// Emits code that writes the descriptor of a view to the stack: address and data type of the buffer, number of elements of the
    /// buffer, then offset, dims and strides of the view. Returns the operand kind, the address of the descriptor and the rank.
    fn view_descriptor(&mut self, buffer: Buffer, view: BufferView<'_>) -> Gen<Word<'ctx>> {
        let mut words = self.address_and_dtype(buffer)?;
        let mut elements = self.i64(1);
        let data = self.f.buffer(buffer);
        let overflow_message = format!("a dim of the buffer '{}' overflows 64 bits", data.name);
        for &dim in &data.shape {
            let dim = self.checked_size(dim, &overflow_message)?;
            elements = self.b.build_int_mul(elements, dim, "")?;
        }
        words.push(elements.into());
        for &number in [view.offset].iter().chain(view.dims).chain(view.strides) {
            let number: IntValue<'ctx> = self.int(number)?;
            words.push(number.into());
        }
        let at = self.store_words(&words)?;
        Ok((PACKED_VIEW, at, self.i64(view.dims.len() as i64).into()))
    }

    /// Returns the address and the data type of a buffer, the first two words of its descriptor.
    fn address_and_dtype(&mut self, buffer: Buffer) -> Gen<Vec<Value<'ctx>>> {
        let address = self.base_address(buffer)?;
        let (code, bits) = self.f.buffer(buffer).dtype.to_dlpack();
        let dtype = self.i64(i64::from(u16::from_le_bytes([code, bits])));
        Ok(vec![address.into(), dtype.into()])
    }

    /// Emits stores of 64-bit words to adjacent stack memory. Returns the address of the first word.
    fn store_words(&mut self, words: &[Value<'ctx>]) -> Gen<Value<'ctx>> {
        let at = self.call_slot((8 * words.len()) as u64)?;
        for (k, &word) in words.iter().enumerate() {
            self.store_at(word, at, 8 * k)?;
        }
        Ok(at.into())
    }

    /// Emits code that writes the descriptor of a buffer to the stack: address, data type, dims and `strides`. Returns the address
    /// of the descriptor and the rank.
    pub fn buffer_descriptor(
        &mut self,
        buffer: Buffer,
        strides: &[Expr],
    ) -> Gen<(Value<'ctx>, Value<'ctx>)> {
        let data = self.f.buffer(buffer);
        let shape = data.shape.clone();
        let overflow_message =
            format!("a dim or stride of the buffer '{}' overflows 64 bits", data.name);
        let mut words = self.address_and_dtype(buffer)?;
        for &size in shape.iter().chain(strides) {
            words.push(self.checked_size(size, &overflow_message)?.into());
        }
        let at = self.store_words(&words)?;
        Ok((at, self.i64(shape.len() as i64).into()))
    }
}
