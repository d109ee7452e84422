//! Tests of the time limits of runs ([`RunOptions`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED};
use pliant_exec::{LoopFuncInfo, Param, Reg};
use pliant_vm::{LoopFuncTable, PackedFunc, RunOptions, Value, VirtualMachine, VmError, VmOptions};

use crate::vm_test_setup::builder;

fn within(seconds: f64) -> RunOptions {
    RunOptions { time_limit: Some(Duration::from_secs_f64(seconds)), ..RunOptions::default() }
}

/// A loop function that runs until it is interrupted.
unsafe extern "C" fn endless_loop_func(_args: *const u64, runtime: *const KernelRuntime) -> i64 {
    // SAFETY: the VM passes its runtime.
    let runtime = unsafe { &*runtime };
    while !runtime.is_interrupted() {
        std::thread::yield_now();
    }
    STATUS_CANCELLED
}

/// Builds a VM with these functions: `kernel` and `goto` never end, `calls` calls `kernel`, `short`
/// returns its argument, and `calls_back` calls the packed function `back`.
pub(crate) fn build_vm(back: PackedFunc) -> VirtualMachine {
    let mut b = builder();
    b.loop_func(LoopFuncInfo { name: "endless".into(), args: vec![], checks: vec![] });
    b.begin_function("kernel", vec![], "");
    b.emit_call("endless", &[], Reg(0));
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("calls", vec![], "");
    b.emit_call("kernel", &[], Reg(0));
    b.emit_call("vm.builtin.copy", &[b.r(0)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    b.begin_function("goto", vec![], "");
    b.emit_goto(0);
    b.end_function();
    b.begin_function("short", vec![Param::new("x")], "");
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("calls_back", vec![], "");
    b.emit_call("back", &[], Reg(0));
    b.emit_ret(Reg(0));
    b.end_function();
    let mut loop_funcs = LoopFuncTable::new();
    // SAFETY: the function follows the ABI and takes no arguments.
    unsafe { loop_funcs.insert("endless", endless_loop_func) };
    let functions = [("back".to_string(), back)].into_iter().collect();
    let options = VmOptions { functions, ..VmOptions::default() };
    VirtualMachine::with_options(Arc::new(b.get().unwrap()), loop_funcs, options).unwrap()
}

pub(crate) fn plain_vm() -> VirtualMachine {
    build_vm(Arc::new(|_| Ok(Value::None)))
}

fn short(vm: &VirtualMachine, options: &RunOptions) -> Result<i64, VmError> {
    vm.invoke_with("short", &[Value::Int(3)], options).map(|value| value.as_int().unwrap())
}

fn exceeded(result: &Result<Value, VmError>, name: &str) -> bool {
    let Err(error) = result else { return false };
    matches!(error.root(), VmError::TimeLimit { function, .. } if function == name)
}

#[test]
fn a_time_limit_stops_loop_functions_and_bytecode_loops() {
    let vm = plain_vm();
    for name in ["kernel", "calls", "goto"] {
        let result = vm.invoke_with(name, &[], &within(0.02));
        assert!(exceeded(&result, name), "{name}: {result:?}");
        let text = result.unwrap_err().to_string();
        assert!(
            text.contains(&format!("'{name}' exceeded its time limit of 0.02 seconds")),
            "{text}"
        );
        assert_eq!(short(&vm, &RunOptions::default()).unwrap(), 3);
        assert_eq!(short(&vm, &within(60.0)).unwrap(), 3);
    }
    vm.set_input("goto", vec![]).unwrap();
    let stateful = vm.invoke_stateful_with("goto", &within(0.02)).map(|()| Value::None);
    assert!(exceeded(&stateful, "goto"), "{stateful:?}");
    let value = vm.function("kernel").unwrap();
    let called = value.call_with(&[], &within(0.02));
    assert!(exceeded(&called, "kernel"), "{called:?}");
}

#[test]
fn a_zero_limit_runs_nothing_and_the_largest_limit_is_unlimited() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let vm = build_vm(Arc::new(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(Value::None)
    }));
    assert!(exceeded(&vm.invoke_with("calls_back", &[], &within(0.0)), "calls_back"));
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let largest = RunOptions { time_limit: Some(Duration::MAX), ..RunOptions::default() };
    vm.invoke_with("calls_back", &[], &largest).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    // Invalid calls are reported whatever the limit is.
    assert!(matches!(vm.invoke_with("short", &[], &within(0.0)), Err(VmError::Arity { .. })));
    let host = pliant_vm::FuncValue::packed("host", Arc::new(|_| Ok(Value::None)));
    assert!(matches!(host.call_with(&[], &within(1.0)), Err(VmError::Type(_))));
}

