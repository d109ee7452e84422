//! Tests of [`CancelHandle`], which stops single runs from another thread.

use std::sync::Arc;
use std::time::Duration;

use pliant_vm::{CancelHandle, FuncValue, RunOptions, Value, VmError};

use crate::time_limits::{build_vm, plain_vm};

fn options(cancel: &CancelHandle) -> RunOptions {
    RunOptions { cancel: Some(cancel.clone()), ..RunOptions::default() }
}

fn is_cancelled(result: &Result<Value, VmError>, name: &str) -> bool {
    let Err(error) = result else { return false };
    matches!(error.root(), VmError::Cancelled { function } if function == name)
}

#[test]
fn a_handle_stops_loop_functions_and_bytecode_loops() {
    let vm = plain_vm();
    for name in ["kernel", "calls", "goto"] {
        let cancel = CancelHandle::new();
        let result = std::thread::scope(|scope| {
            let run = scope.spawn(|| vm.invoke_with(name, &[], &options(&cancel)));
            std::thread::sleep(Duration::from_millis(5));
            cancel.cancel();
            run.join().unwrap()
        });
        assert!(is_cancelled(&result, name), "{name}: {result:?}");
        let text = result.unwrap_err().to_string();
        assert!(text.contains(&format!("the run of function '{name}' was cancelled")), "{text}");
    }
}

#[test]
fn a_cancelled_handle_runs_nothing() {
    let vm = build_vm(Arc::new(|_| panic!("the run has started")));
    let cancel = CancelHandle::new();
    cancel.cancel();
    assert!(cancel.is_cancelled());
    assert!(is_cancelled(&vm.invoke_with("calls_back", &[], &options(&cancel)), "calls_back"));
    let host = FuncValue::packed("host", Arc::new(|_| Ok(Value::None)));
    assert!(matches!(host.call_with(&[], &options(&cancel)), Err(VmError::Type(_))));
}

#[test]
fn other_runs_of_the_vm_continue() {
    let vm = plain_vm();
    let (first, second) = (CancelHandle::new(), CancelHandle::new());
    std::thread::scope(|scope| {
        let runs = [&first, &second].map(|cancel| {
            let vm = &vm;
            scope.spawn(move || vm.invoke_with("kernel", &[], &options(cancel)))
        });
        let [one, two] = runs;
        std::thread::sleep(Duration::from_millis(5));
        first.cancel();
        assert!(is_cancelled(&one.join().unwrap(), "kernel"));
        assert!(!two.is_finished());
        // A later run with the flag of the first one is not affected by its handle.
        let third = RunOptions {
            time_limit: Some(Duration::from_millis(5)),
            ..options(&CancelHandle::new())
        };
        let limited = vm.invoke_with("kernel", &[], &third).unwrap_err();
        assert!(matches!(limited.root(), VmError::TimeLimit { .. }), "{limited:?}");
        second.cancel();
        assert!(is_cancelled(&two.join().unwrap(), "kernel"));
    });
}

#[test]
fn cancelling_races_with_the_end_of_runs() {
    let vm = plain_vm();
    for _ in 0..200 {
        let cancel = CancelHandle::new();
        std::thread::scope(|scope| {
            let run = scope.spawn(|| vm.invoke_with("short", &[Value::Int(1)], &options(&cancel)));
            cancel.cancel();
            let result = run.join().unwrap();
            assert!(result.is_ok() || is_cancelled(&result, "short"), "{result:?}");
        });
        assert!(vm.invoke("short", &[Value::Int(1)]).is_ok());
    }
}
