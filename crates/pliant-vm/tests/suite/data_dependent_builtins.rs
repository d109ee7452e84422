//! Tests of builtins whose results depend on values (`unique`, `nonzero`), of builtins that format
//! text (`print`, `assert_op`), and of the short names that old programs use.

use crate::vm_test_setup::{build_vm, builder};
use pliant_exec::{Arg, Constant, ExecBuilder, Param, Reg};
use pliant_tensor::{DType, Element, Tensor};
use pliant_vm::{Value, VirtualMachine};

/// Builds a VM whose function `main(x)` passes `x`, followed by the operands of `extra`, to one
/// builtin.
fn one(name: &str, extra: impl FnOnce(&mut ExecBuilder) -> Vec<Arg>) -> VirtualMachine {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("x")], "");
    let mut args = vec![b.r(0)];
    args.extend(extra(&mut b));
    b.emit_call(name, &args, Reg(1));
    b.emit_ret(Reg(1));
    b.end_function();
    build_vm(b)
}

/// Builds a VM whose function `main(x)` calls `unique(x, sorted, return_index, return_inverse, return_counts, axis)`.
fn unique(flags: [i64; 4], axis: Option<i64>) -> VirtualMachine {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("x")], "");
    b.emit_call("vm.builtin.make_tuple", &[], Reg(1));
    let mut args = vec![b.r(0)];
    args.extend(flags.map(|flag| b.imm(flag)));
    args.push(match axis {
        Some(axis) => b.imm(axis),
        None => b.r(1),
    });
    b.emit_call("vm.builtin.unique", &args, Reg(2));
    b.emit_ret(Reg(2));
    b.end_function();
    build_vm(b)
}

fn tensor<T: Element>(shape: &[i64], data: &[T]) -> Value {
    Tensor::from_slice(shape, data).unwrap().into()
}

/// Returns the shape and the elements of a tensor.
fn read(value: &Value) -> (Vec<i64>, Vec<f64>) {
    let tensor = value.as_tensor().expect("a tensor");
    (tensor.shape().to_vec(), tensor.to_f64_vec().unwrap())
}

fn run(vm: &VirtualMachine, x: Value) -> Vec<(Vec<i64>, Vec<f64>)> {
    match vm.invoke("main", &[x]).unwrap() {
        Value::Tuple(fields) => fields.iter().map(read).collect(),
        one => vec![read(&one)],
    }
}

fn error(vm: &VirtualMachine, x: Value) -> String {
    vm.invoke("main", &[x]).unwrap_err().to_string()
}

#[test]
fn unique_returns_elements_indices_and_counts() {
    let vm = unique([1, 1, 1, 1], None);
    let out = run(&vm, tensor(&[2, 3], &[3i64, 1, 3, -7, 1, 3]));
    assert_eq!(
        out,
        [
            (vec![3], vec![-7.0, 1.0, 3.0]),
            (vec![3], vec![3.0, 1.0, 0.0]),
            (vec![6], vec![2.0, 1.0, 2.0, 0.0, 1.0, 2.0]),
            (vec![3], vec![1.0, 2.0, 3.0]),
        ]
    );
    let empty = run(&vm, tensor::<f32>(&[0, 4], &[]));
    assert!(empty.iter().all(|field| *field == (vec![0], vec![])) && empty.len() == 4);
    let one = run(&vm, tensor(&[], &[2.5f32]));
    assert_eq!(one[0], (vec![1], vec![2.5]));
    // In the order of first occurrence.
    let vm = unique([0, 1, 1, 0], None);
    let out = run(&vm, tensor(&[5], &[9i32, 2, 9, 4, 2]));
    assert_eq!(out[0].1, [9.0, 2.0, 4.0]);
    assert_eq!(
        (&out[1].1[..], &out[2].1[..]),
        (&[0.0, 1.0, 3.0][..], &[0.0, 1.0, 0.0, 2.0, 1.0][..])
    );
}

#[test]
fn unique_compares_slices_along_an_axis() {
    let rows = [2i8, 1, 0, 5, 2, 1];
    for axis in [0, -2] {
        let out = run(&unique([1, 1, 0, 0], Some(axis)), tensor(&[3, 2], &rows));
        assert_eq!(out, [(vec![2, 2], vec![0.0, 5.0, 2.0, 1.0]), (vec![2], vec![1.0, 0.0])]);
    }
    // Slices across an outer dim: columns (1, 5), (0, 6), (1, 5).
    let out = run(&unique([1, 0, 1, 1], Some(1)), tensor(&[2, 3], &[1u8, 0, 1, 5, 6, 5]));
    assert_eq!(out[0], (vec![2, 2], vec![0.0, 1.0, 6.0, 5.0]));
    assert_eq!((&out[1].1[..], &out[2].1[..]), (&[1.0, 0.0, 1.0][..], &[1.0, 2.0][..]));
    // Slices without elements are all equal. If there are no slices, the result has none.
    let vm = unique([1, 0, 0, 1], Some(0));
    assert_eq!(run(&vm, tensor::<f32>(&[3, 0], &[])), [(vec![1, 0], vec![]), (vec![1], vec![3.0])]);
    assert_eq!(run(&vm, tensor::<f32>(&[0, 3], &[])), [(vec![0, 3], vec![]), (vec![0], vec![])]);
    let wide = tensor::<u8>(&[0, 1 << 40, 0, 1 << 20], &[]);
    assert_eq!(run(&vm, wide)[0].0, [0, 1 << 40, 0, 1 << 20]);
    for axis in [2, -3, i64::MIN, i64::MAX] {
        let text = error(&unique([1, 0, 0, 0], Some(axis)), tensor(&[3, 2], &rows));
        assert_eq!(text, format!("unique: a tensor of shape [3, 2] has no axis {axis}"));
    }
    assert!(error(&unique([1, 0, 0, 0], Some(0)), tensor(&[], &[1i64])).contains("no axis 0"));
    assert!(error(&unique([1, 0, 0, 0], None), Value::Int(1)).contains("must be a tensor"));
}

