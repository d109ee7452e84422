//! Tests of the VM: calls, control flow, recursion, closures, loop functions, packed functions,
//! interrupts, threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::vm_test_setup::{build_vm, build_vm_with, builder};
use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED};
use pliant_exec::{Arg, Constant, ExecBuilder, LoopFuncInfo, LoopFuncParam, Param, Reg};
use pliant_tensor::{DType, Tensor};
use pliant_vm::{
    FuncValue, Instrument, InstrumentAction, LoopFuncTable, PackedFunc, Value, VirtualMachine,
    VmError, VmOptions,
};

fn packed(f: impl Fn(&[Value]) -> Result<Value, VmError> + Send + Sync + 'static) -> PackedFunc {
    Arc::new(f)
}

fn arithmetic() -> Vec<(&'static str, PackedFunc)> {
    fn int(v: &[Value], i: usize) -> Result<i64, VmError> {
        v.get(i).and_then(Value::as_int).ok_or_else(|| VmError::type_error("an integer, please"))
    }
    vec![
        ("add", packed(|v| Ok(Value::Int(int(v, 0)?.wrapping_add(int(v, 1)?))))),
        ("less", packed(|v| Ok(Value::Bool(int(v, 0)? < int(v, 1)?)))),
    ]
}

#[test]
fn a_call_preserves_the_registers_of_the_caller() {
    let mut b = builder();
    b.begin_function("twice", vec![Param::new("x")], "");
    b.emit_call("add", &[b.r(0), b.r(0)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    b.begin_function("main", vec![Param::new("x")], "");
    b.emit_call("twice", &[b.r(0)], Reg(1));
    b.emit_call("twice", &[b.r(1)], Reg(2));
    b.emit_call("vm.builtin.make_tuple", &[b.r(0), b.r(1), b.r(2)], Reg(3));
    b.emit_ret(Reg(3));
    b.end_function();
    let vm = build_vm_with(b, arithmetic());
    let out = vm.invoke("main", &[Value::Int(5)]).unwrap();
    assert_eq!(format!("{out:?}"), "[5, 10, 20]");
    assert_eq!(vm.stats().invocations, 1);
    let twice = vm.function("twice").unwrap();
    assert_eq!(twice.call(&[Value::Int(4)]).unwrap().as_int(), Some(8));
    drop(vm);
    assert!(twice.call(&[Value::Int(4)]).unwrap_err().to_string().contains("was dropped"));
}

/// Builds a VM whose function `main` computes `while i < n { acc += i; i += 1 } acc`.
fn loop_vm() -> VirtualMachine {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("n")], "");
    let (zero, one) = (b.imm(0), b.imm(1));
    b.emit_call("vm.builtin.copy", &[zero], Reg(1));
    b.emit_call("vm.builtin.copy", &[zero], Reg(2));
    b.emit_call("less", &[b.r(1), b.r(0)], Reg(3));
    b.emit_if(Reg(3), 4);
    b.emit_call("add", &[b.r(2), b.r(1)], Reg(2));
    b.emit_call("add", &[b.r(1), one], Reg(1));
    b.emit_goto(-4);
    b.emit_ret(Reg(2));
    b.end_function();
    build_vm_with(b, arithmetic())
}

#[test]
fn a_loop_computes_a_sum() {
    let vm = loop_vm();
    for n in [0i64, 1, 2, 1000] {
        assert_eq!(vm.invoke("main", &[n.into()]).unwrap().as_int(), Some(n * (n - 1) / 2));
    }
}

#[test]
fn many_threads_share_one_vm() {
    let vm = loop_vm();
    std::thread::scope(|scope| {
        for t in 0..4i64 {
            let vm = &vm;
            scope.spawn(move || {
                for n in 0..50 {
                    let n = n + t;
                    let out = vm.invoke("main", &[n.into()]).unwrap();
                    assert_eq!(out.as_int(), Some(n * (n - 1) / 2));
                }
            });
        }
    });
}

