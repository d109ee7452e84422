//! The cost per instruction of native function bodies, compared with the same functions as bytecode.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pliant::{CompiledModule, Value, VirtualMachine, VmError, VmOptions};
use pliant_exec::{Arg, EXEC_MODE, ExecBuilder, Param, Reg};

const CALLS: u32 = 1000;

fn successor(args: &[Value]) -> Result<Value, VmError> {
    let value = args.first().and_then(Value::as_int);
    value
        .map(|v| Value::Int(v.wrapping_add(1)))
        .ok_or_else(|| VmError::type_error("the argument of `successor` must be an integer"))
}

/// Builds a program whose `main` calls `callee` [`CALLS`] times, each time on the previous result. The program also contains the
/// function `f`, which returns its argument.
fn straight_line(callee: &str) -> ExecBuilder {
    let mut b = ExecBuilder::new();
    b.set_metadata(EXEC_MODE, "compiled");
    b.begin_function("f", vec![Param::new("x")], "");
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("main", vec![Param::new("x")], "");
    for _ in 0..CALLS {
        b.emit_call(callee, &[Arg::reg(Reg(0))], Reg(0));
    }
    b.emit_call("vm.builtin.copy", &[Arg::reg(Reg(0))], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    b
}

fn new_vm(b: ExecBuilder, bytecode: bool) -> VirtualMachine {
    let program = CompiledModule::from_executable(
        b.get().expect("the program of the benchmark passes validation"),
    );
    let functions = [("successor".to_string(), Arc::new(successor) as _)].into_iter().collect();
    program
        .and_then(|p| p.vm_with(VmOptions { functions, bytecode, ..VmOptions::default() }))
        .expect("all functions that the program calls exist")
}

fn native(c: &mut Criterion) {
    let mut group = c.benchmark_group("native");
    group.throughput(Throughput::Elements(u64::from(CALLS)));
    for (what, callee) in
        [("builtin", "vm.builtin.copy"), ("packed function", "successor"), ("function", "f")]
    {
        for (mode, bytecode) in [("native", false), ("bytecode", true)] {
            let vm = new_vm(straight_line(callee), bytecode);
            group.bench_function(format!("call of a {what}, {mode}"), |b| {
                b.iter(|| {
                    vm.invoke("main", &[Value::Int(0)]).expect("the run of the benchmark succeeds")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, native);
criterion_main!(benches);
