//! Tests operators on operands whose rank or data type is known only at run time.

use std::sync::Arc;

use pliant::{
    CompileOptions, CompiledModule, ExecMode, Model, Tensor, Value, compile, operator_programs,
};

use crate::test_helpers::{fails, iota, model, parse, read, run, tensor};

const CHAIN: &str = r#"
@R.function
def main(x: R.Tensor, y: R.Tensor) -> R.Object:
    with R.dataflow():
        a = R.add(x, y)
        b = R.multiply(R.exp(R.subtract(a, a)), a)
        gv = R.sum(b, axis=[0])
        R.output(gv)
    return gv
"#;

#[test]
fn operators_accept_any_rank_dtype_and_shape() {
    for exec_mode in [ExecMode::Bytecode, ExecMode::Compiled] {
        let options = CompileOptions { exec_mode, ..CompileOptions::default() };
        let m = Model::compile(parse(CHAIN), &options).unwrap_or_else(|e| panic!("{e}"));
        for n in [0, 1, 2, 3, 8, 33] {
            let want: f32 = (0..n).map(|i| 2.0 * i as f32).sum();
            assert_eq!(run(&m, &[iota(&[n]), iota(&[n])]), (vec![], vec![want]), "n = {n}");
            let want: Vec<f32> = (0..n).map(|i| 2.0 * i as f32).collect();
            assert_eq!(run(&m, &[iota(&[1, n]), iota(&[n])]), (vec![n], want), "n = {n}");
        }
        let shape = [1, 2, 1, 1, 2, 1, 1, 1, 2];
        assert_eq!(run(&m, &[iota(&shape), iota(&[1; 9])]).0, shape[1..]);
        let ints =
            |v: &[i64]| Value::Tensor(Tensor::from_slice(&[v.len() as i64], v).expect("data"));
        let message = fails(&m, &[ints(&[1]), iota(&[1])]);
        assert!(message.starts_with("relax.add: x1 is int64, but x2 is float32"), "{message}");
        let message = fails(&m, &[iota(&[3]), iota(&[4])]);
        assert!(message.contains("relax.add: dims d0_0 and d1_0 (axis -1)"), "{message}");
        let message = fails(&m, &[iota(&[]), iota(&[])]);
        assert!(message.contains("axis 0 is out of range for a tensor of rank 0"), "{message}");
    }
}

#[test]
fn operator_programs_are_compiled_per_rank_and_dtype_not_per_size() {
    let m = model(
        r#"
@R.function
def main(x: R.Tensor) -> R.Object:
    return R.log(R.add(R.abs(x), R.const(1, "float32")))
"#,
    );
    run(&m, &[iota(&[5, 1, 2])]);
    let before = operator_programs();
    (0..40).for_each(|n| drop(run(&m, &[iota(&[n, 40 - n, n % 3])])));
    // Other tests run at the same time, but none creates as many.
    assert!(operator_programs() < before + 30, "{before}");
}

#[test]
fn stats_count_programs_that_runs_compile() {
    // No other test has this operator call, so its programs are not in the cache.
    let script = r#"
@R.function
def main(x: R.Tensor) -> R.Object:
    return R.nn.leakyrelu(x, alpha=0.0173)
"#;
    let m = model(script);
    assert_eq!((m.stats().compilations, m.vm().stats().compilations), (1, 0));
    for (shape, compilations) in [(vec![2], 2), (vec![5], 2), (vec![5, 1], 3), (vec![2], 3)] {
        run(&m, &[iota(&shape)]);
        assert_eq!(m.stats().compilations, compilations, "{shape:?}");
    }
    assert_eq!((m.vm().stats().compilations, m.stats().runs), (2, 4));
    // Another model reuses the programs.
    let other = model(script);
    run(&other, &[iota(&[3])]);
    assert_eq!(other.stats().compilations, 1);
}

