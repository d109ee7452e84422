//! Tests the command line on scripts.

use crate::common::{TempDir, pliant};

const SCRIPT: &str = r#"from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
        n = T.int64()
        with R.dataflow():
            lv = R.add(x, x)
            gv = R.exp(lv)
            R.output(gv)
        return gv
"#;

#[test]
fn help_and_usage() {
    let (code, out, _) = pliant(&["--help"]);
    assert_eq!(code, 0);
    for command in
        ["opt", "check", "compile", "run", "dump", "bench", "diff", "profile", "explore", "hwbench"]
    {
        assert!(out.contains(command), "{out}");
    }
    let (code, _, err) = pliant(&["frobnicate"]);
    assert_eq!(code, 2, "{err}");
    for wrong in ["--threads", "--repeat"] {
        let (code, _, err) = pliant(&["run", "model.py", wrong, "0"]);
        assert!(code == 2 && err.contains(wrong) && err.contains("zero"), "{err}");
    }
}

#[test]
fn hwbench_rejects_debug_builds() {
    let (code, out, err) = pliant(&["hwbench", "--threads", "1"]);
    if cfg!(debug_assertions) {
        assert!(code == 1 && out.is_empty() && err.contains("--release"), "{err}");
    } else {
        assert!(code == 0 && out.contains("GFLOP/s") && out.contains("GB/s"), "{out}{err}");
    }
    assert_eq!(pliant(&["hwbench", "--threads", "0"]).0, 2);
}

#[test]
fn passes_are_listed_and_run() {
    let dir = TempDir::new("opt");
    let file = dir.write("m.py", SCRIPT);
    let (code, out, _) = pliant(&["opt", "--list"]);
    assert_eq!(code, 0);
    assert!(out.contains("CallTIRRewrite") && out.contains("VectorizeLoop"), "{out}");
    let fuse = out.lines().find(|line| line.contains("FuseTIR")).expect("FuseTIR is listed");
    assert!(
        fuse.split_whitespace()
            .eq("FuseTIR fuse Merge each group into one loop function".split(' '))
    );
    let (code, out, err) =
        pliant(&["opt", "--passes=LegalizeOps,ToNonDataflow,CallTIRRewrite", &file]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("R.builtin.alloc_tensor(R.shape([n, 4])"), "{out}");
    let lowered = dir.write("again.py", &out);
    let (code, out, err) = pliant(&["opt", "--passes=minimum", &lowered]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("vm.builtin.match_shape"), "{out}");
    let (code, _, err) = pliant(&["opt", "--passes=CallTIRRewriter", &file]);
    assert_eq!(code, 1);
    assert!(
        err.contains("there is no pass 'CallTIRRewriter'") && err.contains("CallTIRRewrite"),
        "{err}"
    );
}

#[test]
fn errors_contain_the_line() {
    let dir = TempDir::new("check");
    let good = dir.write("good.py", SCRIPT);
    let bad = dir.write("bad.py", &SCRIPT.replace("R.add(x, x)", "R.frob(x, x)"));
    let (code, out, _) = pliant(&["check", &good]);
    assert_eq!((code, out.trim_end().ends_with(": ok")), (0, true));
    let (code, _, err) = pliant(&["check", &good, &bad]);
    assert_eq!(code, 1);
    assert!(err.contains("bad.py:9") && err.contains("frob"), "{err}");
    let (code, _, err) = pliant(&["check", &dir.path("none.py")]);
    assert_eq!(code, 1);
    assert!(err.contains("cannot read"), "{err}");
}

#[test]
fn programs_compile_save_load_and_run() {
    let dir = TempDir::new("run");
    let file = dir.write("m.py", SCRIPT);
    let program = dir.path("m.plx");
    let (code, out, err) = pliant(&["compile", &file, "-o", &program]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("1 graph function, "), "{out}");
    let args = ["run", &program, "--shape", "n=2", "--fill", "zeros", "--repeat", "3"];
    let (code, out, err) = pliant(&args);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("float32 [2, 4] [1, 1, 1, 1, 1, 1, 1, 1]"), "{out}");
    assert!(out.contains("3 runs: median"), "{out}");

    let saved = dir.path("y.npy");
    let (code, _, err) = pliant(&["run", &file, "--shape", "n=3", "--fill=ones", "--save", &saved]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = pliant(&["run", &file, "--input", &format!("x={saved}")]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("float32 [3, 4]"), "{out}");

    let (code, _, err) = pliant(&["run", &program]);
    assert_eq!(code, 1);
    assert!(err.contains("pass --shape n=N"), "{err}");
    let (code, _, err) = pliant(&["run", &program, "--func", "nope"]);
    assert_eq!(code, 1);
    assert!(err.contains("has no function 'nope' (it has: main)"), "{err}");
    let (code, _, err) = pliant(&["run", &file, "--shape", "n=2", "--target", "cuda"]);
    assert_eq!(code, 1);
    assert!(err.contains("there is no target 'cuda'"), "{err}");
    let mut bytes = std::fs::read(&program).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&program, bytes).unwrap();
    assert_eq!(pliant(&["run", &program, "--shape", "n=2"]).0, 1);
}

