//! Tests the results and error messages of builtins through the VM.

use crate::vm_test_setup::{build_vm, builder};
use pliant_exec::{Arg, Constant, ExecBuilder, Param, Reg};
use pliant_tensor::{DType, Tensor};
use pliant_vm::{Value, VirtualMachine};

/// Builds a VM whose function `main` passes its arguments, followed by the operands of `extra`, to
/// one builtin.
fn one(
    name: &str,
    params: usize,
    extra: impl FnOnce(&mut ExecBuilder) -> Vec<Arg>,
) -> VirtualMachine {
    let mut b = builder();
    b.begin_function("main", (0..params).map(|i| Param::new(format!("p{i}"))).collect(), "");
    let mut args: Vec<Arg> = (0..params as u32).map(|i| b.r(i)).collect();
    args.extend(extra(&mut b));
    let dst = Reg(params as u32);
    b.emit_call(name, &args, dst);
    b.emit_ret(dst);
    b.end_function();
    build_vm(b)
}

fn call(vm: &VirtualMachine, args: &[Value]) -> Result<String, String> {
    vm.invoke("main", args).map(|v| format!("{v:?}")).map_err(|error| error.to_string())
}

fn tensor(shape: &[i64], dtype: DType) -> Value {
    Tensor::zeros(shape, dtype).unwrap().into()
}

/// Builds a VM whose function `main(ids: [batch, seq], mask: [batch, seq, 4])` returns the shape `(seq, batch, 9)`.
fn matching() -> VirtualMachine {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("ids"), Param::new("mask")], "");
    let two = b.imm(2);
    b.emit_call("vm.builtin.alloc_shape_heap", &[two], Reg(2));
    let [c0, c1, c2, c3] = [0, 1, 2, 3].map(|i| b.imm(i));
    let four = b.imm(4);
    let context = b.str("main: 'ids'");
    b.emit_call(
        "vm.builtin.match_shape",
        &[b.r(0), b.r(2), c2, c1, c0, c1, c1, context],
        Reg::VOID,
    );
    let context = b.str("main: 'mask'\nbatch\t'ids' dim 0\nseq\t'ids' dim 1\n4");
    let args = [b.r(1), b.r(2), c3, c3, c0, c3, c1, c0, four, context];
    b.emit_call("vm.builtin.match_shape", &args, Reg::VOID);
    let nine = b.imm(9);
    b.emit_call("vm.builtin.make_shape", &[b.r(2), c3, c1, c1, c1, c0, c0, nine], Reg(3));
    b.emit_ret(Reg(3));
    b.end_function();
    build_vm(b)
}

#[test]
fn match_shape_binds_dims_and_reports_mismatches() {
    let vm = matching();
    let run =
        |ids: &[i64], mask: &[i64]| call(&vm, &[tensor(ids, DType::Int64), Value::shape(mask)]);
    for seq in [0, 1, 7, 64] {
        assert_eq!(run(&[3, seq], &[3, seq, 4]), Ok(format!("Shape([{seq}, 3, 9])")));
    }
    assert_eq!(
        run(&[3, 7], &[3, 9, 4]).unwrap_err(),
        "main: 'mask' dim 1 must equal seq = 7 (from 'ids' dim 1), but is 9"
    );
    assert_eq!(run(&[3, 7], &[3, 7, 5]).unwrap_err(), "main: 'mask' dim 2 must equal 4, but is 5");
    assert_eq!(
        run(&[3, 7], &[3, 7]).unwrap_err(),
        "main: 'mask' must have 3 dims, but has shape [3, 7]"
    );
    assert_eq!(
        call(&vm, &[Value::Int(1), Value::None]).unwrap_err(),
        "main: 'ids' must be a tensor or a shape, but is an integer"
    );
}

