//! The main function of programs that `pliant compile --emit exe` writes.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use pliant_exec::ahead_of_time_abi::ProgramHeader;
use pliant_tensor::{Tensor, format_shape};
use pliant_vm::{RunOptions, Value, VmOptions};

use super::status::guard_value;
use crate::npy;
use crate::program::Program;
use crate::signature::Signature;

/// Runs a program on NumPy files. Returns the exit status: 0, 1 if the run failed, or 2 if an argument is wrong.
///
/// # Safety
/// `program` is the header of a program that stays loaded. `argv` contains `argc` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_main(
    program: *const ProgramHeader,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    let args: Vec<String> = (0..argc.max(0) as usize)
        .map(|i| unsafe { CStr::from_ptr(*argv.add(i)) }.to_string_lossy().into_owned())
        .collect();
    let (name, args) = args.split_first().map_or(("program", &[][..]), |(n, rest)| (n, rest));
    let mut output = Vec::new();
    let result = guard_value(Err(Failure::new("internal error of Pliant")), || {
        // SAFETY: guaranteed by the caller.
        unsafe { run(&*program, name, args, &mut output) }
    });
    // A closed pipe is not an error of the program.
    let _ = std::io::stdout().write_all(&output);
    match result {
        Ok(()) => 0,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "error: {}", failure.message);
            failure.status
        }
    }
}

/// A failure of the program: its message and its exit status.
struct Failure {
    message: String,
    status: c_int,
}

impl Failure {
    fn new(message: impl ToString) -> Failure {
        Failure { message: message.to_string(), status: 1 }
    }

    fn usage(message: impl ToString) -> Failure {
        Failure { message: message.to_string(), status: 2 }
    }
}

/// The command line of the program.
#[derive(Default)]
struct Arguments {
    /// The values of the option `--input`: the name of an input and the file that contains it.
    inputs: Vec<(String, String)>,
    /// The values of the option `--save`: the name of an output and the file to which it is written. `None` stands for the only
    /// output.
    saves: Vec<(Option<String>, String)>,
    threads: Option<usize>,
    repeat: usize,
    help: bool,
}

fn parse(args: &[String]) -> Result<Arguments, Failure> {
    let mut parsed = Arguments { repeat: 1, ..Arguments::default() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if matches!(arg.as_str(), "--help" | "-h") {
            parsed.help = true;
            continue;
        }
        let (option, value) = match arg.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_string())),
            _ => (arg.as_str(), None),
        };
        if !matches!(option, "--input" | "--save" | "--threads" | "--repeat") {
            return Err(Failure::usage(format!(
                "unknown option '{arg}'; --help lists the options"
            )));
        }
        let value = value.or_else(|| rest.next().cloned());
        let value =
            value.ok_or_else(|| Failure::usage(format!("the option {option} needs a value")))?;
        let count = |what: &str| {
            value.parse::<usize>().ok().filter(|&n| n > 0).ok_or_else(|| {
                Failure::usage(format!(
                    "the value of {what} must be a positive integer, not '{value}'"
                ))
            })
        };
        match (option, value.split_once('=')) {
            ("--input", Some((name, file))) => parsed.inputs.push((name.into(), file.into())),
            ("--input", None) => {
                return Err(Failure::usage(format!("--input needs NAME=FILE.npy, not '{value}'")));
            }
            ("--save", Some((name, file))) => parsed.saves.push((Some(name.into()), file.into())),
            ("--save", None) => parsed.saves.push((None, value)),
            ("--threads", _) => {
                let threads = count("--threads")?;
                if threads > pliant_pool::MAX_THREADS {
                    let max = pliant_pool::MAX_THREADS;
                    return Err(Failure::usage(format!(
                        "the value of --threads must be at most {max}, but is {threads}"
                    )));
                }
                parsed.threads = Some(threads);
            }
            _ => parsed.repeat = count("--repeat")?,
        }
    }
    Ok(parsed)
}

