//! Ahead-of-time compilation: writes programs with their machine code as object files, libraries and executables, which run
//! without the compiler. `pliant-exec/src/ahead_of_time_abi.rs` defines the interface between an object file and the run-time
//! library (`pliant-runtime`).

mod linking;
mod model_header;
mod program_object;

use std::path::{Path, PathBuf};

use pliant_codegen::ObjectTarget;
use pliant_runtime::c_interface::HEADER;

use crate::compile_options::Target;
use crate::compiled_module::CompiledModule;
use crate::error::Error;

/// The kind of file that [`export_library`] writes.
///
/// # Examples
/// ```
/// use pliant::Emit;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert_eq!(Emit::parse("shared")?, Emit::Shared);
/// assert!(Emit::parse("dll").is_err());
/// assert_eq!(Emit::ALL.map(Emit::name), ["obj", "static", "shared", "exe"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// A relocatable object file, for a linker.
    Object,
    /// A static library: the object file with the run-time library.
    Static,
    /// A shared library with the C interface.
    Shared,
    /// An executable, which runs the program on NumPy files.
    Executable,
}

impl Emit {
    /// All kinds of files that [`export_library`] writes.
    pub const ALL: [Emit; 4] = [Emit::Object, Emit::Static, Emit::Shared, Emit::Executable];

    /// The name of the kind of file: `obj`, `static`, `shared` or `exe`.
    pub fn name(self) -> &'static str {
        match self {
            Emit::Object => "obj",
            Emit::Static => "static",
            Emit::Shared => "shared",
            Emit::Executable => "exe",
        }
    }

    /// Returns the kind of file with this name.
    ///
    /// # Errors
    /// A user error if there is no such kind.
    pub fn parse(name: &str) -> Result<Emit, Error> {
        Emit::ALL.into_iter().find(|emit| emit.name() == name).ok_or_else(|| {
            Error::option(
                format!("'{name}' is not a kind of output file"),
                "use \"obj\", \"static\", \"shared\" or \"exe\"",
            )
        })
    }
}

/// Options of [`export_library`].
///
/// # Examples
/// ```
/// use pliant::{ExportOptions, Target};
///
/// // Code for all CPUs of the level x86-64-v3, with the code generator that this build prefers.
/// let options = ExportOptions {
///     target_triple: Some("x86_64-unknown-linux-gnu".into()),
///     target_cpu: Some("x86-64-v3".into()),
///     ..ExportOptions::default()
/// };
/// assert_eq!(options.code_generator, Target::Auto);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The code generator. [`Target::Auto`] selects LLVM if it is built in, otherwise Cranelift.
    pub code_generator: Target,
    /// The target triple, such as `aarch64-unknown-linux-gnu`. Default: the host.
    pub target_triple: Option<String>,
    /// The name of the CPU, such as `x86-64-v3`. Default: the host CPU, or the baseline of another triple.
    pub target_cpu: Option<String>,
    /// The run-time library to link, `libpliant_runtime.a`. Default: the file that the environment variable
    /// `PLIANT_RUNTIME_LIBRARY` names, or a file of that name beside the running executable.
    pub runtime_library: Option<PathBuf>,
}

/// Writes a program with its machine code to a file. Beside objects and libraries, it also writes the headers for C: `pliant.h`,
/// and the header of the program, whose name is that of the file without the prefix `lib`, with the extension `.h`.
///
/// The C compiler `cc`, or the command in the environment variable `CC`, links shared libraries and executables. `ar` creates
/// static libraries. Object files need neither.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Emit, ExportOptions, compile, export_library};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let program = compile(module, &CompileOptions::default())?;
/// let dir = std::env::temp_dir().join(format!("pliant-doc-object-{}", std::process::id()));
/// std::fs::create_dir_all(&dir)?;
/// export_library(&program, dir.join("double.o"), Emit::Object, &ExportOptions::default())?;
/// let header = std::fs::read_to_string(dir.join("double.h"))?;
/// assert!(header.contains("extern const pliant_program double_program;"));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Unsupported` if the program calls functions that compile at run time, or if the target is unknown; `User` if the file cannot be
/// written, or if the run-time library or the linker cannot be found or fails.
pub fn export_library(
    program: &CompiledModule,
    path: impl AsRef<Path>,
    emit: Emit,
    options: &ExportOptions,
) -> Result<(), Error> {
    let path = path.as_ref();
    let name = program_name(path)?;
    let symbol = format!("{name}_program");
    let triple = foreign_triple(options.target_triple.as_deref(), emit)?;
    let target = ObjectTarget { triple, cpu: options.target_cpu.clone() };
    let headers = [
        (format!("{name}.h"), model_header::text(&name, program.signatures())),
        ("pliant.h".to_string(), HEADER.to_string()),
    ];
    let headers = headers.map(|(file, text)| (path.with_file_name(file), text));
    if emit != Emit::Executable {
        headers.iter().try_for_each(|(file, _)| check_header(file, path))?;
    }
    // Before the compilation, which takes longer.
    let runtime = match emit {
        Emit::Object => None,
        _ => Some(linking::find_runtime(options.runtime_library.as_deref())?),
    };
    let object =
        program_object::compile(program, &symbol, code_generator(options.code_generator), &target)?;
    linking::write(path, emit, &object, &symbol, runtime)?;
    if emit != Emit::Executable {
        headers.iter().try_for_each(|(file, text)| write_file(file, text.as_bytes()))?;
    }
    Ok(())
}