#[test]
fn tensors_of_unknown_rank_pass_through_every_construct() {
    let identity: pliant_vm::PackedFunc = Arc::new(|args: &[Value]| Ok(args[0].clone()));
    pliant_vm::register_func("test.unknown.same", identity, true);
    let m = model(
        r#"
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32"), turns: R.Prim("int64"), both: R.Tensor((), "bool")) -> R.Object:
    n, k, a, b = T.int64(), T.int64(), T.int64(), T.int64()
    y = x
    for i in R.range(turns):
        y = R.expand_dims(y, axis=0)
        y = R.add(y, x)
    if both:
        z = R.concat((y, y), axis=-1)
    else:
        z = R.negative(y)
    w = R.call_packed("test.unknown.same", z, sinfo_args=R.Tensor(dtype="float32"))

    @R.function
    def scaled(v: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        return R.multiply(v, w)

    s = scaled(w)
    parts = R.split(s, 2, axis=-1)
    flat = R.reshape(parts[0], R.shape([-1]))
    shape = R.shape_of(s)
    u = R.unique(s)
    places = R.nonzero(s)
    m = R.match_cast(flat, R.Tensor((k,), "float32"))
    r = R.match_cast(R.reshape(s, R.shape([1, -1])), R.Tensor((a, b), "float32"))
    return (R.add(m, m), shape, u, places, R.flatten(r), R.squeeze(s), w)
"#,
    );
    for (n, turns, both) in [(2, 0, true), (2, 3, true), (4, 2, false), (0, 1, true), (6, 9, false)]
    {
        let flag = Value::Tensor(Tensor::scalar(both).expect("a scalar"));
        let args = [iota(&[n]), Value::Int(turns), flag];
        let out = m.run("main", &args).unwrap_or_else(|e| panic!("{n} {turns} {both}: {e}"));
        let fields = out.as_tuple().expect("a tuple");
        let base: Vec<f32> = (0..n).map(|i| (i * (turns + 1)) as f32).collect();
        let w: Vec<f32> = match both {
            true => base.iter().chain(&base).copied().collect(),
            false => base.iter().map(|v| -v).collect(),
        };
        let last = w.len() as i64;
        let shape: Vec<i64> = (0..turns).map(|_| 1).chain([last]).collect();
        assert_eq!(read(&fields[6]), (shape.clone(), w.clone()));
        let s: Vec<f32> = w.iter().map(|v| v * v).collect();
        let half = s.len() / 2;
        let doubled = s[..half].iter().map(|v| 2.0 * v).collect();
        assert_eq!(read(&fields[0]), (vec![half as i64], doubled));
        assert_eq!(fields[1].as_shape(), Some(&shape[..]));
        let mut distinct = s.clone();
        distinct.sort_by(f32::total_cmp);
        distinct.dedup();
        assert_eq!(read(&fields[2]), (vec![distinct.len() as i64], distinct));
        let nonzero_count = s.iter().filter(|&&v| v != 0.0).count() as i64;
        assert_eq!(
            fields[3].as_tensor().expect("a tensor").shape(),
            [shape.len() as i64, nonzero_count]
        );
        assert_eq!(read(&fields[4]), (vec![last], s.clone()));
        assert_eq!(read(&fields[5]), (vec![last], s));
    }
}

#[test]
fn saved_programs_keep_operator_calls() {
    let module = parse(
        r#"
@R.function
def main(x: R.Tensor, n: R.Shape(["k"])) -> R.Object:
    k = T.int64()
    y = R.broadcast_to(x, R.shape([2, k]))
    return R.strided_slice(y, axes=[1], begin=[1], end=[k])
"#,
    );
    let options = CompileOptions { exec_mode: ExecMode::Compiled, ..CompileOptions::default() };
    let program = compile(module, &options).unwrap_or_else(|e| panic!("{e}"));
    let text = format!("{:?}", program.executable().constants());
    assert!(text.contains("R.broadcast_to(a0, R.shape([2, n1]))"), "{text}");
    let bytes = program.to_bytes().unwrap_or_else(|e| panic!("{e}"));
    let loaded = CompiledModule::from_bytes(&bytes).unwrap_or_else(|e| panic!("{e}"));
    let vm = loaded.vm().unwrap_or_else(|e| panic!("{e}"));
    for k in [1, 2, 5] {
        let args = [tensor(&[], &[3.0]), Value::shape(&[k])];
        let out = vm.invoke("main", &args).unwrap_or_else(|e| panic!("{k}: {e}"));
        assert_eq!(read(&out), (vec![2, k - 1], vec![3.0; 2 * (k - 1) as usize]));
    }
    let error = vm.invoke("main", &[iota(&[3]), Value::shape(&[2])]).expect_err("3 is not 2");
    assert!(error.to_string().contains("relax.broadcast_to"), "{error}");
}

#[test]
fn invalid_call_texts_and_operands_are_rejected() {
    pliant::register_library();
    let call = pliant_vm::get_func("pliant.call_operator").expect("it is registered");
    let x = || iota(&[2]);
    let rejection = |args: &[Value]| call(args).expect_err("it is rejected").to_string();
    let nested = (0..100).fold(x(), |inner, _| Value::tuple([inner]));
    for args in [
        vec![],
        vec![x()],
        vec![Value::str("relax.exp"), Value::str("R.exp(a0)")],
        vec![Value::str("relax.exp"), Value::str("R.exp(a0"), x()],
        vec![Value::str("relax.exp"), Value::str("R.no_such(a0)"), x()],
        vec![Value::str("relax.exp"), Value::str("R.exp(a7)"), x()],
        vec![Value::str("relax.exp"), Value::str("R.exp(a0)"), Value::None],
        vec![Value::str("relax.exp"), Value::str("R.exp(a0)"), Value::str("text")],
        vec![Value::str("relax.concat"), Value::str("R.concat(a0)"), nested],
    ] {
        assert!(!rejection(&args).is_empty());
    }
    let valid_call = call(&[Value::str("relax.exp"), Value::str("R.exp(a0)"), x()]);
    assert_eq!(read(&valid_call.unwrap_or_else(|e| panic!("{e}"))).0, [2]);
}

#[test]
fn threads_share_operator_programs() {
    let m = model(CHAIN);
    std::thread::scope(|scope| {
        for t in 0..4 {
            let m = &m;
            scope.spawn(move || {
                for n in 0..20 {
                    let n = (n + t) % 7;
                    let shape = [n, 2, 1, 1];
                    assert_eq!(run(m, &[iota(&shape), iota(&shape)]).0, [2, 1, 1]);
                }
            });
        }
    });
}
