//! End-to-end tests from script to results, at many shapes with one compilation.

use crate::test_helpers::{fails, iota, model, parse, read, run, tensor, try_model};
use pliant::{CompileOptions, CompiledModule, Model, Value};

const SIZES: [i64; 8] = [0, 1, 2, 3, 7, 8, 31, 64];

#[test]
fn hand_written_loop_functions_run_at_every_size() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                v_i = T.axis.spatial(n, i)
                B[v_i] = A[v_i] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
            gv = R.call_tir(cls.double, (lv,), out_sinfo=R.Tensor((n,), dtype="float32"))
            R.output(gv)
        return gv
"#,
    );
    for n in SIZES {
        let expected: Vec<f32> = (0..n).map(|i| 4.0 * i as f32).collect();
        assert_eq!(run(&m, &[iota(&[n])]), (vec![n], expected));
    }
    let stats = m.stats();
    assert_eq!((stats.compilations, stats.runs), (1, SIZES.len() as u64));
}

#[test]
fn operators_broadcast_and_multiply() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "k"), dtype="float32"), w: R.Tensor(("k", 3), dtype="float32"), b: R.Tensor((3,), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
        n = T.int64()
        k = T.int64()
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.add(lv, b)
            gv = R.nn.relu(lv1)
            R.output(gv)
        return gv
"#,
    );
    for n in SIZES {
        for k in [0, 1, 5] {
            let (shape, values) =
                run(&m, &[iota(&[n, k]), iota(&[k, 3]), tensor(&[3], &[-5.0, 0.0, 1.0])]);
            assert_eq!(shape, [n, 3]);
            for i in 0..n {
                for j in 0..3 {
                    let dot: f32 = (0..k).map(|l| (i * k + l) as f32 * (l * 3 + j) as f32).sum();
                    let expected = (dot + [-5.0, 0.0, 1.0][j as usize]).max(0.0);
                    assert_eq!(values[(i * 3 + j) as usize], expected, "n={n} k={k} at ({i}, {j})");
                }
            }
        }
    }
}

#[test]
fn reshapes_are_views_and_sizes_are_computed() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n * m * 2",), dtype="float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv = R.reshape(x, R.shape([n * m]))
            lv1 = R.add(lv, lv)
            lv2 = R.concat((lv1, lv), axis=0)
            gv = R.exp(lv2)
            R.output(gv)
        return gv
"#,
    );
    for (n, m_) in [(0, 3), (1, 1), (2, 3), (5, 7)] {
        let (shape, values) = run(&m, &[iota(&[n, m_])]);
        assert_eq!(shape, [2 * n * m_]);
        for (i, v) in values.iter().enumerate() {
            let i = i as i64;
            let x = if i < n * m_ { 2 * i } else { i - n * m_ } as f32;
            assert!((v - x.exp()).abs() <= 1e-5 * x.exp(), "{v} at {i}");
        }
    }
}

#[test]
fn functions_return_several_outputs_and_nested_tuples() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def both(var_A: T.handle, var_B: T.handle, var_C: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        C = T.match_buffer(var_C, (n,), "float32")
        for i in range(n):
            with T.block("BC"):
                v_i = T.axis.spatial(n, i)
                B[v_i] = A[v_i] + T.float32(1.0)
                C[v_i] = A[v_i] * T.float32(3.0)

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tuple(R.Tensor(("n",), dtype="float32"), R.Shape(["n"]))):
        n = T.int64()
        cls = Module
        lv = R.call_tir(cls.both, (x,), out_sinfo=[R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")])
        a: R.Tensor((n,), dtype="float32") = lv[0]
        b: R.Tensor((n,), dtype="float32") = lv[1]
        return (a, (b, R.shape([n])))
"#,
    );
    for n in [0i64, 1, 4] {
        let result = m.run("main", &[iota(&[n])]).unwrap();
        let outer = result.as_tuple().unwrap();
        let inner = outer[1].as_tuple().unwrap();
        assert_eq!(read(&outer[0]).1, (0..n).map(|i| i as f32 + 1.0).collect::<Vec<_>>());
        assert_eq!(read(&inner[0]).1, (0..n).map(|i| i as f32 * 3.0).collect::<Vec<_>>());
        assert_eq!(inner[1].as_shape().unwrap(), [n]);
    }
}

