//! `pliant diff` with a fake peer: a shell script that returns prepared results. The real peers need Python packages and are tested
//! in Python.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::{TempDir, pliant};
use crate::onnx::file;

/// Makes the tests of this file run one at a time. Each test writes a script and then executes it,
/// and a file that is open for writing cannot be executed. If tests ran in parallel, a process
/// started by one test could inherit the file that another test has open for writing.
fn serialize_tests() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a fake peer that returns the file `NAME.npy` of the directory for each of the names.
fn peer(dir: &TempDir, names: &[&str]) -> String {
    let copies: Vec<String> = names
        .iter()
        .map(|n| format!("cp '{}' \"$3/{n}.npy\"", dir.path(&format!("{n}.npy"))))
        .collect();
    let outputs: Vec<String> = names.iter().map(|n| format!("[\"{n}\", \"{n}.npy\"]")).collect();
    let text = format!(
        "#!/bin/sh\n{}\necho '{{\"outputs\": [{}]}}' > \"$3/answer.json\"\n",
        copies.join("\n"),
        outputs.join(", ")
    );
    let path = dir.write("peer.sh", &text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Saves the output of the model for generated inputs as `NAME.npy`, which the fake peer returns.
fn save_result(dir: &TempDir, model: &str, name: &str, fill: &str) {
    let to = dir.path(&format!("{name}.npy"));
    let args = ["run", model, "--shape", "n=3", "--fill", fill, "--save", &to];
    let (code, _, err) = pliant(&args);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn diff_reports_the_first_node_that_differs() {
    let _lock = serialize_tests();
    let dir = TempDir::new("diff");
    let model = file("corpus/onnx/functions");
    let args = |peer: &str| -> Vec<String> {
        let list = ["diff", &model, "--shape", "n=3", "--fill", "ones", "--python", peer];
        list.iter().map(|s| s.to_string()).collect()
    };
    let run = |peer: &str| {
        let args = args(peer);
        pliant(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    save_result(&dir, &model, "y", "ones");
    let (code, out, err) = run(&peer(&dir, &["y"]));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("y: agrees") && out.contains("all outputs agree"), "{out}");
    save_result(&dir, &model, "y", "zeros");
    let (code, out, err) = run(&peer(&dir, &["y"]));
    assert_eq!(code, 1);
    assert!(out.contains("differs in 12 of 12 elements"), "{out}");
    assert!(out.contains("the first node that differs is F0 'y'"), "{out}");
    assert!(err.contains("1 of 1 outputs differ"), "{err}");
}

#[test]
fn missing_and_failing_peers_are_reported() {
    let _lock = serialize_tests();
    let dir = TempDir::new("no-peer");
    let model = file("corpus/onnx/elementwise");
    let run = |python: &str| pliant(&["diff", &model, "--shape", "n=1", "--python", python]);
    let (code, _, err) = run(&dir.path("none"));
    assert!(code == 1 && err.contains("cannot be run") && err.contains("--python"), "{err}");
    for (exit, part) in
        [(3, "-m pip install onnxruntime"), (1, "onnxruntime failed to run the model:\nno luck")]
    {
        let path = dir.write("fails.sh", &format!("#!/bin/sh\necho no luck >&2\nexit {exit}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (code, _, err) = run(&path);
        assert!(code == 1 && err.contains(part), "{err}");
    }
    let script = dir.write("m.py", "");
    let (code, _, err) = pliant(&["diff", &script]);
    assert!(code == 1 && err.contains("only ONNX models"), "{err}");
}
