//! The virtual machine's cost per instruction: straight-line calls, iterations of loops, calls of closures.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pliant_exec::{ExecBuilder, Param, Reg};
use pliant_vm::{LoopFuncTable, Value, VirtualMachine, VmError, VmOptions};

const CALLS: u32 = 1000;

fn successor(args: &[Value]) -> Result<Value, VmError> {
    let value = args.first().and_then(Value::as_int);
    value
        .map(|v| Value::Int(v.wrapping_add(1)))
        .ok_or_else(|| VmError::type_error("the argument of `successor` must be an integer"))
}

fn straight_line() -> VirtualMachine {
    let mut b = ExecBuilder::new();
    b.begin_function("main", vec![Param::new("x")], "");
    for i in 0..CALLS {
        b.emit_call("successor", &[b.r(i % 2)], Reg((i + 1) % 2));
    }
    b.emit_ret(Reg(CALLS % 2));
    b.end_function();
    let exe = b.get().expect("the program of the benchmark passes validation");
    let options = VmOptions {
        functions: [("successor".to_string(), Arc::new(successor) as _)].into_iter().collect(),
        ..VmOptions::default()
    };
    VirtualMachine::with_options(Arc::new(exe), LoopFuncTable::new(), options)
        .expect("all functions that the program calls exist")
}

/// Builds a program with these functions:
/// - `inlined(n)`: `while i < n: i = i + 1`, as compiled from `R.while_loop`;
/// - `main(n)`: the same loop, where the condition and the body are functions with other callers;
/// - `tail(i, n)`: the same loop as tail recursion;
/// - `closures(n)`: makes a closure and calls it, n times;
/// - `calls(n)`: makes a closure once and calls it n times;
/// - `only_functions(x)` and `only_closures(x)`: straight-line calls of a function or a closure that returns its argument.
fn loops() -> VirtualMachine {
    let mut b = ExecBuilder::new();
    let (zero, one, minus) = (b.imm(0), b.imm(1), b.imm(-1));
    b.begin_function("less", vec![Param::new("i"), Param::new("n")], "");
    b.emit_call("vm.builtin.compute_prim_value", &[one, zero, one, b.r(0), minus, b.r(1)], Reg(2));
    b.emit_ret(Reg(2));
    b.end_function();
    b.begin_function("next", vec![Param::new("i"), Param::new("n")], "");
    b.emit_call("vm.builtin.compute_prim_value", &[zero, one, one, b.r(0)], Reg(2));
    b.emit_call("vm.builtin.make_tuple", &[b.r(2), b.r(1)], Reg(3));
    b.emit_ret(Reg(3));
    b.end_function();
    b.begin_function("main", vec![Param::new("n")], "");
    b.emit_call("vm.builtin.copy", &[zero], Reg(1));
    let start = b.here();
    b.emit_call("less", &[b.r(1), b.r(0)], Reg(2));
    let over = b.emit_if(Reg(2), 1);
    b.emit_call("next", &[b.r(1), b.r(0)], Reg(2));
    b.emit_call("vm.builtin.tuple_getitem", &[b.r(2), zero], Reg(1));
    let back = b.emit_goto(0);
    b.patch(back, start);
    let here = b.here();
    b.patch(over, here);
    b.emit_ret(Reg(1));
    b.end_function();
    b.begin_function("tail", vec![Param::new("i"), Param::new("n")], "");
    b.emit_call("vm.builtin.compute_prim_value", &[one, zero, one, b.r(0), minus, b.r(1)], Reg(2));
    let over = b.emit_if(Reg(2), 1);
    b.emit_call("vm.builtin.compute_prim_value", &[zero, one, one, b.r(0)], Reg(3));
    b.emit_call("tail", &[b.r(3), b.r(1)], Reg(4));
    b.emit_ret(Reg(4));
    let here = b.here();
    b.patch(over, here);
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("inlined", vec![Param::new("n")], "");
    b.emit_call("vm.builtin.copy", &[zero], Reg(1));
    let start = b.here();
    b.emit_call("vm.builtin.compute_prim_value", &[one, zero, one, b.r(1), minus, b.r(0)], Reg(2));
    let over = b.emit_if(Reg(2), 1);
    b.emit_call("vm.builtin.compute_prim_value", &[zero, one, one, b.r(1)], Reg(1));
    let back = b.emit_goto(0);
    b.patch(back, start);
    let here = b.here();
    b.patch(over, here);
    b.emit_ret(Reg(1));
    b.end_function();
    closures(&mut b);
    only_calls(&mut b);
    let exe = b.get().expect("the program of the benchmark passes validation");
    VirtualMachine::new(Arc::new(exe), LoopFuncTable::new())
        .expect("all functions that the program calls exist")
}