#[test]
fn interrupts_of_limited_runs_are_not_reported_as_time_limits() {
    let vm = plain_vm();
    for name in ["kernel", "goto"] {
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| vm.invoke_with(name, &[], &within(3600.0))))
                .collect();
            while !runs.iter().all(|run| run.is_finished()) {
                vm.interrupt();
                std::thread::yield_now();
            }
            for run in runs {
                let result = run.join().unwrap();
                assert!(matches!(result, Err(VmError::Interrupted)), "{result:?}");
            }
        });
    }
    // The host interrupts the run, and the limit expires in the meantime.
    vm.set_poll(Some(Arc::new(|| {
        std::thread::sleep(Duration::from_millis(50));
        true
    })));
    vm.request_poll();
    let result = vm.invoke_with("goto", &[], &within(0.02));
    assert!(matches!(result, Err(VmError::Interrupted)), "{result:?}");
}

#[test]
fn a_time_limit_stops_only_its_own_run() {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let vm = build_vm(Arc::new(move |_| {
        while !flag.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(Value::Int(7))
    }));
    std::thread::scope(|scope| {
        let unlimited = scope.spawn(|| vm.invoke("calls_back", &[]));
        let longer = scope.spawn(|| vm.invoke_with("calls_back", &[], &within(3600.0)));
        let kernel = scope.spawn(|| vm.invoke_with("kernel", &[], &within(1.0)));
        for name in ["goto", "kernel", "goto"] {
            assert!(exceeded(&vm.invoke_with(name, &[], &within(0.01)), name));
        }
        assert!(exceeded(&kernel.join().unwrap(), "kernel"));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(unlimited.join().unwrap().unwrap().as_int(), Some(7));
        assert_eq!(longer.join().unwrap().unwrap().as_int(), Some(7));
    });
}

#[test]
fn a_limit_that_expires_at_the_end_of_a_run_does_not_affect_later_runs() {
    let vm = plain_vm();
    let end = Instant::now() + Duration::from_secs(1);
    let stopped = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (vm, stopped) = (&vm, &stopped);
            scope.spawn(move || {
                for i in thread.. {
                    if Instant::now() >= end {
                        break;
                    }
                    let limit = Duration::from_nanos(i * 7919 % 30_000);
                    match short(
                        vm,
                        &RunOptions { time_limit: Some(limit), ..RunOptions::default() },
                    ) {
                        Ok(value) => assert_eq!(value, 3),
                        Err(error) => {
                            assert!(matches!(error.root(), VmError::TimeLimit { .. }), "{error}");
                            stopped.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    assert_eq!(short(vm, &RunOptions::default()).unwrap(), 3);
                    assert_eq!(short(vm, &within(600.0)).unwrap(), 3);
                    if i % 64 == thread {
                        let limit = RunOptions { time_limit: Some(limit), ..RunOptions::default() };
                        let name = ["goto", "kernel"][(i / 64 % 2) as usize];
                        assert!(exceeded(&vm.invoke_with(name, &[], &limit), name));
                    }
                }
            });
        }
    });
    assert!(stopped.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_time_limit_stops_nested_runs_and_takes_effect_after_host_functions() {
    let inner = plain_vm();
    let nested = move |runtime: &KernelRuntime, args: &[Value]| {
        let name = ["kernel", "goto"][args[0].as_int().unwrap() as usize];
        // SAFETY: the runtime is that of the running call.
        unsafe { inner.invoke_within(runtime, name, &[]) }
    };
    pliant_vm::register_library_func("test.time_limits.nested", Arc::new(nested), false);
    let mut b = builder();
    b.begin_function("main", vec![Param::new("which")], "");
    b.emit_call("test.time_limits.nested", &[b.r(0)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    let exe = Arc::new(b.get().unwrap());
    let outer = VirtualMachine::new(exe, LoopFuncTable::new()).unwrap();
    for which in 0..2 {
        let result = outer.invoke_with("main", &[Value::Int(which)], &within(0.02));
        assert!(exceeded(&result, "main"), "{result:?}");
    }

    let vm = build_vm(Arc::new(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Err(VmError::external("its own failure"))
    }));
    let error = vm.invoke_with("calls_back", &[], &within(0.01)).unwrap_err().to_string();
    assert!(error.contains("its own failure"), "{error}");
}
