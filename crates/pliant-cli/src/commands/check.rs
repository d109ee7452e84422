//! `pliant check`: reports everything that prevents models and scripts from being compiled.

use std::io::Write;
use std::path::Path;

use pliant::onnx::{self, ImportOptions};

use crate::Failure;
use crate::args::CheckArgs;
use crate::program_loading::{self, FileKind};

/// Runs `pliant check`. The reports of ONNX models are printed to `out`, even if they contain
/// problems.
pub fn check(args: &CheckArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut texts = Vec::new();
    for file in &args.files {
        let result = match FileKind::of(file) {
            FileKind::Onnx => check_onnx(args, file, out),
            _ => check_script(file, out),
        };
        if let Err(failure) = result {
            texts.push(failure.text);
        }
    }
    if texts.is_empty() { Ok(()) } else { Err(Failure::new(texts.join("\n"))) }
}

fn check_script(file: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let source = program_loading::read(file, &mut std::io::sink())?;
    pliant::verify(&source.module).map_err(|e| Failure::of(&e, &source.sources))?;
    Ok(writeln!(out, "{}: ok", file.display())?)
}

fn check_onnx(args: &CheckArgs, file: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let model = program_loading::open_onnx(file)?;
    let CheckArgs { allow_specialization, strict, .. } = *args;
    let options = ImportOptions { allow_specialization, strict, ..ImportOptions::default() };
    let report = onnx::check(&model, &options);
    write!(out, "{}: {report}", file.display())?;
    if let Some(dir) = &args.reduce {
        // The files of several models are kept apart, since their names may be equal.
        let stem = file.file_stem().map(Path::new).unwrap_or(Path::new(""));
        let dir = if args.files.len() > 1 { dir.join(stem) } else { dir.clone() };
        let written = report.write_reduced(&dir).map_err(|e| {
            Failure::new(format!(
                "error: cannot write the reduced models to {}: {e}",
                dir.display()
            ))
        })?;
        for path in &written {
            writeln!(out, "wrote {}", path.display())?;
        }
    }
    match report.findings.len() {
        0 => Ok(()),
        1 => Err(Failure::new(format!("error: the check of {} found 1 problem", file.display()))),
        n => {
            Err(Failure::new(format!("error: the check of {} found {n} problems", file.display())))
        }
    }
}
