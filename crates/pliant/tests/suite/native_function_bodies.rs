//! Tests that native bodies (bytecode functions compiled to machine code) compute the same results as their bytecode.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::test_helpers::{iota, parse, read};
use pliant::{
    CompileOptions, CompiledModule, ExecMode, Tensor, Value, VirtualMachine, VmError, VmOptions,
};
use pliant_exec::{EXEC_MODE, ExecBuilder, Param, Reg};
use pliant_vm::{Instrument, InstrumentAction, PackedFunc};

fn options() -> CompileOptions {
    CompileOptions { exec_mode: ExecMode::Compiled, ..CompileOptions::default() }
}

fn packed(f: fn(&[Value]) -> Result<Value, VmError>) -> PackedFunc {
    Arc::new(f)
}

fn int(args: &[Value], i: usize) -> Result<i64, VmError> {
    args.get(i).and_then(Value::as_int).ok_or_else(|| VmError::type_error("no integer"))
}

/// Creates two VMs for one program: one executes its native bodies, the other its bytecode.
fn native_and_bytecode_vms(b: ExecBuilder) -> [VirtualMachine; 2] {
    let mut b = b;
    b.set_metadata(EXEC_MODE, "compiled");
    let program = CompiledModule::from_executable(b.get().unwrap()).unwrap();
    let functions = [
        ("test.succ", packed(|a| Ok(Value::Int(int(a, 0)?.wrapping_add(1))))),
        ("test.add", packed(|a| Ok(Value::Int(int(a, 0)?.wrapping_add(int(a, 1)?))))),
        ("test.less", packed(|a| Ok(Value::Bool(int(a, 0)? < int(a, 1)?)))),
        ("test.fail", packed(|_| Err(VmError::external("no luck today")))),
        ("test.panic", packed(|_| panic!("a broken function"))),
    ];
    let functions: Vec<_> = functions.into_iter().map(|(n, f)| (n.to_string(), f)).collect();
    let new_vm = |bytecode| {
        let functions = functions.iter().cloned().collect();
        let vm = program.vm_with(VmOptions { functions, bytecode, ..VmOptions::default() });
        vm.unwrap()
    };
    let vms = [new_vm(false), new_vm(true)];
    assert!(vms[0].is_native() && !vms[1].is_native());
    vms
}

/// Runs a bytecode program and the native bodies compiled from it, asserts that both return the same integer, and returns it.
fn result(b: ExecBuilder, args: &[i64]) -> i64 {
    let args: Vec<Value> = args.iter().map(|&v| Value::Int(v)).collect();
    let [a, b] =
        native_and_bytecode_vms(b).map(|vm| vm.invoke("main", &args).unwrap().as_int().unwrap());
    assert_eq!(a, b);
    a
}

/// Runs a bytecode program and the native bodies compiled from it, asserts that both fail with the same error, and returns the
/// error message.
fn failure(b: ExecBuilder, args: &[Value]) -> String {
    let [a, b] =
        native_and_bytecode_vms(b).map(|vm| vm.invoke("main", args).unwrap_err().to_string());
    assert_eq!(a, b);
    a
}

fn begin(params: &[&str]) -> ExecBuilder {
    let mut b = ExecBuilder::new();
    b.begin_function("main", params.iter().map(|&name| Param::new(name)).collect(), "");
    b
}

/// Builds a bytecode program: `sum = 0; i = 0; while i < n: sum = sum + i; i = i + 1; return sum`.
fn sum_loop() -> ExecBuilder {
    let mut b = begin(&["n"]);
    let zero = b.imm(0);
    let (i, sum, condition) = (1, 2, 3);
    b.emit_call("vm.builtin.copy", &[zero], Reg(i));
    b.emit_call("vm.builtin.copy", &[zero], Reg(sum));
    let head = b.here();
    b.emit_call("test.less", &[b.r(i), b.r(0)], Reg(condition));
    let exit_jump = b.emit_if(Reg(condition), 0);
    b.emit_call("test.add", &[b.r(sum), b.r(i)], Reg(sum));
    b.emit_call("test.succ", &[b.r(i)], Reg(i));
    let back_jump = b.emit_goto(0);
    b.patch(back_jump, head);
    let done = b.here();
    b.patch(exit_jump, done);
    b.emit_ret(Reg(sum));
    b.end_function();
    b
}

