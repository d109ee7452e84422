//! [`profile`]: measures the time that each function takes in a run, with its rates of floating-point operations and memory
//! traffic.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pliant_vm::{RunOptions, Value, VirtualMachine, VmError};

use crate::call_recorder::{CallRecord, RecordingGuard};
use crate::hardware;

/// The calls of one function during a profile: their number, time, operations and bytes.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use pliant::CalleeProfile;
///
/// let time = Duration::from_millis(2);
/// let (flops, bytes) = (4_000_000, 1_000_000);
/// let matmul =
///     CalleeProfile { name: "matmul".into(), calls: 1, time, flops, bytes, ..CalleeProfile::default() };
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
    /// The ONNX nodes or source lines that the calls of the last run compute, without repetitions. Empty if unknown.
    pub locations: Vec<String>,
}

/// The peak rate of the machine in floating-point operations per second, for float32 with all threads. The first call measures it.
pub fn machine_peak_flops() -> f64 {
    static PEAK: OnceLock<f64> = OnceLock::new();
    *PEAK.get_or_init(|| {
        hardware::peak_flops(hardware::isa(), hardware::default_threads()).unwrap_or(0.0)
    })
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

    /// Returns the floating-point operations per second as a percentage of the machine's peak rate ([`machine_peak_flops`]); 0 if
    /// the calls contain no library kernel.
    pub fn percent_of_peak(&self) -> f64 {
        let peak = if self.flops > 0 { machine_peak_flops() } else { 0.0 };
        if peak > 0.0 { self.gflops() * 1e11 / peak } else { 0.0 }
    }

    /// Returns the locations as text for a table, at most `width` characters long.
    fn location_text(&self, width: usize) -> String {
        let text = self.locations.join(", ");
        if text.chars().count() <= width {
            return text;
        }
        text.chars().take(width - 1).chain(['…']).collect()
    }

    fn seconds(&self) -> f64 {
        self.time.as_secs_f64().max(1e-12)
    }

    pub(crate) fn add(&mut self, other: &CalleeProfile) {
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
/// let total = Duration::from_millis(4);
/// let profile = Profile { runs: 2, total, callees: vec![matmul], ..Profile::default() };
/// let table = format!("{profile:.10}");
/// assert!(table.starts_with("2 runs, 2.0000 ms each"));
/// assert!(table.contains("matmul"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The number of profiled runs.
    pub runs: u32,
    /// The total time of all runs, including the overhead of profiling.
    pub total: Duration,
    /// The called functions, the slowest first.
    pub callees: Vec<CalleeProfile>,
    /// The calls of the last run, in the order in which they ended.
    pub events: Vec<CallRecord>,
    /// The result of the last run.
    pub result: Value,
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
    profile_cold(vm, function, args, runs, options)
}

/// Runs a function `runs` times as [`profile`], but not once before to warm up.
///
/// # Errors
/// The errors of [`VirtualMachine::invoke_with`].
pub fn profile_cold(
    vm: &VirtualMachine,
    function: &str,
    args: &[Value],
    runs: u32,
    options: &RunOptions,
) -> Result<Profile, VmError> {
    let recording = RecordingGuard::begin(vm);
    let start = Instant::now();
    let mut result = Value::None;
    for _ in 0..runs {
        // The result of the previous run is dropped first, as without a profile.
        drop(std::mem::take(&mut result));
        recording.begin_run();
        result = vm.invoke_with(function, args, options)?;
    }
    let total = start.elapsed();
    let (callees, events) = recording.finish();
    Ok(Profile { runs, total, callees, events, result })
}

/// The width of the source locations in the table, in characters.
const LOCATION_WIDTH: usize = 60;

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = f64::from(self.runs.max(1));
        let total = self.total.as_secs_f64().max(1e-12);
        writeln!(f, "{} runs, {:.4} ms each", self.runs, total * 1e3 / runs)?;
        writeln!(
            f,
            "   share  calls/run      ms/run     us/call  GFLOP/s  % peak    GB/s  function"
        )?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, c: &CalleeProfile| {
            let seconds = c.time.as_secs_f64();
            let (share, each) =
                (seconds / total * 100.0, seconds * 1e6 / (c.calls as f64).max(1.0));
            let (calls, time) = (c.calls as f64 / runs, seconds * 1e3 / runs);
            let rate =
                |count: u64, rate: f64| if count > 0 { format!("{rate:.1}") } else { "-".into() };
            let (flops, bytes) = (rate(c.flops, c.gflops()), rate(c.bytes, c.gigabytes()));
            let peak = rate(c.flops, c.percent_of_peak());
            let of = c.location_text(LOCATION_WIDTH);
            let of = if of.is_empty() { of } else { format!("  ({of})") };
            writeln!(
                f,
                "{share:>7.1}%  {calls:>9.1}  {time:>10.4}  {each:>10.2}  {flops:>7}  {peak:>6}  {bytes:>6}  {name}{of}"
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
