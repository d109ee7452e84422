//! Links object code into executable memory, with the just-in-time linker of LLVM (ORC).

use std::ffi::{CStr, CString, c_char};

use indexmap::IndexMap;
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcCreateLLJITBuilder, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile,
    LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCSymbolMapPair, LLVMOrcDisposeMaterializationUnit, LLVMOrcJITDylibDefine,
};
use pliant_exec::abi::LoopFn;

use crate::compilation_unit::CompiledUnit;

/// Executable memory with the code of several compilation units. Dropping it frees the code.
pub(crate) struct LoadedCode(LLVMOrcLLJITRef);

// SAFETY: LLVM's JIT synchronizes its methods, and after `load` nothing but `entry` and `drop` uses it.
unsafe impl Send for LoadedCode {}
// SAFETY: as for Send.
unsafe impl Sync for LoadedCode {}

/// Converts the error value of an LLVM function to a result: `Ok` if it is null, otherwise its message. Frees the error
/// value.
fn check(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is valid, and this call takes ownership of it. The message is a C string until it is disposed.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(text)
    }
}

impl LoadedCode {
    /// Links the object code of compilation units into executable memory.
    ///
    /// # Errors
    /// The message of LLVM's linker, for example if no memory can be mapped.
    pub fn load(units: &[CompiledUnit]) -> Result<LoadedCode, String> {
        let mut jit: LLVMOrcLLJITRef = std::ptr::null_mut();
        // SAFETY: the JIT takes ownership of the builder, and writes its handle if there is no error.
        check(unsafe { LLVMOrcCreateLLJIT(&mut jit, LLVMOrcCreateLLJITBuilder()) })?;
        let code = LoadedCode(jit);
        let mut symbols = IndexMap::new();
        for unit in units {
            symbols.extend(unit.symbols.iter().map(|(name, &address)| (name.clone(), address)));
        }
        code.define(symbols)?;
        for unit in units {
            let (bytes, name) = (&unit.object, c"pliant");
            // SAFETY: the buffer copies the bytes, and the JIT takes ownership of the buffer.
            check(unsafe {
                let object = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                    bytes.as_ptr().cast::<c_char>(),
                    bytes.len(),
                    name.as_ptr(),
                );
                LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), object)
            })?;
        }
        Ok(code)
    }

    /// Defines external symbols, so that the linker resolves each of them to the given address.
    fn define(&self, symbols: IndexMap<String, usize>) -> Result<(), String> {
        if symbols.is_empty() {
            return Ok(());
        }
        let exported = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8;
        let callable = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8;
        let mut pairs = Vec::with_capacity(symbols.len());
        for (name, address) in symbols {
            let name = CString::new(name).map_err(|e| e.to_string())?;
            // SAFETY: the JIT is valid, and it copies the name.
            let name = unsafe { LLVMOrcLLJITMangleAndIntern(self.0, name.as_ptr()) };
            let flags = LLVMJITSymbolFlags { GenericFlags: exported | callable, TargetFlags: 0 };
            let symbol = LLVMJITEvaluatedSymbol { Address: address as u64, Flags: flags };
            pairs.push(LLVMOrcCSymbolMapPair { Name: name, Sym: symbol });
        }
        // SAFETY: the symbols take ownership of the interned names. The library takes ownership of the symbols unless it
        // returns an error.
        unsafe {
            let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            let defined = check(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(self.0), unit));
            if defined.is_err() {
                LLVMOrcDisposeMaterializationUnit(unit);
            }
            defined
        }
    }

    /// Returns the entry point of the loop function with this symbol.
    ///
    /// # Errors
    /// If the symbol does not exist or cannot be linked.
    pub fn entry(&self, symbol: &str) -> Result<LoopFn, String> {
        let symbol = CString::new(symbol).map_err(|e| e.to_string())?;
        let mut address = 0;
        // SAFETY: the JIT is valid.
        check(unsafe { LLVMOrcLLJITLookup(self.0, &mut address, symbol.as_ptr()) })?;
        // SAFETY: `function_prologue` generated this function with the signature of `LoopFn`.
        Ok(unsafe { std::mem::transmute::<usize, LoopFn>(address as usize) })
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // SAFETY: `CompiledKernels` keeps this memory as long as its entry points are reachable.
        drop(check(unsafe { LLVMOrcDisposeLLJIT(self.0) }));
    }
}
