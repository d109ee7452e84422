//! Runs a fuzz target on given files and folders, on any toolchain: `cargo run --no-default-features --bin replay -- run
//! CORPUS...`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let target = pliant_fuzz::target(&args.next().ok_or("expected TARGET FILES...")?)?;
    let (mut count, mut ran) = (0, 0);
    for path in args {
        for file in pliant_fuzz::target_seeds::files(Path::new(&path))? {
            let bytes = std::fs::read(&file)?;
            // A corpus file of `kernels` has one call per line.
            let inputs: Vec<&[u8]> = match target.name {
                "kernels" => bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).collect(),
                _ => vec![&bytes],
            };
            for input in inputs {
                ran += usize::from((target.run)(input));
                count += 1;
            }
        }
    }
    println!("{}: {count} inputs, {ran} of them ran", target.name);
    Ok(())
}
