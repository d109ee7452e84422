//! Compiles a program to an object file: machine code, constants and bytecode. `pliant-exec/src/ahead_of_time_abi.rs` defines the
//! header and the description of the program.

use pliant_codegen::{
    CodegenError, CodegenOptions, KernelSource, ObjectCode, ObjectTarget, ProgramData,
};
use pliant_exec::Executable;
use pliant_exec::ahead_of_time_abi::{Import, LoopFunctionDescription, ProgramDescription};
use pliant_ir::IRModule;
use pliant_kernel_api::host_function_names::NODE;
use pliant_ops::dynamic_operator_calls::CALL_OPERATOR;
use pliant_runtime::{HOST_FUNCTION_GROUPS, HostFunctionGroup};
use pliant_tir::fully_written_buffers::fully_written_params;

use crate::compile::pass_context;
use crate::compile_options::{CompileOptions, Target};
use crate::compiled_module::CompiledModule;
use crate::error::Error;
use crate::loop_codegen;

/// The library functions that compile at run time. Each entry is the name of the function and a description of what calls it, for
/// error messages.
const COMPILING_FUNCTIONS: [(&str, &str); 2] = [
    (NODE, "ONNX nodes whose conversion needs facts that are known only at run time"),
    (CALL_OPERATOR, "operators on operands of unknown rank or data type"),
];

/// Compiles the loop functions of a program to an object file, which also contains the bytecode and constants. `symbol` is the name
/// of the only global symbol in the file, the header of the program.
///
/// # Errors
/// If the program calls a function that compiles at run time, or the code generator does not support the target or the program.
pub(super) fn compile(
    program: &CompiledModule,
    symbol: &str,
    code_generator: Target,
    target: &ObjectTarget,
) -> Result<Vec<u8>, Error> {
    check_compiling_functions(program.executable())?;
    let backend = loop_codegen::backend(code_generator);
    let loop_functions = loop_codegen::decode(program.executable())?;
    let context = pass_context(&CompileOptions::default());
    let vector_bytes = backend.object_vector_bytes(target)?;
    let lowered = loop_codegen::lower_module(&loop_functions, &context, vector_bytes)?;
    let sources: Vec<KernelSource<'_>> =
        lowered.prim_funcs().map(|(name, func)| (name.clone(), &**func)).collect();
    let create_program_data = |code: ObjectCode<'_>| {
        let executable = executable_bytes(program.executable(), &loop_functions, code)?;
        let description = description(program.executable(), &loop_functions, code);
        let bytes = description.to_bytes().map_err(|e| internal(&e.to_string()))?;
        Ok(ProgramData {
            symbol: symbol.to_string(),
            executable,
            description: bytes,
            imports: description.imports,
        })
    };
    Ok(backend.compile_object(
        &sources,
        target,
        &CodegenOptions::default(),
        &create_program_data,
    )?)
}

/// Fails if the program calls a library function that compiles at run time.
fn check_compiling_functions(executable: &Executable) -> Result<(), Error> {
    let called: Vec<String> = COMPILING_FUNCTIONS
        .iter()
        .filter(|(name, _)| executable.packed_names().any(|called| called == *name))
        .map(|(name, callers)| format!("'{name}', for {callers}"))
        .collect();
    if called.is_empty() {
        return Ok(());
    }
    Err(Error::unsupported(
        format!("the program needs a compiler at run time, because it calls {}", called.join("; ")),
        "programs compiled ahead of time contain no compiler: declare the types of the inputs, or run the model with Pliant",
    ))
}

/// Encodes the executable for an object file: without the source of the loop functions, and with the error messages that their
/// object code uses.
fn executable_bytes(
    executable: &Executable,
    loop_functions: &IRModule,
    code: ObjectCode<'_>,
) -> Result<Vec<u8>, CodegenError> {
    let mut executable = executable.without_loop_functions();
    for function in code.functions {
        let source = loop_functions.get(&function.name).and_then(|f| f.as_prim());
        let Some(source) = source else {
            return Err(internal(&format!("the loop function '{}' is missing", function.name)));
        };
        let (signature, messages) = (&function.signature, &function.messages);
        let info = loop_codegen::loop_function_info(&function.name, source, signature, messages);
        executable.set_loop_func_checks(&function.name, info.checks);
    }
    executable.to_bytes().map_err(|e| internal(&e.to_string()))
}

/// Returns the description that an object file contains for the run-time library: the loop functions, the imports, and the required
/// CPU features.
fn description(
    executable: &Executable,
    loop_functions: &IRModule,
    code: ObjectCode<'_>,
) -> ProgramDescription {
    let is_called = |group: &HostFunctionGroup| executable.packed_names().any(group.contains);
    let groups = HOST_FUNCTION_GROUPS.iter().filter(|group| is_called(group));
    let host_functions = groups.map(|group| Import::HostFunctions(group.name.to_string()));
    let describe = |name: &str| LoopFunctionDescription {
        name: name.to_string(),
        full_writes: loop_functions
            .get(name)
            .and_then(|f| f.as_prim())
            .map(|func| fully_written_params(func))
            .unwrap_or_default(),
    };
    ProgramDescription {
        loop_functions: code.functions.iter().map(|function| describe(&function.name)).collect(),
        imports: code.imports.iter().cloned().chain(host_functions).collect(),
        cpu_features: code.cpu_features.to_vec(),
    }
}

/// Creates the error for data that cannot be encoded.
fn internal(message: &str) -> CodegenError {
    CodegenError::Internal {
        function: "the object file".into(),
        message: message.to_string(),
        ir: String::new(),
    }
}
