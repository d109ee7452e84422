//! Tests how graph functions interact with the host, the program that runs the interpreter: order of effects, opaque objects,
//! dynamically typed values, calls from loop functions, and errors.

use std::sync::{Arc, Mutex};

use crate::script_and_tensor_helpers::*;
use pliant_interp::{ErrorKind, PackedTable, Value, assign};
use pliant_tensor::Tensor;

fn tensor(value: &Value) -> &Tensor {
    value.as_tensor().expect("a tensor")
}

#[test]
fn side_effects_are_executed_in_order() {
    let text = r#"
@I.ir_module
class Module:
    @R.function(pure=False)
    def show(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        R.call_packed("log", x)
        return R.add(x, x)

    @R.function(pure=False)
    def main(n: R.Prim("int64")) -> R.Tensor((), "int64"):
        cls = Module
        R.call_packed("log", R.const(1, "int64"))
        a = cls.show(R.const(2, "int64"))
        if R.less(a, R.const(9, "int64")):
            b = cls.show(a)
        else:
            b = a
        for i in R.range(2):
            R.call_packed("log", i)
            b = cls.show(b)
        R.call_packed("log", n)
        return b
"#;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let table = PackedTable::new().with("log", move |args| {
        let value = match &args[0] {
            Value::Int(v) => *v,
            other => tensor(other).to_i64_vec().unwrap()[0],
        };
        log.lock().unwrap().push(value);
        Ok(Value::unit())
    });
    let out = run_packed(text, &[Value::Int(70)], &table).unwrap();
    assert_eq!(flat(&out), [32.0]);
    assert_eq!(*seen.lock().unwrap(), [1, 2, 4, 0, 8, 1, 16, 70]);
}

/// Tests that a step of gradient descent in the module updates the weights in place.
#[test]
fn weights_are_updated_in_place() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def step(w: T.handle, g: T.handle):
        n = T.int64()
        W = T.match_buffer(w, (n,), "float32")
        G = T.match_buffer(g, (n,), "float32")
        for i in range(n):
            W[i] = W[i] - T.float32(0.5) * G[i]

    @R.function(pure=False)
    def main(w: R.Tensor(("n",), "float32"), x: R.Tensor(("n",), "float32")) -> R.Tensor((), "float32"):
        n = T.int64()
        cls = Module
        for i in R.range(3):
            g = R.multiply(w, x)
            R.call_tir_inplace(cls.step, (w, g), inplace_indices=0, out_sinfo=R.Tensor((n,), "float32"))
        R.call_inplace_packed("negate", w, inplace_indices=0, sinfo_args=R.Tensor((n,), "float32"))
        return R.sum(w)
"#;
    let table = PackedTable::new().with("negate", |args| {
        let w = tensor(&args[0]);
        let values: Vec<f32> = w.to_f64_vec().unwrap().iter().map(|v| -*v as f32).collect();
        assign(w, &Tensor::from_slice(w.shape(), &values).unwrap()).map_err(|e| e.to_string())?;
        Ok(args[0].clone())
    });
    let w = f32s(&[2], &[8.0, 16.0]);
    let x = f32s(&[2], &[1.0, 1.0]);
    let out = run_packed(text, &[w.clone(), x], &table).unwrap();
    assert_eq!(flat(&w), [-1.0, -2.0]);
    assert_eq!(flat(&out), [-3.0]);
}

