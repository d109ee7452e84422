//! The fuzz target for scripts: parses and compiles a script, and runs its functions on small
//! inputs.

mod mutate_script;

use pliant::CompileOptions;

use super::function_inputs;
use super::random_numbers::Rng;
pub use mutate_script::mutate;

/// Returns the script of a file test, without the expected output that follows it.
fn script(text: &str) -> &str {
    text.split_once("\n# expect").map_or(text, |(script, _)| script)
}

/// Extracts the scripts of file tests, without their expected outputs.
pub fn seeds(files: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let text =
        |file: &Vec<u8>| std::str::from_utf8(file).ok().map(|t| script(t).as_bytes().to_vec());
    files.iter().filter_map(text).collect()
}

/// Compiles a script and runs its functions. Returns whether the script compiled and has any
/// functions.
pub fn run(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(parsed) = pliant::parse("fuzz.py", script(text)) else { return false };
    match pliant::compile(parsed.module, &CompileOptions::default()) {
        Ok(compiled) => function_inputs::run_all(compiled, &mut Rng::new(input.len() as u64)),
        Err(error) => {
            super::assert_not_internal(&error);
            false
        }
    }
}
