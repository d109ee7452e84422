//! Compiles an ONNX model once and runs it at several batch sizes: `cargo run --example onnx --
//! model.onnx x`, where `x` is the name of the model's input, which must have the shape `[batch,
//! 4]`.

use pliant::{CompileOptions, Model, Tensor};

/// Compiles the model at `path` and runs it at several batch sizes: a complete program in ten
/// lines.
#[expect(clippy::print_stdout, reason = "a program that prints its results")]
pub fn run(path: &str, input: &str) -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::from_onnx(path, &CompileOptions::default())?;
    for batch in [1, 8, 32] {
        let x = Tensor::from_slice(&[batch, 4], &vec![0.5f32; 4 * batch as usize])?;
        for (name, value) in model.run_named(&[(input, x)])? {
            println!("{name}: {:?}", value.as_tensor().map(Tensor::shape));
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, input] = &args[..] else { return Err("expected MODEL INPUT".into()) };
    run(path, input)
}