/// Runs a loop whose state is a tensor array: an opaque object that packed functions create, read
/// and write.
#[test]
fn opaque_objects_are_loop_state() {
    let text = r#"
@R.function(pure=False)
def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
    n = T.int64()
    array = R.call_packed("array.new", sinfo_args=R.Object)
    for i in R.range(n):
        row = R.add(R.strided_slice(x, axes=[0], begin=[i], end=[i + 1]), R.const(1, "float32"))
        array = R.call_packed("array.push", array, row, sinfo_args=R.Object)
    out = R.call_packed("array.stack", array, sinfo_args=R.Tensor(dtype="float32"))
    m = T.int64()
    y = R.match_cast(out, R.Tensor((m, 2), "float32"))
    return y
"#;
    type Rows = Mutex<Vec<f32>>;
    let rows = |v: &Value| match v {
        Value::Object(o) => o.clone().downcast::<Rows>().map_err(|_| "no array".to_string()),
        other => Err(format!("{other:?} is no array")),
    };
    let table = PackedTable::new()
        .with("array.new", |_| Ok(Value::Object(Arc::new(Rows::default()))))
        .with("array.push", move |args| {
            let more = tensor(&args[1]).to_f64_vec().unwrap();
            rows(&args[0])?.lock().unwrap().extend(more.iter().map(|v| *v as f32));
            Ok(args[0].clone())
        })
        .with("array.stack", move |args| {
            let all = rows(&args[0])?.lock().unwrap().clone();
            Ok(f32s(&[all.len() as i64 / 2, 2], &all))
        });
    for n in [0, 1, 3] {
        let data: Vec<f32> = (0..2 * n).map(|v| v as f32).collect();
        let out = run_packed(text, &[f32s(&[n, 2], &data)], &table).unwrap();
        let want: Vec<f64> = data.iter().map(|v| f64::from(*v) + 1.0).collect();
        assert_eq!(numbers(&out), (vec![n, 2], want));
    }
}

#[test]
fn dynamically_typed_values_are_supported() {
    let text = r#"
@R.function(pure=False)
def main(x: R.Tensor, y: R.Tensor(dtype="int64")) -> R.Object:
    a = R.add(x, x)
    b = R.call_packed("pick", a, y)
    c = R.match_cast(b, R.Tensor(dtype="int64"))
    d = R.unique(c)
    n = T.int64()
    e = R.match_cast(d, R.Tensor((n,), "int64"))
    f = R.nonzero(e)
    return (R.concat([e, e]), f, R.shape([n * 2]))
"#;
    let table = PackedTable::new().with("pick", |args| Ok(args[0].clone()));
    let x = i64s(&[4], &[3, 0, 3, 1]);
    let out = run_packed(text, &[x, i64s(&[1], &[0])], &table).unwrap();
    let items = out.as_tuple().unwrap();
    assert_eq!(flat(&items[0]), [0.0, 2.0, 6.0, 0.0, 2.0, 6.0]);
    assert_eq!(numbers(&items[1]), (vec![1, 2], vec![1.0, 2.0]));
    assert_eq!(items[2].as_shape().unwrap(), [6]);
}

/// Tests that the shape that a packed function computes determines the size of an output.
#[test]
fn outputs_are_allocated_with_computed_shapes() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fill(a: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        for i in range(m):
            B[i] = T.Cast("float32", n)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32")):
        n = T.int64()
        k = T.int64()
        cls = Module
        s: R.Shape(ndim=1) = R.call_pure_packed("myshape_func", R.shape([n]), sinfo_args=R.Shape(ndim=1))
        a = R.call_tir(cls.fill, (x,), out_sinfo=R.Tensor(s, "float32"))
        t = R.match_cast(s, R.Shape([k]))
        b = R.call_tir(cls.fill, (x,), out_sinfo=R.Tensor((k + 1,), "float32"))
        return (a, b)
"#;
    let table = PackedTable::new().with("myshape_func", |args| {
        let n = args[0].as_shape().ok_or("a shape")?[0];
        Ok(Value::shape(&[n / 2]))
    });
    for n in [0, 1, 5] {
        let out = run_packed(text, &[f32s(&[n], &vec![0.0; n as usize])], &table).unwrap();
        let items = out.as_tuple().unwrap();
        assert_eq!(flat(&items[0]), vec![n as f64; n as usize / 2]);
        assert_eq!(flat(&items[1]), vec![n as f64; n as usize / 2 + 1]);
    }
}