#[test]
fn branch_conditions_accept_bool_and_integer_scalars() {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("c")], "");
    b.emit_if(Reg(0), 3);
    let (yes, no) = (b.imm(1), b.imm(0));
    b.emit_call("vm.builtin.copy", &[yes], Reg(1));
    b.emit_ret(Reg(1));
    b.emit_call("vm.builtin.copy", &[no], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    let vm = build_vm(b);
    let run = |value: Value| vm.invoke("main", &[value]).map(|v| v.as_int().unwrap());
    assert_eq!(run(Value::Bool(true)).unwrap(), 1);
    assert_eq!(run(Value::Int(0)).unwrap(), 0);
    assert_eq!(run(Tensor::scalar(true).unwrap().into()).unwrap(), 1);
    assert_eq!(run(Tensor::scalar(0i32).unwrap().into()).unwrap(), 0);
    for bad in [Value::None, Value::Float(1.0), Tensor::zeros(&[2], DType::Bool).unwrap().into()] {
        let error = run(bad).unwrap_err().to_string();
        assert!(error.starts_with("main: the condition of a branch must be"), "{error}");
    }
}

#[test]
fn wrong_calls_report_the_signature_or_known_functions() {
    let mut b = builder();
    b.begin_function(
        "main",
        vec![Param::typed("x", "Tensor((\"n\",), \"float32\")"), Param::new("k")],
        "",
    );
    b.emit_ret(Reg(0));
    b.end_function();
    let vm = build_vm(b);
    assert_eq!(
        vm.invoke("main", &[Value::None]).unwrap_err().to_string(),
        "main(x: Tensor((\"n\",), \"float32\"), k) takes 2 arguments, but 1 was given (missing: 'k')"
    );
    assert!(
        vm.invoke("main", &[])
            .unwrap_err()
            .to_string()
            .ends_with("0 were given (missing: 'x', 'k')")
    );
    let three = [Value::None, Value::None, Value::None];
    assert!(vm.invoke("main", &three).unwrap_err().to_string().ends_with("but 3 were given"));
    assert_eq!(
        vm.invoke("mane", &[]).unwrap_err().to_string(),
        "the program has no function 'mane' (it has: main)"
    );
}

#[test]
fn all_missing_functions_are_reported_at_once() {
    let mut b = builder();
    b.loop_func(LoopFuncInfo { name: "k1".into(), ..LoopFuncInfo::default() });
    b.begin_function("main", vec![], "");
    b.emit_call("no.such.a", &[], Reg(0));
    b.emit_call("no.such.b", &[], Reg(0));
    b.emit_call("k1", &[], Reg::VOID);
    b.emit_ret(Reg(0));
    b.end_function();
    let error = VirtualMachine::new(Arc::new(b.get().unwrap()), LoopFuncTable::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the program calls functions that are not registered: no.such.a, no.such.b; \
         these loop functions have no machine code: k1"
    );
}

#[test]
fn recursion_depth_is_limited() {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("x")], "");
    b.emit_call("main", &[b.r(0)], Reg(1));
    b.emit_call("vm.builtin.copy", &[b.r(1)], Reg(2));
    b.emit_ret(Reg(2));
    b.end_function();
    let vm = build_vm(b);
    for _ in 0..3 {
        assert!(matches!(
            vm.invoke("main", &[Value::Int(1)]),
            Err(VmError::StackOverflow { depth: 100_000, .. })
        ));
    }
}

