//! Records the calls of runs, with their times, operations, tensors and source locations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pliant_exec::NODE;
use pliant_tensor::held_bytes;
use pliant_vm::{CallEvent, CalleeKind, Instrument, Value, VirtualMachine, pooled_bytes};

use crate::function_profile::CalleeProfile;

/// One call during a profiled run.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// The name of the called loop function, host function or builtin of the VM.
    pub name: String,
    /// The kind of the called function.
    pub kind: CalleeKind,
    /// The time from the start of the run to the start of the call.
    pub start: Duration,
    /// The duration of the call.
    pub time: Duration,
    /// The floating-point operations of the library kernels in the call. 0 for generated loops.
    pub flops: u64,
    /// The bytes of the tensors passed to a loop function. 0 for other functions.
    pub bytes: u64,
    /// The names of the ONNX nodes or the source lines that the call computes. Empty if unknown.
    pub location: String,
    /// The types of the tensors among the arguments, such as `float32[2, 3]`. For loop functions, these include the results.
    pub tensors: Vec<String>,
    /// The bytes of all tensors of the process at the end of the call, without free memory that Pliant keeps for reuse.
    pub memory: usize,
}

/// Records the calls of a VM on the current thread while it exists. It replaces the VM's instrument.
pub(crate) struct RecordingGuard<'a> {
    vm: &'a VirtualMachine,
    recorder: Arc<Mutex<Recorder>>,
}

impl RecordingGuard<'_> {
    pub(crate) fn begin(vm: &VirtualMachine) -> RecordingGuard<'_> {
        let recorder = Arc::new(Mutex::new(Recorder::default()));
        let (shared, thread) = (recorder.clone(), thread::current().id());
        vm.set_instrument(Some(Instrument::observer(move |event| {
            if thread::current().id() == thread {
                lock(&shared).record(event);
            }
        })));
        RecordingGuard { vm, recorder }
    }

    /// Discards the records of the previous run, except in the sums.
    pub(crate) fn begin_run(&self) {
        let mut recorder = lock(&self.recorder);
        recorder.calls.clear();
        recorder.open.clear();
        recorder.run_start = Some(Instant::now());
    }

    /// Returns the sums of all runs by function, the slowest first, and the calls of the last run.
    pub(crate) fn finish(self) -> (Vec<CalleeProfile>, Vec<CallRecord>) {
        let mut recorder = lock(&self.recorder);
        let mut callees: Vec<_> = std::mem::take(&mut recorder.callees).into_values().collect();
        callees.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        let calls = std::mem::take(&mut recorder.calls);
        let calls: Vec<CallRecord> = calls.into_iter().map(|call| self.located(call)).collect();
        for callee in &mut callees {
            for call in calls.iter().filter(|c| c.name == callee.name && !c.location.is_empty()) {
                if !callee.locations.contains(&call.location) {
                    callee.locations.push(call.location.clone());
                }
            }
        }
        (callees, calls)
    }

    /// Adds its source location to a call.
    fn located(&self, call: Call) -> CallRecord {
        let executable = self.vm.executable();
        let index = executable.find(&call.function);
        let location = index.and_then(|i| executable.source_location(i, call.instruction));
        let location = location.map_or_else(String::new, |at| match at.line {
            NODE => at.file.to_string(),
            line if line == at.last => format!("{}:{line}", at.file),
            line => format!("{}:{line}-{}", at.file, at.last),
        });
        CallRecord { location, ..call.record }
    }
}

impl Drop for RecordingGuard<'_> {
    fn drop(&mut self) {
        self.vm.set_instrument(None);
    }
}

fn lock(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record without its source location, and the instruction that determines it.
struct Call {
    function: String,
    instruction: usize,
    record: CallRecord,
}

/// The calls that an instrument has reported.
#[derive(Default)]
struct Recorder {
    callees: HashMap<String, CalleeProfile>,
    /// The calls of the current run.
    calls: Vec<Call>,
    run_start: Option<Instant>,
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
        let is_loop_function = event.kind == CalleeKind::LoopFunction;
        let tensors = event.args.iter().filter_map(Value::as_tensor);
        let bytes =
            if is_loop_function { tensors.clone().map(|t| t.nbytes() as u64).sum() } else { 0 };
        let (name, time, flops) = (event.callee.to_string(), now - start, event.flops);
        let locations = Vec::new();
        let sum = CalleeProfile { name: name.clone(), calls: 1, time, flops, bytes, locations };
        match self.callees.get_mut(event.callee) {
            Some(callee) => callee.add(&sum),
            None => drop(self.callees.insert(name.clone(), sum)),
        }
        let start = self.run_start.map_or(Duration::ZERO, |begin| start - begin);
        let tensors = tensors.map(|t| format!("{}{:?}", t.dtype(), t.shape())).collect();
        let memory = held_bytes().saturating_sub(pooled_bytes());
        let kind = event.kind;
        self.calls.push(Call {
            function: event.function.to_string(),
            instruction: event.instruction,
            record: CallRecord {
                name,
                kind,
                start,
                time,
                flops,
                bytes,
                location: String::new(),
                tensors,
                memory,
            },
        });
    }
}