/// Tests calls of packed functions. Loop functions call them for their side effect and for a scalar result. Graph functions pass
/// scalars, strings, data types and shapes to packed functions and loop functions.
#[test]
fn graph_and_loop_functions_call_packed_functions() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, scale: T.float32, k: T.int64, b: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.match_buffer(c, (n,), "int64")
        T.call_packed("fill", B, 2.0, n)
        for i in range(n):
            B[i] = B[i] + A[i] * scale
            C[i] = T.call_packed("next", i, dtype="int64") + k

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x, R.prim_value(0.5), R.prim_value(n)), out_sinfo=[R.Tensor((n,), "float32"), R.Tensor((n,), "int64")])
        z = R.call_pure_packed("describe", R.str("s"), R.dtype("float16"), R.shape([n, 2]), R.prim_value(n), (x, y))
        return (y, z)
"#;
    let table = PackedTable::new()
        .with("fill", |args| {
            let (b, v) = (tensor(&args[0]), &args[1]);
            let Value::Float(v) = v else { return Err(format!("{v:?} is no float")) };
            let n = args[2].as_int().ok_or("n")?;
            let source = Tensor::from_slice(&[n], &vec![*v as f32; n as usize]);
            assign(b, &source.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
            Ok(Value::unit())
        })
        .with("next", |args| Ok(Value::Int(args[0].as_int().ok_or("an integer")? + 1)))
        .with("describe", |args| {
            let kinds: Vec<&str> = args.iter().map(Value::kind).collect();
            Ok(Value::from(kinds.join(", ").as_str()))
        });
    let out = run_packed(text, &[f32s(&[2], &[1.0, 3.0])], &table).unwrap();
    let items = out.as_tuple().unwrap();
    let y = items[0].as_tuple().unwrap();
    assert_eq!((flat(&y[0]), flat(&y[1])), (vec![2.5, 3.5], vec![3.0, 4.0]));
    let Value::Str(text) = &items[1] else { panic!("{:?}", items[1]) };
    assert_eq!(&**text, "a string, a data type, a shape, an integer, a tuple");
}

#[test]
fn endless_programs_exceed_the_step_budget() {
    let recursion = r#"
@R.function
def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    @R.function
    def ping(y: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return pong(y)

    @R.function
    def pong(y: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return ping(y)

    return ping(x)
"#;
    let error = run_script(recursion, &[i64s(&[], &[1])]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert!(error.message.contains("calls nest more than 1000 deep"), "{error}");
    let endless = r#"
@R.function
def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    while R.less(x, R.const(5, "int64")):
        x = R.negative(R.abs(x))
    return x
"#;
    let options = pliant_interp::Options { max_steps: 10_000, ..Default::default() };
    let run = |n| {
        let args = [i64s(&[], &[n])];
        pliant_interp::run_with(&module(endless), "main", &args, &pliant_interp::NoPacked, &options)
    };
    assert_eq!(run(0).unwrap_err().kind, ErrorKind::Budget);
    assert_eq!(flat(&run(7).unwrap()), [7.0]);
}

#[test]
fn errors_of_calls_name_the_call() {
    let text = r#"
@R.function
def main(x: R.Tensor(ndim=1, dtype="float32"), f: R.Callable) -> R.Tensor((2,), "float32"):
    @R.function
    def inner(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.add(a, b)

    g: R.Object = inner
    h = R.match_cast(g, R.Callable((R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32")), R.Tensor((2,), "float32")))
    return h(x, x)
"#;
    let none = Value::Func(pliant_interp::Func::Packed("none".into()));
    let message = fails(text, &[f32s(&[3], &[0.0; 3]), none]);
    assert!(message.contains("inner: 'a' dim 0 must equal 2, but is 3"), "{message}");
    let turns = r#"
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
    n = T.int64()

    @R.function
    def go(y: R.Tensor((n,), "float32")) -> R.Prim("bool"):
        return R.prim_value(n > 0)

    @R.function
    def body(y: R.Tensor((n,), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        return R.concat([y, y])

    return R.while_loop(go, body, x)
"#;
    let message = fails(turns, &[f32s(&[2], &[0.0; 2])]);
    assert!(message.contains("'y' dim 0 must equal n = 2, but is 4"), "{message}");
    assert!(message.contains("iteration 1 of the loop in main"), "{message}");
}
