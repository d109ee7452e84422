//! `pliant run`: runs a model on inputs from files, or on generated inputs.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use pliant::{CompiledModule, Model, Signature, Value};

use crate::args::RunArgs;
use crate::commands::show::{save, show};
use crate::run_inputs::Feed;
use crate::{Failure, program_loading};

/// Runs `pliant run`.
pub fn run(args: &RunArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    let feed = Feed::new(&args.feed)?;
    let compiled = program_loading::build(&args.file, &args.build, err)?;
    let signature = signature(&compiled, &args.feed.func)?.clone();
    let values = feed.values(&signature, &feed.only_point()?)?;
    let model = Model::new(compiled)?;
    let result = model.run_with(&args.feed.func, &values, &args.feed.run_options())?;
    match (&signature.output_names[..], result.as_tuple()) {
        ([one], _) => {
            write!(out, "{one}: ")?;
            show(&result, "", out)?;
        }
        (names, Some(fields)) if names.len() == fields.len() => {
            for (name, field) in names.iter().zip(fields) {
                write!(out, "{name}: ")?;
                show(field, "", out)?;
            }
        }
        _ => show(&result, "", out)?,
    }
    for text in &args.save {
        let (value, path) = saved_result(text, &signature, &result)?;
        save(value, path)?;
    }
    if let Some(times) = args.repeat {
        repeat(&model, args, &values, times.get(), out)?;
    }
    Ok(())
}

/// Returns the signature of the function with this name.
///
/// # Errors
/// If no function has that name.
pub fn signature<'c>(compiled: &'c CompiledModule, name: &str) -> Result<&'c Signature, Failure> {
    compiled.signature(name).ok_or_else(|| {
        let known: Vec<&str> = compiled.signatures().iter().map(|s| &*s.name).collect();
        let known = known.join(", ");
        Failure::new(format!("error: the model has no function '{name}' (it has: {known})"))
    })
}

/// Parses an argument of `--save`, which has the form `[NAME=]FILE`. Returns the output with that name, or the whole result if
/// there is no name, and the path of the file. An argument is a path without a name if it is the path of an existing file, or
/// starts with `.` or `/`.
fn saved_result<'a>(
    text: &'a str,
    signature: &Signature,
    result: &'a Value,
) -> Result<(&'a Value, &'a Path), Failure> {
    let named = text
        .split_once('=')
        .filter(|(name, _)| !Path::new(text).exists() && !name.starts_with(['.', '/']));
    let Some((name, path)) = named else { return Ok((result, Path::new(text))) };
    let names = &signature.output_names;
    let index = names.iter().position(|n| n == name);
    let value = match (index, result.as_tuple()) {
        (Some(0), _) if names.len() == 1 => Some(result),
        (Some(index), Some(fields)) => fields.get(index),
        _ => None,
    };
    value.map(|value| (value, Path::new(path))).ok_or_else(|| {
        let known = if names.is_empty() { "they have no names".into() } else { names.join(", ") };
        Failure::new(format!(
            "error: --save {text}: there is no output '{name}' (the outputs: {known})"
        ))
    })
}

/// Runs the model several times and prints the times.
fn repeat(
    model: &Model,
    args: &RunArgs,
    values: &[Value],
    times: u32,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let options = args.feed.run_options();
    let mut micros = Vec::with_capacity(times as usize);
    for _ in 0..times {
        let start = Instant::now();
        model.run_with(&args.feed.func, values, &options)?;
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
