//! Programs that are compiled ahead of time: object files, linked without the run-time library into shared libraries that the test
//! loads.

use std::path::{Path, PathBuf};
use std::process::Command;

use pliant::{
    CompileOptions, CompiledModule, Emit, ErrorKind, ExportOptions, Target, Tensor, compile,
    export_library, parse,
};
use pliant_runtime::{Program, RunOptions, RuntimeError, Value, VmOptions};

/// A program with a parallel loop, elementary functions, a shape function and a constant, and without library kernels.
const SCRIPT: &str = r#"
@R.function
def main(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n * 2", 3), "float32"):
    n = T.int64()
    with R.dataflow():
        a = R.exp(R.multiply(x, R.const(0.5, "float32")))
        b = R.concat((a, R.negative(x)), axis=0)
        R.output(b)
    return b
"#;

fn program(script: &str) -> CompiledModule {
    let module = parse("program.py", script).map_err(|(error, _)| error).expect("a script").module;
    compile(module, &CompileOptions::default()).expect("a valid program")
}

/// Creates an empty directory for one test.
fn directory(test: &str) -> PathBuf {
    let name = format!("pliant-ahead-of-time-{test}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

/// Links an object file that uses no library kernels to a shared library.
fn link(object: &Path, symbol: &str) -> PathBuf {
    let library = object.with_extension("so");
    let status = Command::new("cc")
        .args(["-shared", &format!("-Wl,--defsym=pliant_exported_program={symbol}"), "-o"])
        .args([&library, object])
        .status();
    assert!(status.expect("a C compiler").success());
    library
}

fn open(library: &Path) -> Result<Program, RuntimeError> {
    // SAFETY: this test wrote the library.
    unsafe { Program::open(library, VmOptions::default()) }
}

/// The code generators of this build.
fn code_generators() -> Vec<Target> {
    Target::built_in()
}

#[test]
fn an_object_file_runs_at_every_shape_like_the_program() {
    let directory = directory("shapes");
    let program = program(SCRIPT);
    let vm = program.vm().expect("a VM");
    for (i, code_generator) in code_generators().into_iter().enumerate() {
        let object = directory.join(format!("double-{i}.o"));
        let options = ExportOptions { code_generator, ..ExportOptions::default() };
        export_library(&program, &object, Emit::Object, &options).expect("an object file");
        let loaded = open(&link(&object, &format!("double_{i}_program"))).expect("a program");
        assert_eq!(loaded.signatures(), program.signatures());
        for n in [0usize, 1, 5, 1000] {
            let elements: Vec<f32> = (0..3 * n).map(|i| (i % 17) as f32 / 4.0 - 2.0).collect();
            let x = Tensor::from_slice(&[n as i64, 3], &elements).expect("a tensor");
            let expected = vm.invoke("main", &[Value::Tensor(x.clone())]).expect("a result");
            let expected = expected.as_tensor().expect("a tensor").to_vec::<f32>().expect("floats");
            let results = loaded.run_named(&[("x", x)], &RunOptions::default()).expect("results");
            let result = results[0].1.as_tensor().expect("a tensor");
            assert_eq!(result.shape(), [2 * n as i64, 3]);
            for (got, want) in result.to_vec::<f32>().expect("floats").iter().zip(&expected) {
                assert!((got - want).abs() <= 1e-6 * want.abs(), "{got} instead of {want}");
            }
        }
    }
    std::fs::remove_dir_all(directory).expect("the directory is removed");
}

#[test]
fn errors_of_a_loaded_program_name_inputs_and_symbols() {
    let directory = directory("errors");
    let object = directory.join("double.o");
    export_library(&program(SCRIPT), &object, Emit::Object, &ExportOptions::default())
        .expect("an object file");
    let loaded = open(&link(&object, "double_program")).expect("a program");
    let run = |name: &str, shape: &[i64]| {
        let x = Tensor::zeros(shape, pliant::DType::Float32).expect("a tensor");
        let error = loaded.run_named(&[(name, x)], &RunOptions::default()).expect_err("a failure");
        error.to_string()
    };
    assert_eq!(run("x", &[2, 4]), "main: 'x' dim 1 must equal 3, but is 4");
    assert!(run("y", &[2, 3]).contains("no such input; the inputs are x"));
    let missing = loaded.run_named(&[], &RunOptions::default()).expect_err("no input");
    assert!(missing.to_string().contains("'x' is missing"), "{missing}");
    let text = directory.join("text.so");
    std::fs::write(&text, "not a library").expect("a file");
    let error = open(&text).expect_err("not a library");
    assert!(error.to_string().contains("is not a program of Pliant"), "{error}");
    std::fs::remove_dir_all(directory).expect("the directory is removed");
}

#[test]
fn unknown_targets_and_programs_that_compile_at_run_time_are_rejected() {
    let directory = directory("rejected");
    let object = directory.join("double.o");
    let double = program(SCRIPT);
    for code_generator in code_generators() {
        for (triple, cpu, message) in [
            (None, Some("i386"), "code for the CPU 'i386' cannot be generated"),
            (Some("pdp11-dec-unix"), None, "no code generator for the target 'pdp11-dec-unix'"),
            (Some("aarch64-unknown-linux-gnu"), Some("x86-64-v3"), "cannot be generated"),
        ] {
            let options = ExportOptions {
                code_generator,
                target_triple: triple.map(str::to_string),
                target_cpu: cpu.map(str::to_string),
                runtime_library: None,
            };
            let result = export_library(&double, &object, Emit::Object, &options);
            let error = result.expect_err("an unknown target");
            // Without the feature `cross`, no code for another architecture can be generated.
            let is_missing = error.to_string().contains("build Pliant with the feature `cross`");
            assert!(is_missing || error.to_string().contains(message), "{error}");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
    let dynamic = program(
        "@R.function\ndef main(x: R.Tensor(dtype=\"float32\")) -> R.Tensor(dtype=\"float32\"):\n    return R.exp(x)\n",
    );
    let result = export_library(&dynamic, &object, Emit::Object, &ExportOptions::default());
    let error = result.expect_err("an operator on a tensor of unknown rank");
    assert!(error.to_string().contains("needs a compiler at run time"), "{error}");
    let options = ExportOptions {
        runtime_library: Some(directory.join("missing.a")),
        ..ExportOptions::default()
    };
    let result = export_library(&double, directory.join("double.so"), Emit::Shared, &options);
    let error = result.expect_err("no run-time library");
    assert!(error.to_string().contains("missing.a does not exist"), "{error}");
    let nowhere = directory.join("no/such/directory/double.o");
    let result = export_library(&double, nowhere, Emit::Object, &ExportOptions::default());
    let error = result.expect_err("no directory");
    assert!(error.to_string().contains("cannot be written"), "{error}");
    std::fs::remove_dir_all(directory).expect("the directory is removed");
}
