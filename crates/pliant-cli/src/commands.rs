//! The commands.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use pliant::{
    CompileOptions, CompiledModule, Error, IRModule, Model, PassLevel, PrintIr, Script, SourceMap,
    Timing, Value,
};

use crate::args::{BuildArgs, CheckArgs, CompileArgs, DumpArgs, OptArgs, RunArgs};
use crate::{Failure, inputs, npy};

/// The script of a file, or of standard input.
fn read_script(path: &Path) -> Result<Script, Failure> {
    let result = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        pliant::parse("<stdin>", &text)
    } else {
        pliant::parse_file(path)
    };
    result.map_err(|(error, sources)| Failure::of(&error, &sources))
}

/// `pliant opt`.
pub fn opt(args: &OptArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    if args.list {
        return list(out);
    }
    let Some(file) = &args.file else { return Err(Failure::new("error: no script was given")) };
    let script = read_script(file)?;
    let failed = |e: Error| Failure::of(&e, &script.sources);
    let timing = Arc::new(Timing::new());
    let mut options = CompileOptions { verify: Some(!args.no_verify), ..Default::default() };
    options.instruments.push(timing.clone());
    if args.print_after_all {
        options.instruments.push(Arc::new(PrintIr {
            before: false,
            after: true,
            only: Vec::new(),
        }));
    }
    let ctx = pliant::pass_context(&options);
    let module = pliant::transform(script.module, &args.passes, &ctx).map_err(failed)?;
    let text = pliant::print(&module);
    match &args.output {
        Some(path) => std::fs::write(path, text)
            .map_err(|e| Failure::new(format!("error: cannot write {}: {e}", path.display())))?,
        None => out.write_all(text.as_bytes())?,
    }
    if args.timing {
        write!(err, "{}", timing.render())?;
    }
    Ok(())
}

fn list(out: &mut dyn Write) -> Result<(), Failure> {
    let headings = [
        (PassLevel::Graph, "Passes on graph functions"),
        (PassLevel::Loop, "Passes on loop functions"),
        (PassLevel::Pipeline, "Pipelines"),
        (PassLevel::User, "Passes of this program"),
    ];
    let passes = pliant::pass_list();
    for (level, heading) in headings {
        let mut list = passes.iter().filter(|p| p.level == level).peekable();
        if list.peek().is_some() {
            writeln!(out, "{heading}:")?;
        }
        for entry in list {
            writeln!(out, "  {:<24}{}", entry.name, entry.doc)?;
        }
    }
    Ok(())
}

/// `pliant check`.
pub fn check(args: &CheckArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut texts = Vec::new();
    for file in &args.files {
        let result = read_script(file).and_then(|script| {
            pliant::verify(&script.module).map_err(|e| Failure::of(&e, &script.sources))
        });
        match result {
            Ok(()) => writeln!(out, "{}: ok", file.display())?,
            Err(failure) => texts.push(failure.text),
        }
    }
    if texts.is_empty() { Ok(()) } else { Err(Failure::new(texts.join("\n"))) }
}

fn options(args: &BuildArgs, err: &mut dyn Write) -> Result<CompileOptions, Failure> {
    let (mut options, notes) = CompileOptions::from_names(&args.target, &args.exec_mode)?;
    for note in notes {
        writeln!(err, "note: {note}")?;
    }
    options.pipeline = Some(args.pipeline.clone().into());
    options.threads = args.threads.map(Into::into);
    options.dump_dir = args.dump_ir.clone();
    Ok(options)
}

fn build(
    module: IRModule,
    sources: &SourceMap,
    args: &BuildArgs,
    err: &mut dyn Write,
) -> Result<CompiledModule, Failure> {
    let options = options(args, err)?;
    let compiled = pliant::compile(module, &options).map_err(|e| Failure::of(&e, sources))?;
    if args.timing {
        write!(err, "{}", compiled.stats().render())?;
    }
    Ok(compiled)
}

