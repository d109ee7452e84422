//! Code generation for calls of packed functions from loop functions (`T.call_packed`).

use std::sync::Arc;

use inkwell::module::Linkage;
use inkwell::values::PointerValue;
use pliant_codegen::call_arguments::{param_position, whole_buffer};
use pliant_exec::abi::{
    OFFSET_CALL_PACKED, PACKED_BOOL, PACKED_FLOAT, PACKED_INT, PACKED_MEMORY, PACKED_PARAM,
    PACKED_TEXT, PACKED_UNUSED, PackedWord,
};
use pliant_ir::tir::{Expr, ExprData, Intrin, Ty};
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen, internal, unsupported};
use crate::values::Value;

/// The size in bytes of a [`PackedWord`], which passes one operand or result.
pub(crate) const WORD_BYTES: usize = size_of::<PackedWord>();
/// Maximum number of bytes of stack for the operands of all calls of a machine function. Worker threads have stacks of
/// 2 MiB.
const MAX_CALL_STACK_BYTES: u64 = 128 * 1024;

/// Kind, value and length of a packed word.
pub(crate) type Word<'ctx> = (u64, Value<'ctx>, Value<'ctx>);

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Emits a call of a packed function, and converts its result to `ty`.
    pub fn call_packed(&mut self, args: &[Expr], ty: Ty) -> Gen<Value<'ctx>> {
        let float = ty.dtype.is_float();
        let result = self.emit_packed_call(args, if float { PACKED_FLOAT } else { PACKED_INT })?;
        let from = if float { DType::Float64 } else { DType::Int64 };
        let at = self.offset(result, self.i64(8))?;
        let value = self.load_value(self.unit.scalar_type(from), at)?;
        self.cast(value, Ty::scalar(from), ty)
    }

    /// Emits a call of a packed function whose result is not used.
    pub fn call_packed_for_effect(&mut self, args: &[Expr]) -> Gen<()> {
        self.emit_packed_call(args, PACKED_UNUSED).map(drop)
    }

    /// Emits a call of a packed function through the runtime. The packed words of the result and of the arguments are written
    /// contiguously to the stack. `kind` is the expected `PACKED_*` kind of the result. Returns the address of the result's word.
    fn emit_packed_call(&mut self, args: &[Expr], kind: u64) -> Gen<PointerValue<'ctx>> {
        let f = self.f;
        let Some((&name, rest)) = args.split_first() else {
            return internal("the first argument of T.call_packed is not the name of a function");
        };
        let ExprData::Str(name) = f.expr(name) else {
            return internal("the first argument of T.call_packed is not the name of a function");
        };
        let result = self.call_slot((WORD_BYTES * (rest.len() + 1)) as u64)?;
        let zero = self.i64(0).into();
        self.store_call_word(result, 0, (kind, zero, zero))?;
        for (i, &arg) in rest.iter().enumerate() {
            let word = self.packed_argument(name, i, arg)?;
            self.store_call_word(result, i + 1, word)?;
        }
        let text = self.define_text(name)?;
        let first = self.offset(result, self.i64(WORD_BYTES as i64))?;
        let callee = self.load_pointer(self.runtime, OFFSET_CALL_PACKED)?;
        let (pointer, int) = (self.unit.pointer_type(), self.unit.int_type(64));
        let ty = self.unit.function_type(&[pointer, pointer, int, pointer, int, pointer], int);
        let (len, count) = (self.i64(name.len() as i64), self.i64(rest.len() as i64));
        let operands =
            [self.runtime.into(), text, len.into(), first.into(), count.into(), result.into()];
        let status = self.call_address(ty, callee, &operands)?;
        self.fail_if_nonzero(status.into_int_value())?;
        // The function may have written to its tensor arguments, so memoized loads may be stale.
        self.memo.clear();
        Ok(result)
    }

    /// Emits stores of the packed word at position `index` of the array at address `base`.
    pub fn store_call_word(
        &self,
        base: PointerValue<'ctx>,
        index: usize,
        (kind, word, len): Word<'ctx>,
    ) -> Gen<()> {
        let kind = self.i64(kind as i64).into();
        for (i, value) in [kind, word, len].into_iter().enumerate() {
            self.store_at(value, base, index * WORD_BYTES + i * 8)?;
        }
        Ok(())
    }

    /// Returns the packed word (kind, value and length) for the argument at position `i` of a call of the packed function `name`.
    fn packed_argument(&mut self, name: &str, i: usize, arg: Expr) -> Gen<Word<'ctx>> {
        let zero = self.i64(0).into();
        match self.f.expr(arg) {
            ExprData::Str(s) => {
                Ok((PACKED_TEXT, self.define_text(s)?, self.i64(s.len() as i64).into()))
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
                    Some(position) => Ok((PACKED_PARAM, self.i64(position as i64).into(), zero)),
                    None => {
                        let (words, rank) = self.buffer_descriptor(buffer, &[])?;
                        Ok((PACKED_MEMORY, words, rank))
                    }
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
                let wide = self.cast(v, ty, Ty::scalar(to))?;
                let kind = match ty.dtype {
                    _ if float => PACKED_FLOAT,
                    dtype if dtype.is_bool() => PACKED_BOOL,
                    _ => PACKED_INT,
                };
                Ok((kind, wide, zero))
            }
        }
    }

    /// Allocates `bytes` bytes of stack for operands that a call takes by address.
    ///
    /// # Errors
    /// `Unsupported`: the operands of all calls of the machine function take more than [`MAX_CALL_STACK_BYTES`] bytes.
    pub fn call_slot(&mut self, bytes: u64) -> Gen<PointerValue<'ctx>> {
        self.call_stack_bytes += bytes;
        if self.call_stack_bytes > MAX_CALL_STACK_BYTES {
            return unsupported(format!(
                "the operands of all calls of packed functions, kernels and parallel loops in the function need more than \
                 {MAX_CALL_STACK_BYTES} bytes of stack; split the function into several functions"
            ));
        }
        self.stack_slot(bytes)
    }

    /// Stores a text as constant data of the module. Returns its address.
    fn define_text(&self, text: &Arc<str>) -> Gen<Value<'ctx>> {
        let data = self.unit.context.const_string(text.as_bytes(), true);
        let global = self.unit.module.add_global(data.get_type(), None, "text");
        global.set_initializer(&data);
        global.set_constant(true);
        global.set_linkage(Linkage::Private);
        Ok(global.as_pointer_value().into())
    }
}