/// Runs the program with command line arguments and writes its output to `out`.
///
/// # Safety
/// The condition of [`Program::link`].
unsafe fn run(
    header: &ProgramHeader,
    name: &str,
    args: &[String],
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let parsed = parse(args)?;
    pliant_pool::check_threads().map_err(Failure::usage)?;
    let options = VmOptions {
        team: parsed.threads.and_then(pliant_pool::shared_team),
        ..VmOptions::default()
    };
    // SAFETY: guaranteed by the caller.
    let program = unsafe { Program::link(header, options) }.map_err(Failure::new)?;
    let entry =
        program.entry().ok_or_else(|| Failure::new("the program has no function 'main'"))?;
    if parsed.help {
        let _ = out.write_all(usage(name, entry).as_bytes());
        return Ok(());
    }
    let mut feeds: Vec<(&str, Tensor)> = Vec::new();
    for (i, (input, file)) in parsed.inputs.iter().enumerate() {
        if parsed.inputs[..i].iter().any(|(other, _)| other == input) {
            return Err(Failure::usage(format!("two values are passed for the input '{input}'")));
        }
        feeds.push((input, npy::read(Path::new(file)).map_err(Failure::new)?));
    }
    let mut results = Vec::new();
    for _ in 0..parsed.repeat {
        let start = Instant::now();
        let run = program.run_named(&feeds, &RunOptions::default());
        results = run.map_err(|e| match e {
            crate::RuntimeError::Argument(message) => Failure::usage(message),
            other => Failure::new(other),
        })?;
        if parsed.repeat > 1 {
            let _ = writeln!(out, "{:.3} ms", start.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (i, (name, value)) in results.iter().enumerate() {
        let position = i.to_string();
        let name = if name.is_empty() && results.len() > 1 { &position } else { name };
        let _ = writeln!(out, "{}", description(name, value));
    }
    save(&parsed.saves, &results)
}

/// Returns a line of text for the user that describes a result of the run: its name, and its data type and shape if it is a tensor.
fn description(name: &str, value: &Value) -> String {
    let separator = if name.is_empty() { "" } else { ": " };
    match value.as_tensor() {
        Some(tensor) => {
            format!("{name}{separator}{}{}", tensor.dtype(), format_shape(tensor.shape()))
        }
        None => format!("{name}{separator}{}", value.kind()),
    }
}

/// Writes the results of a run that the option `--save` selects to NumPy files.
fn save(saves: &[(Option<String>, String)], results: &[(String, Value)]) -> Result<(), Failure> {
    for (name, file) in saves {
        let found = match (name, results) {
            (None, [one]) => Some(one),
            (None, _) => {
                return Err(Failure::usage(format!(
                    "the program has {} outputs; select one: --save NAME={file}",
                    results.len()
                )));
            }
            // An output without a name has its position as its name.
            (Some(name), _) => results.iter().enumerate().find_map(|(i, result)| {
                let is_position = result.0.is_empty() && *name == i.to_string();
                (result.0 == *name || is_position).then_some(result)
            }),
        };
        let (output, value) = found.ok_or_else(|| {
            let name = name.as_deref().unwrap_or_default();
            Failure::usage(format!("the program has no output '{name}'"))
        })?;
        let tensor = value
            .as_tensor()
            .ok_or_else(|| Failure::new(format!("the output '{output}' is not a tensor")))?;
        npy::write(Path::new(file), tensor).map_err(Failure::new)?;
    }
    Ok(())
}

/// Returns the help text of the program, which describes its options, inputs and outputs.
fn usage(name: &str, entry: &Signature) -> String {
    let mut text = format!(
        "Usage: {name} --input NAME=FILE.npy ... [--save [NAME=]FILE.npy] [--repeat N] [--threads N]\n\nInputs:\n"
    );
    for (input, info) in entry.feed_names().iter().zip(&entry.inputs) {
        text += &format!("  {input}: {}\n", info.ty);
    }
    if !entry.output_names.is_empty() {
        text += &format!("\nOutputs: {}\n", entry.output_names.join(", "));
    }
    text
}
