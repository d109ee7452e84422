//! `pliant hwbench`: measures the peak rates of this machine, which bound the time of any program
//! from below.

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

use pliant::hardware::{self, Isa, Machine, Team};

use crate::Failure;
use crate::args::HwbenchArgs;

/// Runs `pliant hwbench`.
pub fn hwbench(args: &HwbenchArgs, out: &mut dyn Write) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        return Err(Failure::new(
            "error: the measurements of a debug build are meaningless\nhelp: build with --release",
        ));
    }
    hardware::check_variables().map_err(|e| Failure::new(format!("error: {e}")))?;
    let max_threads = args.threads.map_or_else(hardware::default_threads, NonZeroUsize::get);
    if max_threads > hardware::MAX_THREADS {
        let limit = hardware::MAX_THREADS;
        return Err(Failure::new(format!(
            "error: --threads must be at most {limit}, but is {max_threads}"
        )));
    }
    let counts = thread_counts(max_threads);
    description(out)?;
    peaks(&counts, out)?;
    bandwidths(&counts, out)?;
    latencies(&counts, out)
}

/// Returns the numbers of threads to measure with: the powers of two below the maximum, and the
/// maximum.
fn thread_counts(max_threads: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|&n| n < max_threads).collect();
    counts.push(max_threads);
    counts
}

/// Prints the machine description: the caches, instructions and rates from which kernels and
/// schedules derive their heuristics.
fn description(out: &mut dyn Write) -> Result<(), Failure> {
    let Machine { name, isa, caches, cores, rates } = Machine::host();
    let kib = |bytes: usize| bytes >> 10;
    writeln!(out, "machine                 {name}, {cores} cores, {}", isa.name())?;
    writeln!(
        out,
        "  caches, KiB           {} + {} + {}",
        kib(caches.l1),
        kib(caches.l2),
        kib(caches.l3)
    )?;
    Ok(writeln!(
        out,
        "  assumed rate          {:.1} GFLOP/s of products",
        rates.multiply_adds as f64 * 2e-3
    )?)
}

/// Prints one line of a table: a label, then a cell for each number of threads.
fn line(out: &mut dyn Write, name: &str, cells: &[String]) -> Result<(), Failure> {
    write!(out, "{name:<24}")?;
    for cell in cells {
        write!(out, "{cell:>14}")?;
    }
    Ok(writeln!(out)?)
}

fn heading(out: &mut dyn Write, name: &str, counts: &[usize]) -> Result<(), Failure> {
    let cells: Vec<String> =
        counts.iter().map(|n| format!("{n} thread{}", if *n == 1 { "" } else { "s" })).collect();
    line(out, name, &cells)
}

fn peaks(counts: &[usize], out: &mut dyn Write) -> Result<(), Failure> {
    heading(out, "float32 peak, GFLOP/s", counts)?;
    let selected = hardware::isa();
    // Tile registers do not support float32, for which AMX machines use AVX-512.
    let vectors = Isa::ALL.into_iter().filter(|&isa| isa != Isa::Amx && isa.is_available());
    for isa in vectors {
        let cells: Vec<String> = counts
            .iter()
            .filter_map(|&n| hardware::peak_flops(isa, n))
            .map(|flops| format!("{:.1}", flops / 1e9))
            .collect();
        let used = if isa.vectors() == selected.vectors() { " (in use)" } else { "" };
        line(out, &format!("  {}{used}", isa.name()), &cells)?;
    }
    let tiles: Vec<[f64; 2]> = counts.iter().filter_map(|&n| hardware::tile_peaks(n)).collect();
    for (kind, name) in ["bfloat16", "int8"].into_iter().enumerate() {
        let cells: Vec<String> = tiles.iter().map(|t| format!("{:.1}", t[kind] / 1e9)).collect();
        if !cells.is_empty() {
            line(out, &format!("  amx, {name}"), &cells)?;
        }
    }
    Ok(())
}

fn bandwidths(counts: &[usize], out: &mut dyn Write) -> Result<(), Failure> {
    heading(out, "reading, GB/s", counts)?;
    for (level, bytes) in hardware::LEVELS {
        // The L1 and L2 caches are per core.
        let per_thread = level == "L1" || level == "L2";
        let cells: Vec<String> = counts
            .iter()
            .map(|&n| hardware::read_bandwidth(if per_thread { bytes * n } else { bytes }, n))
            .map(|rate| format!("{:.1}", rate / 1e9))
            .collect();
        let size = bytes >> 10;
        line(
            out,
            &format!("  {level}, {size} KiB{}", if per_thread { " each" } else { "" }),
            &cells,
        )?;
    }
    Ok(())
}

fn latencies(counts: &[usize], out: &mut dyn Write) -> Result<(), Failure> {
    let counts: Vec<usize> = counts.iter().copied().filter(|&n| n > 1).collect();
    if counts.is_empty() {
        return Ok(());
    }
    let micros = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e6);
    let teams: Vec<Team> = counts.iter().map(|&n| Team::new(n)).collect();
    heading(out, "worker team, us", &counts)?;
    let fork_join = |team| hardware::fork_join(team).map_or_else(|| "never".into(), micros);
    let fork_joins: Vec<String> = teams.iter().map(fork_join).collect();
    line(out, "  loop, workers awake", &fork_joins)?;
    let wake_ups: Vec<_> = teams.iter().filter_map(hardware::wake_up).collect();
    let medians: Vec<String> = wake_ups.iter().map(|w| micros(w.0)).collect();
    line(out, "  wake-up, median", &medians)?;
    let p99: Vec<String> = wake_ups.iter().map(|w| micros(w.1)).collect();
    line(out, "  wake-up, 99 of 100", &p99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_end_with_the_maximum() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
    }
}
