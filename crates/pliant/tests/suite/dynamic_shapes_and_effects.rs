//! Tests programs whose shapes depend on values, programs with side effects, and programs that
//! allocate memory and compute shapes explicitly, as examples of the Relax RFC of 2022 do.

use std::sync::Arc;

use crate::test_helpers::{fails, iota, model, read, run, tensor};
use pliant::{Tensor, Value};

#[test]
fn result_shapes_depend_on_values() {
    let m = model(
        r#"
@R.function
def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
    n = T.int64()
    k = T.int64()
    with R.dataflow():
        u = R.unique(x)
        v = R.match_cast(u, R.Tensor((k,), dtype="float32"))
        double = R.add(v, v)
        places = R.nonzero(x)
        all = R.unique(x, return_index=True, return_inverse=True, return_counts=True)
        counts = all[3]
        gv = (double, places, counts)
        R.output(gv)
    return gv
"#,
    );
    for n in [0, 1, 2, 3, 7, 8, 31, 64] {
        let data: Vec<f32> = (0..n).map(|i| (i % 4) as f32).collect();
        let out = m.run("main", &[tensor(&[n], &data)]).unwrap_or_else(|e| panic!("{e}"));
        let [double, indices, counts] = out.as_tuple().expect("a tuple") else { panic!("{out:?}") };
        let distinct = n.min(4);
        let doubled: Vec<f32> = (0..distinct).map(|i| 2.0 * i as f32).collect();
        assert_eq!(read(double), (vec![distinct], doubled));
        let expected: Vec<i64> = (0..n).filter(|i| i % 4 != 0).collect();
        let indices = indices.as_tensor().expect("a tensor");
        assert_eq!(indices.shape(), [1, expected.len() as i64]);
        assert_eq!(indices.to_vec::<i64>().expect("int64"), expected);
        let counts = counts.as_tensor().expect("a tensor").to_vec::<i64>().expect("int64");
        assert_eq!(counts.iter().sum::<i64>(), n);
    }
}

#[test]
fn operators_accept_tensors_of_unknown_sizes() {
    let halve: pliant_vm::PackedFunc = Arc::new(|args: &[Value]| {
        let x = args[0].as_tensor().expect("a tensor");
        let data: Vec<f32> = x.to_vec().expect("float32 values");
        let rows = x.shape()[0] / 2;
        Ok(tensor(&[rows, x.shape()[1]], &data[..(rows * x.shape()[1]) as usize]))
    });
    pliant_vm::register_func("test.dynamic.halve", halve, true);
    let m = model(
        r#"
@R.function(pure=False)
def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(ndim=2, dtype="float32"):
    n = T.int64()
    y = R.call_packed("test.dynamic.halve", x, sinfo_args=R.Tensor(ndim=2, dtype="float32"))
    z = R.concat([y, R.add(y, y)], axis=0)
    for i in R.range(2):
        z = R.call_packed("test.dynamic.halve", z, sinfo_args=R.Tensor(ndim=2, dtype="float32"))
        z = R.negative(z)
    return R.multiply(z, R.const(2, "float32"))
"#,
    );
    for n in [0, 1, 2, 3, 8] {
        let half = n / 2;
        let rows = half * 2 / 2 / 2;
        let want: Vec<f32> = (0..rows * 2).map(|i| 2.0 * i as f32).collect();
        assert_eq!(run(&m, &[iota(&[n, 2])]), (vec![rows, 2], want), "n = {n}");
    }
}

#[test]
fn unknown_sizes_are_checked_when_broadcast() {
    let m = model(
        r#"
@R.function
def main(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor(ndim=1, dtype="float32")) -> R.Object:
    return R.add(x, y)
"#,
    );
    assert_eq!(run(&m, &[iota(&[3]), iota(&[3])]), (vec![3], vec![0.0, 2.0, 4.0]));
    assert_eq!(run(&m, &[iota(&[3]), iota(&[1])]), (vec![3], vec![0.0, 1.0, 2.0]));
    assert_eq!(run(&m, &[iota(&[0]), iota(&[1])]), (vec![0], vec![]));
    let message = fails(&m, &[iota(&[3]), iota(&[4])]);
    assert!(message.contains("dims x_0 and y_0 (axis -1) cannot be broadcast"), "{message}");
}