#[test]
fn match_prim_value_binds_integers_and_reports_mismatches() {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("n"), Param::new("m")], "");
    let [c0, c1, c3] = [0, 1, 3].map(|i| b.imm(i));
    b.emit_call("vm.builtin.alloc_shape_heap", &[c1], Reg(2));
    let context = b.str("main: 'n'");
    b.emit_call("vm.builtin.match_prim_value", &[b.r(0), b.r(2), c1, c0, context], Reg::VOID);
    let context = b.str("main: 'm'\nn\t'n'");
    b.emit_call("vm.builtin.match_prim_value", &[b.r(1), b.r(2), c3, c0, context], Reg::VOID);
    b.emit_call("vm.builtin.make_prim_value", &[b.r(2), c1, c0], Reg(3));
    b.emit_ret(Reg(3));
    b.end_function();
    let vm = build_vm(b);
    assert_eq!(call(&vm, &[5.into(), 5.into()]), Ok("5".into()));
    assert_eq!(
        call(&vm, &[5.into(), 6.into()]).unwrap_err(),
        "main: 'm' must equal n = 5 (from 'n'), but is 6"
    );
    assert_eq!(
        call(&vm, &[Value::None, 6.into()]).unwrap_err(),
        "main: 'n' must be an integer, but is no value"
    );
}

#[test]
fn shape_heap_builtins_reject_invalid_heaps_slots_and_codes() {
    let vm = one("vm.builtin.alloc_shape_heap", 1, |_| vec![]);
    assert_eq!(call(&vm, &[3.into()]), Ok("Tensor([3], int64)".into()));
    assert!(call(&vm, &[(-1).into()]).is_err() && call(&vm, &[i64::MAX.into()]).is_err());
    // A constant is not writable, so it cannot be the heap. Slots must exist.
    let vm = one("vm.builtin.match_prim_value", 2, |b| vec![b.imm(1), b.imm(0)]);
    let constant = Tensor::zeros(&[1], DType::Int64).unwrap();
    assert!(
        call(&vm, &[1.into(), constant.as_read_only().into()])
            .unwrap_err()
            .contains("must be a writable, contiguous int64 tensor")
    );
    assert!(
        call(&vm, &[1.into(), tensor(&[0], DType::Int64)])
            .unwrap_err()
            .contains("slot 0 of the shape heap")
    );
    assert!(
        call(&vm, &[1.into(), tensor(&[4], DType::Int32)])
            .unwrap_err()
            .contains("must be a writable, contiguous int64 tensor")
    );
    let vm = one("vm.builtin.make_shape", 1, |b| vec![b.imm(1), b.imm(7), b.imm(0)]);
    assert!(
        call(&vm, &[Value::None])
            .unwrap_err()
            .contains("operand 2, which selects the source of a dim, is 7")
    );
    let vm = one("vm.builtin.make_shape", 1, |b| vec![b.imm(2), b.imm(0), b.imm(0)]);
    assert!(call(&vm, &[Value::None]).unwrap_err().contains("two operands per dim must follow it"));
    let vm = one("vm.builtin.match_shape", 1, |b| vec![b.c(Constant::None), b.imm(i64::MAX)]);
    assert!(
        call(&vm, &[Value::shape(&[])])
            .unwrap_err()
            .contains("two operands per dim must follow it")
    );
}

