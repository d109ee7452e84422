//! Tests how the interpreter runs graph functions: symbols, calls, control flow, closures,
//! destination passing, type checks.

use crate::script_and_tensor_helpers::*;
use pliant_interp::{ErrorKind, NoPacked, Options, PackedTable, Value, assign, run, run_with};

#[test]
fn operators_in_dataflow_blocks_compute_values() {
    let text = r#"
@R.function
def main(x: R.Tensor(("n", 2), dtype="float32"), y: R.Tensor((2,), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
    n = T.int64()
    with R.dataflow():
        lv = R.add(x, y)
        lv1 = R.multiply(lv, R.const(2.0, "float32"))
        R.output(lv1)
    return lv1
"#;
    for n in [0i64, 1, 3] {
        let x: Vec<f32> = (0..2 * n).map(|v| v as f32).collect();
        let out = run_script(text, &[f32s(&[n, 2], &x), f32s(&[2], &[1.0, 10.0])]).unwrap();
        let want: Vec<f64> =
            x.iter().enumerate().map(|(i, v)| f64::from(v + [1.0, 10.0][i % 2]) * 2.0).collect();
        assert_eq!(numbers(&out), (vec![n, 2], want));
    }
}

#[test]
fn call_tir_with_several_outputs_and_sizes() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(var_A: T.handle, var_B: T.handle, var_C: T.handle, m: T.int64):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        C = T.match_buffer(var_C, (n * m,), "float32")
        for i in range(n):
            B[i] = A[i] + T.float32(1)
            for j in range(m):
                C[i * m + j] = A[i] * T.Cast("float32", j)

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32"), s: R.Shape(["m"])) -> R.Tensor(("n * m",), dtype="float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        lv = R.call_tir(cls.f, (x,), out_sinfo=[R.Tensor((n,), dtype="float32"), R.Tensor((n * m,), dtype="float32")], tir_vars=R.shape([m]))
        lv1: R.Tensor((n * m,), dtype="float32") = lv[1]
        return lv1
"#;
    let out = run_script(text, &[f32s(&[2], &[1.0, 2.0]), Value::shape(&[3])]).unwrap();
    assert_eq!(flat(&out), [0.0, 1.0, 2.0, 0.0, 2.0, 4.0]);
}

const MATCH: &str = r#"
@R.function
def main(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32", ndim=2):
    n = T.int64()
    m = T.int64()
    lv = R.match_cast(x, R.Tensor((n, m * 2), dtype="float32"))
    lv1 = R.reshape(lv, R.shape([m * 2, n]))
    return lv1
"#;

#[test]
fn match_cast_defines_symbols() {
    let out = run_script(MATCH, &[zeros(&[3, 4], pliant_ir::DType::Float32)]).unwrap();
    assert_eq!(numbers(&out).0, [4, 3]);
}

#[test]
fn match_cast_rejects_mismatching_values() {
    let f32 = pliant_ir::DType::Float32;
    let odd = fails(MATCH, &[zeros(&[3, 5], f32)]);
    assert!(
        odd.contains(
            "match_cast of 'x' dim 1 must equal m * 2 = 0 (from this dim itself: no value of m matches), but is 5"
        ),
        "{odd}"
    );
    let rank = fails(MATCH, &[zeros(&[3], f32)]);
    assert!(
        rank.contains("must be a float32 tensor of 2 dims, but is a float32 tensor of shape (3,)"),
        "{rank}"
    );
    let dtype = fails(MATCH, &[zeros(&[3, 4], pliant_ir::DType::Int32)]);
    assert!(dtype.contains("'x' must be a float32 tensor, but is an int32 tensor"), "{dtype}");
}

#[test]
fn parameters_are_checked() {
    let text = r#"
@R.function
def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n",), dtype="float32"), z: R.Tensor(("n * 2",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
    n = T.int64()
    return y
"#;
    let f32 = pliant_ir::DType::Float32;
    let args = |x: &[i64], y: i64, z: i64| [zeros(x, f32), zeros(&[y], f32), zeros(&[z], f32)];
    assert_eq!(numbers(&run_script(text, &args(&[7, 4], 7, 14)).unwrap()).0, [7]);
    assert!(
        fails(text, &args(&[7, 4], 9, 14))
            .contains("main: 'y' dim 0 must equal n = 7 (from 'x' dim 0), but is 9")
    );
    assert!(fails(text, &args(&[7, 5], 7, 14)).contains("main: 'x' dim 1 must equal 4, but is 5"));
    assert!(
        fails(text, &args(&[7, 4], 7, 15))
            .contains("main: 'z' dim 0 must equal n * 2 = 14 (from 'x' dim 0), but is 15")
    );
    assert!(fails(text, &[]).contains("main takes 3 arguments, but 0 were given"));
    let bad = run_script(text, &[Value::Int(3), zeros(&[7], f32), zeros(&[14], f32)]).unwrap_err();
    assert_eq!((bad.kind, bad.to_diagnostic().code), (ErrorKind::Type, "PL0401"));
}

#[test]
fn branches_and_recursive_calls_run() {
    let text = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), dtype="float32"), go: R.Tensor((), dtype="bool")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        if go:
            gv: R.Tensor((n,), dtype="float32") = R.add(x, x)
            r: R.Tensor((n,), dtype="float32") = cls.main(gv, R.const(False, "bool"))
        else:
            r: R.Tensor((n,), dtype="float32") = R.multiply(x, x)
        return r
"#;
    let x = || f32s(&[2], &[1.0, 3.0]);
    assert_eq!(flat(&run_script(text, &[x(), bools(&[], &[true])]).unwrap()), [4.0, 36.0]);
    assert_eq!(flat(&run_script(text, &[x(), bools(&[], &[false])]).unwrap()), [1.0, 9.0]);
}