#[test]
fn prints_and_assertions() {
    let m = model(
        r#"
@R.function(pure=False)
def main(x: R.Tensor(("n",), dtype="float32"), ok: R.Tensor((), dtype="bool")) -> R.Tensor(("n",), dtype="float32"):
    n = T.int64()
    y = R.add(x, x)
    R.print(y, R.shape([n]), format="y = {} of shape {}")
    R.assert_op(ok, y, format="y was {}")
    return y
"#,
    );
    let flag = |ok: bool| Value::Tensor(Tensor::scalar(ok).expect("a scalar"));
    assert_eq!(run(&m, &[iota(&[3]), flag(true)]).1, [0.0, 2.0, 4.0]);
    let text = fails(&m, &[iota(&[2]), flag(false)]);
    assert_eq!(text, "an assertion of the program failed: y was [0.0, 2.0]");
}

const LOOPS: &str = r#"
    @T.prim_func
    def tirexp(var_A: T.handle, var_B: T.handle):
        n, m = T.int64(), T.int64()
        A = T.match_buffer(var_A, (n, m), "float32")
        B = T.match_buffer(var_B, (n, m), "float32")
        for i, j in T.grid(n, m):
            with T.block("B"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)

    @T.prim_func
    def flatten(var_A: T.handle, var_B: T.handle):
        n, m = T.int64(), T.int64()
        A = T.match_buffer(var_A, (n, m), "float32")
        B = T.match_buffer(var_B, (n * m,), "float32")
        for i, j in T.grid(n, m):
            with T.block("B"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                B[v_i * m + v_j] = A[v_i, v_j]
"#;

fn check_double_and_flatten(program: &str) {
    let m = model(program);
    for (n, k) in [(0, 3), (1, 1), (2, 0), (3, 7), (8, 31), (64, 2)] {
        let expected: Vec<f32> = (0..n * k).map(|i| 2.0 * i as f32).collect();
        assert_eq!(run(&m, &[iota(&[n, k])]), (vec![n * k], expected));
    }
}

/// Allocates and frees storages by explicit calls, as an example of the Relax RFC of 2022 does. Corrections to the example: the
/// brackets match, and sizes are in bytes.
#[test]
fn programs_allocate_and_free_memory_explicitly() {
    check_double_and_flatten(&format!(
        r#"
@tvm.script.ir_module
class Module:
{LOOPS}
    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32")):
        n, m = R.match_shape(x.shape)

        storage0 = relax.runtime.builtin.alloc_storage(size=[n*m*4], device=cpu)
        tensor0 = relax.runtime.builtin.alloc_tensor(storage0, shape=[n, m], offset=0, dtype="float32")
        R.call_packed("tirexp", x, tensor0)

        storage1 = relax.runtime.builtin.alloc_storage(size=[n*m*4], device=cpu)
        tensor1 = relax.runtime.builtin.alloc_tensor(storage1, shape=[m*n,], offset=0, dtype="float32")
        R.call_packed("flatten", tensor0, tensor1)

        R.call_packed("free_tensor", tensor0)
        R.call_packed("free_storage", storage0)
        return tensor1
"#
    ));
}

/// Computes sizes by a loop function that reads and writes a shape heap (a tensor of sizes), as an example of the Relax RFC of
/// 2022 does.
#[test]
fn programs_compute_shapes_in_a_shape_heap() {
    check_double_and_flatten(&format!(
        r#"
@tvm.script.ir_module
class Module:
{LOOPS}
    @T.prim_func
    def product_shape(var_H: T.handle):
        H = T.match_buffer(var_H, (4,), "int64")
        with T.block("root"):
            H[2] = H[0] * H[1]
            H[3] = H[0] * H[1] * T.int64(4)

    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32")):
        shape_heap = relax.call_packed("vm.builtin.alloc_shape_heap", size=4)
        relax.runtime.builtin.store_shape(x.shape, shape_heap, 0, 1)
        sh = relax.runtime.builtin.load_shape(shape_heap, 0, 1)
        R.call_packed("product_shape", shape_heap)
        shape_size = relax.runtime.builtin.load_shape(shape_heap, 3)

        storage0 = relax.runtime.builtin.alloc_storage(size=shape_size, device=cpu)
        gv0 = relax.runtime.builtin.alloc_tensor(storage0, sh, 0, "float32")
        R.call_packed("tirexp", x, gv0)

        sh1 = R.call_packed("load_shape", shape_heap, 2)
        storage1 = relax.runtime.builtin.alloc_storage(size=shape_size, device=cpu)
        gv1 = relax.runtime.builtin.alloc_tensor(storage1, sh1, 0, "float32")
        R.call_packed("flatten", gv0, gv1)

        R.call_packed("free_tensor", gv0)
        R.call_packed("free_storage", storage0)
        return gv1
"#
    ));
}