const DIM_EXPRESSIONS: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor(("n * 2",), dtype="float32"), b: R.Tensor(("m + 1",), dtype="float32"), c: R.Tensor(("n * 4 + k",), dtype="float32")) -> R.Shape(["n", "m", "k"]):
        n = T.int64()
        m = T.int64()
        k = T.int64()
        return R.shape([n, m, k])
"#;

#[test]
fn dim_expressions_define_their_symbols() {
    let m = model(DIM_EXPRESSIONS);
    let shape = |a, b, c| {
        let result = m.run("main", &[iota(&[a]), iota(&[b]), iota(&[c])]).unwrap();
        result.as_shape().unwrap().to_vec()
    };
    assert_eq!(shape(6, 5, 14), [3, 4, 2]);
    assert_eq!(shape(0, 1, 0), [0, 0, 0]);
    assert_eq!(shape(2, 2, 9), [1, 1, 5]);
}

#[test]
fn errors_name_dims_that_match_no_symbol_value() {
    let m = model(DIM_EXPRESSIONS);
    let text = fails(&m, &[iota(&[7]), iota(&[5]), iota(&[14])]);
    assert_eq!(
        text,
        "main: 'a' dim 0 must equal n * 2 = 6 (from this dim itself: no value of n matches), but is 7"
    );
    let text = fails(&m, &[iota(&[6]), iota(&[0]), iota(&[14])]);
    assert_eq!(
        text,
        "main: 'b' dim 0 must equal m + 1 = 1 (from this dim itself: no value of m matches), but is 0"
    );
    let text = fails(&m, &[iota(&[6]), iota(&[5]), iota(&[11])]);
    assert_eq!(
        text,
        "main: 'c' dim 0 must equal k + n * 4 = 12 (from 'a' dim 0 and this dim itself: no value of k matches), but is 11"
    );
}

#[test]
fn dims_that_define_no_symbol_are_rejected() {
    let error = try_model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n * n",), dtype="float32")) -> R.Tensor(("n * n",), dtype="float32"):
        n = T.int64()
        return x
"#,
    );
    let text = error.err().expect("n * n does not define n").to_string();
    assert!(
        text.contains("symbolic dim 'n' is used, but not defined at this point of the function"),
        "{text}"
    );
}

const MATCHING_INPUTS: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(ids: R.Tensor(("batch", "seq"), dtype="float32"), mask: R.Tensor(("batch", "seq"), dtype="float32"), four: R.Tensor((4,), dtype="float32")) -> R.Tensor(("batch", "seq"), dtype="float32"):
        batch = T.int64()
        seq = T.int64()
        gv: R.Tensor((batch, seq), dtype="float32") = R.add(ids, mask)
        return gv
"#;

#[test]
fn errors_name_wrong_inputs() {
    let m = model(MATCHING_INPUTS);
    let four = iota(&[4]);
    let text = fails(&m, &[iota(&[2, 7]), iota(&[2, 9]), four.clone()]);
    assert_eq!(text, "main: 'mask' dim 1 must equal seq = 7 (from 'ids' dim 1), but is 9");
    let text = fails(&m, &[iota(&[2, 7]), iota(&[2, 7]), iota(&[5])]);
    assert_eq!(text, "main: 'four' dim 0 must equal 4, but is 5");
    let text = fails(&m, &[iota(&[2, 7, 1]), iota(&[2, 7]), four.clone()]);
    assert_eq!(
        text,
        "main: 'ids' must be a float32 tensor of 2 dims, but is a float32 tensor of shape (2, 7, 1)"
    );
    let ints = Value::Tensor(pliant::Tensor::from_slice(&[2, 7], &[0i64; 14]).unwrap());
    let text = fails(&m, &[ints, iota(&[2, 7]), four.clone()]);
    assert_eq!(
        text,
        "main: 'ids' must be a float32 tensor of 2 dims, but is an int64 tensor of shape (2, 7) \
         (help: convert the tensor with .astype(\"float32\"))"
    );
    let text = fails(&m, std::slice::from_ref(&four));
    assert!(
        text.starts_with("main(ids: R.Tensor(")
            && text.contains("takes 3 arguments, but 1 was given (missing: 'mask', 'four')"),
        "{text}"
    );
    assert_eq!(run(&m, &[iota(&[0, 7]), iota(&[0, 7]), four]).0, [0, 7]);
}

