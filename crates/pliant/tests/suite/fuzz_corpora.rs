//! Replays the corpora of the fuzz targets (`fuzz`) and mutants of their inputs: each must end with a result or an
//! error.

use std::path::Path;

#[path = "../../../../fuzz/src/targets/mod.rs"]
#[allow(dead_code, reason = "the driver in `fuzz` uses the rest")]
pub mod targets;

use targets::random_numbers::Rng;
use targets::{TARGETS, executable, kernel_calls, kernels, script};

/// Returns the contents of the files in a folder of `tests`, in order of their names.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file")).collect()
}

/// Returns the lines of all files in a folder of `tests`.
fn lines(folder: &str) -> Vec<Vec<u8>> {
    let text = files(folder).concat();
    text.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Runs a fuzz target on all inputs and on `mutants` mutants of them. Returns the number of inputs that ran.
fn replay(name: &str, inputs: &[Vec<u8>], mutants: usize) -> usize {
    let target = TARGETS.iter().find(|t| t.name == name).expect("a target");
    let mut ran = inputs.iter().filter(|input| (target.run)(input)).count();
    let mut rng = Rng::new(1);
    for _ in 0..mutants {
        let (a, b) = (rng.below(inputs.len()), rng.below(inputs.len()));
        ran += usize::from((target.run)(&(target.mutate)(&inputs[a], &inputs[b], &mut rng)));
    }
    ran
}

#[test]
fn calls_of_library_kernels_stay_inside_their_buffers() {
    let inputs = [lines("corpus/kernels"), kernels::seeds()].concat();
    assert!(replay("kernels", &inputs, 2000) > 100);
}

#[test]
fn calls_of_declared_kernels_end_with_a_result_or_an_error() {
    let inputs = [lines("corpus/kernel_calls"), kernel_calls::seeds()].concat();
    assert!(replay("kernel_calls", &inputs, 3000) > 300);
}

#[test]
fn scripts_end_with_a_result_or_an_error() {
    let inputs = [files("corpus/scripts"), script::seeds(&files("filetests/run"))].concat();
    assert!(replay("script", &inputs, 400) > 20);
}

#[test]
fn executables_with_valid_checksums_end_with_a_result_or_an_error() {
    let generated = executable::seeds(&script::seeds(&files("filetests/run")));
    assert!(generated.len() > 10, "{} executables", generated.len());
    let inputs = [files("corpus/executables"), generated].concat();
    assert!(replay("executable", &inputs, 300) > 10);
}