#[test]
fn loops_run_to_their_end() {
    for n in [0, 1, 2, 1000] {
        assert_eq!(result(sum_loop(), &[n]), n * (n - 1) / 2);
    }
}

#[test]
fn long_bodies_continue_in_the_next_code_piece() {
    for count in [1, 1022, 1023, 1024, 1025, 2048, 5000] {
        let mut b = begin(&["x"]);
        for _ in 0..count {
            b.emit_call("test.succ", &[b.r(0)], Reg(0));
        }
        b.emit_ret(Reg(0));
        b.end_function();
        assert_eq!(result(b, &[7]), 7 + count);
    }
}

#[test]
fn jumps_reach_other_code_pieces() {
    // Three iterations through a body of three pieces.
    let mut b = begin(&["x"]);
    let limit = b.imm(9000);
    for _ in 0..3000 {
        b.emit_call("test.succ", &[b.r(0)], Reg(0));
    }
    b.emit_call("test.less", &[b.r(0), limit], Reg(1));
    let exit_jump = b.emit_if(Reg(1), 0);
    let back_jump = b.emit_goto(0);
    b.patch(back_jump, 0);
    let done = b.here();
    b.patch(exit_jump, done);
    b.emit_ret(Reg(0));
    b.end_function();
    assert_eq!(result(b, &[0]), 9000);
}

