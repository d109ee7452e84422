//! Writes an object file, or links it with the run-time library to a library or an executable.

use std::path::{Path, PathBuf};
use std::process::Command;

use pliant_runtime::c_interface::FUNCTIONS;

use super::{Emit, file_error, write_file};
use crate::error::Error;

/// The environment variable that names the run-time library.
const RUNTIME_VARIABLE: &str = "PLIANT_RUNTIME_LIBRARY";
/// The file name of the run-time library.
const RUNTIME_FILE: &str = "libpliant_runtime.a";
/// The symbol by which [`pliant_runtime::Program`] finds the program in a shared library.
const SHARED_SYMBOL: &str = pliant_runtime::SHARED_LIBRARY_SYMBOL;
/// The linker options for the system libraries that the run-time library uses.
const SYSTEM_LIBRARIES: [&str; 5] = ["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc"];

/// Writes the object file, library or executable at `path`. `symbol` is the symbol of the program's header in the object file.
/// `runtime` is the run-time library, with which all kinds of files except object files are linked; `None` for object files.
///
/// # Errors
/// If the file cannot be written, or if the linker cannot be found or fails.
pub(super) fn write(
    path: &Path,
    emit: Emit,
    object: &[u8],
    symbol: &str,
    runtime: Option<PathBuf>,
) -> Result<(), Error> {
    let Some(runtime) = runtime else { return write_file(path, object) };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // In the directory of the result, so that it can be renamed.
    let scratch = tempfile::Builder::new().prefix(".pliant-link-").tempdir_in(directory);
    let scratch = scratch.map_err(|e| file_error(path, &e))?;
    let file = |name: &str| scratch.path().join(name);
    let (object_file, linked) = (file("program.o"), file("linked"));
    write_file(&object_file, object)?;
    match emit {
        Emit::Object => {}
        Emit::Static => {
            std::fs::copy(&runtime, &linked).map_err(|e| file_error(&linked, &e))?;
            let mut command = Command::new("ar");
            // Without plugins: one that cannot read the members would drop their symbols.
            run(command.args(["--plugin=/dev/null", "-qs"]).arg(&linked).arg(&object_file))?;
        }
        Emit::Shared => {
            let (exports, version_script) = (exports(symbol), file("exports"));
            write_file(&version_script, exports.as_bytes())?;
            let mut command = compiler();
            command.args(["-shared", "-Wl,--gc-sections", "-Wl,--strip-debug", "-Wl,-z,defs"]);
            command.args(FUNCTIONS.iter().map(|function| format!("-Wl,-u,{function}")));
            command.arg(format!("-Wl,--defsym={SHARED_SYMBOL}={symbol}"));
            command.args(["-Xlinker", "--version-script", "-Xlinker"]).arg(&version_script);
            command.arg("-o").args([&linked, &object_file, &runtime]).args(SYSTEM_LIBRARIES);
            run(&mut command)?;
        }
        Emit::Executable => {
            let main = file("main.c");
            write_file(&main, main_function(symbol).as_bytes())?;
            let mut command = compiler();
            command.args(["-Wl,--gc-sections", "-Wl,--strip-debug"]);
            command.arg("-o").args([&linked, &main, &object_file, &runtime]);
            run(command.args(SYSTEM_LIBRARIES))?;
        }
    }
    std::fs::rename(&linked, path).map_err(|e| file_error(path, &e))
}

/// Returns the command of the C compiler, which links libraries and executables: the environment variable `CC`, or `cc`.
fn compiler() -> Command {
    let selected = std::env::var("CC").unwrap_or_default();
    let mut words = selected.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// Returns the linker script with the symbols that a shared library exports.
fn exports(symbol: &str) -> String {
    format!("{{ global: {symbol}; {SHARED_SYMBOL}; {}; local: *; }};\n", FUNCTIONS.join("; "))
}

/// Returns the main function of an executable, in C.
fn main_function(symbol: &str) -> String {
    format!(
        "extern const char {symbol};\nint pliant_main(const void *, int, char **);\n\
         int main(int argc, char **argv) {{ return pliant_main(&{symbol}, argc, argv); }}\n"
    )
}

/// Runs a command of the linker.
///
/// # Errors
/// If the command cannot be started or fails. The error contains its messages.
fn run(command: &mut Command) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| {
        Error::option(
            format!("the command '{name}' cannot be run: {e}"),
            "install a C compiler and binutils, or set the environment variable CC; `--emit obj` needs neither",
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: String = text.lines().take(20).map(|line| format!("\n{line}")).collect();
    Err(Error::option(
        format!("the command '{name}' failed ({}){lines}", output.status),
        "its messages state the reason; `--emit obj` writes the object file without linking",
    ))
}

/// Returns the path of the run-time library.
///
/// # Errors
/// If the library does not exist.
pub(super) fn find_runtime(selected: Option<&Path>) -> Result<PathBuf, Error> {
    let from_variable =
        || std::env::var_os(RUNTIME_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(path) = selected.map(Path::to_path_buf).or_else(from_variable) {
        let help = format!("name the file {RUNTIME_FILE} of this version of Pliant");
        return match path.is_file() {
            true => Ok(path),
            false => Err(Error::option(
                format!("the run-time library {} does not exist", path.display()),
                help,
            )),
        };
    }
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name(RUNTIME_FILE));
    beside.filter(|path| path.is_file()).ok_or_else(|| {
        Error::option(
            format!("the folder of the Pliant executable does not contain the run-time library {RUNTIME_FILE}"),
            format!(
                "build it with `cargo rustc --release --package pliant-runtime --crate-type staticlib`, and set the environment \
                 variable {RUNTIME_VARIABLE} to the path of {RUNTIME_FILE}; `--emit obj` does not need it"
            ),
        )
    })
}
