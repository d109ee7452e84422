//! The fuzz target for saved executables: mutates the program, the constants and the loop functions, corrects lengths and
//! checksums, and runs the files that load.

mod mutate_program;
mod program_format;
mod section_container;

use pliant::{CompileOptions, CompiledModule, ExecMode};

use super::function_inputs;
use super::random_numbers::Rng;
pub use mutate_program::mutate;

/// Compiles scripts and returns the saved executables. Scripts that do not compile are skipped. The execution modes of the
/// executables alternate.
pub fn seeds(scripts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for (i, text) in scripts.iter().enumerate() {
        let Some(text) = std::str::from_utf8(text).ok() else { continue };
        let Ok(script) = pliant::parse("seed.py", text) else { continue };
        let exec_mode = if i % 2 == 0 { ExecMode::Bytecode } else { ExecMode::Compiled };
        let options = CompileOptions { exec_mode, ..CompileOptions::default() };
        let compiled = pliant::compile(script.module, &options);
        out.extend(compiled.and_then(|c| c.to_bytes()).ok());
    }
    out
}

/// Corrects lengths and checksums of an executable file, loads it, and runs its functions on small inputs. Returns whether the
/// program has any functions.
pub fn run(input: &[u8]) -> bool {
    let Some(sections) = section_container::read_sections(input) else { return false };
    let bytes = section_container::write_file(&sections);
    match CompiledModule::from_bytes(&bytes) {
        Ok(compiled) => function_inputs::run_all(compiled, &mut Rng::new(input.len() as u64)),
        Err(error) => {
            super::assert_not_internal(&error);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program_format::Program;

    #[test]
    fn programs_round_trip() {
        let text = "from pliant.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n    \
                    def main(x: R.Tensor((\"n\", 4), \"float32\"), p: R.Tensor((), \"bool\")):\n        \
                    if p:\n            y = R.add(x, x)\n        else:\n            y = R.exp(x)\n        return y\n";
        let seeds = seeds(&[text.into()]);
        let sections = section_container::read_sections(&seeds[0]).expect("it has three sections");
        assert_eq!(section_container::write_file(&sections), seeds[0]);
        let program: Program =
            postcard::from_bytes(&sections[0]).expect("the types are those of the format");
        assert_eq!(postcard::to_allocvec(&program).expect("it can be written"), sections[0]);
    }
}
