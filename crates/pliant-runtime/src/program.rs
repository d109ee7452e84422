//! [`Program`]: a program that was compiled ahead of time, ready to run.
//!
//! [`Program::link`] first checks that the program has the same version of the interface ([`PROGRAM_HEADER_VERSION`]) as this
//! run-time library, and that the CPU has the instruction sets that the code uses. If not, it returns `Incompatible`. It then
//! checks the executable like an executable file, including the version of the format (`pliant-exec/src/file_format.rs`).

use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use libloading::Library;
use pliant_exec::Executable;
use pliant_exec::ahead_of_time_abi::{
    EXECUTABLE_ALIGNMENT, Import, PROGRAM_HEADER_VERSION, ProgramDescription, ProgramHeader,
};
use pliant_machine::cpu_features::missing_features;
use pliant_tensor::{Storage, Tensor};
use pliant_vm::{LoopFuncTable, RunOptions, Value, VirtualMachine, VmOptions};

use crate::error::RuntimeError;
use crate::named_inputs_and_results::{NamedInputError, entry_function};
use crate::signature::Signature;

/// The symbol of the header of the program in a shared library.
pub const SHARED_LIBRARY_SYMBOL: &str = "pliant_exported_program";

/// A program that was compiled ahead of time. Methods can be called from any thread, also at the same time.
#[derive(Clone, Debug)]
pub struct Program {
    vm: VirtualMachine,
    signatures: Arc<[Signature]>,
}

impl Program {
    /// Loads a shared library that Pliant wrote, and links the program in it. The library stays loaded for the rest of the process.
    ///
    /// # Errors
    /// `Incompatible` if the file is not such a library, or else the errors of [`link`](Self::link).
    ///
    /// # Safety
    /// The library contains native code, which the process executes. The caller trusts the file.
    pub unsafe fn open(path: &Path, options: VmOptions) -> Result<Program, RuntimeError> {
        // A path without a slash would be searched for in the system's directories.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let not_a_program = |error: libloading::Error| {
            let path = path.display();
            RuntimeError::Incompatible(format!(
                "the library {path} is not a program of Pliant: {error}"
            ))
        };
        // SAFETY: guaranteed by the caller.
        let library = unsafe { Library::new(&path) }.map_err(not_a_program)?;
        // SAFETY: the symbol is the header of a program.
        let header: *const ProgramHeader = unsafe {
            *library.get::<*const ProgramHeader>(SHARED_LIBRARY_SYMBOL).map_err(not_a_program)?
        };
        std::mem::forget(library);
        // SAFETY: Pliant wrote the object file, which stays loaded.
        unsafe { Program::link(&*header, options) }
    }

    /// Links a program that is part of this process. Its constants are used in place.
    ///
    /// # Errors
    /// `Incompatible` if the CPU lacks instructions that the code uses, or if another version of Pliant compiled the program;
    /// `Executable` if its executable is damaged; `Run` if a function that it calls is not registered.
    ///
    /// # Safety
    /// `header` is the header of a program in an object file that Pliant wrote. The object file stays loaded for the rest of the
    /// process.
    pub unsafe fn link(
        header: &ProgramHeader,
        options: VmOptions,
    ) -> Result<Program, RuntimeError> {
        if header.version != PROGRAM_HEADER_VERSION {
            return Err(RuntimeError::Incompatible(format!(
                "the program has version {} of the interface of compiled programs, but this run-time library has version \
                 {PROGRAM_HEADER_VERSION}; compile the model again",
                header.version
            )));
        }
        // SAFETY: the header describes data of a loaded object file.
        let description =
            unsafe { slice::from_raw_parts(header.description, header.description_len as usize) };
        let description = ProgramDescription::from_bytes(description)?;
        check_cpu(&description)?;
        debug_assert!((header.executable as u64).is_multiple_of(EXECUTABLE_ALIGNMENT));
        // SAFETY: as above. Nothing writes to the data, which is constant.
        let storage = unsafe {
            let len = header.executable_len as usize;
            Storage::from_foreign(header.executable.cast_mut(), len, true, || ())
        };
        let executable = Executable::from_storage(storage)?;
        // SAFETY: guaranteed by the caller.
        unsafe { resolve_imports(header, &description) }?;
        // SAFETY: guaranteed by the caller.
        let table = unsafe { loop_functions(header, &description) };
        let signatures = executable
            .metadata()
            .get("signatures")
            .and_then(|text| serde_json::from_str::<Vec<Signature>>(text).ok())
            .unwrap_or_default();
        let vm = VirtualMachine::with_options(Arc::new(executable), table, options)?;
        Ok(Program { vm, signatures: signatures.into() })
    }

    /// Returns the VM that runs the program.
    pub fn vm(&self) -> &VirtualMachine {
        &self.vm
    }

    /// Returns the signatures of the public functions, with the symbols of the source program.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Returns the signature of the entry function: `main`, or the only public function.
    pub fn entry(&self) -> Option<&Signature> {
        entry_function(&self.signatures)
    }

    /// Runs a function of the program.
    ///
    /// # Errors
    /// `Run`, with a message that names the function, the parameter and the symbol.
    pub fn run(&self, function: &str, args: &[Value]) -> Result<Value, RuntimeError> {
        Ok(self.vm.invoke(function, args)?)
    }

    /// Runs the entry function on inputs given by name. Returns the results with their names in the imported file; the names are
    /// empty if the model was not imported.
    ///
    /// # Errors
    /// `Argument` if an input is missing or unknown, or else the errors of [`run`](Self::run).
    pub fn run_named(
        &self,
        feeds: &[(&str, Tensor)],
        options: &RunOptions,
    ) -> Result<Vec<(String, Value)>, RuntimeError> {
        let entry = self.entry().ok_or_else(|| {
            RuntimeError::Argument(
                "the program has no function 'main'; run a function by its name".into(),
            )
        })?;
        let args = entry.arguments(feeds).map_err(|error| match error {
            NamedInputError::Unknown(name) => RuntimeError::Argument(format!(
                "a value is passed for '{name}', but there is no such input; the inputs are {}",
                entry.feed_names().join(", ")
            )),
            NamedInputError::Missing(name) => RuntimeError::Argument(format!(
                "the value of input '{name}' is missing; pass a tensor for it"
            )),
            NamedInputError::Tensor(error) => RuntimeError::from(error),
        })?;
        Ok(entry.named_results(self.vm.invoke_with(&entry.name, &args, options)?))
    }
}

