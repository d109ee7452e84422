//! The entry points of the declared kernels. Generated code calls the entry points with tensors and numbers. An entry point checks
//! the call against the declaration of the kernel ([`pliant_kernel_api`]), and then runs the kernel.
//!
//! The call may come from a hostile executable file. An entry point therefore rejects an operand that is a view (`T.view`) if its
//! offset, dims and strides lead outside of the buffer ([`View::within`]). An operand that is a whole buffer has no such check
//! here. Its dims and strides are those of the buffer in the loop function. If the buffer is a parameter, the checks at the start
//! of the loop function have compared them with the tensor argument (`pliant-codegen/src/prologue_plan.rs`,
//! `tensor_argument_check.rs`).
//!
//! This file decodes the arguments and reports the errors; `pliant-kernel-api/src/kernel_call.rs` contains the checks of bounds and
//! strides.

use pliant_exec::abi::{
    FAILED_SHAPE, FAILED_TYPE, FAILED_VALUE, KernelRuntime, PACKED_ABSENT, PACKED_FLOAT,
    PACKED_INT, PACKED_MEMORY, PACKED_STRIDED, PACKED_VIEW, PackedWord,
};
use pliant_kernel_api::{Call, Kernel, KernelError, KernelErrorKind, MAX_RANK, Sizes, View};
use pliant_tensor::DType;

/// The entry point of a kernel: `(runtime, arguments, number of arguments)`. The arguments are
/// those of [`Kernel::slots`]: a tensor or null for each operand, then numbers. Returns a kernel
/// status: 0 on success.
pub type Entry = unsafe extern "C" fn(*const KernelRuntime, *const PackedWord, u64) -> i64;

/// The implementation of a declared kernel.
pub trait Implementation {
    /// The declaration of the implemented kernel.
    const KERNEL: &'static Kernel;

    /// Computes the results of a checked call. Returns a kernel status: 0 on success.
    ///
    /// # Safety
    /// The memory of each operand is valid for the operand's dims and strides. The memory of
    /// results is writable. No other thread writes an operand or reads a result during the call.
    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64;
}

/// The entry point of the kernel that `I` implements: decodes the arguments, checks the call, and
/// runs the kernel.
///
/// # Safety
/// `runtime`, the `count` arguments and the tensors are valid. The memory of operands satisfies the
/// conditions of [`Implementation::run`].
pub unsafe extern "C" fn entry<I: Implementation>(
    runtime: *const KernelRuntime,
    args: *const PackedWord,
    count: u64,
) -> i64 {
    // SAFETY: guaranteed by the caller.
    let (runtime, args) = unsafe { (&*runtime, std::slice::from_raw_parts(args, count as usize)) };
    let (mut call, mut sizes) = (Call::new(I::KERNEL), Sizes::new());
    // SAFETY: guaranteed by the caller for the arguments.
    let decoded = unsafe { decode(&mut call, args) };
    match decoded.and_then(|()| call.check_into(&mut sizes)) {
        Ok(()) => {
            // SAFETY: null, or valid during the call as the ABI requires.
            if let Some(flops) = unsafe { runtime.flops.as_ref() } {
                flops.add((I::KERNEL.flops)(&call, &sizes));
            }
            // SAFETY: the call was checked, and its memory is valid as the caller guarantees.
            unsafe { I::run(runtime, &call, &sizes) }
        }
        Err(error) => runtime.fail(error_kind(error.kind), &error.to_string()),
    }
}

fn error_kind(kind: KernelErrorKind) -> u64 {
    match kind {
        KernelErrorKind::Type => FAILED_TYPE,
        KernelErrorKind::Shape => FAILED_SHAPE,
        KernelErrorKind::Value => FAILED_VALUE,
    }
}

/// Decodes the arguments of a call, and sets the operands and attribute numbers of `call`.
///
/// # Safety
/// The tensors among the arguments describe valid memory.
unsafe fn decode(call: &mut Call, args: &[PackedWord]) -> Result<(), KernelError> {
    let kernel = call.kernel;
    let type_error =
        |message: String| KernelError { kernel: kernel.name, kind: KernelErrorKind::Type, message };
    if args.len() != kernel.arity() {
        return Err(type_error(format!(
            "the kernel call has {} arguments, expected {}",
            args.len(),
            kernel.arity()
        )));
    }
    let (operands, numbers) = args.split_at(kernel.operands.len());
    for (i, word) in operands.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        let view = unsafe { view(word, kernel.operands[i].name) };
        let value_error =
            |message| KernelError { kernel: kernel.name, kind: KernelErrorKind::Value, message };
        call.set_operand(i, view.map_err(value_error)?);
    }
    for (i, word) in numbers.iter().enumerate() {
        if !matches!(word.kind, PACKED_INT | PACKED_FLOAT) {
            return Err(type_error(format!(
                "argument {} of the kernel call is the value of an attribute, so it must be a number",
                operands.len() + i
            )));
        }
        call.set_number(i, word.word as i64);
    }
    Ok(())
}

/// Decodes one argument as the operand `name`; `None` if the operand is omitted.
///
/// # Safety
/// The conditions of [`decode`] hold.
#[inline(always)]
unsafe fn view(word: &PackedWord, name: &str) -> Result<Option<View>, String> {
    let (header, lists) = match word.kind {
        PACKED_ABSENT => return Ok(None),
        PACKED_MEMORY => (2, 1),
        PACKED_STRIDED => (2, 2),
        PACKED_VIEW => (4, 2),
        _ => return Err(format!("operand '{name}' is not a tensor")),
    };
    let rank = usize::try_from(word.len).ok().filter(|&rank| rank <= MAX_RANK);
    let rank = rank.ok_or_else(|| format!("operand '{name}' has more than {MAX_RANK} dims"))?;
    // SAFETY: guaranteed by the caller: `header` words, then `lists` lists of `rank` numbers.
    let words =
        unsafe { std::slice::from_raw_parts(word.word as *const i64, header + lists * rank) };
    let [code, bits] = (words[1] as u16).to_le_bytes();
    let dtype = DType::from_dlpack(code, bits)
        .ok_or_else(|| format!("operand '{name}' has an unknown data type"))?;
    let data: *mut u8 = std::ptr::with_exposed_provenance_mut(words[0] as usize);
    let (dims, strides) = words[header..].split_at(rank);
    if word.kind == PACKED_VIEW {
        return View::within(name, (data, dtype, words[2]), words[3], dims, strides).map(Some);
    }
    let strides = (word.kind == PACKED_STRIDED).then_some(strides);
    Ok(View::new(data, dtype, dims, strides))
}