#[test]
fn stages_are_dumped() {
    let dir = TempDir::new("dump");
    let file = dir.write("m.py", SCRIPT);
    let (code, out, err) = pliant(&["dump", &file]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("@main:"), "{out}");
    let (code, out, _) = pliant(&["dump", &file, "--stage", "LegalizeOps"]);
    assert_eq!(code, 0);
    assert!(out.contains("R.call_tir(cls.add"), "{out}");
    let stages = dir.path("stages");
    let (code, _, err) =
        pliant(&["compile", &file, "-o", &dir.path("m.plx"), "--dump-ir", &stages]);
    assert_eq!(code, 0, "{err}");
    let mut names: Vec<String> = std::fs::read_dir(&stages)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|n| n.ends_with(".py"))
        .collect();
    names.sort();
    assert_eq!(names.first().map(String::as_str), Some("00-input.py"));
    assert!(names.iter().any(|n| n.ends_with("-VMShapeLower.py")), "{names:?}");
}

const ENDLESS_SCRIPT: &str = r#"from pliant.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), dtype="float32")) -> R.Tensor((), dtype="float32"):
        while x < 2:
            x = x / 2
        return x
"#;

#[test]
fn runs_stop_at_their_time_limit() {
    let dir = TempDir::new("time_limit");
    let (endless, short) = (dir.write("endless.py", ENDLESS_SCRIPT), dir.write("short.py", SCRIPT));
    let saved = dir.path("endless.plx");
    assert_eq!(pliant(&["compile", &endless, "-o", &saved]).0, 0);
    for args in [
        &["run", &endless, "--time-limit", "0.2"][..],
        &["run", &endless, "--time-limit", "0.2", "--exec-mode", "compiled"],
        &["run", &saved, "--time-limit", "0.2"],
        &["bench", &endless, "--time-limit", "0.2"],
        &["profile", &endless, "--time-limit", "0.2"],
        &["run", &short, "--shape", "n=2", "--time-limit", "0"],
    ] {
        let (code, _, err) = pliant(args);
        assert_eq!(code, pliant_cli::EXIT_TIME_LIMIT, "{args:?}: {err}");
        assert!(err.contains("'main' exceeded its time limit of 0"), "{args:?}: {err}");
    }
    let (code, out, err) = pliant(&["run", &short, "--shape", "n=2", "--time-limit", "3600"]);
    assert!(code == 0 && out.contains("float32"), "{out}{err}");
    for wrong in ["-1", "nan", "inf", "soon", ""] {
        let (code, _, err) = pliant(&["run", &short, &format!("--time-limit={wrong}")]);
        assert!(code == 2 && err.contains("--time-limit") && err.contains("seconds"), "{err}");
    }
}

#[test]
fn negative_numbers_are_values_of_options() {
    let dir = TempDir::new("negative");
    let script = dir.write("short.py", SCRIPT);
    for (command, option, part) in [
        ("run", "--time-limit", "must be a finite, non-negative number of seconds"),
        ("bench", "--time", "must be a number of seconds from 0 to 86400"),
        ("diff", "--rtol", "the tolerance must be a finite, non-negative number"),
        ("run", "--threads", "--threads"),
        ("run", "--repeat", "--repeat"),
        ("profile", "--top", "--top"),
        ("hwbench", "--threads", "--threads"),
    ] {
        let mut args = vec![command];
        if command != "hwbench" {
            args.push(&script);
        }
        args.extend([option, "-1"]);
        let (code, _, err) = pliant(&args);
        assert!(code == 2 && err.contains("invalid value '-1'") && err.contains(part), "{err}");
        assert!(!err.contains("-- -1"), "{err}");
    }
}
