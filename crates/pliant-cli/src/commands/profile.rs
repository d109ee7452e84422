//! `pliant profile`: prints the time of a run by function.

use std::io::Write;

use pliant::Model;

use crate::args::ProfileArgs;
use crate::commands::run::signature;
use crate::run_inputs::Feed;
use crate::{Failure, program_loading};

/// Runs `pliant profile`.
pub fn profile(
    args: &ProfileArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let feed = Feed::new(&args.feed)?;
    let compiled = program_loading::build(&args.file, &args.build, err)?;
    let values = feed.values(signature(&compiled, &args.feed.func)?, &feed.only_point()?)?;
    let (model, options) = (Model::new(compiled)?, args.feed.run_options());
    let profile =
        pliant::profile(model.vm(), &args.feed.func, &values, args.repeat.get(), &options)
            .map_err(pliant::Error::from)?;
    Ok(write!(out, "{profile:.*}", args.top.get())?)
}