fn closures(b: &mut ExecBuilder) {
    let (zero, one, minus) = (b.imm(0), b.imm(1), b.imm(-1));
    b.begin_function("closures", vec![Param::new("n")], "");
    b.emit_call("vm.builtin.copy", &[zero], Reg(1));
    let start = b.here();
    b.emit_call("vm.builtin.compute_prim_value", &[one, zero, one, b.r(1), minus, b.r(0)], Reg(2));
    let over = b.emit_if(Reg(2), 1);
    let next = b.f("next");
    b.emit_call("vm.builtin.make_closure", &[next, b.r(0)], Reg(3));
    b.emit_call("vm.builtin.invoke_closure", &[b.r(3), b.r(1)], Reg(2));
    b.emit_call("vm.builtin.tuple_getitem", &[b.r(2), zero], Reg(1));
    let back = b.emit_goto(0);
    b.patch(back, start);
    let here = b.here();
    b.patch(over, here);
    b.emit_ret(Reg(1));
    b.end_function();
    b.begin_function("calls", vec![Param::new("n")], "");
    b.emit_call("vm.builtin.copy", &[zero], Reg(1));
    let next = b.f("next");
    b.emit_call("vm.builtin.make_closure", &[next, b.r(0)], Reg(3));
    let start = b.here();
    b.emit_call("vm.builtin.compute_prim_value", &[one, zero, one, b.r(1), minus, b.r(0)], Reg(2));
    let over = b.emit_if(Reg(2), 1);
    b.emit_call("vm.builtin.invoke_closure", &[b.r(3), b.r(1)], Reg(2));
    b.emit_call("vm.builtin.tuple_getitem", &[b.r(2), zero], Reg(1));
    let back = b.emit_goto(0);
    b.patch(back, start);
    let here = b.here();
    b.patch(over, here);
    b.emit_ret(Reg(1));
    b.end_function();
}

fn only_calls(b: &mut ExecBuilder) {
    b.begin_function("first", vec![Param::new("x"), Param::new("captured")], "");
    b.emit_ret(Reg(0));
    b.end_function();
    for (name, is_closure) in [("only_functions", false), ("only_closures", true)] {
        b.begin_function(name, vec![Param::new("x")], "");
        let first = b.f("first");
        b.emit_call("vm.builtin.make_closure", &[first, b.r(0)], Reg(1));
        for _ in 0..CALLS {
            if is_closure {
                b.emit_call("vm.builtin.invoke_closure", &[b.r(1), b.r(0)], Reg(0));
            } else {
                b.emit_call("first", &[b.r(0), b.r(0)], Reg(0));
            }
        }
        b.emit_ret(Reg(0));
        b.end_function();
    }
}

fn control_flow(c: &mut Criterion) {
    const ITERATIONS: i64 = 100_000;
    let vm = loops();
    let mut group = c.benchmark_group("control flow");
    group.throughput(Throughput::Elements(ITERATIONS as u64));
    let run = |name: &str, args: &[Value]| {
        vm.invoke(name, args).expect("the run of the benchmark succeeds")
    };
    let n = Value::Int(ITERATIONS);
    let one = std::slice::from_ref(&n);
    group.bench_function("iteration of a loop", |b| b.iter(|| run("inlined", one)));
    group
        .bench_function("iteration of a loop of shared functions", |b| b.iter(|| run("main", one)));
    let args = [Value::Int(0), n.clone()];
    group.bench_function("iteration of a tail recursion", |b| b.iter(|| run("tail", &args)));
    let n = std::slice::from_ref(&n);
    group.bench_function("closure creation and call", |b| b.iter(|| run("closures", n)));
    group.bench_function("closure call", |b| b.iter(|| run("calls", n)));
    group.throughput(Throughput::Elements(u64::from(CALLS)));
    group.bench_function("call of a closure alone", |b| b.iter(|| run("only_closures", n)));
    group.bench_function("call of a function alone", |b| b.iter(|| run("only_functions", n)));
    // Deeper than any stack: tail calls reuse the frame.
    const RECURSION_DEPTH: i64 = 10_000_000;
    group.throughput(Throughput::Elements(RECURSION_DEPTH as u64)).sample_size(10);
    let args = [Value::Int(0), Value::Int(RECURSION_DEPTH)];
    group.bench_function("ten million iterations of a tail recursion", |b| {
        b.iter(|| run("tail", &args));
    });
    group.finish();
}

fn dispatch(c: &mut Criterion) {
    let vm = straight_line();
    let mut group = c.benchmark_group("dispatch");
    group.throughput(Throughput::Elements(u64::from(CALLS) + 1));
    group.bench_function("call of a packed function", |b| {
        b.iter(|| vm.invoke("main", &[Value::Int(0)]).expect("the run of the benchmark succeeds"));
    });
    group.finish();
}

criterion_group!(benches, dispatch, control_flow);
criterion_main!(benches);