#[test]
fn check_tensor_info_checks_rank_and_dtype() {
    let vm = one("vm.builtin.check_tensor_info", 1, |b| {
        vec![b.imm(2), b.c(Constant::DType(DType::Float32)), b.str("main: 'x'")]
    });
    assert_eq!(call(&vm, &[tensor(&[2, 3], DType::Float32)]), Ok("None".into()));
    assert_eq!(
        call(&vm, &[tensor(&[2, 3], DType::Float64)]).unwrap_err(),
        "main: 'x' must be a float32 tensor of 2 dims, but is a float64 tensor of shape (2, 3) \
         (help: convert the tensor with .astype(\"float32\"))"
    );
    assert_eq!(
        call(&vm, &[tensor(&[2], DType::Float32)]).unwrap_err(),
        "main: 'x' must be a float32 tensor of 2 dims, but is a float32 tensor of shape (2,)"
    );
    assert_eq!(
        call(&vm, &[Value::tuple([])]).unwrap_err(),
        "main: 'x' must be a float32 tensor of 2 dims, but is a tuple of 0 values \
         (help: convert a list to an array with np.array(..., dtype=\"float32\"))"
    );
    let any = one("vm.builtin.check_tensor_info", 1, |b| vec![b.imm(-1), b.c(Constant::None)]);
    assert_eq!(call(&any, &[tensor(&[], DType::Bool)]), Ok("None".into()));
    assert_eq!(
        call(&any, &[Value::Int(1)]).unwrap_err(),
        "value must be a tensor, but is an integer"
    );
    assert_eq!(
        call(&any, &[Value::shape(&[4])]).unwrap_err(),
        "value must be a tensor, but is a shape of 1 dim \
         (help: convert a list to an array with np.array(...))"
    );
}

#[test]
fn check_apart_rejects_overlapping_outputs() {
    let checked = |strided| {
        one("vm.builtin.check_apart", 2, move |b| {
            vec![b.imm(strided), b.str("'out'"), b.str("'x'")]
        })
    };
    let fine = Ok("None".to_string());
    let refused =
        Err("'out' is written, but shares memory with 'x'; pass a tensor with memory of its own"
            .to_string());
    let whole = Tensor::zeros(&[6, 4], DType::Float32).expect("memory");
    let rows = |[begin, end]: [i64; 2]| {
        let (storage, at) = (whole.storage().clone(), begin as usize * 16);
        let rows = Tensor::from_storage(storage, at, &[end - begin, 4], DType::Float32);
        Value::Tensor(rows.expect("rows of the tensor"))
    };
    let pairs = [
        ([0, 3], [3, 6], true),
        ([0, 3], [2, 4], false),
        ([0, 3], [0, 3], false),
        ([2, 2], [0, 6], true),
    ];
    for (a, b, apart) in pairs {
        for (a, b) in [(a, b), (b, a)] {
            let want = if apart { &fine } else { &refused };
            assert_eq!(&call(&checked(0), &[rows(a), rows(b)]), want, "{a:?} {b:?}");
        }
    }
    // A loop function that does not read strides gets a copy of a strided tensor.
    let storage = whole.storage().clone();
    let transposed = Tensor::from_storage_strided(storage, 0, &[4, 6], &[1, 4], DType::Float32);
    let transposed = Value::Tensor(transposed.expect("the tensor's elements"));
    assert_eq!(call(&checked(0), &[rows([0, 3]), transposed.clone()]), fine);
    assert_eq!(call(&checked(1), &[rows([0, 3]), transposed]), refused);
}

#[test]
fn shapes_tuples_scalars_and_functions_are_checked() {
    let shape = one("vm.builtin.check_shape_info", 1, |b| vec![b.imm(1), b.str("f: 's'")]);
    assert_eq!(call(&shape, &[Value::shape(&[4])]), Ok("None".into()));
    assert_eq!(
        call(&shape, &[Value::shape(&[4, 4])]).unwrap_err(),
        "f: 's' must be a shape of 1 dim, but is a shape of 2 dims"
    );
    let tuple = one("vm.builtin.check_tuple_info", 1, |b| vec![b.imm(2), b.str("f: 't'")]);
    assert_eq!(
        call(&tuple, &[Value::tuple([Value::None])]).unwrap_err(),
        "f: 't' must be a tuple of 2 values, but is a tuple of 1 value"
    );
    let prim = one("vm.builtin.check_prim_value_info", 1, |b| {
        vec![b.c(Constant::DType(DType::Int64)), b.str("f: 'n'")]
    });
    assert_eq!(call(&prim, &[Value::Int(3)]), Ok("None".into()));
    assert_eq!(
        call(&prim, &[Value::Float(3.0)]).unwrap_err(),
        "f: 'n' must be an int64 scalar, but is a float"
    );
    let func = one("vm.builtin.check_func_info", 1, |b| vec![b.str("f: 'g'")]);
    assert_eq!(
        call(&func, &[Value::None]).unwrap_err(),
        "f: 'g' must be a function, but is no value"
    );
}

