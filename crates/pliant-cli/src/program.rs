//! Programs by path: ONNX models, scripts, and saved executables.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, CompiledModule, IRModule, SourceMap};

use crate::Failure;
use crate::args::BuildArgs;
use crate::shapes::Axis;
use crate::{facts, progress};

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ONNX model.
    Onnx,
    /// A script.
    Script,
    /// A saved executable.
    Executable,
}

impl Kind {
    /// The kind by extension; `-` is a script on standard input.
    pub fn of(path: &Path) -> Kind {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("onnx") => Kind::Onnx,
            Some("py") => Kind::Script,
            _ if path == Path::new("-") => Kind::Script,
            _ => Kind::Executable,
        }
    }
}

/// A module, with the sources for its errors.
pub struct Source {
    /// The module.
    pub module: IRModule,
    /// Source locations of the module: lines of a script, or nodes of an ONNX model.
    pub sources: SourceMap,
}

/// Reads the module of an ONNX model or a script for inspection; models may fix their symbols.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(path: &Path, err: &mut dyn Write) -> Result<Source, Failure> {
    read_with(path, &[], true, err)
}

/// As [`read`], with declarations of the symbols of an ONNX model, and whether it may fix them.
fn read_with(
    path: &Path,
    facts: &[Axis],
    allow_specialization: bool,
    err: &mut dyn Write,
) -> Result<Source, Failure> {
    match Kind::of(path) {
        Kind::Onnx => {
            let model = open_onnx(path)?;
            let mut sources = SourceMap::new();
            let options = ImportOptions { allow_specialization, ..facts::options(&model, facts)? };
            let imported = onnx::import_with(&model, &options, &mut sources)
                .map_err(|e| Failure::new(format!("error: {}: {e}", path.display())))?;
            for warning in &imported.warnings {
                writeln!(err, "warning: {warning}")?;
            }
            Ok(Source { module: imported.module, sources })
        }
        Kind::Script if !facts.is_empty() => {
            Err(Failure::new("error: --shape: facts are for ONNX models; a script states its own"))
        }
        Kind::Script => {
            let script = read_script(path)?;
            Ok(Source { module: script.module, sources: script.sources })
        }
        Kind::Executable => Err(not_a_source(path)),
    }
}

/// Checks that the path names an ONNX model or a script.
///
/// # Errors
/// If it names another file, such as an executable.
pub fn check_source(path: &Path) -> Result<(), Failure> {
    if Kind::of(path) == Kind::Executable { Err(not_a_source(path)) } else { Ok(()) }
}

fn not_a_source(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(format!("error: {path} is neither an ONNX model (.onnx) nor a script (.py)"))
}

/// Opens an ONNX model.
///
/// # Errors
/// If it cannot be read, or is not an ONNX model.
pub fn open_onnx(path: &Path) -> Result<onnx::Model, Failure> {
    let failed = |e| Failure::new(format!("error: {}: {e}", path.display()));
    onnx::Model::open(path, Limits::default()).map_err(failed)
}

fn read_script(path: &Path) -> Result<pliant::Script, Failure> {
    let result = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        pliant::parse("<stdin>", &text)
    } else {
        pliant::parse_file(path)
    };
    result.map_err(|(error, sources)| Failure::of(&error, &sources))
}

/// The compile options from the command line.
///
/// # Errors
/// If the target or mode does not exist.
pub fn options(args: &BuildArgs, err: &mut dyn Write) -> Result<CompileOptions, Failure> {
    let (mut options, notes) = CompileOptions::from_names(&args.target, &args.exec_mode)?;
    for note in notes {
        writeln!(err, "note: {note}")?;
    }
    options.pipeline = Some(args.pipeline.clone().into());
    options.threads = args.threads.map(Into::into);
    options.dump_dir = args.dump_ir.clone();
    Ok(options)
}

/// Checks whether a file can be written at the path, without changing it.
///
/// # Errors
/// If it cannot.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|e| Failure::new(format!("error: cannot write {}: {e}", path.display())))?;
    if is_new {
        // It was created only for this check.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Compiles or loads the program at the path.
///
/// # Errors
/// Everything that is wrong with it.
pub fn build(
    path: &Path,
    args: &BuildArgs,
    err: &mut dyn Write,
) -> Result<CompiledModule, Failure> {
    build_with(path, &[], args, err)
}

/// As [`build`], with declarations of the symbols of an ONNX model.
///
/// # Errors
/// As [`build`]; if no input has a symbol.
pub fn build_with(
    path: &Path,
    facts: &[Axis],
    args: &BuildArgs,
    err: &mut dyn Write,
) -> Result<CompiledModule, Failure> {
    if path.is_dir() {
        return Err(Failure::new(format!("error: {} is a folder", path.display())));
    }
    if Kind::of(path) == Kind::Executable {
        let loaded = CompiledModule::load(path)?;
        if args.timing {
            write!(err, "{}", loaded.stats().render())?;
        }
        return Ok(loaded);
    }
    let waiting = progress::spinner(format!("compiling {}", path.display()));
    let allowed = args.allow_specialization;
    let Source { module, sources } = read_with(path, facts, allowed, err)?;
    let compiled = compile(module, &sources, args, err);
    waiting.finish_and_clear();
    compiled
}

/// Compiles a module.
///
/// # Errors
/// As [`pliant::compile`].
pub fn compile(
    module: IRModule,
    sources: &SourceMap,
    args: &BuildArgs,
    err: &mut dyn Write,
) -> Result<CompiledModule, Failure> {
    let mut options = options(args, err)?;
    options.sources = Some(Arc::new(sources.clone()));
    let compiled = pliant::compile(module, &options).map_err(|e| Failure::of(&e, sources))?;
    if args.timing {
        write!(err, "{}", compiled.stats().render())?;
    }
    Ok(compiled)
}
