//! Code generation for calls of packed functions from loop functions (`T.call_packed`).

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value, types,
};
use cranelift_module::DataDescription;
use pliant_codegen::call_arguments::{param_position, whole_buffer};
use pliant_exec::abi::{
    OFFSET_CALL_PACKED, PACKED_BOOL, PACKED_FLOAT, PACKED_INT, PACKED_MEMORY, PACKED_PARAM,
    PACKED_TEXT, PACKED_UNUSED, PackedWord,
};
use pliant_ir::tir::{Buffer, Expr, ExprData, Intrin, Ty};
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen, abi_signature, internal, mem_flags, unsupported};
use crate::value_representations::ExprValue;

/// The size in bytes of a [`PackedWord`], which passes one operand or result.
const WORD_BYTES: usize = size_of::<PackedWord>();
/// Maximum number of bytes of stack for the operands of all calls of a machine function. Worker threads have stacks of
/// 2 MiB.
const MAX_CALL_STACK_BYTES: u64 = 128 * 1024;

impl FuncGen<'_, '_> {
    /// Emits a call of a packed function, and converts its result to `ty`.
    pub fn call_packed(&mut self, args: &[Expr], ty: Ty) -> Gen<ExprValue> {
        let float = ty.dtype.is_float();
        let result = self.emit_packed_call(args, if float { PACKED_FLOAT } else { PACKED_INT })?;
        let wide = if float { types::F64 } else { types::I64 };
        let value = self.b.ins().load(wide, mem_flags(), result, 8);
        let from = if float { DType::Float64 } else { DType::Int64 };
        self.cast(ExprValue::Scalar(value), Ty::scalar(from), ty)
    }

    /// Emits a call of a packed function whose result is not used.
    pub fn call_packed_for_effect(&mut self, args: &[Expr]) -> Gen<()> {
        self.emit_packed_call(args, PACKED_UNUSED).map(drop)
    }

    /// Emits a call of a packed function through the runtime. The packed words of the result and of the arguments are written
    /// contiguously to the stack. `kind` is the expected `PACKED_*` kind of the result. Returns the address of the result's word.
    fn emit_packed_call(&mut self, args: &[Expr], kind: u64) -> Gen<Value> {
        let f = self.f;
        let Some((&name, rest)) = args.split_first() else {
            return internal("the first argument of T.call_packed is not the name of a function");
        };
        let ExprData::Str(name) = f.expr(name) else {
            return internal("the first argument of T.call_packed is not the name of a function");
        };
        let size = (WORD_BYTES * (rest.len() + 1)) as u32;
        let slot = self.call_slot(size)?;
        let result = self.b.ins().stack_addr(types::I64, slot, 0);
        let zero = self.b.ins().iconst(types::I64, 0);
        self.store_call_word(result, 0, kind, zero, zero);
        for (i, &arg) in rest.iter().enumerate() {
            let (kind, word, len) = self.packed_argument(name, i, arg)?;
            self.store_call_word(result, i + 1, kind, word, len);
        }
        let (text, len) = self.define_text(name)?;
        let first = self.b.ins().iadd_imm_s(result, WORD_BYTES as i64);
        let count = self.b.ins().iconst(types::I64, rest.len() as i64);
        let callee = self.runtime_fn(OFFSET_CALL_PACKED);
        let sig = abi_signature(&*self.unit.module, &[types::I64; 6], types::I64);
        let sig = self.b.import_signature(sig);
        let operands = [self.runtime, text, len, first, count, result];
        let call = self.b.ins().call_indirect(sig, callee, &operands);
        let status = self.b.inst_results(call)[0];
        let failed = self.b.ins().icmp_imm_s(IntCC::NotEqual, status, 0);
        self.fail_if(failed, status);
        // The function may have written to its tensor arguments, so memoized loads may be stale.
        self.memo.clear();
        Ok(result)
    }

    /// Emits stores of the packed word at position `index` of the array at address `base`: its kind, value and length.
    pub(crate) fn store_call_word(
        &mut self,
        base: Value,
        index: usize,
        kind: u64,
        word: Value,
        len: Value,
    ) {
        let kind = self.b.ins().iconst(types::I64, kind as i64);
        for (i, value) in [kind, word, len].into_iter().enumerate() {
            self.b.ins().store(mem_flags(), value, base, (index * WORD_BYTES + i * 8) as i32);
        }
    }

