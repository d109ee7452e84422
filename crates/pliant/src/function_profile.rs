//! [`profile`]: measures the time that each function takes in a run, with its rates of floating-point operations and memory
//! traffic.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pliant_vm::{CallEvent, CalleeKind, Instrument, RunOptions, Value, VirtualMachine, VmError};

/// The calls of one function during a profile: their number, time, operations and bytes.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use pliant::CalleeProfile;
///
/// let time = Duration::from_millis(2);
/// let matmul =
///     CalleeProfile { name: "matmul".into(), calls: 1, time, flops: 4_000_000, bytes: 1_000_000 };
/// assert!((matmul.gflops() - 2.0).abs() < 1e-9);
/// assert!((matmul.gigabytes() - 0.5).abs() < 1e-9);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CalleeProfile {
    /// The name of the loop function, host function or builtin of the VM.
    pub name: String,
    /// The number of calls in all runs.
    pub calls: u64,
    /// The total time of the calls.
    pub time: Duration,
    /// The floating-point operations of the library kernels in the calls, by the formulas of their declarations
    /// (`docs/reference/kernels.md`). 0 for generated loops.
    pub flops: u64,
    /// The bytes of the tensors passed to loop functions, both inputs and results. Each tensor
    /// counts once per call. 0 for other functions.
    pub bytes: u64,
}

impl CalleeProfile {
    /// Returns billions of floating-point operations per second; 0 if the calls contain no library
    /// kernel.
    pub fn gflops(&self) -> f64 {
        self.flops as f64 / self.seconds() / 1e9
    }

    /// Returns gigabytes (10^9 bytes) of passed tensors per second. Counts all bytes of a tensor,
    /// even those that are in a cache or that the call does not access.
    pub fn gigabytes(&self) -> f64 {
        self.bytes as f64 / self.seconds() / 1e9
    }

    fn seconds(&self) -> f64 {
        self.time.as_secs_f64().max(1e-12)
    }

