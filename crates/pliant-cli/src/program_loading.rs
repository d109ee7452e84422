//! Opens and compiles programs by path: ONNX models, scripts, and saved executables.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, CompiledModule, IRModule, SourceMap};

use crate::Failure;
use crate::args::BuildArgs;
use crate::shape_option::Axis;
use crate::{declared_symbols, progress};

/// The kinds of files that the commands read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// An ONNX model (extension `.onnx`).
    Onnx,
    /// A script (extension `.py`, or standard input).
    Script,
    /// A saved executable (any other extension).
    Executable,
}

impl FileKind {
    /// The kind of a file by its extension; `-` is a script on standard input.
    pub fn of(path: &Path) -> FileKind {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("onnx") => FileKind::Onnx,
            Some("py") => FileKind::Script,
            _ if path == Path::new("-") => FileKind::Script,
            _ => FileKind::Executable,
        }
    }
}

/// The module of a model or script, with the source texts that error messages about it quote.
pub struct Source {
    /// The module of the model or script.
    pub module: IRModule,
    /// The source texts to which locations in the module refer: lines of a script, or nodes of an
    /// ONNX model.
    pub sources: SourceMap,
}

/// Reads the module of an ONNX model or a script for inspection. The import of a model may
/// specialize its symbols to fixed sizes.
///
/// # Errors
/// If the model or script is invalid (all its problems are reported), or if the path names an executable.
pub fn read(path: &Path, err: &mut dyn Write) -> Result<Source, Failure> {
    read_with_symbols(path, &[], true, err)
}

/// Reads the module of an ONNX model or a script. `declared` contains sizes or ranges of the symbols of an ONNX model. With
/// `allow_specialization`, the import may specialize symbols to fixed sizes.
fn read_with_symbols(
    path: &Path,
    declared: &[Axis],
    allow_specialization: bool,
    err: &mut dyn Write,
) -> Result<Source, Failure> {
    match FileKind::of(path) {
        FileKind::Onnx => {
            let model = open_onnx(path)?;
            let mut sources = SourceMap::new();
            let options = ImportOptions {
                allow_specialization,
                ..declared_symbols::options(&model, declared)?
            };
            let imported = onnx::import_with(&model, &options, &mut sources).map_err(|e| {
                Failure::new(format!(
                    "error: the ONNX model {} cannot be loaded: {e}",
                    path.display()
                ))
            })?;
            for warning in &imported.warnings {
                writeln!(err, "warning: {warning}")?;
            }
            Ok(Source { module: imported.module, sources })
        }
        FileKind::Script if !declared.is_empty() => Err(Failure::new(
            "error: --shape declares sizes for symbols of ONNX models only; a script declares its sizes itself",
        )),
        FileKind::Script => {
            let script = read_script(path)?;
            Ok(Source { module: script.module, sources: script.sources })
        }
        FileKind::Executable => Err(not_a_source(path)),
    }
}

/// Reads the module of an ONNX model or a script that the options compile.
///
/// # Errors
/// As for [`read`], or if the import would have to specialize symbols that the options do not allow to specialize.
pub fn read_source(path: &Path, args: &BuildArgs, err: &mut dyn Write) -> Result<Source, Failure> {
    read_with_symbols(path, &[], args.allow_specialization, err)
}

/// Checks that the path names an ONNX model or a script.
///
/// # Errors
/// If the path names another file, such as an executable.
pub fn check_source(path: &Path) -> Result<(), Failure> {
    if FileKind::of(path) == FileKind::Executable { Err(not_a_source(path)) } else { Ok(()) }
}

fn not_a_source(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(format!("error: {path} is neither an ONNX model (.onnx) nor a script (.py)"))
}

/// Opens an ONNX model.
///
/// # Errors
/// If the file cannot be read, or is not an ONNX model.
pub fn open_onnx(path: &Path) -> Result<onnx::Model, Failure> {
    let failed =
        |e| Failure::new(format!("error: the ONNX model {} cannot be loaded: {e}", path.display()));
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

/// Checks that a file can be written at the path. Leaves an existing file unchanged.
///
/// # Errors
/// If the file cannot be written.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|e| {
        Failure::new(format!("error: cannot write the file {}: {e}", path.display()))
    })?;
    if is_new {
        // It was created only for this check.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Compiles or loads the program at the path.
///
/// # Errors
/// If the program is invalid. All its problems are reported.
pub fn build(
    path: &Path,
    args: &BuildArgs,
    err: &mut dyn Write,
) -> Result<CompiledModule, Failure> {
    build_with_symbols(path, &[], args, err)
}

/// Compiles or loads the program at the path. `declared` contains sizes or ranges of the symbols of an ONNX model.
///
/// # Errors
/// As for [`build`], or if no input has a declared symbol.
pub fn build_with_symbols(
    path: &Path,
    declared: &[Axis],
    args: &BuildArgs,
    err: &mut dyn Write,
) -> Result<CompiledModule, Failure> {
    if path.is_dir() {
        return Err(Failure::new(format!("error: {} is a folder, not a model", path.display())));
    }
    if FileKind::of(path) == FileKind::Executable {
        let loaded = CompiledModule::load(path)?;
        if args.timing {
            write!(err, "{}", loaded.stats().render())?;
        }
        return Ok(loaded);
    }
    let spinner = progress::spinner(format!("compiling {}", path.display()));
    let allow_specialization = args.allow_specialization;
    let Source { module, sources } = read_with_symbols(path, declared, allow_specialization, err)?;
    let compiled = compile(module, &sources, args, err);
    spinner.finish_and_clear();
    compiled
}

/// Compiles a module.
///
/// # Errors
/// The errors of [`pliant::compile`].
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