#[test]
fn unique_treats_nan_as_numpy_does() {
    let nan = f32::NAN;
    let out = run(&unique([1, 1, 1, 1], None), tensor(&[5], &[nan, 0.0, -nan, -0.0, -1.0]));
    assert_eq!(out[0].1[..2], [-1.0, 0.0]);
    assert!(out[0].0 == [3] && out[0].1[2].is_nan());
    assert_eq!(out[2].1, [2.0, 1.0, 2.0, 1.0, 0.0]);
    assert_eq!(out[3].1, [1.0, 2.0, 2.0]);
    // For a tensor of one dim, slices are elements. For higher ranks, slices with a NaN are
    // distinct.
    assert_eq!(run(&unique([1, 0, 0, 0], Some(0)), tensor(&[2], &[nan, nan]))[0].0, [1]);
    let rows = tensor(&[4, 2], &[nan, 1.0, nan, 1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(run(&unique([1, 0, 0, 0], Some(0)), rows)[0].0, [3, 2]);
}

#[test]
fn unique_supports_every_dtype() {
    let vm = unique([1, 0, 0, 0], None);
    for dtype in DType::all() {
        let x = Tensor::zeros(&[4], dtype).unwrap();
        let out = vm.invoke("main", &[x.into()]).unwrap();
        let out = out.as_tensor().unwrap();
        assert_eq!((out.dtype(), out.shape()), (dtype, &[1i64][..]));
    }
    let ends = run(&vm, tensor(&[3], &[u64::MAX, 0, u64::MAX - 1]));
    assert_eq!(ends[0].0, [3]);
    let out = vm.invoke("main", &[tensor(&[3], &[i64::MAX, i64::MIN, 0])]).unwrap();
    assert_eq!(out.as_tensor().unwrap().as_slice::<i64>().unwrap(), [i64::MIN, 0, i64::MAX]);
    let out = vm.invoke("main", &[tensor(&[3], &[u64::MAX, 1 << 63, 7])]).unwrap();
    assert_eq!(out.as_tensor().unwrap().as_slice::<u64>().unwrap(), [7, 1 << 63, u64::MAX]);
    let inf = run(&vm, tensor(&[3], &[f64::INFINITY, f64::NEG_INFINITY, 1.0]));
    assert_eq!(inf[0].1, [f64::NEG_INFINITY, 1.0, f64::INFINITY]);
    assert_eq!(run(&vm, tensor(&[3], &[true, false, true]))[0].1, [0.0, 1.0]);
}

#[test]
fn unique_and_nonzero_respect_strides() {
    let x = Tensor::from_slice(&[2, 3], &[1i64, 2, 3, 1, 5, 3]).unwrap();
    let t = Tensor::from_storage_strided(x.storage().clone(), 0, &[3, 2], &[1, 3], DType::Int64);
    let t: Value = t.unwrap().into();
    let out = run(&unique([0, 0, 0, 0], Some(0)), t.clone());
    assert_eq!(out[0], (vec![3, 2], vec![1.0, 1.0, 2.0, 5.0, 3.0, 3.0]));
    assert_eq!(run(&one("vm.builtin.nonzero", |_| vec![]), t)[0].0, [2, 6]);
}

#[test]
fn nonzero_returns_one_row_per_dim() {
    let vm = one("vm.builtin.nonzero", |_| vec![]);
    let x = tensor(&[2, 3], &[0.0f32, f32::NAN, -0.0, 2.0, 0.0, -1.0]);
    assert_eq!(run(&vm, x), [(vec![2, 3], vec![0.0, 1.0, 1.0, 1.0, 0.0, 2.0])]);
    assert_eq!(run(&vm, tensor(&[3], &[true, false, true])), [(vec![1, 2], vec![0.0, 2.0])]);
    assert_eq!(run(&vm, tensor::<i32>(&[0, 4], &[])), [(vec![2, 0], vec![])]);
    assert_eq!(run(&vm, tensor(&[], &[5i32])), [(vec![0, 1], vec![])]);
    assert_eq!(run(&vm, tensor(&[], &[0i32])), [(vec![0, 0], vec![])]);
    for dtype in DType::all() {
        let x = Tensor::zeros(&[3], dtype).unwrap();
        assert_eq!(run(&vm, x.into()), [(vec![1, 0], vec![])], "{dtype}");
    }
    assert_eq!(run(&vm, tensor(&[2], &[u64::MAX, 0]))[0].0, [1, 1]);
}

#[test]
fn assert_op_formats_its_message() {
    let vm = |format: &str| {
        one("vm.builtin.assert_op", |b| {
            let values = Tensor::from_slice(&[2, 2], &[0.1f32, 1.0, f32::NAN, -2.0]).unwrap();
            vec![b.str(format), b.c(Constant::Tensor(values)), b.shape(&[4]), b.imm(7)]
        })
    };
    let text = |format: &str| error(&vm(format), false.into());
    let values = "[[0.1, 1.0], [NaN, -2.0]]";
    assert_eq!(text("x is {}"), format!("an assertion of the program failed: x is {values}"));
    assert_eq!(text("{2} {{{1}}}"), "an assertion of the program failed: 7 {(4,)}");
    assert_eq!(text(""), format!("an assertion of the program failed: {values}, (4,), 7"));
    assert!(text("{} {} {} {}").contains("asks for value 3, but there are 3"));
    assert!(text("{x:.2f}").contains("has the field '{x:.2f}'"));
    assert!(text("{").contains("single '{'") && text("a } b").contains("single '}'"));
    assert!(vm("{").invoke("main", &[true.into()]).is_ok());
    let alone = one("vm.builtin.assert_op", |_| vec![]);
    assert_eq!(error(&alone, tensor(&[], &[false])), "an assertion of the program failed");
    assert!(alone.invoke("main", &[tensor(&[], &[true])]).is_ok());
    assert!(error(&alone, tensor(&[2], &[true, true])).contains("bool or integer scalar"));
}

#[test]
fn large_tensors_print_their_first_and_last_elements() {
    let vm = one("vm.builtin.assert_op", |b| {
        let data: Vec<i64> = (0..2000).collect();
        vec![b.str("{}"), b.c(Constant::Tensor(Tensor::from_slice(&[2, 1000], &data).unwrap()))]
    });
    assert!(
        error(&vm, false.into())
            .ends_with("[[0, 1, 2, .., 997, 998, 999], [1000, 1001, 1002, .., 1997, 1998, 1999]]")
    );
    let vm = one("vm.builtin.assert_op", |b| {
        let empty = Tensor::zeros(&[1 << 40, 0], DType::Float32).unwrap();
        vec![b.str("{}|{}"), b.c(Constant::Tensor(empty)), b.c(Constant::None)]
    });
    assert!(error(&vm, false.into()).ends_with("failed: []|None"));
}

#[test]
fn print_returns_an_empty_tuple_and_checks_its_format() {
    let vm = one("vm.builtin.print", |b| vec![b.imm(3)]);
    assert_eq!(format!("{:?}", vm.invoke("main", &[Value::str("n = {}")]).unwrap()), "[]");
    assert!(error(&vm, Value::str("{} {}")).contains("asks for value 1"));
    assert!(error(&vm, Value::Int(1)).contains("operand 0 must be a string"));
}

#[test]
fn legacy_builtin_names_store_and_load_shapes() {
    let mut b = builder();
    b.begin_function("main", vec![Param::new("x")], "");
    let [zero, one, three] = [0, 1, 3].map(|i| b.imm(i));
    b.emit_call("vm.builtin.alloc_shape_heap", &[three], Reg(1));
    b.emit_call("vm.builtin.store_shape", &[b.r(0), b.r(1), zero, one], Reg::VOID);
    b.emit_call("vm.builtin.load_shape", &[b.r(1), one, zero, one], Reg(2));
    b.emit_call("vm.builtin.alloc_storage", &[three], Reg(3));
    b.emit_call("vm.builtin.free_tensor", &[b.r(1)], Reg::VOID);
    b.emit_call("vm.builtin.free_storage", &[b.r(3)], Reg::VOID);
    b.emit_call("vm.builtin.make_tuple", &[b.r(1), b.r(2), b.r(3)], Reg(4));
    b.emit_ret(Reg(4));
    b.end_function();
    let vm = build_vm(b);
    let run = |x: Value| vm.invoke("main", &[x]).map(|v| format!("{v:?}"));
    assert_eq!(run(Value::shape(&[4, 0])).unwrap(), "[None, Shape([0, 4, 0]), None]");
    let x = Tensor::zeros(&[7, 2], DType::Bool).unwrap();
    assert_eq!(run(x.into()).unwrap(), "[None, Shape([2, 7, 2]), None]");
    let text = run(Value::shape(&[4])).unwrap_err().to_string();
    assert_eq!(text, "store_shape: cannot store a shape of 1 dims in 2 slots");
    let load = one_slot(5);
    assert!(error(&load, tensor(&[2], &[1i64, 2])).contains("slot 5 of the shape heap"));
    assert!(
        error(&load, tensor(&[2], &[1i32, 2]))
            .contains("must be a writable, contiguous int64 tensor")
    );
}

fn one_slot(slot: i64) -> VirtualMachine {
    one("vm.builtin.load_shape", |b| vec![b.imm(slot)])
}