    fn add(&mut self, other: &CalleeProfile) {
        self.calls += other.calls;
        self.time += other.time;
        self.flops = self.flops.saturating_add(other.flops);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The time that each function took in several runs. `Display` prints a table; `{:.10}` limits it to ten functions. [`profile`]
/// has an example.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use pliant::{CalleeProfile, Profile};
///
/// let time = Duration::from_millis(3);
/// let matmul = CalleeProfile { name: "matmul".into(), calls: 2, time, ..CalleeProfile::default() };
/// let profile = Profile { runs: 2, total: Duration::from_millis(4), callees: vec![matmul] };
/// let table = format!("{profile:.10}");
/// assert!(table.starts_with("2 runs, 2.0000 ms each"));
/// assert!(table.contains("matmul"));
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    /// The number of profiled runs.
    pub runs: u32,
    /// The total time of all runs, including the overhead of profiling.
    pub total: Duration,
    /// The called functions, the slowest first.
    pub callees: Vec<CalleeProfile>,
}

/// Runs a function once to warm up and `runs` times for the profile. Replaces the VM's instrument and removes it at the end.
/// Records only calls on this thread. The program runs in the bytecode interpreter, even if its execution mode is `compiled`.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Model, RunOptions, Tensor, Value, profile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let profile = profile(model.vm(), "main", &[Value::Tensor(x)], 3, &RunOptions::default())?;
/// assert_eq!(profile.runs, 3);
/// assert!(profile.callees.iter().all(|callee| callee.calls >= 3));
/// assert!(profile.to_string().contains("3 runs"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`VirtualMachine::invoke_with`].
pub fn profile(
    vm: &VirtualMachine,
    function: &str,
    args: &[Value],
    runs: u32,
    options: &RunOptions,
) -> Result<Profile, VmError> {
    vm.invoke_with(function, args, options)?;
    let recorder = Arc::new(Mutex::new(Recorder::default()));
    let (shared, thread) = (recorder.clone(), thread::current().id());
    vm.set_instrument(Some(Instrument::observer(move |event| {
        if thread::current().id() == thread {
            shared.lock().unwrap_or_else(PoisonError::into_inner).record(event);
        }
    })));
    let start = Instant::now();
    let mut outcome = Ok(());
    for _ in 0..runs {
        outcome = vm.invoke_with(function, args, options).map(drop);
        if outcome.is_err() {
            break;
        }
    }
    let total = start.elapsed();
    vm.set_instrument(None);
    outcome?;
    let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
    let mut callees: Vec<_> = std::mem::take(&mut recorder.callees).into_values().collect();
    callees.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    Ok(Profile { runs, total, callees })
}

/// An instrument that records the calls of a thread with their times.
#[derive(Default)]
struct Recorder {
    callees: HashMap<String, CalleeProfile>,
    /// The calls in progress: the instruction of each call, and its start time.
    open: Vec<(usize, Instant)>,
}

impl Recorder {
    fn record(&mut self, event: &CallEvent<'_>) {
        // Graph functions have no event when they return; the calls inside are recorded instead.
        if event.kind == CalleeKind::GraphFunction {
            return;
        }
        if event.before {
            return self.open.push((event.instruction, Instant::now()));
        }
        let now = Instant::now();
        // Calls of a nested run that failed have no second event.
        while self.open.last().is_some_and(|open| open.0 != event.instruction) {
            self.open.pop();
        }
        let Some((_, start)) = self.open.pop() else { return };
        let bytes = match event.kind {
            CalleeKind::LoopFunction => event.args.iter().map(tensor_bytes).sum(),
            _ => 0,
        };
        let (name, time) = (event.callee.to_string(), now - start);
        let call = CalleeProfile { name, calls: 1, time, flops: event.flops, bytes };
        match self.callees.get_mut(event.callee) {
            Some(callee) => callee.add(&call),
            None => drop(self.callees.insert(call.name.clone(), call)),
        }
    }
}

fn tensor_bytes(value: &Value) -> u64 {
    match value {
        Value::Tensor(tensor) => tensor.nbytes() as u64,
        _ => 0,
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = f64::from(self.runs.max(1));
        let total = self.total.as_secs_f64().max(1e-12);
        writeln!(f, "{} runs, {:.4} ms each", self.runs, total * 1e3 / runs)?;
        writeln!(f, "   share  calls/run      ms/run     us/call  GFLOP/s    GB/s  function")?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, c: &CalleeProfile| {
            let seconds = c.time.as_secs_f64();
            let (share, each) =
                (seconds / total * 100.0, seconds * 1e6 / (c.calls as f64).max(1.0));
            let (calls, time) = (c.calls as f64 / runs, seconds * 1e3 / runs);
            let rate =
                |count: u64, rate: f64| if count > 0 { format!("{rate:.1}") } else { "-".into() };
            let (flops, bytes) = (rate(c.flops, c.gflops()), rate(c.bytes, c.gigabytes()));
            writeln!(
                f,
                "{share:>7.1}%  {calls:>9.1}  {time:>10.4}  {each:>10.2}  {flops:>7}  {bytes:>6}  {name}"
            )
        };
        let shown = f.precision().unwrap_or(usize::MAX).min(self.callees.len());
        let (listed, others) = self.callees.split_at(shown);
        listed.iter().try_for_each(|callee| line(f, &callee.name, callee))?;
        let sum = |callees: &[CalleeProfile]| {
            callees.iter().fold(CalleeProfile::default(), |mut sum, callee| {
                sum.add(callee);
                sum
            })
        };
        if !others.is_empty() {
            line(f, &format!("{} others", others.len()), &sum(others))?;
        }
        let time = self.total.saturating_sub(sum(&self.callees).time);
        line(f, "the VM itself, and profiling", &CalleeProfile { time, ..CalleeProfile::default() })
    }
}