/// Returns the code generator that compiles object code if the options select `target`: in builds with LLVM, LLVM
/// instead of [`Target::Auto`], otherwise `target` itself.
fn code_generator(target: Target) -> Target {
    match target {
        #[cfg(feature = "llvm")]
        Target::Auto => Target::Llvm,
        other => other,
    }
}

/// Returns the name of the program in C, an identifier, from the name of the file: `my-model.v2.so` is `my_model_v2`. The prefix
/// `lib` is removed.
fn program_name(path: &Path) -> Result<String, Error> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.ok_or_else(|| {
        Error::option(
            format!("the output path '{}' does not name a file", path.display()),
            "name a file, such as model.o",
        )
    })?;
    let stem = stem.strip_prefix("lib").filter(|rest| !rest.is_empty()).unwrap_or(&stem);
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // The names of the C interface start with `pliant`.
    let is_reserved = name.starts_with("pliant") || name.starts_with(|c: char| c.is_ascii_digit());
    Ok(if is_reserved { format!("model_{name}") } else { name })
}

/// Returns the target triple if it has another architecture than the host.
///
/// # Errors
/// `Unsupported` if there is no code generator for it, or if the file must be linked without a compiler for it.
fn foreign_triple(triple: Option<&str>, emit: Emit) -> Result<Option<String>, Error> {
    let Some(triple) = triple else { return Ok(None) };
    let parts: Vec<&str> = triple.split('-').collect();
    let is_linux = parts.contains(&"linux") && matches!(parts.last(), Some(&("gnu" | "musl")));
    if !is_linux || !matches!(parts[0], "x86_64" | "aarch64") {
        return Err(Error::unsupported(
            format!("there is no code generator for the target '{triple}'"),
            "the targets are x86_64-unknown-linux-gnu and aarch64-unknown-linux-gnu, also with musl",
        ));
    }
    if parts[0] == std::env::consts::ARCH {
        return Ok(None);
    }
    if emit != Emit::Object && std::env::var_os("CC").is_none() {
        return Err(Error::unsupported(
            format!(
                "linking a program for '{triple}' requires a C compiler for this target, but the environment variable CC is not set"
            ),
            "write an object file instead, or set CC to the path of a C compiler for the target",
        ));
    }
    Ok(Some(triple.to_string()))
}

/// Fails if a header would replace the program itself, or a file that Pliant has not written.
fn check_header(header: &Path, program: &Path) -> Result<(), Error> {
    let conflict = match std::fs::read(header) {
        _ if header == program => true,
        Ok(text) => {
            !(text.starts_with(b"/* The program ") || text.starts_with(b"/* The C interface"))
        }
        Err(_) => false,
    };
    match conflict {
        false => Ok(()),
        true => Err(Error::option(
            format!("the C header {} would replace another file", header.display()),
            "choose another name or directory for the program",
        )),
    }
}

/// Writes a file. An error names the file.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    std::fs::write(path, bytes).map_err(|e| file_error(path, &e))
}

/// Creates the error for a file that cannot be written.
fn file_error(path: &Path, error: &std::io::Error) -> Error {
    Error::option(
        format!("the file {} cannot be written: {error}", path.display()),
        "name a file in a directory that exists and is writable",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_are_identifiers() {
        for (file, name) in [
            ("libencoder.so", "encoder"),
            ("a/my-model.v2.o", "my_model_v2"),
            ("3d.o", "model_3d"),
            ("pliant.so", "model_pliant"),
            ("lib.so", "lib"),
            ("größe\n.o", "gr__e_"),
        ] {
            assert_eq!(program_name(Path::new(file)).expect("a name"), name, "{file}");
        }
        assert!(program_name(Path::new("..")).is_err());
    }
}
