//! `pliant explore`: writes an HTML page that shows how a model was compiled and where a run spends its time.

use std::io::Write;
use std::sync::Arc;

use pliant::Exploration;
use pliant_runtime::Dim;

use crate::args::ExploreArgs;
use crate::commands::run::signature;
use crate::run_inputs::Feed;
use crate::{Failure, program_loading};

/// Runs `pliant explore`.
pub fn explore(
    args: &ExploreArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    program_loading::check_writable(&args.output)?;
    let feed = Feed::new(&args.feed)?;
    let source = program_loading::read_source(&args.file, &args.build, err)?;
    let mut options = program_loading::options(&args.build, err)?;
    options.sources = Some(Arc::new(source.sources.clone()));
    let failed = |e: pliant::Error| Failure::of(&e, &source.sources);
    let mut exploration = Exploration::compile(source.module, &options).map_err(failed)?;
    let is_requested = !args.feed.shapes.is_empty() || !args.feed.inputs.is_empty();
    // A program without the function that is run by default can be shown without a run.
    if let Some(function) = exploration.compiled().signature(&args.feed.func).cloned() {
        let dims = function.inputs.iter().flat_map(|input| input.shape.iter().flatten());
        let has_symbols = dims.into_iter().any(|dim| matches!(dim, Dim::Symbolic(_)));
        if is_requested || !has_symbols {
            let values = feed.values(&function, &feed.only_point()?)?;
            let run_options = args.feed.run_options();
            exploration.profile(&args.feed.func, &values, args.repeat.get(), &run_options)?;
        }
    } else if is_requested {
        signature(exploration.compiled(), &args.feed.func)?;
    }
    let title = args.file.file_name().map_or("model".into(), |name| name.to_string_lossy());
    std::fs::write(&args.output, exploration.page(&title)).map_err(|e| {
        Failure::new(format!("error: cannot write the file {}: {e}", args.output.display()))
    })?;
    Ok(writeln!(out, "{}", args.output.display())?)
}
