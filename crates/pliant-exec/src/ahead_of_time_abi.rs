//! The interface between a program that was compiled ahead of time and the run-time library that runs it.
//!
//! The object file of such a program defines one symbol, a [`ProgramHeader`]. It refers to the program's executable (bytecode and
//! constants, without loop functions), to the machine code of its loop functions, and to a table of imports: the addresses of the
//! functions of the run-time library that the program calls. Kernels and groups of packed functions are symbols, so that a linker
//! omits those that the program does not call. The run-time library finds small functions by name.
//!
//! The run-time library accepts exactly one version, [`PROGRAM_HEADER_VERSION`]. `Program::link` in `pliant-runtime/src/program.rs`
//! checks it, and reports other versions with the error `Incompatible`.

use std::sync::atomic::AtomicUsize;

use serde::{Deserialize, Serialize};

use crate::ExecError;
use crate::abi::LoopFn;

/// The version of the interface between programs that were compiled ahead of time and the run-time library. The library rejects
/// programs with another version.
pub const PROGRAM_HEADER_VERSION: u64 = 1;

/// The header of a program that was compiled ahead of time: the data of the only global symbol in its object file. All fields have
/// 8 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct ProgramHeader {
    /// The version of the interface: [`PROGRAM_HEADER_VERSION`].
    pub version: u64,
    /// The address of the executable, in the file format of executables. A multiple of [`EXECUTABLE_ALIGNMENT`].
    pub executable: *const u8,
    /// The length of the executable in bytes.
    pub executable_len: u64,
    /// The address of the encoded [`ProgramDescription`].
    pub description: *const u8,
    /// The length of the description in bytes.
    pub description_len: u64,
    /// The entry points of the loop functions, in the order of [`ProgramDescription::loop_functions`].
    pub loop_functions: *const LoopFn,
    /// The addresses of the functions of the run-time library that the program calls, in the order of
    /// [`ProgramDescription::imports`]. The linker stores the addresses of symbols, and the run-time library those of functions
    /// that it finds by name.
    pub imports: *const AtomicUsize,
}

/// The alignment in bytes of the executable in an object file. It allows the constants of the executable to be used in place,
/// without a copy.
pub const EXECUTABLE_ALIGNMENT: u64 = 64;

// SAFETY: the header is constant data of a loaded object file, and the table of imports consists of atomics.
unsafe impl Sync for ProgramHeader {}
// SAFETY: as for Sync.
unsafe impl Send for ProgramHeader {}

/// What the machine code of a program provides and requires.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramDescription {
    /// The loop functions, in the order of their entry points in [`ProgramHeader::loop_functions`].
    pub loop_functions: Vec<LoopFunctionDescription>,
    /// The functions of the run-time library that the program calls.
    pub imports: Vec<Import>,
    /// The instruction sets that the code uses, by LLVM's names, such as `avx2`.
    pub cpu_features: Vec<String>,
}

/// A loop function of a program that was compiled ahead of time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoopFunctionDescription {
    /// The name of the loop function.
    pub name: String,
    /// Which parameters the function writes completely before it reads an element of them, in every successful call.
    pub full_writes: Vec<bool>,
}

/// A function of the run-time library that a program calls.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Import {
    /// The entry point of a library kernel.
    Kernel(String),
    /// A native function that the run-time library finds by this name: one of its own, or one that was registered for
    /// `T.call_extern`.
    Function(String),
    /// The function that registers a group of packed functions, given by the name of the group: `extern "C" fn()`. The run-time
    /// library calls it before it links the program; machine code does not call it.
    HostFunctions(String),
}

impl Import {
    /// Returns the linker symbol of the imported function; `None` if the run-time library finds the function by name.
    pub fn symbol(&self) -> Option<String> {
        match self {
            Import::Kernel(name) => Some(kernel_symbol(name)),
            Import::Function(_) => None,
            Import::HostFunctions(group) => Some(format!("pliant_register_{group}_functions")),
        }
    }
}

/// Returns the symbol of the entry point of the library kernel `name`.
pub fn kernel_symbol(name: &str) -> String {
    format!("pliant_kernel_{name}")
}

impl ProgramDescription {
    /// Encodes the description.
    ///
    /// # Errors
    /// `Format` if it cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ExecError> {
        postcard::to_allocvec(self).map_err(|e| {
            ExecError::format(format!(
                "the description of the compiled program cannot be encoded: {e}"
            ))
        })
    }

    /// Decodes a description.
    ///
    /// # Errors
    /// `Damaged` if the bytes are not a description.
    pub fn from_bytes(bytes: &[u8]) -> Result<ProgramDescription, ExecError> {
        postcard::from_bytes(bytes).map_err(|e| {
            ExecError::damaged(format!("the description of the compiled program is damaged: {e}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_round_trip_and_damaged_ones_are_rejected() {
        let description = ProgramDescription {
            loop_functions: vec![LoopFunctionDescription {
                name: "add".into(),
                full_writes: vec![false, true],
            }],
            imports: vec![
                Import::Kernel("matmul".into()),
                Import::Function("pliant_exp_f32".into()),
            ],
            cpu_features: vec!["avx2".into()],
        };
        let bytes = description.to_bytes().unwrap();
        assert_eq!(ProgramDescription::from_bytes(&bytes).unwrap(), description);
        for end in 0..bytes.len() {
            assert!(ProgramDescription::from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        assert_eq!(size_of::<ProgramHeader>(), 56);
    }
}