/// Builds a VM whose function `down(n, f)` calls itself in tail position until `n` is 0: directly, or through `f` if
/// `f` is a closure.
fn countdown() -> VirtualMachine {
    let mut b = builder();
    b.begin_function("down", vec![Param::new("n"), Param::new("f")], "");
    let over = b.emit_if(Reg(0), 1);
    b.emit_call("minus_one", &[b.r(0)], Reg(2));
    b.emit_call("down", &[b.r(2), b.r(1)], Reg(3));
    b.emit_ret(Reg(3));
    let here = b.here();
    b.patch(over, here);
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("through", vec![Param::new("n"), Param::new("f")], "");
    let over = b.emit_if(Reg(0), 1);
    b.emit_call("minus_one", &[b.r(0)], Reg(2));
    b.emit_call("vm.builtin.invoke_closure_tail", &[b.r(1), b.r(2), b.r(1)], Reg(3));
    // Reached if the function is a host function.
    b.emit_call("vm.builtin.make_tuple", &[b.r(3)], Reg(3));
    b.emit_ret(Reg(3));
    let here = b.here();
    b.patch(over, here);
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("forever", vec![Param::new("n")], "");
    b.emit_call("forever", &[b.r(0)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    let minus_one = packed(|v| Ok(Value::Int(v[0].as_int().unwrap_or(0) - 1)));
    build_vm_with(b, vec![("minus_one", minus_one)])
}

#[test]
fn tail_calls_reuse_the_frame_of_the_caller() {
    let vm = countdown();
    let through = Value::Func(vm.function("through").unwrap());
    for n in [0, 1, 2, 100_000] {
        let out = vm.invoke("down", &[Value::Int(n), Value::None]).unwrap();
        assert_eq!(out.as_int(), Some(0));
        let out = vm.invoke("through", &[Value::Int(n), through.clone()]).unwrap();
        assert_eq!(out.as_int(), Some(0));
    }
    let host = FuncValue::packed("host", packed(|v| Ok(v[0].clone())));
    let out = vm.invoke("through", &[Value::Int(5), host.into()]).unwrap();
    assert_eq!(format!("{out:?}"), "[4]");
}

#[test]
fn infinite_tail_calls_can_be_interrupted() {
    let vm = countdown();
    let other = vm.clone();
    let run = std::thread::spawn(move || other.invoke("forever", &[Value::Int(1)]));
    while !run.is_finished() {
        vm.interrupt();
        std::thread::yield_now();
    }
    assert!(matches!(run.join().unwrap(), Err(VmError::Interrupted)));
}

#[test]
fn tail_calls_work_with_an_instrument() {
    let vm = countdown();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    vm.set_instrument(Some(Instrument::new(move |event| {
        if event.before {
            count.fetch_add(1, Ordering::Relaxed);
        }
        InstrumentAction::Continue
    })));
    vm.invoke("down", &[Value::Int(20_000), Value::None]).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 40_000);
}

#[test]
fn recursion_through_host_functions_is_limited() {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("f")], "");
    b.emit_call("apply", &[b.r(0)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    let apply = packed(|v| v[0].as_func().unwrap().call(&v[..1]));
    let vm = build_vm_with(b, vec![("apply", apply)]);
    let main = Value::Func(vm.function("main").unwrap());
    assert!(matches!(vm.invoke("main", &[main]), Err(VmError::StackOverflow { depth: 64, .. })));
}

#[test]
fn deep_tuples_do_not_overflow_the_stack() {
    let mut value = Value::None;
    for i in 0..1_000_000 {
        value =
            if i % 3 == 0 { Value::tuple([value, Value::Int(i)]) } else { Value::tuple([value]) };
    }
    drop(value);
}

#[test]
fn closures_pass_captured_values_after_the_arguments() {
    let mut b = builder();
    b.begin_function("lifted", vec![Param::new("x"), Param::new("captured")], "");
    b.emit_call("vm.builtin.make_tuple", &[b.r(0), b.r(1)], Reg(2));
    b.emit_ret(Reg(2));
    b.end_function();
    b.begin_function("main", vec![Param::new("c")], "");
    let f = b.f("lifted");
    b.emit_call("vm.builtin.make_closure", &[f, b.r(0)], Reg(1));
    let one = b.imm(1);
    b.emit_call("vm.builtin.invoke_closure", &[b.r(1), one], Reg(2));
    b.emit_call("vm.builtin.make_tuple", &[b.r(1), b.r(2)], Reg(3));
    b.emit_ret(Reg(3));
    b.end_function();
    b.begin_function("call", vec![Param::new("f"), Param::new("x")], "");
    b.emit_call("vm.builtin.invoke_pure_closure", &[b.r(0), b.r(1)], Reg(2));
    b.emit_ret(Reg(2));
    b.end_function();
    let vm = build_vm(b);
    let out = vm.invoke("main", &[Value::Int(7)]).unwrap();
    let out = out.as_tuple().unwrap();
    assert_eq!(format!("{:?}", out[1]), "[1, 7]");
    let called = out[0].as_func().unwrap().call(&[Value::Int(2)]).unwrap();
    assert_eq!(format!("{called:?}"), "[2, 7]");
    let called = vm.invoke("call", &[out[0].clone(), Value::Int(3)]).unwrap();
    assert_eq!(format!("{called:?}"), "[3, 7]");
    let error = vm.invoke("call", &[Value::Int(1), Value::Int(3)]).unwrap_err().to_string();
    assert!(error.contains("must be a function, but is an integer"), "{error}");
    let bad = out[0].as_func().unwrap().call(&[]).unwrap_err().to_string();
    assert!(bad.contains("lifted(x) takes 1 argument, but 0 were given (missing: 'x')"), "{bad}");
}

#[test]
fn errors_and_panics_of_host_functions_become_errors() {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("x")], "");
    b.emit_call("host", &[b.r(0)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    let host = packed(|v| match v[0].as_int() {
        Some(0) => Err(VmError::external("no zeros")),
        Some(1) => Err(VmError::type_error("bad one")),
        Some(2) => panic!("two"),
        Some(3) => Err(VmError::Interrupted),
        _ => Ok(v[0].clone()),
    });
    let vm = build_vm_with(b, vec![("host", host)]);
    let error = |x: i64| vm.invoke("main", &[x.into()]).unwrap_err().to_string();
    assert_eq!(error(0), "packed function 'host' failed: no zeros");
    assert_eq!(error(1), "packed function 'host' failed: bad one");
    assert_eq!(error(2), "packed function 'host' failed: the function panicked: two");
    assert_eq!(error(3), "the run was interrupted");
    assert_eq!(vm.invoke("main", &[Value::Int(4)]).unwrap().as_int(), Some(4));
}

unsafe extern "C" fn add_loop_func(args: *const u64, _: *const KernelRuntime) -> i64 {
    // SAFETY: called with three float32 tensors, an integer and a float.
    unsafe {
        let tensor = |i: usize| &*(*args.add(i) as *const pliant_exec::abi::DLTensor);
        let (a, b, out) = (tensor(0), tensor(1), tensor(2));
        let (n, scale) = (*args.add(3) as i64, f64::from_bits(*args.add(4)));
        if *a.shape != n {
            return 2;
        }
        for i in 0..n as usize {
            let sum = *a.data.cast::<f32>().add(i) + *b.data.cast::<f32>().add(i);
            *out.data.cast::<f32>().add(i) = sum * scale as f32;
        }
    }
    0
}

unsafe extern "C" fn status_loop_func(args: *const u64, runtime: *const KernelRuntime) -> i64 {
    // SAFETY: called with one integer and the VM's runtime.
    unsafe {
        let block = ((*runtime).alloc_workspace)(100);
        ((*runtime).free_workspace)(block);
        *args as i64
    }
}

fn loop_func_vm() -> VirtualMachine {
    let mut b = builder();
    let tensor = |written| LoopFuncParam::Tensor {
        dtype: Some(DType::Float32),
        ndim: Some(1),
        written,
        strided: false,
    };
    b.loop_func(LoopFuncInfo {
        name: "add".into(),
        args: vec![
            tensor(false),
            tensor(false),
            tensor(true),
            LoopFuncParam::Int(DType::Int64),
            LoopFuncParam::Float,
        ],
        checks: vec!["unused".into(), "main: 'a' dim 0 must equal n".into()],
    });
    b.loop_func(LoopFuncInfo {
        name: "status".into(),
        args: vec![LoopFuncParam::Any],
        checks: vec!["check one".into()],
    });
    let params = ["a", "b", "out", "n", "s"].map(Param::new).to_vec();
    b.begin_function("main", params, "");
    b.emit_call("add", &[b.r(0), b.r(1), b.r(2), b.r(3), b.r(4)], Reg::VOID);
    b.emit_ret(Reg(2));
    b.end_function();
    b.begin_function("dynamic", ["a", "b", "out", "s"].map(Param::new).to_vec(), "");
    let f = b.f("status");
    b.emit_call("vm.builtin.call_tir_dyn", &[f, b.r(3)], Reg::VOID);
    b.emit_ret(Reg(2));
    b.end_function();
    b.begin_function("status_of", vec![Param::new("x")], "");
    b.emit_call("status", &[b.r(0)], Reg::VOID);
    b.emit_ret(Reg(0));
    b.end_function();
    let mut loop_funcs = LoopFuncTable::new();
    // SAFETY: the functions follow the ABI and take the described arguments.
    unsafe {
        loop_funcs.insert("add", add_loop_func);
        loop_funcs.insert("status", status_loop_func);
    }
    VirtualMachine::new(Arc::new(b.get().unwrap()), loop_funcs).unwrap()
}

#[test]
fn loop_functions_receive_checked_arguments() {
    let vm = loop_func_vm();
    let t = |v: &[f32]| Value::Tensor(Tensor::from_slice(&[v.len() as i64], v).unwrap());
    let run = |a: Value, b: Value, out: Value, n: Value, s: Value| {
        vm.invoke("main", &[a, b, out, n, s])
            .map(|v| v.as_tensor().unwrap().to_vec::<f32>().unwrap())
            .map_err(|error| error.to_string())
    };
    let (a, b, out) = (t(&[1., 2.]), t(&[10., 20.]), t(&[0., 0.]));
    let good = run(a.clone(), b.clone(), out.clone(), 2.into(), 2.into());
    assert_eq!(good.unwrap(), [22., 44.]);
    let good = run(a.clone(), b.clone(), out.clone(), 2.into(), 0.5.into());
    assert_eq!(good.unwrap(), [5.5, 11.]);
    let failed = run(a.clone(), b.clone(), out.clone(), 3.into(), 1.into());
    assert_eq!(
        failed.unwrap_err(),
        "main: 'a' dim 0 must equal n (in loop function 'add', called with \
         float32(2), float32(2), float32(2), 3, 1)"
    );

    // Strided and unaligned inputs are copied; such outputs are rejected.
    let base = Tensor::from_slice(&[3], &[1f32, 2., 3.]).unwrap();
    let strided =
        Tensor::from_storage_strided(base.storage().clone(), 8, &[2], &[-2], DType::Float32)
            .unwrap();
    let good = run(strided.clone().into(), b.clone(), out.clone(), 2.into(), 1.into());
    assert_eq!(good.unwrap(), [13., 21.]);
    let refused = run(a.clone(), b.clone(), strided.into(), 2.into(), 1.into());
    assert!(refused.unwrap_err().contains("strides [-2]"));
    let locked = Value::Tensor(out.as_tensor().unwrap().as_read_only());
    let refused = run(a.clone(), b.clone(), locked, 2.into(), 1.into()).unwrap_err();
    assert!(
        refused.contains("argument 2 must be a writable float32 tensor of 1 dims"),
        "{refused}"
    );
    let ints = Value::Tensor(Tensor::from_slice(&[2], &[1i32, 2]).unwrap());
    let refused = run(a.clone(), ints, out.clone(), 2.into(), 1.into()).unwrap_err();
    assert!(refused.contains("argument 1") && refused.contains("int32"), "{refused}");
    let refused = run(a, b, out, Value::Float(2.0), 1.into()).unwrap_err();
    assert!(refused.contains("argument 3 must be an integer, but is 2.0"), "{refused}");
}

#[test]
fn loop_function_statuses_become_errors() {
    let vm = loop_func_vm();
    let status =
        |x: i64| vm.invoke("status_of", &[x.into()]).map(|_| ()).map_err(|e| e.to_string());
    assert_eq!(status(0), Ok(()));
    assert_eq!(status(1).unwrap_err(), "check one (in loop function 'status', called with 1)");
    assert_eq!(status(2).unwrap_err(), "loop function 'status' failed with status 2");
    assert_eq!(status(-1).unwrap_err(), "loop function 'status' ran out of memory");
    assert_eq!(status(STATUS_CANCELLED).unwrap_err(), "the run was interrupted");
    assert_eq!(
        status(i64::MIN).unwrap_err(),
        format!("loop function 'status' failed with status {}", i64::MIN)
    );
    let t = Value::Tensor(Tensor::zeros(&[1], DType::Float32).unwrap());
    let dynamic = |dims: &[i64]| {
        let args = [t.clone(), t.clone(), t.clone(), Value::shape(dims)];
        vm.invoke("dynamic", &args).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(dynamic(&[0]), Ok(()));
    assert_eq!(dynamic(&[1]).unwrap_err(), "check one (in loop function 'status')");
    assert_eq!(
        dynamic(&[0, 0]).unwrap_err(),
        "loop function 'status' takes 1 arguments, but 2 were given"
    );
}

#[test]
fn interrupts_stop_infinite_loops() {
    let mut b = builder();
    b.begin_function("main", vec![], "");
    b.emit_goto(0);
    b.end_function();
    let vm = build_vm(b);
    let runner = vm.clone();
    let thread = std::thread::spawn(move || runner.invoke("main", &[]));
    while !thread.is_finished() {
        vm.interrupt();
        std::thread::yield_now();
    }
    assert!(matches!(thread.join().unwrap(), Err(VmError::Interrupted)));

    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    vm.set_poll(Some(Arc::new(move || counter.fetch_add(1, Ordering::Relaxed) == 2)));
    let runner = vm.clone();
    let thread = std::thread::spawn(move || runner.invoke("main", &[]));
    while !thread.is_finished() {
        vm.request_poll();
        std::thread::yield_now();
    }
    assert!(matches!(thread.join().unwrap(), Err(VmError::Interrupted)));
    assert_eq!(polls.load(Ordering::Relaxed), 3);
}

/// A loop function that runs until the VM's interrupt flag is set. Sets the only element of its tensor argument to 1 when it
/// starts.
unsafe extern "C" fn endless_loop_func(args: *const u64, runtime: *const KernelRuntime) -> i64 {
    // SAFETY: called with an int64 tensor of one element and the VM's runtime. Other threads access
    // the element atomically.
    let (begun, stop) = unsafe {
        let tensor = &*(*args as *const pliant_exec::abi::DLTensor);
        (AtomicI64::from_ptr(tensor.data.cast()), &*(*runtime).interrupt)
    };
    begun.store(1, Ordering::SeqCst);
    while !stop.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    STATUS_CANCELLED
}

#[test]
fn an_interrupt_does_not_stop_a_later_run() {
    let mut b = builder();
    b.loop_func(LoopFuncInfo {
        name: "endless".into(),
        args: vec![LoopFuncParam::Any],
        checks: vec![],
    });
    b.begin_function("long", vec![Param::new("x")], "");
    b.emit_call("endless", &[b.r(0)], Reg::VOID);
    b.emit_ret(Reg(0));
    b.end_function();
    b.begin_function("short", vec![Param::new("x")], "");
    b.emit_ret(Reg(0));
    b.end_function();
    let mut loop_funcs = LoopFuncTable::new();
    // SAFETY: the function follows the ABI and takes the argument above.
    unsafe { loop_funcs.insert("endless", endless_loop_func) };
    let vm = VirtualMachine::new(Arc::new(b.get().unwrap()), loop_funcs).unwrap();
    for _ in 0..50 {
        let flag = Tensor::zeros(&[1], DType::Int64).unwrap();
        let (runner, arg) = (vm.clone(), Value::Tensor(flag.clone()));
        let thread = std::thread::spawn(move || runner.invoke("long", &[arg]));
        // SAFETY: the element lives as long as the tensor, and the loop function accesses it atomically.
        let begun = unsafe { AtomicI64::from_ptr(flag.data_ptr().cast()) };
        while begun.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        vm.interrupt();
        assert_eq!(vm.invoke("short", &[Value::Int(3)]).unwrap().as_int(), Some(3));
        assert!(matches!(thread.join().unwrap(), Err(VmError::Interrupted)));
    }
}

#[test]
fn library_functions_use_the_team_and_interrupt_flag_of_the_vm() {
    let seen = Arc::new(AtomicUsize::new(0));
    let waits = {
        let seen = Arc::clone(&seen);
        move |runtime: &KernelRuntime, args: &[Value]| {
            seen.store(runtime.team as usize, Ordering::SeqCst);
            // SAFETY: the flag is never null and outlives the call.
            let flag = unsafe { &*runtime.interrupt };
            while !flag.load(Ordering::SeqCst) && !args.is_empty() {
                std::thread::yield_now();
            }
            if args.is_empty() { Ok(Value::Int(7)) } else { Err(VmError::Interrupted) }
        }
    };
    assert!(pliant_vm::register_library_func("test.machine.waits", Arc::new(waits), false));
    let mut b = builder();
    b.begin_function("main", vec![Param::new("x")], "");
    b.emit_call("test.machine.waits", &[b.r(0)], Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    b.begin_function("short", vec![], "");
    b.emit_call("test.machine.waits", &[], Reg(0));
    b.emit_ret(Reg(0));
    b.end_function();
    let team = Arc::new(pliant_pool::Team::new(2));
    let options = VmOptions { team: Some(Arc::clone(&team)), ..VmOptions::default() };
    let exe = Arc::new(b.get().unwrap());
    let vm = VirtualMachine::with_options(exe, LoopFuncTable::new(), options).unwrap();
    assert_eq!(vm.invoke("short", &[]).unwrap().as_int(), Some(7));
    assert_eq!(seen.swap(0, Ordering::SeqCst), Arc::as_ptr(&team) as usize);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| vm.invoke("main", &[Value::Int(1)]));
        while seen.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        vm.interrupt();
        let error = run.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    });
    // Outside of a VM it runs on the global team.
    let func = pliant_vm::get_func("test.machine.waits").unwrap();
    assert_eq!(func(&[]).unwrap().as_int(), Some(7));
    assert_eq!(seen.load(Ordering::SeqCst), std::ptr::from_ref(pliant_pool::global()) as usize);
}

