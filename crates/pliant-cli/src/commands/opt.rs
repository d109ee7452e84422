//! `pliant opt`: runs single passes on a module.

use std::io::Write;
use std::sync::Arc;

use pliant::{CompileOptions, Error, PassLevel, PrintIr, Timing};

use crate::Failure;
use crate::args::OptArgs;
use crate::program_loading;

/// Runs `pliant opt`.
pub fn opt(args: &OptArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    if args.list {
        return list(out);
    }
    if args.list_rules {
        return list_rules(out);
    }
    let Some(file) = &args.file else {
        return Err(Failure::new(
            "error: the command line names no model: pass the path of an ONNX model or a script",
        ));
    };
    let source = program_loading::read(file, err)?;
    let failed = |e: Error| Failure::of(&e, &source.sources);
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
    let module = pliant::transform(source.module, &args.passes, &ctx).map_err(failed)?;
    let text = pliant::print(&module);
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|e| {
            Failure::new(format!("error: cannot write the file {}: {e}", path.display()))
        })?,
        None => out.write_all(text.as_bytes())?,
    }
    if args.timing {
        write!(err, "{}", timing.render())?;
    }
    Ok(())
}

fn list_rules(out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "Offload rules, in the order in which they are tried:")?;
    for rule in pliant::offload_rules::rules() {
        let (name, pass, doc) = (&rule.name, rule.stage.pass(), &rule.doc);
        writeln!(out, "  {name:<22}{pass:<20}{doc}")?;
        if let Some(kernel) = &rule.kernel {
            writeln!(out, "{:44}kernel {kernel}", "")?;
        }
    }
    Ok(())
}

fn list(out: &mut dyn Write) -> Result<(), Failure> {
    let headings = [
        (PassLevel::Graph, "Passes on graph functions"),
        (PassLevel::Loop, "Passes on loop functions"),
        (PassLevel::Pipeline, "Pipelines"),
        (PassLevel::User, "User-defined passes"),
    ];
    let passes = pliant::pass_list();
    for (level, heading) in headings {
        let mut list = passes.iter().filter(|p| p.level == level).peekable();
        if list.peek().is_some() {
            writeln!(out, "{heading}:")?;
        }
        for entry in list {
            let phase = entry.phase.map(|phase| format!("{phase:<14}")).unwrap_or_default();
            writeln!(out, "  {:<31}{phase}{}", entry.name, entry.doc)?;
        }
    }
    Ok(())
}
