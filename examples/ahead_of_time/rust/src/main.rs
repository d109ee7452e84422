//! Runs a program that Pliant compiled to an object file.

use std::error::Error;

use pliant_runtime::{Program, ProgramHeader, RunOptions, Tensor, VmOptions};

unsafe extern "C" {
    static model_program: ProgramHeader;
}

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: Pliant wrote the object file, which is a part of this executable.
    let program = unsafe { Program::link(&model_program, VmOptions::default()) }?;
    let queries = [5f32, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0];
    let keys = [1f32, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    for n in 1..=2 {
        let queries = Tensor::from_slice(&[n as i64, 4], &queries[..4 * n])?;
        let feeds = [("queries", queries), ("keys", Tensor::from_slice(&[3, 4], &keys)?)];
        let results = program.run_named(&feeds, &RunOptions::default())?;
        let scores = results[0].1.as_tensor().ok_or("the result is not a tensor")?;
        println!("{:?} {:.3?}", scores.shape(), scores.to_vec::<f32>()?);
    }
    Ok(())
}