/// Fails if the CPU lacks instruction sets that the code uses.
fn check_cpu(description: &ProgramDescription) -> Result<(), RuntimeError> {
    let missing = missing_features(description.cpu_features.iter().map(String::as_str));
    if missing.is_empty() {
        return Ok(());
    }
    Err(RuntimeError::Incompatible(format!(
        "the program was compiled for a CPU with the instruction sets {}, which this CPU does not have; compile it for this CPU \
         with --target-cpu",
        missing.join(", ")
    )))
}

/// Stores the addresses of functions that are found by name in the program's table of imports, and registers the host functions
/// of this crate that the program calls.
///
/// # Safety
/// The condition of [`Program::link`].
unsafe fn resolve_imports(
    header: &ProgramHeader,
    description: &ProgramDescription,
) -> Result<(), RuntimeError> {
    let mut missing = Vec::new();
    // SAFETY: guaranteed by the caller.
    let table = unsafe { slice::from_raw_parts(header.imports, description.imports.len()) };
    for (entry, import) in table.iter().zip(&description.imports) {
        match import {
            Import::Kernel(_) => {}
            Import::HostFunctions(_) => {
                let register = entry.load(Ordering::Relaxed);
                // SAFETY: the linker has stored the address of a function that registers host functions.
                unsafe { std::mem::transmute::<usize, extern "C" fn()>(register)() };
            }
            Import::Function(name) => match pliant_kernels::extern_fn(name) {
                // Programs that are linked at the same time store the same addresses.
                Some(function) => entry.store(function.address, Ordering::Relaxed),
                None => missing.push(&**name),
            },
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(RuntimeError::Incompatible(format!(
        "the program calls native functions that are not registered: {}; register them before the program is loaded",
        missing.join(", ")
    )))
}

/// Creates the VM's table of loop functions, with the machine code of the program.
///
/// # Safety
/// The condition of [`Program::link`].
unsafe fn loop_functions(
    header: &ProgramHeader,
    description: &ProgramDescription,
) -> LoopFuncTable {
    let mut table = LoopFuncTable::new();
    let count = description.loop_functions.len();
    // SAFETY: guaranteed by the caller.
    let entries = unsafe { slice::from_raw_parts(header.loop_functions, count) };
    for (function, &entry) in description.loop_functions.iter().zip(entries) {
        table.set_full_writes(&*function.name, &*function.full_writes);
        // SAFETY: the code generator created the entry point for the parameters that the executable describes, and the object
        // file stays loaded.
        unsafe { table.insert(&*function.name, entry) };
    }
    table
}
