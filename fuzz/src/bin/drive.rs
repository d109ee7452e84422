//! Runs a fuzz target on random mutants of its seeds for some time, without a nightly toolchain: `cargo run --release
//! --no-default-features --bin drive -- TARGET --seconds N [--seed S] [--memory MIB]`.
//!
//! Inputs run in a child process, which is restarted after a failure. Inputs that crash, panic, or take more than 20
//! seconds of CPU time or 200 seconds of elapsed time are written to `artifacts/TARGET`, at most three for each
//! distinct failure. `replay` runs such a file again. `--write-seeds FOLDER` writes the seeds of the target for
//! libFuzzer.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pliant_fuzz::targets::Target;
use pliant_fuzz::targets::random_numbers::Rng;

/// Maximum length of an input in bytes.
const MAX_INPUT_LEN: usize = 4 << 20;
/// Maximum CPU time of an input. It is shorter than [`TIME_LIMIT`], since other processes may delay a run.
const CPU_TIME_LIMIT: Duration = Duration::from_secs(20);
/// Maximum elapsed time of an input.
const TIME_LIMIT: Duration = Duration::from_secs(200);
/// Maximum number of inputs that are kept for further mutation, besides the seeds.
const MAX_KEPT_INPUTS: usize = 1024;

/// The state that the parent and the child process share, in a file that both map into memory.
#[repr(C)]
struct SharedState {
    executions: AtomicU64,
    ran: AtomicU64,
    len: AtomicU64,
    input: [u8; MAX_INPUT_LEN],
}

/// Maps the file with the shared state into memory. Creates the file if it does not exist.
fn map_shared(path: &Path) -> Result<&'static mut SharedState, Box<dyn Error>> {
    use std::os::fd::AsRawFd;
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    file.set_len(size_of::<SharedState>() as u64)?;
    let (access, size) = (libc::PROT_READ | libc::PROT_WRITE, size_of::<SharedState>());
    // SAFETY: a new mapping of a file of this size, which is never unmapped.
    unsafe {
        let map =
            libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if map == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(&mut *map.cast::<SharedState>())
    }
}

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests")
}

fn write_list(path: &Path, list: &[Vec<u8>]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    for item in list {
        file.write_all(&(item.len() as u64).to_le_bytes())?;
        file.write_all(item)?;
    }
    Ok(())
}

fn read_list(path: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let (mut file, mut out) = (File::open(path)?, Vec::new());
    let mut len = [0; 8];
    while file.read_exact(&mut len).is_ok() {
        let mut item = vec![0; u64::from_le_bytes(len) as usize];
        file.read_exact(&mut item)?;
        out.push(item);
    }
    Ok(out)
}

/// The child process: runs inputs until the parent ends it. `memory` limits its address space, in MiB; 0 for no limit.
fn run_child(
    target: &Target,
    seed: u64,
    memory: u64,
    work_folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        std::process::abort();
    }));
    pliant::set_memory_limit(Some(512 << 20));
    if memory > 0 {
        let limit = libc::rlimit { rlim_cur: memory << 20, rlim_max: memory << 20 };
        // SAFETY: the structure is valid.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    }
    let shared = map_shared(&work_folder.join("shared"))?;
    let seeds = read_list(&work_folder.join("seeds"))?;
    let (mut pool, mut rng) = (seeds.clone(), Rng::new(seed));
    loop {
        // Half of the inputs are mutants of seeds.
        let parents = if rng.one_in(2) { &seeds } else { &pool };
        let (a, b) = (rng.below(parents.len()), rng.below(seeds.len()));
        let input = (target.mutate)(&parents[a], &seeds[b], &mut rng);
        if input.len() > MAX_INPUT_LEN {
            continue;
        }
        shared.input[..input.len()].copy_from_slice(&input);
        shared.len.store(input.len() as u64, Ordering::Release);
        let ran = (target.run)(&input);
        shared.executions.fetch_add(1, Ordering::Release);
        if ran {
            shared.ran.fetch_add(1, Ordering::Relaxed);
            if rng.one_in(8) && input.len() < 1 << 18 {
                match pool.len() < seeds.len() + MAX_KEPT_INPUTS {
                    true => pool.push(input),
                    false => {
                        let index = seeds.len() + rng.below(MAX_KEPT_INPUTS);
                        pool[index] = input;
                    }
                }
            }
        }
    }
}

/// Returns the CPU time of all threads of a process.
fn cpu_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Field 2, the name of the program, may contain spaces. User and system time are fields 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    // SAFETY: takes no pointers.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    Duration::from_millis(ticks * 1000 / per_second)
}

