//! Tests the command line on the ONNX models in `tests/corpus` and `tests/attacks`.

use crate::common::{TempDir, pliant};

pub fn file(name: &str) -> String {
    format!("{}/../../tests/{name}.onnx", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn check_reports_problems_and_writes_reduced_models() {
    let dir = TempDir::new("reduce");
    let (code, out, err) = pliant(&["check", &file("corpus/onnx/layer")]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("2 nodes of 2 operators, opset 18") && out.contains("ok:"), "{out}");
    let unknown = file("attacks/an_unknown_operator");
    let reduced = dir.path("reduced");
    let (code, out, err) = pliant(&["check", &unknown, "--reduce", &reduced]);
    assert_eq!(code, 1);
    assert!(out.contains("not supported: Frobnicate (1 node)"), "{out}");
    assert!(out.contains("at Frobnicate 'y'") && err.contains("1 problem"), "{out}{err}");
    let reduced_model = format!("{reduced}/1-Frobnicate.onnx");
    assert!(out.contains(&format!("wrote {reduced_model}")), "{out}");
    let (code, out, _) = pliant(&["check", &reduced_model]);
    assert_eq!(code, 1);
    assert!(out.contains("Frobnicate"), "{out}");
    let (code, _, err) = pliant(&["check", &file("attacks/truncated_file")]);
    assert_eq!(code, 1);
    assert!(err.contains("not an ONNX model"), "{err}");
    let (code, out, err) = pliant(&["check", &unknown, &file("corpus/onnx/shapes")]);
    assert_eq!(code, 1);
    assert!(out.contains("Frobnicate") && out.contains("ok:") && err.contains("1 problem"));
}

#[test]
fn models_run_from_onnx_files_and_executables() {
    let dir = TempDir::new("onnx-run");
    let (model, program) = (file("corpus/onnx/layer"), dir.path("layer.plx"));
    let (code, _, err) = pliant(&["compile", &model, "-o", &program]);
    assert_eq!(code, 0, "{err}");
    for path in [&model, &program] {
        let (code, out, err) = pliant(&["run", path, "--shape", "n=2", "--fill", "zeros"]);
        assert_eq!(code, 0, "{err}");
        assert!(out.starts_with("y: float32 [2, 3] [0.3333333"), "{out}");
    }
    let saved = dir.path("y.npy");
    let (code, _, err) = pliant(&["run", &model, "--shape", "n=5", "--save", &saved]);
    assert_eq!(code, 0, "{err}");
    for (name, code, part) in [("y", 0, ""), ("z", 1, "no output 'z' (the outputs: y)")] {
        let one = format!("{name}={}", dir.path("one.npy"));
        let (exit, _, err) = pliant(&["run", &model, "--shape", "n=5", "--save", &one]);
        assert!(exit == code && err.contains(part), "{err}");
        assert!(std::path::Path::new(&dir.path("one.npy")).exists());
    }
    let input = format!("x={saved}");
    let (code, _, err) = pliant(&["run", &model, "--input", &input]);
    assert!(code == 1 && err.contains("'x'"), "{err}");
    for (wrong, part) in [
        (&["--shape", "m=2"][..], "have no symbol 'm' (they have: n)"),
        (&[][..], "pass --shape n=N, or --input x=FILE.npy"),
        (&["--shape", "n=1..4"][..], "only `pliant bench` takes ranges"),
        (&["--shape", "n=4..1"][..], "the last size 1 of the range is less than the first size 4"),
        (&["--input", "z=a.npy"][..], "no parameter 'z' (it has: x)"),
        (&["--input", "x"][..], "must have the form NAME=FILE.npy"),
    ] {
        let (code, _, err) = pliant(&[&["run", &model][..], wrong].concat());
        assert!(code == 1 && err.contains(part), "{wrong:?}: {err}");
    }
    let (code, _, err) = pliant(&["compile", &program, "-o", &program]);
    assert!(code == 1 && err.contains("neither an ONNX model"), "{err}");
    // A file that is not a model is named.
    let (code, _, err) = pliant(&["run", &saved]);
    let start = format!("error: {saved}: the file is not a Pliant executable");
    assert!(code == 1 && err.starts_with(&start) && err.contains("(help:"), "{err}");
}

#[test]
fn declared_symbols_are_fixed_or_checked() {
    let dir = TempDir::new("onnx-facts");
    let (model, program) = (file("corpus/onnx/layer"), dir.path("layer.plx"));
    let compile = |shape: &str| pliant(&["compile", &model, "-o", &program, "--shape", shape]);
    let run = |shape: &str| pliant(&["run", &program, "--shape", shape, "--fill", "zeros"]);
    let (code, _, err) = compile("n=2..8");
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run("n=3");
    assert!(code == 0 && out.starts_with("y: float32 [3, 3]"), "{err}");
    for (n, part) in [("n=1", "at least 2"), ("n=9", "at most 8")] {
        let (code, _, err) = run(n);
        assert!(code == 1 && err.contains(part), "{err}");
    }
    let (code, _, err) = compile("n=4");
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = pliant(&["run", &program, "--fill", "zeros"]);
    assert!(code == 0 && out.starts_with("y: float32 [4, 3]"), "{err}");
    let (code, _, err) = compile("m=4");
    assert!(
        code == 1 && err.contains("no input of the model has the symbol 'm' (the symbols are: n)"),
        "{err}"
    );
    // Loading a program also reports its time.
    let (code, _, err) = pliant(&["run", &program, "--timing"]);
    assert!(code == 0 && err.contains("ReadFile") && err.contains("total"), "{err}");
}

#[test]
fn stages_of_models_are_printed() {
    let model = file("corpus/onnx/shapes");
    let (code, out, err) = pliant(&["dump", &model, "--stage", "input"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("R.reshape") && out.contains("@R.function"), "{out}");
    let (code, out, err) = pliant(&["opt", "--passes=LegalizeOps", &model]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("@R.function"), "{out}");
    let (code, _, err) = pliant(&["dump", &model, "--stage", "nonsense"]);
    assert!(code == 1 && err.contains("nonsense"), "{err}");
}

#[test]
fn bench_sweeps_shapes_and_plots() {
    let dir = TempDir::new("bench");
    let (csv, json, png) = (dir.path("t.csv"), dir.path("t.json"), dir.path("t.png"));
    let model = file("corpus/onnx/layer");
    let files = ["--csv", &csv, "--json", &json, "--plot", &png];
    let args = ["bench", &model, "--shape", "n=0..5", "--time", "0", "--warm-up", "0"];
    let (code, out, err) = pliant(&[&args[..], &files[..]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("1 compilation") && out.contains("median ms"), "{out}");
    assert_eq!(out.lines().count(), 2 + 5, "{out}");
    let table = std::fs::read_to_string(&csv).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "runtime,n,median_ms,least_ms,p90_ms,p99_ms,most_ms,runs_per_second,runs");
    let sizes: Vec<&str> = rows[1..].iter().map(|r| r.split(',').nth(1).unwrap()).collect();
    assert_eq!(sizes, ["0", "1", "2", "4", "5"]);
    let read: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(read["compilations"], 1);
    assert_eq!(read["measurements"][4]["shape"]["n"], 5);
    assert!(read["measurements"][0]["median_ms"].as_f64().unwrap() > 0.0);
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&png).unwrap()));
    let mut decoder = decoder.read_info().unwrap();
    let mut pixels = vec![0; decoder.output_buffer_size().unwrap()];
    decoder.next_frame(&mut pixels).unwrap();
    // Axes, labels and a line: neither blank nor full.
    let dark = pixels.iter().filter(|p| **p < 128).count();
    assert!(dark > 2000 && dark < pixels.len() / 4, "{dark} of {}", pixels.len());
    let (code, _, err) = pliant(&["bench", &model, "--shape", "n=0..10000000:1"]);
    assert!(code == 1 && err.contains("more than the maximum of 10000"), "{err}");
    let (code, _, err) = pliant(&["bench", &model, "--shape", "n=1", "--time=-1"]);
    assert!(code == 2 && err.contains("--time"), "{err}");
}

