//! Object code of a program that is compiled ahead of time: its target, its loop functions, and the data of the object file.

use std::sync::Arc;

use pliant_exec::ahead_of_time_abi::Import;

use crate::compiled_loop_functions::KernelSignature;
use crate::error::CodegenError;

/// The machine for which object code is generated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectTarget {
    /// The target triple, such as `aarch64-unknown-linux-gnu`. Default: the host.
    pub triple: Option<String>,
    /// The name of the CPU, such as `x86-64-v3`. Default: the host CPU, or the baseline of another triple.
    pub cpu: Option<String>,
}

/// A loop function in an object file.
#[derive(Clone, Debug)]
pub struct ObjectFunction {
    /// The name of the loop function.
    pub name: Arc<str>,
    /// The names and types of the parameters.
    pub signature: KernelSignature,
    /// The error messages of the function. If the entry point returns a positive `k`, it failed with `messages[k - 1]`.
    pub messages: Arc<[Arc<str>]>,
}

/// The generated code of an object file, without its data.
#[derive(Clone, Copy, Debug)]
pub struct ObjectCode<'a> {
    /// The loop functions, in the order in which they were passed to the backend.
    pub functions: &'a [ObjectFunction],
    /// The functions of the run-time library that the code calls.
    pub imports: &'a [Import],
    /// The instruction sets that the code may use, by LLVM's names.
    pub cpu_features: &'a [String],
}

/// The contents of an object file besides its machine code.
#[derive(Clone, Debug, Default)]
pub struct ProgramData {
    /// The name of the symbol of the program's header (`pliant_exec::ahead_of_time_abi::ProgramHeader`).
    pub symbol: String,
    /// The executable of the program, without loop functions.
    pub executable: Vec<u8>,
    /// The encoded `pliant_exec::ahead_of_time_abi::ProgramDescription`.
    pub description: Vec<u8>,
    /// The functions of the run-time library in the file's table of imports: those that the code calls, followed by those that only
    /// the run-time library calls.
    pub imports: Vec<Import>,
}

/// A function that creates the contents of an object file besides its machine code. It is called after the code has been generated.
pub type CreateProgramData<'a> =
    &'a (dyn Fn(ObjectCode<'_>) -> Result<ProgramData, CodegenError> + Sync);
