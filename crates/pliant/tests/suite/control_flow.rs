//! Tests compiled control flow: tail calls, loops over state, closures, and their errors.

use crate::test_helpers::{model, read, tensor};
use pliant::{Model, Tensor, Value};

fn int(value: i64) -> Value {
    Value::Tensor(Tensor::from_slice(&[], &[value]).expect("a scalar"))
}

fn run_int(model: &Model, name: &str, args: &[Value]) -> i64 {
    let value = model.run(name, args).unwrap_or_else(|e| panic!("{e}"));
    value.as_tensor().expect("a tensor").to_vec::<i64>().expect("int64")[0]
}

const COUNT: &str = r#"
@I.ir_module
class Module:
    # A tail call in each branch; the frame holds a tensor that it must release.
    @R.function
    def count(i: R.Tensor((), "int64"), n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if R.less(i, n):
            j = R.add(i, R.const(1, "int64"))
            if R.less(R.const(0, "int64"), i):
                r = Module.count(j, n)
            else:
                r = Module.count(R.add(j, R.const(0, "int64")), n)
        else:
            r = i
        return r

    @R.function
    def sum(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if R.less(R.const(0, "int64"), i):
            rest = Module.sum(R.subtract(i, R.const(1, "int64")))
            r = R.add(i, rest)
        else:
            r = i
        return r

    # A tail call of a function whose result type has an unknown size.
    @R.function
    def grow(i: R.Tensor((), "int64"), x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        if R.less(R.const(0, "int64"), i):
            r = Module.grow(R.subtract(i, R.const(1, "int64")), R.concat([x, R.ones((1,), "float32")], axis=0))
        else:
            r = R.concat([x, x], axis=0)
        return r
"#;

#[test]
fn tail_recursion_needs_no_stack() {
    let m = model(COUNT);
    for n in [0, 1, 2, 100_000] {
        assert_eq!(run_int(&m, "count", &[int(0), int(n)]), n);
    }
    let x = tensor(&[2], &[1.0, 2.0]);
    for n in [0, 1, 3] {
        let grown = m.run("grow", &[int(n), x.clone()]).expect("it runs");
        assert_eq!(read(&grown).0, [2 * (2 + n)]);
    }
}

#[test]
fn tail_calls_compare_sizes_before_the_call() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def same(x: R.Tensor(("n",), "int64"), i: R.Prim(value="j")) -> R.Tensor(("n",), "int64"):
        n, j = T.int64(), T.int64()
        if j <= 0:
            return x
        return Module.same(R.unique(x), R.prim_value(j - 1))

    @R.function
    def twice(x: R.Tensor(("n",), "int64"), i: R.Prim(value="j")) -> R.Tensor(("n * 2",), "int64"):
        n, j = T.int64(), T.int64()
        if j <= 0:
            return R.concat([x, x])
        y = R.unique(x)
        return Module.twice(y, R.prim_value(j - 1))
"#,
    );
    let ints = |values: &[i64]| {
        Value::Tensor(Tensor::from_slice(&[values.len() as i64], values).expect("a vector"))
    };
    for (name, len) in [("same", 3), ("twice", 6)] {
        // Deeper than frames may be nested.
        let out = m.run(name, &[ints(&[1, 2, 5]), Value::Int(20_000)]).expect("it runs");
        assert_eq!(out.as_tensor().expect("a tensor").shape(), [len]);
        let error = m.run(name, &[ints(&[1, 2, 2]), Value::Int(1)]).expect_err("it shrinks");
        let error = error.to_string();
        let expected = format!("{name}: the result dim 0 must equal");
        assert!(
            error.contains(&expected) && error.contains(&format!("is {}", len / 3 * 2)),
            "{error}"
        );
    }
}

#[test]
fn deep_recursion_without_tail_calls_is_an_error() {
    let m = model(COUNT);
    assert_eq!(run_int(&m, "sum", &[int(4000)]), 4000 * 4001 / 2);
    let error = m.run("sum", &[int(200_000)]).expect_err("too deep").to_string();
    assert!(error.contains("calls are nested too deeply"), "{error}");
    assert_eq!(run_int(&m, "sum", &[int(3)]), 6);
}

#[test]
fn loops_over_scalars_and_tensors() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), turns: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()

        @R.function
        def more(i: R.Prim("int64"), acc: R.Tensor((n,), "float32")) -> R.Tensor((), "bool"):
            return R.less(R.max(acc), R.const(100, "float32"))

        @R.function
        def turn(i: R.Prim("int64"), acc: R.Tensor((n,), "float32")) -> R.Tuple(R.Prim("int64"), R.Tensor((n,), "float32")):
            return (i, R.add(acc, x))

        last = R.while_loop(more, turn, turns, x)
        return last[1]
"#,
    );
    let x = tensor(&[3], &[1.0, 2.0, 7.0]);
    let (shape, values) = read(&m.run("main", &[x, Value::Int(1)]).expect("it runs"));
    assert_eq!((shape, values), (vec![3], vec![15.0, 30.0, 105.0]));
}

#[test]
fn closure_calls_check_their_arguments() {
    let m = model(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(w: R.Tensor(("n",), "float32")) -> R.Callable:
        n = T.int64()

        @R.function
        def scale(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.multiply(x, w)

        return scale

    @R.function(pure=False)
    def call(f: R.Object, x: R.Object) -> R.Object:
        return R.invoke_closure(f, (x,), sinfo_args=R.Object)

    @R.function(pure=False)
    def two(f: R.Object, x: R.Object) -> R.Object:
        return R.invoke_closure(f, (x, x), sinfo_args=R.Object)
"#,
    );
    let w = tensor(&[2], &[3.0, 4.0]);
    let scale = m.run("main", std::slice::from_ref(&w)).expect("a closure");
    let out = m.run("call", &[scale.clone(), w.clone()]).expect("it runs");
    assert_eq!(read(&out).1, [9.0, 16.0]);
    let w2 = w.clone();
    let error = m.run("two", &[scale.clone(), w]).expect_err("one too many").to_string();
    assert!(error.contains("main_scale(x: "), "{error}");
    assert!(error.contains("takes 1 argument, but 2 were given"), "{error}");
    let error = m.run("call", &[w2, Value::Int(1)]).expect_err("no function").to_string();
    assert!(
        error.contains(
            "call: 'f', which is called, must be a function, but is a float32 tensor of shape (2,)"
        ),
        "{error}"
    );
    let error = m.run("call", &[scale, Value::Int(1)]).expect_err("no tensor").to_string();
    assert!(error.contains("main_scale: 'x' must be a float32 tensor"), "{error}");
}