#[test]
fn calls_nest_and_tail_calls_take_no_stack() {
    // f(n, acc) = acc if not (0 < n) else f(n - 1, acc + 1); the result of main is f(n, 0) + 1.
    let mut b = begin(&["n"]);
    let zero = b.imm(0);
    b.emit_call("f", &[b.r(0), zero], Reg(1));
    b.emit_call("test.succ", &[b.r(1)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    b.begin_function("f", vec![Param::new("n"), Param::new("acc")], "");
    let (zero, minus) = (b.imm(0), b.imm(-1));
    b.emit_call("test.less", &[zero, b.r(0)], Reg(2));
    b.emit_if(Reg(2), 5);
    b.emit_call("test.add", &[b.r(0), minus], Reg(0));
    b.emit_call("test.succ", &[b.r(1)], Reg(1));
    b.emit_call("f", &[b.r(0), b.r(1)], Reg(3));
    b.emit_ret(Reg(3));
    b.emit_ret(Reg(1));
    b.end_function();
    assert_eq!(result(b, &[100_000]), 100_001);
}

#[test]
fn endless_recursion_is_an_error() {
    let mut b = begin(&["x"]);
    b.emit_call("main", &[b.r(0)], Reg(1));
    b.emit_call("test.succ", &[b.r(1)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    assert!(failure(b, &[Value::Int(1)]).contains("nested too deeply"));
}

#[test]
fn closures_are_called_and_return() {
    let mut b = begin(&["x"]);
    let (f, five) = (b.f("f"), b.imm(5));
    b.emit_call("vm.builtin.make_closure", &[f, five], Reg(1));
    b.emit_call("vm.builtin.invoke_closure", &[b.r(1), b.r(0)], Reg(2));
    b.emit_call("test.add", &[b.r(2), b.r(2)], Reg(2));
    b.emit_ret(Reg(2));
    b.end_function();
    b.begin_function("f", vec![Param::new("a"), Param::new("b")], "");
    b.emit_call("test.add", &[b.r(0), b.r(1)], Reg(2));
    b.emit_ret(Reg(2));
    b.end_function();
    assert_eq!(result(b, &[10]), 30);
}

#[test]
fn native_errors_equal_bytecode_errors() {
    let one_call = |name: &str| {
        let mut b = begin(&["x"]);
        b.emit_call(name, &[b.r(0)], Reg(1));
        b.emit_ret(Reg(1));
        b.end_function();
        b
    };
    let x = [Value::Str("text".into())];
    assert!(failure(one_call("test.fail"), &x).contains("'test.fail' failed: no luck today"));
    assert!(failure(one_call("test.panic"), &x).contains("panicked: a broken function"));
    assert!(failure(one_call("vm.builtin.shape_of"), &x).contains("must be a tensor"));
    assert!(failure(one_call("vm.builtin.invoke_closure"), &x).contains("must be a function"));
    let mut b = begin(&["x"]);
    b.emit_if(Reg(0), 1);
    b.emit_ret(Reg(0));
    b.end_function();
    assert!(failure(b, &x).contains("main: the condition of a branch must be a bool"));
    // A wrong number of arguments is detected before any instruction runs.
    let [native, _] = native_and_bytecode_vms(sum_loop());
    assert!(matches!(native.invoke("main", &[]), Err(VmError::Arity { .. })));
}

#[test]
fn endless_loops_are_interrupted_and_polled() {
    let mut b = begin(&["x"]);
    b.emit_goto(0);
    b.end_function();
    for vm in native_and_bytecode_vms(b) {
        let polls = Arc::new(AtomicUsize::new(0));
        let poll_count = polls.clone();
        vm.set_poll(Some(Arc::new(move || poll_count.fetch_add(1, Ordering::SeqCst) >= 2)));
        std::thread::scope(|scope| {
            let run = scope.spawn(|| vm.invoke("main", &[Value::Int(0)]));
            while !run.is_finished() {
                vm.request_poll();
                std::thread::yield_now();
            }
            assert!(matches!(run.join().unwrap(), Err(VmError::Interrupted)));
        });
        assert!(polls.load(Ordering::SeqCst) >= 3);
    }
}

#[test]
fn instruments_see_every_call() {
    let [native, _] = native_and_bytecode_vms(sum_loop());
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    native.set_instrument(Some(Instrument::new(move |event| {
        count.fetch_add(usize::from(event.before), Ordering::SeqCst);
        InstrumentAction::Continue
    })));
    let sum = native.invoke("main", &[Value::Int(3)]).unwrap().as_int();
    assert_eq!((sum, calls.load(Ordering::SeqCst)), (Some(3), 2 + 4 + 2 * 3));
}

const BRANCHES: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), dtype="float32"), c: R.Tensor((), dtype="bool")) -> R.Tensor(("n",), dtype="float32"):
        if c:
            y = R.add(x, x)
        else:
            z = R.multiply(x, x)
            y = R.negative(z)
        return y
"#;

#[test]
fn loaded_programs_keep_their_mode_and_recompile_bodies() {
    let program = pliant::compile(parse(BRANCHES), &options()).unwrap();
    assert!(program.executable().stats().contains("Execution mode: compiled"));
    assert!(program.executable().as_text().starts_with("# exec_mode: compiled"));
    assert!(program.stats().phases.iter().any(|p| &*p.name == "FunctionBodies"));
    let loaded = CompiledModule::from_bytes(&program.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.executable().exec_mode(), "compiled");
    for vm in [program.vm().unwrap(), loaded.vm().unwrap()] {
        assert!(vm.is_native());
        for n in [0, 1, 7] {
            for (c, f) in [(true, (|v| v + v) as fn(f32) -> f32), (false, |v| -v * v)] {
                let (shape, values) = read(
                    &vm.invoke(
                        "main",
                        &[iota(&[n]), Value::Tensor(Tensor::from_slice(&[], &[c]).unwrap())],
                    )
                    .unwrap(),
                );
                let expected: Vec<f32> = (0..n).map(|v| f(v as f32)).collect();
                assert_eq!((shape, values), (vec![n], expected));
            }
        }
    }
    let bytecode = pliant::compile(parse(BRANCHES), &CompileOptions::default()).unwrap();
    assert!(!bytecode.vm().unwrap().is_native());
}