#[test]
fn tensors_are_allocated_in_storages_with_bounds_checks() {
    let mut b = builder();
    b.begin_function(
        "main",
        vec![Param::new("size"), Param::new("offset"), Param::new("shape")],
        "",
    );
    let (zero, f32) = (b.imm(0), b.c(Constant::DType(DType::Float32)));
    b.emit_call("vm.builtin.alloc_storage", &[b.r(0), zero, f32], Reg(3));
    b.emit_call("vm.builtin.alloc_tensor", &[b.r(3), b.r(1), b.r(2), f32], Reg(4));
    b.emit_call("vm.builtin.kill_object", &[b.r(3)], Reg::VOID);
    b.emit_call("vm.builtin.make_tuple", &[b.r(3), b.r(4)], Reg(5));
    b.emit_ret(Reg(5));
    b.end_function();
    let vm = build_vm(b);
    let run = |size: Value, offset: i64, shape: &[i64]| {
        call(&vm, &[size, offset.into(), Value::shape(shape)])
    };
    assert_eq!(run(24.into(), 0, &[2, 3]), Ok("[None, Tensor([2, 3], float32)]".into()));
    assert_eq!(run(Value::shape(&[88]), 64, &[6]), Ok("[None, Tensor([6], float32)]".into()));
    assert_eq!(run(Value::shape(&[2, 3]), 0, &[6]), Ok("[None, Tensor([6], float32)]".into()));
    assert_eq!(run(0.into(), 0, &[0, 3]), Ok("[None, Tensor([0, 3], float32)]".into()));
    assert!(run(64.into(), 0, &[17]).unwrap_err().contains("but its storage has 64 bytes"));
    assert!(run(64.into(), -4, &[1]).unwrap_err().contains("-4 bytes"));
    assert!(
        run((-1).into(), 0, &[0]).unwrap_err().contains("cannot allocate a storage of -1 bytes")
    );
    assert!(run(64.into(), 0, &[-1]).unwrap_err().contains("negative"));
    assert!(run(64.into(), 0, &[i64::MAX, 4]).unwrap_err().contains("too large to address"));
    assert!(run(Value::shape(&[i64::MAX, 4]), 0, &[1]).unwrap_err().contains("too large"));
    assert!(run((1i64 << 61).into(), 0, &[1]).unwrap_err().contains("out of memory"));
    assert!(run(Value::None, 0, &[1]).unwrap_err().contains("operand 0 must be an integer"));
}