    /// Returns kind, value and length of the packed word for the argument at position `i`.
    fn packed_argument(&mut self, name: &str, i: usize, arg: Expr) -> Gen<(u64, Value, Value)> {
        let zero = self.b.ins().iconst(types::I64, 0);
        match self.f.expr(arg) {
            ExprData::Str(s) => {
                let (text, len) = self.define_text(s)?;
                Ok((PACKED_TEXT, text, len))
            }
            ExprData::Call(Intrin::AddressOf, operand, _) => {
                let Some(buffer) = whole_buffer(self.f, operand[0]) else {
                    return unsupported(format!(
                        "argument {i} of the packed function '{name}' is part of a buffer; pass a whole buffer, or the \
                         elements as numbers"
                    ));
                };
                match param_position(self.f, buffer) {
                    None if self.shared_buffers.contains(&buffer) => unsupported(format!(
                        "argument {i} of the packed function '{name}' is a buffer that was allocated outside of the \
                         parallel loop, whose threads share it; pass a buffer parameter instead, or make the loop serial"
                    )),
                    Some(position) => {
                        let position = self.b.ins().iconst(types::I64, position as i64);
                        Ok((PACKED_PARAM, position, zero))
                    }
                    None => self.allocated_buffer_argument(buffer),
                }
            }
            _ => {
                let ty = self.f.expr_ty(arg);
                if ty.lanes != 1 {
                    return unsupported(format!(
                        "argument {i} of the packed function '{name}' is a vector; pass scalars"
                    ));
                }
                let v = self.expr(arg)?;
                let float = ty.dtype.is_float();
                let to = if float { DType::Float64 } else { DType::Int64 };
                let ExprValue::Scalar(wide) = self.cast(v, ty, Ty::scalar(to))? else {
                    return internal("the cast of a scalar argument resulted in a vector");
                };
                if float {
                    let bits = self.b.ins().bitcast(types::I64, MemFlagsData::new(), wide);
                    return Ok((PACKED_FLOAT, bits, zero));
                }
                Ok((if ty.dtype.is_bool() { PACKED_BOOL } else { PACKED_INT }, wide, zero))
            }
        }
    }

    /// Allocates `bytes` bytes of stack for operands that a call takes by address.
    ///
    /// # Errors
    /// `Unsupported`: the operands of all calls of the machine function take more than [`MAX_CALL_STACK_BYTES`] bytes.
    pub(crate) fn call_slot(&mut self, bytes: u32) -> Gen<StackSlot> {
        self.call_stack_bytes += u64::from(bytes);
        if self.call_stack_bytes > MAX_CALL_STACK_BYTES {
            return unsupported(format!(
                "the operands of all calls of packed functions, kernels and parallel loops in the function need more than \
                 {MAX_CALL_STACK_BYTES} bytes of stack; split the function into several functions"
            ));
        }
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
        Ok(self.b.create_sized_stack_slot(data))
    }

    /// Returns kind, value and length of the packed word for a buffer that the function has allocated. The value is the
    /// address of the buffer's descriptor.
    fn allocated_buffer_argument(&mut self, buffer: Buffer) -> Gen<(u64, Value, Value)> {
        let (words, rank) = self.buffer_descriptor(buffer, &[])?;
        Ok((PACKED_MEMORY, words, rank))
    }

    /// Stores a text as constant data of the module. Returns its address and its length in bytes.
    fn define_text(&mut self, text: &Arc<str>) -> Gen<(Value, Value)> {
        let module = &mut self.unit.module;
        let id = module.declare_anonymous_data(false, false)?;
        let mut data = DataDescription::new();
        // Data must not be empty, so a zero byte is appended.
        data.define(text.bytes().chain([0]).collect());
        module.define_data(id, &data)?;
        let address = self.unit.data_address(&mut self.b, id);
        let len = self.b.ins().iconst(types::I64, text.len() as i64);
        Ok((address, len))
    }
}
