//! Tiered compilation: LLVM replaces the code of Cranelift while programs run.

use std::sync::atomic::{AtomicBool, Ordering};

use pliant::{CompileOptions, Model, Target, Tensor, Value};

/// A program whose loop function has checks with messages, and a reduction.
const SCRIPT: &str = r#"
@R.function
def main(x: R.Tensor(("n", 256), "float32"), i: R.Tensor(("m",), "int64")) -> R.Tensor(("m", 256), "float32"):
    with R.dataflow():
        y = R.nn.softmax(R.exp(x), axis=-1)
        z = R.take(y, i, axis=0)
        R.output(z)
    return z
"#;

fn model(target: Target) -> Model {
    let module = pliant::parse("tiers.py", SCRIPT).map_err(|(e, _)| e).expect("valid").module;
    let options = CompileOptions { target, ..CompileOptions::default() };
    Model::compile(module, &options).expect("the program compiles")
}

fn run(model: &Model, index: i64) -> Result<Vec<f32>, String> {
    let x: Vec<f32> = (0..7 * 256).map(|i| (i % 13) as f32 * 0.1).collect();
    let x = Tensor::from_slice(&[7, 256], &x).expect("a tensor");
    let i = Tensor::from_slice(&[2], &[3, index]).expect("a tensor");
    let result = model.run("main", &[Value::Tensor(x), Value::Tensor(i)]);
    let result = result.map_err(|e| e.to_string())?;
    Ok(result.as_tensor().expect("a tensor").to_vec().expect("float32"))
}

fn assert_close(actual: &[f32], expected: &[f32]) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= 1e-5 * e.abs(), "{a} differs from {e}");
    }
}

#[test]
fn results_and_errors_are_the_same_before_and_after_optimization() {
    let reference = model(Target::Cranelift);
    let expected = run(&reference, 6).expect("a result");
    let error = run(&reference, 9).expect_err("index 9 is out of range");
    let tiered = model(Target::Auto);
    assert_close(&run(&tiered, 6).expect("a result"), &expected);
    tiered.compiled().wait_optimized();
    assert!(!tiered.compiled().is_optimizing());
    assert_eq!(tiered.compiled().tier(), Target::built_in().last().map_or("", |t| t.name()));
    assert_close(&run(&tiered, 6).expect("a result"), &expected);
    assert_eq!(run(&tiered, 9).expect_err("index 9 is out of range"), error);
    assert_eq!(reference.compiled().tier(), "cranelift");
}

#[test]
fn programs_run_on_other_threads_while_their_code_is_replaced() {
    let expected = run(&model(Target::Cranelift), 6).expect("a result");
    let tiered = model(Target::Auto);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let runners: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        assert_close(&run(&tiered, 6).expect("a result"), &expected);
                    }
                })
            })
            .collect();
        tiered.compiled().wait_optimized();
        done.store(true, Ordering::Relaxed);
        runners.into_iter().for_each(|r| r.join().expect("all results are equal"));
    });
}

#[test]
fn dropped_programs_are_not_optimized() {
    for _ in 0..20 {
        drop(model(Target::Auto));
    }
    // A later program is optimized although the queue contains dropped ones.
    let last = model(Target::Auto);
    last.compiled().wait_optimized();
    assert!(!last.compiled().is_optimizing());
}