/// `pliant compile`.
pub fn compile(
    args: &CompileArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let script = read_script(&args.file)?;
    let compiled = build(script.module, &script.sources, &args.build, err)?;
    compiled.save(&args.output)?;
    let stats = compiled.stats();
    writeln!(
        out,
        "{}: {} functions, {} kernels",
        args.output.display(),
        stats.functions,
        stats.kernels
    )?;
    Ok(())
}

/// `pliant run`.
pub fn run(args: &RunArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    let is_script = args.file.extension().is_some_and(|e| e == "py") || args.file == Path::new("-");
    let compiled = if is_script {
        let script = read_script(&args.file)?;
        build(script.module, &script.sources, &args.build, err)?
    } else {
        CompiledModule::load(&args.file)?
    };
    let Some(signature) = compiled.signature(&args.func).cloned() else {
        let known: Vec<&str> = compiled.signatures().iter().map(|s| &*s.name).collect();
        return Err(Failure::new(format!(
            "error: {} has no function '{}' (it has: {})",
            args.file.display(),
            args.func,
            known.join(", ")
        )));
    };
    let values = inputs::gather(args, &signature)?;
    let model = Model::new(compiled)?;
    let result = model.run(&args.func, &values)?;
    show(&result, "", out)?;
    if let Some(path) = &args.save {
        save(&result, path)?;
    }
    if let Some(times) = args.repeat {
        repeat(&model, args, &values, times.get(), out)?;
    }
    Ok(())
}

fn repeat(
    model: &Model,
    args: &RunArgs,
    values: &[Value],
    times: u32,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut micros = Vec::with_capacity(times as usize);
    for _ in 0..times {
        let start = Instant::now();
        model.run(&args.func, values)?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    micros.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (micros.first(), micros.last()) {
        let median = micros[micros.len() / 2];
        writeln!(
            out,
            "{times} runs: median {median:.1} us, least {least:.1} us, most {most:.1} us"
        )?;
    }
    Ok(())
}

/// Prints a value: small tensors whole, large ones by shape and first elements.
fn show(value: &Value, indent: &str, out: &mut dyn Write) -> Result<(), Failure> {
    match value {
        Value::Tensor(t) => {
            let values = t.to_f64_vec().map_err(|e| Failure::new(format!("error: {e}")))?;
            let shown: Vec<String> = values.iter().take(16).map(f64::to_string).collect();
            let rest = if values.len() > 16 { ", ..." } else { "" };
            writeln!(out, "{indent}{} {:?} [{}{rest}]", t.dtype(), t.shape(), shown.join(", "))?;
        }
        Value::Shape(dims) => writeln!(out, "{indent}shape {dims:?}")?,
        _ => match value.as_tuple() {
            Some(fields) => {
                writeln!(out, "{indent}tuple of {}", fields.len())?;
                for field in fields {
                    show(field, &format!("{indent}  "), out)?;
                }
            }
            None => writeln!(out, "{indent}{value:?}")?,
        },
    }
    Ok(())
}

fn save(value: &Value, path: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("error: {why}"));
    if let Some(fields) = value.as_tuple() {
        for (i, field) in fields.iter().enumerate() {
            save(field, &numbered(path, i))?;
        }
        return Ok(());
    }
    match value.as_tensor() {
        Some(tensor) => npy::write(path, tensor).map_err(failed),
        None => Err(failed(format!("a result that is {} cannot be saved", value.kind()))),
    }
}

/// `out.npy` as `out.0.npy`.
fn numbered(path: &Path, index: usize) -> PathBuf {
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned());
    path.with_extension(format!("{index}.{}", extension.as_deref().unwrap_or("npy")))
}

/// `pliant dump`.
pub fn dump(args: &DumpArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let script = read_script(&args.file)?;
    let failed = |e: Error| Failure::of(&e, &script.sources);
    let text = pliant::stage_text(script.module.clone(), &args.stage).map_err(failed)?;
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(())
}