#[test]
fn endless_recursion_is_an_error() {
    let text = r#"
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        gv: R.Tensor((n,), dtype="float32") = cls.main(x)
        return gv
"#;
    let error = run_script(text, &[f32s(&[1], &[1.0])]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert!(error.message.contains("calls nest more than 1000 deep"), "{error}");
    let deep = Options { max_depth: 10_000_000, ..Options::default() };
    let error = run_with(&module(text), "main", &[f32s(&[1], &[1.0])], &NoPacked, &deep);
    assert!(error.unwrap_err().message.contains("the program is nested too deeply"));
}

#[test]
fn local_functions_capture_values_and_symbols() {
    let text = r#"
@R.function
def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
    n = T.int64()

    @R.function
    def inner(a: R.Tensor((n,), dtype="float32")) -> R.Tensor((n,), dtype="float32"):
        b: R.Tensor((n,), dtype="float32") = R.subtract(a, y)
        return b

    gv: R.Tensor((n,), dtype="float32") = inner(x)
    gv1: R.Tensor((n,), dtype="float32") = inner(gv)
    return gv1
"#;
    let out = run_script(text, &[f32s(&[2], &[10.0, 20.0]), f32s(&[2], &[1.0, 2.0])]).unwrap();
    assert_eq!(flat(&out), [8.0, 16.0]);
}

#[test]
fn tuples_shapes_and_scalars_are_values() {
    let text = r#"
@R.function
def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tuple(R.Shape(["n + m"]), R.Prim("int64")):
    n = T.int64()
    m = T.int64()
    s: R.Shape([n + m]) = R.shape([n + m])
    t = (s, R.prim_value(n * m))
    return t
"#;
    let out = run_script(text, &[zeros(&[3, 4], pliant_ir::DType::Float32)]).unwrap();
    let items = out.as_tuple().unwrap();
    assert_eq!((items[0].as_shape(), items[1].as_int()), (Some(&[7i64][..]), Some(12)));
}

#[test]
fn packed_functions_are_called_and_report_errors() {
    let text = r#"
@R.function(pure=False)
def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
    n = T.int64()
    gv: R.Tensor((n,), dtype="float32") = R.call_packed("test.double", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
    gv1 = R.call_dps_packed("test.add", (x, gv), out_sinfo=R.Tensor((n,), dtype="float32"))
    gv2: R.Tensor((n,), dtype="float32") = R.call_pure_packed("test.double", gv1, sinfo_args=(R.Tensor((n,), dtype="float32"),))
    return gv2
"#;
    let each = |args: &[Value], f: &dyn Fn(&[f32]) -> f32| {
        let lists: Vec<Vec<f32>> =
            args.iter().map(|a| a.as_tensor().unwrap().to_vec::<f32>().unwrap()).collect();
        let n = lists[0].len();
        let out: Vec<f32> =
            (0..n).map(|i| f(&lists.iter().map(|l| l[i]).collect::<Vec<_>>())).collect();
        f32s(&[n as i64], &out)
    };
    let table = PackedTable::new().with("test.double", move |a| Ok(each(a, &|v| v[0] * 2.0))).with(
        "test.add",
        move |a| {
            let sum = each(&a[..2], &|v| v[0] + v[1]);
            assign(a[2].as_tensor().unwrap(), sum.as_tensor().unwrap())
                .map_err(|e| e.to_string())?;
            Ok(Value::None)
        },
    );
    let out = run_packed(text, &[f32s(&[2], &[1.0, 5.0])], &table).unwrap();
    assert_eq!(flat(&out), [6.0, 30.0]);
    assert!(fails(text, &[f32s(&[1], &[1.0])]).contains("'test.double' is not registered"));
    let wrong = PackedTable::new().with("test.double", |_| Ok(f32s(&[9], &[0.0; 9])));
    let error = run_packed(text, &[f32s(&[1], &[1.0])], &wrong).unwrap_err();
    assert!(error.message.contains("'gv' dim 0 must equal n = 1"), "{error}");
    let raises = PackedTable::new().with("test.double", |_| Err("no luck".into()));
    let error = run_packed(text, &[f32s(&[1], &[1.0])], &raises).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Packed);
    assert!(
        error.message.contains("no luck") && error.trace[0].what.contains("'gv' in main"),
        "{error}"
    );
}

#[test]
fn lowered_modules_run() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        for i in T.parallel(n):
            B[i] = A[i] + A[i]

    @T.prim_func
    def shape_func(var_H: T.handle):
        H = T.match_buffer(var_H, (2,), "int64")
        H[1] = H[0] * 4

    @R.function(pure=False)
    def builtin(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        lv: R.Tensor((n,), dtype="float32") = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), R.prim_value(0))
        _: R.Tuple = cls.double(x, lv)
        return lv

    @R.function(pure=False)
    def memory(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        storage: R.Object = R.memory.alloc_storage(R.shape([n * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        lv: R.Tensor((n,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n]), R.dtype("float32"))
        _: R.Tuple = cls.double(x, lv)
        _1: R.Tuple = R.memory.kill_storage(storage)
        return lv

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
        cls = Module
        heap: R.Tensor((2,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(2),), sinfo_args=(R.Tensor((2,), dtype="int64"),))
        _: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(1), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
        _1: R.Tuple = R.call_packed("vm.builtin.match_shape", x, heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
        _2: R.Tuple = cls.shape_func(heap)
        bytes: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
        shape: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), sinfo_args=(R.Shape(ndim=1),))
        storage: R.Object = R.vm.alloc_storage(bytes, R.prim_value(0), R.dtype("uint8"), R.str("global"))
        lv: R.Tensor(dtype="float32", ndim=1) = R.vm.alloc_tensor(storage, R.prim_value(0), shape, R.dtype("float32"))
        _3: R.Tuple = cls.double(x, lv)
        _4: R.Tuple = R.vm.kill_object(storage)
        return lv

    @R.function(pure=False)
    def killed(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        _: R.Tuple = R.memory.kill_tensor(x)
        return x
"#;
    let module = module(text);
    for n in [0i64, 1, 3] {
        let x: Vec<f32> = (0..n).map(|v| v as f32).collect();
        let want: Vec<f64> = (0..n).map(|v| v as f64 * 2.0).collect();
        for name in ["builtin", "memory", "main"] {
            let out = run(&module, name, &[f32s(&[n], &x)], &NoPacked).unwrap();
            assert_eq!(flat(&out), want, "{name}");
        }
    }
    let error = run(&module, "killed", &[f32s(&[1], &[0.0])], &NoPacked).unwrap_err();
    assert!(error.message.contains(
        "'x' is read before it is defined, or after an operator such as R.memory.kill_tensor"
    ));
    let error = run(&module, "main", &[f32s(&[1, 1], &[0.0])], &NoPacked).unwrap_err();
    assert!(error.message.contains("must be a float32 tensor of 1 dim"), "{error}");
}

#[test]
fn sizes_that_overflow_are_errors() {
    let text = r#"
@R.function
def main(s: R.Shape(["n"])) -> R.Shape(ndim=1):
    n = T.int64()
    t = R.shape([n * n])
    return t
"#;
    assert_eq!(run_script(text, &[Value::shape(&[3])]).unwrap().as_shape(), Some(&[9i64][..]));
    let error = run_script(text, &[Value::shape(&[1 << 40])]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Size);
    assert!(error.message.contains("n * n does not fit in 64 bits"), "{error}");
}

#[test]
fn closures_are_passed_and_returned_as_values() {
    let text = r#"
@I.ir_module
class Module:
    @R.function
    def lifted(a: R.Tensor(("n",), dtype="float32"), b: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        c = R.subtract(a, b)
        return c

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        f: R.Object = R.make_closure(cls.lifted, (y,))
        gv: R.Tensor((n,), dtype="float32") = R.invoke_closure(f, (x,), sinfo_args=(R.Tensor((n,), dtype="float32"),))
        f1: R.Object = R.call_packed("vm.builtin.make_closure", cls.lifted, y, sinfo_args=(R.Object,))
        gv1: R.Tensor((n,), dtype="float32") = R.call_packed("vm.builtin.invoke_closure", f1, gv, sinfo_args=(R.Tensor((n,), dtype="float32"),))
        return gv1
"#;
    let out = run_script(text, &[f32s(&[2], &[10.0, 20.0]), f32s(&[2], &[1.0, 2.0])]).unwrap();
    assert_eq!(flat(&out), [8.0, 16.0]);
}

#[test]
fn in_place_calls_overwrite_their_input() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increase(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        for i in range(n):
            A[i] = A[i] + T.float32(1)
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
        n = T.int64()
        cls = Module
        gv = R.call_tir_inplace(cls.increase, (x,), out_sinfo=[R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")], inplace_indices=[0, -1])
        return gv
"#;
    let x = f32s(&[2], &[1.0, 2.0]);
    let out = run_script(text, std::slice::from_ref(&x)).unwrap();
    let items = out.as_tuple().unwrap();
    assert_eq!((flat(&items[0]), flat(&items[1])), (vec![2.0, 3.0], vec![4.0, 6.0]));
    assert_eq!(flat(&x), [2.0, 3.0]);
    assert!(items[0].as_tensor().unwrap().same(x.as_tensor().unwrap()));
}

#[test]
fn failing_assertions_report_their_text() {
    let text = r#"
@R.function(pure=False)
def main(ok: R.Tensor((), dtype="bool")) -> R.Tuple:
    gv: R.Tuple = R.assert_op(ok, format="not ok")
    return gv
"#;
    run_script(text, &[bools(&[], &[true])]).unwrap();
    let error = run_script(text, &[bools(&[], &[false])]).unwrap_err();
    let text = "an assertion of the program failed: not ok";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Check, text));
}

#[test]
fn lowered_programs_store_sizes_in_a_shape_heap() {
    let text = r#"
@R.function(pure=False)
def main(x: R.Tensor(ndim=2, dtype="float32")):
    heap = relax.runtime.builtin.alloc_heap(3)
    relax.runtime.builtin.store_shape(x.shape, heap, 2, 0)
    sh = relax.runtime.builtin.load_shape(heap, 0, 2)
    sh1 = R.call_packed("load_shape", heap, 2)
    R.call_packed("free_tensor", heap)
    return (sh, sh1)
"#;
    for n in [0, 1, 2, 7] {
        let x = f32s(&[n, 3], &vec![0.0; 3 * n as usize]);
        let out = run_script(text, &[x]).unwrap();
        let shapes: Vec<&[i64]> =
            out.as_tuple().unwrap().iter().map(|s| s.as_shape().unwrap()).collect();
        assert_eq!(shapes, [&[3, n][..], &[n][..]]);
    }
}

#[test]
fn a_symbolic_size_of_one_remains_a_dim() {
    let text = r#"
@R.function
def main(x: R.Tensor((1, "n"), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
    n = T.int64()
    gv: R.Tensor((n,), dtype="float32") = R.squeeze(x)
    return gv
"#;
    for n in [0, 1, 3] {
        let out = run_script(text, &[zeros(&[1, n], pliant_ir::DType::Float32)]).unwrap();
        assert_eq!(numbers(&out).0, [n]);
    }
}

#[test]
fn strided_tensors_are_accessed_without_copies() {
    let text = r#"
@T.prim_func
def main(var_A: T.handle, var_B: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(var_A, (n, m), "float32")
    B = T.match_buffer(var_B, (n, m), "float32")
    for i, j in T.grid(n, m):
        B[i, j] = A[i, j]
"#;
    let data: Vec<f32> = (0..6).map(|v| v as f32).collect();
    let x = pliant_tensor::Tensor::from_slice(&[2, 3], &data).unwrap();
    let storage = x.storage().clone();
    let turned =
        pliant_tensor::Tensor::from_storage_strided(storage, 0, &[3, 2], &[1, 3], x.dtype())
            .unwrap();
    let out = zeros(&[3, 2], x.dtype());
    run_script(text, &[turned.into(), out.clone()]).unwrap();
    assert_eq!(flat(&out), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
}
