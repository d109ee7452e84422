//! The fuzz target for library kernels that are called by address: a compiled loop function calls a linked symbol, with valid and
//! invalid arguments and with buffers between guard pages. The bounds checks must reject every call that would access memory
//! outside a buffer.

mod call_record;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod data_races;
mod guarded_kernel_call;
mod valid_arguments;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_kernels::extern_fns;
use pliant_pool::Team;

use super::random_numbers::Rng;
use call_record::{Arg, MAX_ELEMENTS, Record, pointer_types};
use guarded_kernel_call::{Compiled, Operands, compiled_function, runtime};

/// Returns the names of the kernels under test.
pub fn names() -> Vec<&'static str> {
    extern_fns().iter().filter(|f| pointer_types(f).is_some()).map(|f| f.name).collect()
}

/// Generates another call, mostly of a random kernel. Up to four of its arguments are boundary values, and all other arguments
/// are valid.
pub fn mutate(input: &[u8], _: &[u8], rng: &mut Rng) -> Vec<u8> {
    let old = std::str::from_utf8(input).ok().and_then(Record::parse);
    let mut record = match old {
        Some(record) if rng.one_in(4) => record,
        _ => {
            let names = names();
            let name = names[rng.below(names.len())];
            valid_arguments::record(name, rng)
        }
    };
    for _ in 0..rng.below(5) {
        let index = rng.below(record.args.len());
        match &mut record.args[index] {
            Arg::Int(n) | Arg::Address(n) => *n = rng.boundary_value(*n),
            Arg::Float(x) => *x = *rng.pick(&[0.0, -1.0, 1e300, f64::NAN, f64::INFINITY]),
        }
    }
    if record.sizes.is_some() || rng.one_in(8) {
        let sizes = record.types().iter().map(|_| rng.below(40)).collect();
        record.sizes = rng.one_in(2).then_some(sizes);
    }
    record.to_string().into_bytes()
}

/// Generates one call with valid arguments for each kernel.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let line = |name: &&str| valid_arguments::record(name, &mut rng).to_string().into_bytes();
    names().iter().map(line).collect()
}

/// The tick of the clock at which the current call is interrupted; 0 if there is no call.
static STOP_AT: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
static TICKS: AtomicU64 = AtomicU64::new(1);
/// Maximum time of a call, in clock ticks of 20 milliseconds.
const MAX_TICKS: u64 = 25;

/// Starts a thread that counts clock ticks and interrupts long calls. Calls can take long, since
/// huge sizes with strides of 0 are valid.
fn start_clock() {
    static CLOCK: OnceLock<()> = OnceLock::new();
    CLOCK.get_or_init(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(20));
                let now = TICKS.fetch_add(1, Ordering::Relaxed);
                let stop = STOP_AT.load(Ordering::Relaxed);
                STOP.store(stop != 0 && now > stop, Ordering::Relaxed);
            }
        });
    });
}

fn team() -> &'static Team {
    static TEAM: OnceLock<Team> = OnceLock::new();
    TEAM.get_or_init(|| Team::new(2))
}

/// Makes the kernel call that an input line describes. Returns whether the call succeeds.
pub fn run(input: &[u8]) -> bool {
    let Some(record) = std::str::from_utf8(input).ok().and_then(|t| Record::parse(t.trim())) else {
        return false;
    };
    let Some(function) = compiled_function(&record) else { return false };
    start_clock();
    let mut runtime = runtime();
    runtime.interrupt = &raw const STOP;
    if input.len() % 2 == 1 {
        runtime.team = (&raw const *team()).cast();
        runtime.parallel_launch = pliant_pool::parallel_launch;
    }
    let call = Call { record: &record, function: &function, runtime: &runtime };
    match &record.sizes {
        Some(sizes) => {
            let max_len = sizes.iter().copied().max().unwrap_or(0);
            let mut operands = Operands::new(&record, max_len);
            let [end, start] =
                [true, false].map(|at_end| call.call_kernel(&mut operands, sizes, at_end));
            end && start
        }
        None => call.shrink(),
    }
}

