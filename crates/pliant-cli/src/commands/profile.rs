//! `pliant profile`: where the time of a run is spent.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pliant::{CallEvent, InstrumentAction, Model};

use crate::args::ProfileArgs;
use crate::commands::run::signature;
use crate::inputs::Feed;
use crate::{Failure, program};

/// The number of calls of a function, and their total time.
#[derive(Clone, Copy, Default)]
struct Spent {
    calls: u64,
    time: Duration,
}

/// The calls of a run, by callee.
#[derive(Default)]
struct Ledger {
    spent: HashMap<String, Spent>,
    /// The start times of the calls in progress.
    open: Vec<Instant>,
}

impl Ledger {
    fn note(&mut self, event: &CallEvent<'_>, functions: &[String]) {
        // The calls inside a bytecode function are recorded separately, and no event reports
        // its return.
        if functions.iter().any(|f| f == event.callee) {
            return;
        }
        if event.before {
            return self.open.push(Instant::now());
        }
        let Some(start) = self.open.pop() else { return };
        let spent = self.spent.entry(event.callee.to_owned()).or_default();
        spent.calls += 1;
        spent.time += start.elapsed();
    }
}

/// Runs the command.
pub fn profile(
    args: &ProfileArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let feed = Feed::new(&args.feed)?;
    let compiled = program::build(&args.file, &args.build, err)?;
    let values = feed.values(signature(&compiled, &args.feed.func)?, &feed.only_point()?)?;
    let functions: Vec<String> =
        compiled.executable().vm_functions().map(|f| f.name.clone()).collect();
    let model = Model::new(compiled)?;
    let options = args.feed.run_options();
    model.run_with(&args.feed.func, &values, &options)?;
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let noted = ledger.clone();
    model.vm().set_instrument(Some(Arc::new(move |event: &CallEvent<'_>| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).note(event, &functions);
        InstrumentAction::Continue
    })));
    let start = Instant::now();
    for _ in 0..args.repeat.get() {
        model.run_with(&args.feed.func, &values, &options)?;
    }
    let total = start.elapsed();
    model.vm().set_instrument(None);
    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let mut spent: Vec<(&String, &Spent)> = ledger.spent.iter().collect();
    spent.sort_by(|a, b| b.1.time.cmp(&a.1.time).then(a.0.cmp(b.0)));
    table(&spent, args, total, out)
}

fn table(
    spent: &[(&String, &Spent)],
    args: &ProfileArgs,
    total: Duration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let runs = f64::from(args.repeat.get());
    let whole = total.as_secs_f64().max(1e-12);
    writeln!(out, "{} runs, {:.4} ms each", args.repeat, whole * 1e3 / runs)?;
    writeln!(
        out,
        "{:>8}  {:>9}  {:>10}  {:>10}  kernel",
        "share", "calls/run", "ms/run", "us/call"
    )?;
    let line = |out: &mut dyn Write, name: &str, s: Spent| {
        let seconds = s.time.as_secs_f64();
        writeln!(
            out,
            "{:>7.1}%  {:>9.1}  {:>10.4}  {:>10.2}  {name}",
            seconds / whole * 100.0,
            s.calls as f64 / runs,
            seconds * 1e3 / runs,
            seconds * 1e6 / (s.calls as f64).max(1.0),
        )
    };
    let shown = args.top.get();
    for (name, s) in spent.iter().take(shown) {
        line(out, name, **s)?;
    }
    let sum = |list: &[(&String, &Spent)]| {
        list.iter().fold(Spent::default(), |a, (_, s)| Spent {
            calls: a.calls + s.calls,
            time: a.time + s.time,
        })
    };
    if spent.len() > shown {
        let rest = &spent[shown..];
        line(out, &format!("{} others", rest.len()), sum(rest))?;
    }
    let inside = sum(spent).time;
    let outside = Spent { calls: 0, time: total.saturating_sub(inside) };
    Ok(line(out, "the machine itself, and this watching", outside)?)
}