#[test]
fn match_cast_checks_shapes_and_defines_symbols() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(dtype="float32", ndim=2), y: R.Tensor) -> R.Tensor(dtype="float32", ndim=2):
        n = T.int64()
        m = T.int64()
        a = R.match_cast(x, R.Tensor((n, m), dtype="float32"))
        b = R.match_cast(y, R.Tensor((n, m), dtype="float32"))
        gv: R.Tensor((n, m), dtype="float32") = R.add(a, b)
        return gv
"#,
    );
    assert_eq!(run(&m, &[iota(&[2, 2]), iota(&[2, 2])]), (vec![2, 2], vec![0.0, 2.0, 4.0, 6.0]));
    let text = fails(&m, &[iota(&[2, 2]), iota(&[2, 3])]);
    assert_eq!(
        text,
        "main: match_cast of 'y' dim 1 must equal m = 2 (from match_cast of 'x' dim 1), but is 3"
    );
    let text = fails(&m, &[iota(&[2, 2]), iota(&[4])]);
    assert_eq!(
        text,
        "main: match_cast of 'y' must be a float32 tensor of 2 dims, but is a float32 tensor of shape (4,)"
    );
}

#[test]
fn branches_are_chosen_at_run_time() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        if c:
            a: R.Tensor((n,), dtype="float32") = R.add(x, x)
            a2: R.Tensor((n,), dtype="float32") = R.add(a, x)
            y: R.Tensor((n,), dtype="float32") = a2
        else:
            b: R.Tensor((n,), dtype="float32") = R.negative(x)
            y: R.Tensor((n,), dtype="float32") = b
        z: R.Tensor((n,), dtype="float32") = R.add(y, x)
        return z
"#,
    );
    let flag = |b: bool| Value::Tensor(pliant::Tensor::from_slice(&[], &[b]).unwrap());
    for n in [0i64, 1, 5] {
        let scaled = |k: f32| (0..n).map(|i| k * i as f32).collect::<Vec<_>>();
        assert_eq!(run(&m, &[flag(true), iota(&[n])]).1, scaled(4.0));
        assert_eq!(run(&m, &[flag(false), iota(&[n])]).1, scaled(0.0));
    }
}

#[test]
fn functions_call_each_other() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function(private=True)
    def twice(x: R.Tensor(("k",), dtype="float32")) -> R.Tensor(("k",), dtype="float32"):
        k = T.int64()
        gv: R.Tensor((k,), dtype="float32") = R.add(x, x)
        return gv

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        a: R.Tensor((n,), dtype="float32") = cls.twice(x)
        b: R.Tensor((n,), dtype="float32") = cls.twice(a)
        return b
"#,
    );
    assert_eq!(run(&m, &[iota(&[3])]).1, [0.0, 4.0, 8.0]);
}

#[test]
fn size_overflow_is_an_error() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(s: R.Shape(["n", "m"])) -> R.Shape(["n * m * 4"]):
        n = T.int64()
        m = T.int64()
        return R.shape([n * m * 4])
"#,
    );
    let run_at = |n, k| m.run("main", &[Value::shape(&[n, k])]);
    assert_eq!(run_at(3, 5).unwrap().as_shape().unwrap(), [60]);
    assert_eq!(run_at(1 << 61, 0).unwrap().as_shape().unwrap(), [0]);
    let text = run_at(1 << 61, 1).unwrap_err().to_string();
    assert!(text.contains("main: m * n * 4 does not fit 64 bits"), "{text}");
    let text = run_at(1 << 40, 1 << 40).unwrap_err().to_string();
    assert!(text.contains("does not fit 64 bits"), "{text}");
}