struct Call<'a> {
    record: &'a Record,
    function: &'a Compiled,
    runtime: &'a KernelRuntime,
}

impl Call<'_> {
    /// Calls the kernel with buffers of these sizes. Returns whether the call succeeds.
    fn call_kernel(&self, operands: &mut Operands, sizes: &[usize], at_end: bool) -> bool {
        STOP.store(false, Ordering::Relaxed);
        STOP_AT.store(TICKS.load(Ordering::Relaxed) + MAX_TICKS, Ordering::Relaxed);
        let status = operands.call(self.function, self.record.mode, sizes, at_end, self.runtime);
        STOP_AT.store(0, Ordering::Relaxed);
        status == STATUS_OK
    }

    /// Finds the smallest buffers that the checks accept, and repeats the call with them at the start of guarded memory. Returns
    /// whether the call succeeds. An access outside the buffers crashes.
    fn shrink(&self) -> bool {
        self.smallest()
            .is_some_and(|(mut operands, sizes)| self.call_kernel(&mut operands, &sizes, false))
    }

    /// Finds the smallest buffer sizes that the checks accept, one buffer after the other. Also returns the memory for the largest
    /// sizes, in which the calls were made. `None` if the checks reject even the largest sizes.
    fn smallest(&self) -> Option<(Operands, Vec<usize>)> {
        let count = self.record.types().len();
        let mut sizes = vec![MAX_ELEMENTS; count];
        let mut operands = Operands::new(self.record, MAX_ELEMENTS);
        if !self.call_kernel(&mut operands, &sizes, true) {
            return None;
        }
        for k in 0..count {
            let (mut rejected, mut accepted) = (None, sizes[k]);
            while rejected.map_or(accepted > 0, |r: usize| accepted - r > 1) {
                // The search starts with small sizes, since most buffers are small.
                let low = rejected.unwrap_or(0);
                let middle = if accepted > 1024 && low < 64 {
                    low.max(1) * 16
                } else {
                    (low + accepted) / 2
                };
                let middle = middle.clamp(low + usize::from(rejected.is_some()), accepted - 1);
                sizes[k] = middle;
                if self.call_kernel(&mut operands, &sizes, true) {
                    accepted = middle;
                } else {
                    rejected = Some(middle);
                }
            }
            sizes[k] = accepted;
        }
        Some((operands, sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use call_record::Mode;

    #[test]
    fn records_round_trip() {
        let mut rng = Rng::new(7);
        for seed in seeds() {
            for _ in 0..20 {
                let text = String::from_utf8(mutate(&seed, &[], &mut rng)).expect("text");
                let record = Record::parse(&text).unwrap_or_else(|| panic!("{text}"));
                assert_eq!(record.to_string(), text);
            }
        }
    }

    #[test]
    fn the_smallest_buffers_are_exactly_those_that_the_call_accesses() {
        let line = "pliant_vec_exp_f32 loaded @1 @0 7";
        let record = Record::parse(line).expect("a call");
        let (function, runtime) = (compiled_function(&record).expect("it compiles"), runtime());
        let call = Call { record: &record, function: &function, runtime: &runtime };
        assert_eq!(call.smallest().expect("it succeeds").1, [8, 7]);
    }

    #[test]
    fn calls_with_valid_arguments_succeed() {
        let mut rng = Rng::new(3);
        for name in names() {
            let runs = (0..40).filter(|_| {
                let mut record = valid_arguments::record(name, &mut rng);
                record.mode = Mode::Loaded;
                let Some(function) = compiled_function(&record) else { return false };
                let runtime = runtime();
                let call = Call { record: &record, function: &function, runtime: &runtime };
                call.call_kernel(
                    &mut Operands::new(&record, MAX_ELEMENTS),
                    &vec![MAX_ELEMENTS; record.types().len()],
                    true,
                )
            });
            let runs = runs.count();
            assert!(runs >= 20, "{name}: {runs} of 40");
        }
    }
}
