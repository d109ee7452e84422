//! Object files for AArch64, which run in an emulator. `make cross-test` installs the emulator and the linker.

use std::path::Path;
use std::process::Command;

use pliant::{CompileOptions, Emit, ExportOptions, Target, compile, export_library, parse};

const SCRIPT: &str = r#"
@R.function
def main(x: R.Tensor(("n", 8), "float32"), y: R.Tensor(("n", 8), "float32")) -> R.Tensor(("n", 8), "float32"):
    with R.dataflow():
        a = R.nn.relu(R.add(R.multiply(x, y), x))
        R.output(a)
    return a
"#;

fn exists(command: &str) -> bool {
    Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn object_files_for_aarch64_give_the_right_results() {
    let (linker, emulator) = ("aarch64-linux-gnu-gcc", "qemu-aarch64");
    if !exists(linker) || !exists(emulator) {
        eprintln!("skipped: {linker} or {emulator} is missing; `make cross-test` installs them");
        return;
    }
    let module = parse("elementwise.py", SCRIPT).map_err(|(error, _)| error).expect("valid").module;
    let program = compile(module, &CompileOptions::default()).expect("a valid program");
    let directory = std::env::temp_dir().join(format!("pliant-aarch64-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (object, binary) = (directory.join("elementwise.o"), directory.join("caller"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/aarch64_objects/caller.c");
    for code_generator in Target::built_in() {
        let options = ExportOptions {
            code_generator,
            target_triple: Some("aarch64-unknown-linux-gnu".into()),
            ..ExportOptions::default()
        };
        export_library(&program, &object, Emit::Object, &options).expect("an object file");
        let linked =
            Command::new(linker).args(["-static", "-o"]).args([&binary, &source, &object]).status();
        assert!(linked.expect("the linker starts").success());
        let run = Command::new(emulator).arg(&binary).output().expect("the emulator starts");
        assert_eq!(
            String::from_utf8_lossy(&run.stdout),
            "all results are right\n",
            "{}",
            run.status
        );
    }
    std::fs::remove_dir_all(directory).expect("the directory is removed");
}