#[test]
fn an_interrupt_without_a_run_has_no_effect() {
    let vm = loop_vm();
    vm.interrupt();
    vm.request_poll();
    assert_eq!(vm.invoke("main", &[Value::Int(3)]).unwrap().as_int(), Some(3));
}

#[test]
fn set_input_invoke_stateful_and_get_outputs() {
    let vm = loop_vm();
    assert!(vm.invoke_stateful("main").unwrap_err().to_string().contains("set_input"));
    assert!(matches!(vm.set_input("main", vec![]), Err(VmError::Arity { .. })));
    vm.set_input("main", vec![Value::Int(5)]).unwrap();
    assert!(vm.get_outputs("main").unwrap_err().to_string().contains("invoke_stateful"));
    vm.invoke_stateful("main").unwrap();
    assert_eq!(vm.get_outputs("main").unwrap().as_int(), Some(10));
}

#[test]
fn instruments_observe_and_skip_calls() {
    let vm = loop_vm();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    vm.set_instrument(Some(Instrument::new(move |event| {
        if !event.before {
            log.lock().unwrap().push((event.callee.to_string(), format!("{:?}", event.result)));
        }
        InstrumentAction::Continue
    })));
    assert_eq!(vm.invoke("main", &[Value::Int(1)]).unwrap().as_int(), Some(0));
    {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 6);
        assert_eq!(seen[2], ("less".to_string(), "Some(true)".to_string()));
    }
    vm.set_instrument(Some(Instrument::new(|_| InstrumentAction::Skip)));
    assert!(vm.invoke("main", &[Value::Int(1)]).is_err());
    vm.set_instrument(None);
    assert_eq!(vm.invoke("main", &[Value::Int(3)]).unwrap().as_int(), Some(3));
}

#[test]
fn registered_functions_are_found() {
    let add: PackedFunc = packed(|v| Ok(Value::Int(v.len() as i64)));
    assert!(pliant_vm::register_func("test.machine.count", Arc::clone(&add), false));
    assert!(!pliant_vm::register_func("test.machine.count", add, false));
    let mut b = ExecBuilder::new();
    b.begin_function("main", vec![], "");
    let args: Vec<Arg> = vec![b.imm(1), b.str("x"), b.c(Constant::Float(0.5))];
    b.emit_call("test.machine.count", &args, Reg(0));
    b.emit_ret(Reg(0));
    b.end_function();
    let vm = build_vm(b);
    assert_eq!(vm.invoke("main", &[]).unwrap().as_int(), Some(3));
    assert!(pliant_vm::func_names().contains(&"test.machine.count".to_string()));
    assert!(pliant_vm::unregister_func("test.machine.count").is_some());
    assert!(pliant_vm::get_func("test.machine.count").is_none());
}

#[test]
fn vms_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<VirtualMachine>();
    check::<Value>();
    check::<VmError>();
    check::<VmOptions>();
}
