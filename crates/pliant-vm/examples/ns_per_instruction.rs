//! Measures the cost of one VM instruction: `cargo run --release -p pliant-vm --example ns_per_instruction`.

#![expect(clippy::print_stdout, reason = "the example prints its measurements")]

use std::sync::Arc;
use std::time::Instant;

use pliant_exec::abi::KernelRuntime;
use pliant_exec::{Arg, Constant, ExecBuilder, LoopFuncInfo, LoopFuncParam, Param, Reg};
use pliant_tensor::{DType, Tensor};
use pliant_vm::{LoopFuncTable, PackedFunc, Value, VirtualMachine, VmOptions};

/// Number of instructions per invocation, large enough to make the overhead of the invocation
/// negligible.
const REPEAT: u32 = 6_000;

unsafe extern "C" fn nothing(_: *const u64, _: *const KernelRuntime) -> i64 {
    0
}

/// Measures the run time of a function whose instructions `emit` creates, and prints the time in
/// nanoseconds per instruction. Each call of `emit` emits `per_round` instructions.
fn measure(name: &str, per_round: u32, mut emit: impl FnMut(&mut ExecBuilder, u32)) {
    let mut b = ExecBuilder::new();
    let tensor = LoopFuncParam::Tensor {
        dtype: Some(DType::Float32),
        ndim: Some(2),
        written: false,
        strided: false,
    };
    b.loop_func(LoopFuncInfo { name: "kernel".into(), args: vec![tensor; 3], checks: vec![] });
    b.begin_function("callee", vec![Param::new("x")], "");
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("main", vec![Param::new("x")], "");
    let eight = b.imm(8);
    b.emit_call("vm.builtin.alloc_shape_heap", &[eight], Reg(1));
    let bytes = b.imm(4096);
    b.emit_call("vm.builtin.alloc_storage", &[bytes], Reg(2));
    for i in 0..REPEAT / per_round {
        emit(&mut b, i);
    }
    b.emit_ret(Reg(0));
    b.end_function();
    let mut kernels = LoopFuncTable::new();
    // SAFETY: the kernel ignores its arguments.
    unsafe { kernels.insert("kernel", nothing) };
    let host: PackedFunc = Arc::new(|args: &[Value]| Ok(args[0].clone()));
    let functions = [("host".to_string(), host)].into_iter().collect();
    let exe = Arc::new(b.get().expect("the built program obeys the rules of the bytecode"));
    let options = VmOptions { functions, ..VmOptions::default() };
    let vm = VirtualMachine::with_options(exe, kernels, options)
        .expect("all functions of the program can be linked");
    let x = Value::Tensor(Tensor::zeros(&[4, 4], DType::Float32).expect("64 bytes"));
    let main = vm.index_of("main").expect("main exists");
    let mut best = f64::MAX;
    for _ in 0..50 {
        let start = Instant::now();
        vm.invoke_index(main, std::slice::from_ref(&x)).expect("the program runs without an error");
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(REPEAT));
    }
    println!("{name:<44} {best:7.1} ns");
}

fn main() {
    measure("kernel call, 3 tensors", 1, |b, _| {
        b.emit_call("kernel", &[b.r(0), b.r(0), b.r(0)], Reg::VOID);
    });
    measure("match_shape, 2 dims", 1, |b, _| {
        let args: Vec<Arg> = [2, 1, 0, 3, 0].map(|i| b.imm(i)).to_vec();
        let args = [&[b.r(0), b.r(1)], &args[..]].concat();
        b.emit_call("vm.builtin.match_shape", &args, Reg::VOID);
    });
    measure("make_shape, 2 dims", 1, |b, _| {
        let args: Vec<Arg> = [2, 1, 0, 1, 1].map(|i| b.imm(i)).to_vec();
        let args = [&[b.r(1)], &args[..]].concat();
        b.emit_call("vm.builtin.make_shape", &args, Reg(3));
    });
    measure("alloc_tensor in a storage", 1, |b, _| {
        let args = [b.r(2), b.imm(0), b.shape(&[4, 4]), b.c(Constant::DType(DType::Float32))];
        b.emit_call("vm.builtin.alloc_tensor", &args, Reg(3));
    });
    measure("alloc_storage and kill_object", 2, |b, _| {
        let bytes = b.imm(4096);
        b.emit_call("vm.builtin.alloc_storage", &[bytes], Reg(3));
        b.emit_call("vm.builtin.kill_object", &[b.r(3)], Reg::VOID);
    });
    measure("check_tensor_info", 1, |b, _| {
        let args = [b.r(0), b.imm(2), b.c(Constant::DType(DType::Float32)), b.str("main: 'x'")];
        b.emit_call("vm.builtin.check_tensor_info", &args, Reg::VOID);
    });
    measure("storage, shape, tensor, kernel, 2 kills", 6, |b, _| {
        let args = [b.imm(4096), b.imm(0), b.c(Constant::DType(DType::UInt8))];
        b.emit_call("vm.builtin.alloc_storage", &args, Reg(3));
        let args: Vec<Arg> = [2, 0, 4, 0, 4].map(|i| b.imm(i)).to_vec();
        let args = [&[b.r(1)], &args[..]].concat();
        b.emit_call("vm.builtin.make_shape", &args, Reg(4));
        let args = [b.r(3), b.imm(0), b.r(4), b.c(Constant::DType(DType::Float32))];
        b.emit_call("vm.builtin.alloc_tensor", &args, Reg(5));
        b.emit_call("kernel", &[b.r(0), b.r(0), b.r(5)], Reg::VOID);
        b.emit_call("vm.builtin.kill_object", &[b.r(3)], Reg::VOID);
        b.emit_call("vm.builtin.kill_object", &[b.r(5)], Reg::VOID);
    });
    measure("call and return of a bytecode function", 1, |b, _| {
        b.emit_call("callee", &[b.r(0)], Reg(3));
    });
    measure("call of a host function", 1, |b, _| {
        b.emit_call("host", &[b.r(0)], Reg(3));
    });
    measure("make_tuple of 2", 1, |b, _| {
        b.emit_call("vm.builtin.make_tuple", &[b.r(0), b.r(1)], Reg(3));
    });
    measure("goto", 1, |b, _| {
        b.emit_goto(1);
    });
}