#[test]
fn size_division_by_zero_is_an_error() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(s: R.Shape(["n", "m"])) -> R.Shape(["n // m"]):
        n = T.int64()
        m = T.int64()
        return R.shape([n // m])
"#,
    );
    let run_at = |n, k| m.run("main", &[Value::shape(&[n, k])]);
    assert_eq!(run_at(17, 5).unwrap().as_shape().unwrap(), [3]);
    let text = run_at(3, 0).unwrap_err().to_string();
    assert!(text.contains("main: n // m divides by zero"), "{text}");
}

#[test]
fn a_saved_program_runs_after_loading() {
    let m = model(MATCHING_INPUTS);
    let bytes = m.compiled().to_bytes().unwrap();
    let loaded = Model::new(CompiledModule::from_bytes(&bytes).unwrap()).unwrap();
    assert_eq!(loaded.inputs(), m.inputs());
    let shape: Vec<String> =
        m.inputs()[0].shape.as_ref().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(shape, ["batch", "seq"]);
    let args = [iota(&[2, 3]), iota(&[2, 3]), iota(&[4])];
    assert_eq!(run(&loaded, &args), run(&m, &args));
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    assert!(CompiledModule::from_bytes(&damaged).is_err());
    assert!(CompiledModule::from_bytes(&bytes[..bytes.len() - 1]).is_err());
}

#[test]
fn a_cancelled_compilation_stops() {
    let options = CompileOptions::default();
    options.cancel.cancel();
    let error = Model::compile(parse(MATCHING_INPUTS), &options)
        .err()
        .expect("the compilation was cancelled");
    assert_eq!(error.kind(), pliant::ErrorKind::Interrupted);
}

#[test]
fn packed_functions_are_called_and_their_results_checked() {
    use std::sync::Arc;
    let double: pliant_vm::PackedFunc = Arc::new(|args: &[Value]| {
        let x = args[0].as_tensor().expect("the program hands a tensor");
        let data: Vec<f32> = x.to_vec::<f32>()?.iter().map(|v| v * 2.0).collect();
        Ok(Value::Tensor(pliant::Tensor::from_slice(x.shape(), &data)?))
    });
    let shrink: pliant_vm::PackedFunc = Arc::new(|_: &[Value]| {
        Ok(Value::Tensor(pliant::Tensor::zeros(&[1], pliant::DType::Float32)?))
    });
    let broken: pliant_vm::PackedFunc =
        Arc::new(|_: &[Value]| Err(pliant::VmError::external("it does not work today")));
    pliant_vm::register_func("test.run.double", double, true);
    pliant_vm::register_func("test.run.shrink", shrink, true);
    pliant_vm::register_func("test.run.broken", broken, true);
    let program = |name: &str| {
        model(&format!(
            r#"
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        y: R.Tensor((n,), dtype="float32") = R.call_packed("{name}", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
        z: R.Tensor((n,), dtype="float32") = R.add(y, x)
        return z
"#
        ))
    };
    assert_eq!(run(&program("test.run.double"), &[iota(&[3])]).1, [0.0, 3.0, 6.0]);
    let text = fails(&program("test.run.shrink"), &[iota(&[3])]);
    assert_eq!(
        text,
        "main: the result of packed function 'test.run.shrink' dim 0 must equal n = 3 (from 'x' dim 0), but is 1"
    );
    let text = fails(&program("test.run.broken"), &[iota(&[3])]);
    assert!(text.contains("test.run.broken") && text.contains("it does not work today"), "{text}");
    let missing = try_model(
        r#"
@R.function(pure=False)
def main(x: R.Object) -> R.Object:
    y: R.Object = R.call_packed("test.run.nowhere", x, sinfo_args=(R.Object,))
    return y
"#,
    );
    let text = missing.err().expect("the function is not registered").to_string();
    assert!(text.contains("test.run.nowhere"), "{text}");
}

#[test]
fn static_programs_allocate_no_shape_heap() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        gv: R.Tensor((4,), dtype="float32") = R.add(x, R.const(1.0, "float32"))
        return gv
"#,
    );
    assert_eq!(run(&m, &[iota(&[4])]).1, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(fails(&m, &[iota(&[5])]), "main: 'x' dim 0 must equal 4, but is 5");
    let text = m.compiled().executable().as_text();
    assert!(!text.contains("alloc_shape_heap") && !text.contains("null_value"), "{text}");
}
