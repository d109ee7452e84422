//! The virtual machine's cost per instruction: a straight run of calls, and a loop.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pliant_exec::{ExecBuilder, Param, Reg};
use pliant_vm::{KernelTable, Value, VirtualMachine, VmError, VmOptions};

const CALLS: u32 = 1000;

fn successor(args: &[Value]) -> Result<Value, VmError> {
    let value = args.first().and_then(Value::as_int);
    value
        .map(|v| Value::Int(v.wrapping_add(1)))
        .ok_or_else(|| VmError::type_error("an integer, please"))
}

fn straight_line() -> VirtualMachine {
    let mut b = ExecBuilder::new();
    b.begin_function("main", vec![Param::new("x")], "");
    for i in 0..CALLS {
        b.emit_call("successor", &[b.r(i % 2)], Reg((i + 1) % 2));
    }
    b.emit_ret(Reg(CALLS % 2));
    b.end_function();
    let exe = b.get().expect("the program is valid");
    let options = VmOptions {
        functions: [("successor".to_string(), Arc::new(successor) as _)].into_iter().collect(),
        ..VmOptions::default()
    };
    VirtualMachine::with_options(Arc::new(exe), KernelTable::new(), options)
        .expect("the program links")
}

fn dispatch(c: &mut Criterion) {
    let vm = straight_line();
    let mut group = c.benchmark_group("dispatch");
    group.throughput(Throughput::Elements(u64::from(CALLS) + 1));
    group.bench_function("call of a packed function", |b| {
        b.iter(|| vm.invoke("main", &[Value::Int(0)]).expect("the program runs"));
    });
    group.finish();
}

criterion_group!(benches, dispatch);
criterion_main!(benches);