#[test]
fn reshape_shape_of_and_tensor_to_shape() {
    let vm = one("vm.builtin.reshape", 2, |_| vec![]);
    let x = Tensor::from_slice(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap();
    let out = vm.invoke("main", &[x.clone().into(), Value::shape(&[3, 2])]).unwrap();
    assert_eq!(out.as_tensor().unwrap().data_ptr(), x.data_ptr());
    let t = Tensor::from_storage_strided(x.storage().clone(), 0, &[3, 2], &[1, 3], DType::Int32)
        .unwrap();
    let out = vm.invoke("main", &[t.into(), Value::shape(&[6])]).unwrap();
    assert_eq!(out.as_tensor().unwrap().as_slice::<i32>().unwrap(), [1, 4, 2, 5, 3, 6]);
    let error = call(&vm, &[x.clone().into(), Value::shape(&[5])]).unwrap_err();
    assert!(error.contains("reshape: 6 elements do not fit shape (5,)"), "{error}");
    let vm = one("vm.builtin.shape_of", 1, |_| vec![]);
    assert_eq!(call(&vm, &[x.into()]), Ok("Shape([2, 3])".into()));
    let vm = one("vm.builtin.tensor_to_shape", 1, |_| vec![]);
    let dims = Tensor::from_slice(&[3], &[4i32, 0, 1]).unwrap();
    assert_eq!(call(&vm, &[dims.into()]), Ok("Shape([4, 0, 1])".into()));
    assert!(call(&vm, &[tensor(&[2], DType::Float32)]).unwrap_err().contains("integer tensor"));
}

#[test]
fn tuple_getitem_and_read_if_cond() {
    let vm = one("vm.builtin.tuple_getitem", 1, |b| vec![b.imm(1)]);
    assert_eq!(call(&vm, &[Value::tuple([1.into(), true.into()])]), Ok("true".into()));
    assert_eq!(
        call(&vm, &[Value::tuple([])]).unwrap_err(),
        "tuple index 1 is out of range: the tuple has 0 items"
    );
    assert!(call(&vm, &[1.into()]).unwrap_err().contains("must be a tuple, but is an integer"));
    let vm = one("vm.builtin.read_if_cond", 1, |_| vec![]);
    assert_eq!(call(&vm, &[Tensor::scalar(true).unwrap().into()]), Ok("true".into()));
    let vm = one("vm.builtin.null_value", 0, |_| vec![]);
    assert_eq!(call(&vm, &[]), Ok("None".into()));
    let vm = one("vm.builtin.to_device", 1, |b| vec![b.imm(0)]);
    assert_eq!(call(&vm, &[Value::Float(1.5)]), Ok("1.5".into()));
}

/// Tests that the linker, which cannot trust bytecode, clears new tensors in reused memory.
#[test]
fn new_tensors_are_zero_filled_even_in_reused_memory() {
    let mut b = builder();
    let names = [("whole", true), ("part", false)];
    for (name, whole) in names {
        b.begin_function(name, vec![], "");
        let (bytes, zero) = (b.imm(64), b.imm(0));
        let shape = b.c(Constant::Shape([16].into()));
        let dtype = b.c(Constant::DType(DType::Float32));
        if whole {
            let args = [bytes, shape, dtype];
            b.emit_call("vm.builtin.alloc_tensor_with_storage", &args, Reg(0));
        } else {
            b.emit_call("vm.builtin.alloc_storage", &[bytes], Reg(1));
            let args = [b.r(1), zero, shape, dtype];
            b.emit_call("vm.builtin.alloc_tensor", &args, Reg(0));
        }
        b.emit_ret(Reg(0));
        b.end_function();
    }
    let vm = build_vm(b);
    for (name, _) in names {
        for run in 0..5 {
            let Value::Tensor(tensor) = vm.invoke(name, &[]).unwrap() else { panic!("a tensor") };
            let data = tensor.data_ptr().cast::<f32>();
            for i in 0..16 {
                // SAFETY: the tensor has 16 elements, and nothing else uses it.
                let old = unsafe { data.add(i).replace(7.0) };
                assert_eq!(old, 0.0, "{name}, run {run}, element {i}");
            }
        }
    }
}

#[test]
fn killed_memory_is_reused_within_a_run() {
    let mut b = builder();
    b.begin_function("main", vec![], "");
    let size = b.imm(1000);
    for reg in [0u32, 1] {
        b.emit_call("vm.builtin.alloc_storage", &[size], Reg(reg));
        b.emit_call("vm.builtin.make_tuple", &[b.r(reg)], Reg(2 + reg));
        b.emit_call("vm.builtin.kill_object", &[b.r(2 + reg)], Reg::VOID);
        b.emit_call("vm.builtin.null_value", &[], Reg(reg));
    }
    b.emit_ret(Reg(0));
    b.end_function();
    let vm = build_vm(b);
    std::thread::spawn(move || {
        // Other tests drop VMs at the same time, which empties the pools of running threads.
        let reuses = (0..1000).any(|_| {
            vm.invoke("main", &[]).unwrap();
            pliant_vm::pooled_bytes() == 1024
        });
        assert!(reuses, "the pool keeps {} bytes", pliant_vm::pooled_bytes());
    })
    .join()
    .unwrap();
}