#[test]
fn bench_runs_streams_in_parallel() {
    let model = file("corpus/onnx/layer");
    let args = ["--shape", "n=2", "--time", "0", "--warm-up", "0", "--streams", "3"];
    let (code, out, err) = pliant(&[&["bench", &model][..], &args].concat());
    assert_eq!(code, 0, "{err}");
    // Each stream runs at least three times.
    assert!(out.lines().last().unwrap().trim_end().ends_with("  9"), "{out}");
    let (code, _, err) = pliant(&["bench", &model, "--streams", "0"]);
    assert!(code == 2 && err.contains("--streams"), "{err}");
}

#[test]
fn bench_rejects_missing_peers() {
    let model = file("corpus/onnx/layer");
    let args = ["--shape", "n=2", "--time", "0", "--warm-up", "0"];
    let peer = ["--against", "openvino", "--python", "/nope/python"];
    let (code, _, err) = pliant(&[&["bench", &model][..], &args, &peer].concat());
    assert!(code == 1 && err.contains("/nope/python") && err.contains("openvino"), "{err}");
    let (code, _, err) = pliant(&["bench", &model, "--against", "nonsense"]);
    assert!(code == 2 && err.contains("onnxruntime"), "{err}");
}

#[test]
fn explore_writes_a_page_without_network_access() {
    let dir = TempDir::new("explore");
    let page = dir.path("page.html");
    let model = file("corpus/onnx/layer");
    let (code, out, err) = pliant(&["explore", &model, "-o", &page, "--shape", "n=3"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("page.html"), "{out}");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(
        text.contains("\"LegalizeOps\"") && text.contains("\"profile\":{"),
        "a stage or the profile is missing"
    );
    assert!(!text.contains("src=") && !text.contains("href="), "the page loads other files");
    let (code, _, err) = pliant(&["explore", &model, "-o", "/nope/page.html"]);
    assert!(code == 1 && err.contains("/nope/page.html"), "{err}");
}

#[test]
fn profile_lists_functions() {
    let model = file("corpus/onnx/convolution");
    let args = ["profile", &model, "--shape", "n=2", "--repeat", "2"];
    let (code, out, err) = pliant(&args);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("2 runs") && out.contains("conv"), "{out}");
    let (code, out, err) = pliant(&[&args[..], &["--top", "1"]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("others"), "{out}");
}

#[test]
fn profiles_state_the_rates_of_kernels_and_loops() {
    let (code, out, err) = pliant(&["profile", &file("corpus/onnx/convolution"), "--shape", "n=2"]);
    assert_eq!(code, 0, "{err}");
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(|rate| rate > 0.0);
    let rates = |kernel: &str| {
        let line =
            out.lines().find(|line| line.contains(kernel)).unwrap_or_else(|| panic!("{out}"));
        let columns: Vec<&str> = line.split_whitespace().collect();
        (is_number(columns[4]), is_number(columns[5]))
    };
    assert_eq!(rates("conv"), (true, true), "{out}");
    assert_eq!(rates("alloc_tensor"), (false, false), "{out}");
}

#[test]
fn wrong_arguments_are_reported_before_compiling() {
    let dir = TempDir::new("onnx-mistakes");
    let (layer, folder) = (file("corpus/onnx/layer"), dir.path("."));
    for (args, code, part) in [
        (
            &["diff", &layer, "--rtol", "nan"][..],
            2,
            "the tolerance must be a finite, non-negative number",
        ),
        (
            &["diff", &layer, "--atol=-1"][..],
            2,
            "the tolerance must be a finite, non-negative number",
        ),
        (&["bench", &layer, "--shape", "n=1", "--plot", "x.jpg"][..], 2, "end with .png"),
        (
            &["bench", &layer, "--shape", "n=1", "--csv", "/nope/x.csv"][..],
            1,
            "write the file /nope/x.csv",
        ),
        (&["compile", &layer, "-o", "/nope/x.plx"][..], 1, "cannot write the file /nope/x.plx:"),
        (&["run", &folder][..], 1, "is a folder"),
    ] {
        let (exit, _, err) = pliant(args);
        assert!(exit == code && err.contains(part), "{args:?}: {exit} {err}");
    }
    let (_, out, _) = pliant(&["check", &file("attacks/an_unknown_operator")]);
    assert!(out.contains("1 node of 1 operator,"), "{out}");
}
