//! Runs a target over files and folders, on any toolchain: `cargo run --no-default-features --bin replay -- run CORPUS...`.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("expected TARGET FILES...")?;
    let target = pliant_fuzz::target(&name).ok_or("the targets are import and run")?;
    let mut open: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let mut count = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                open.push(entry?.path());
            }
            continue;
        }
        target(&std::fs::read(&path)?);
        count += 1;
    }
    println!("{name}: {count} files");
    Ok(())
}