/// Waits until the child ends or hangs, or until `end`. Returns the failure, if any.
fn wait_for_child(
    child: &mut Child,
    shared: &SharedState,
    end: Instant,
) -> std::io::Result<Option<String>> {
    let (mut last_executions, mut last_progress, mut cpu_at_progress) =
        (u64::MAX, Instant::now(), Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait()? {
            let signal = status.signal().map(|s| format!("signal {s}"));
            return Ok(Some(signal.unwrap_or_else(|| format!("{status}"))));
        }
        let now = shared.executions.load(Ordering::Acquire);
        if now != last_executions {
            (last_executions, last_progress, cpu_at_progress) =
                (now, Instant::now(), cpu_time(child.id()));
        }
        let is_hang = last_progress.elapsed() > TIME_LIMIT
            || cpu_time(child.id()) > cpu_at_progress + CPU_TIME_LIMIT;
        if is_hang || Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(is_hang.then(|| "hang".to_string()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the name of a failure, by which equal failures are recognized: the source location of
/// the panic, the summary of the sanitizer, or otherwise the exit status of the process and the
/// called kernel.
fn finding_name(reason: &str, log: &str, input: &[u8]) -> String {
    let mut lines = log.lines().skip_while(|line| !line.contains("panicked at "));
    let panic = lines.next().and_then(|line| line.split_once("panicked at ")).map(|p| p.1);
    // Internal errors are named by their text, since all of them panic at the same location.
    let internal = lines.next().filter(|line| line.starts_with("internal error"));
    let panic = internal.map(|line| line.split("; what").next().unwrap_or(line)).or(panic);
    let sanitizer = log.lines().find_map(|line| line.split_once("SUMMARY: ").map(|p| p.1));
    let kernel_name: String = match input.starts_with(b"pliant_") {
        true => input.iter().take_while(|b| **b != b' ').map(|b| *b as char).collect(),
        false => String::new(),
    };
    let text = match panic.or(sanitizer) {
        Some(location) => format!("panic {}", location.trim_end_matches(':')),
        None => format!("{reason} {kernel_name}"),
    };
    let sanitize = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    text.trim().chars().map(sanitize).take(100).collect()
}

struct Options {
    seconds: u64,
    seed: u64,
    memory: u64,
}

/// The parent process: runs child processes until the time is over, and records findings. Returns the number of
/// distinct findings.
fn drive(target: &Target, options: &Options, work_folder: &Path) -> Result<usize, Box<dyn Error>> {
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(target.name);
    let seeds = pliant_fuzz::target_seeds::initial_inputs(target.name, &tests_folder())?;
    write_list(&work_folder.join("seeds"), &seeds)?;
    let shared = map_shared(&work_folder.join("shared"))?;
    println!("{}: {} seeds", target.name, seeds.len());
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut findings: BTreeMap<String, usize> = BTreeMap::new();
    let mut seed = options.seed;
    while Instant::now() < end {
        let log = work_folder.join("log");
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--child", target.name, &seed.to_string(), &options.memory.to_string()])
            .arg(work_folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        seed += 1;
        let Some(reason) = wait_for_child(&mut child, shared, end)? else { break };
        let log = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let input = &shared.input[..shared.len.load(Ordering::Acquire) as usize];
        let name = finding_name(&reason, &log, input);
        let count = findings.entry(name.clone()).or_default();
        *count += 1;
        if *count <= 3 {
            fs::create_dir_all(&artifacts)?;
            let file = artifacts.join(format!("{name}.{count}"));
            fs::write(&file, input)?;
            fs::write(file.with_extension(format!("{count}.log")), &log)?;
            println!("{}: {reason}: {}", target.name, file.display());
        }
    }
    let (executions, ran) =
        (shared.executions.load(Ordering::Acquire), shared.ran.load(Ordering::Acquire));
    println!("{}: {executions} executions, {ran} of them ran", target.name);
    findings.iter().for_each(|(name, count)| println!("{count:6} {name}"));
    Ok(findings.len())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, seed, memory, work_folder] = &args[..]
        && flag == "--child"
    {
        return run_child(
            pliant_fuzz::target(name)?,
            seed.parse()?,
            memory.parse()?,
            Path::new(work_folder),
        );
    }
    let mut args = args.into_iter();
    let target = pliant_fuzz::target(&args.next().ok_or("expected TARGET --seconds N")?)?;
    let mut options = Options { seconds: 60, seed: 1, memory: 8192 };
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} takes a value"))?;
        match &*flag {
            "--seconds" => options.seconds = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--memory" => options.memory = value.parse()?,
            "--write-seeds" => {
                let folder = Path::new(&value);
                fs::create_dir_all(folder)?;
                for (i, seed) in
                    pliant_fuzz::target_seeds::initial_inputs(target.name, &tests_folder())?
                        .iter()
                        .enumerate()
                {
                    fs::write(folder.join(format!("seed-{i}")), seed)?;
                }
                return Ok(());
            }
            _ => return Err(format!("unknown option {flag}").into()),
        }
    }
    let work_folder =
        std::env::temp_dir().join(format!("pliant-fuzz-{}-{}", target.name, std::process::id()));
    fs::create_dir_all(&work_folder)?;
    let findings = drive(target, &options, &work_folder);
    fs::remove_dir_all(&work_folder)?;
    if findings? > 0 {
        Err("the fuzzing found bugs: see the inputs and logs in artifacts/".into())
    } else {
        Ok(())
    }
}
