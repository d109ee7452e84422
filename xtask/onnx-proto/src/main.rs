//! Generates `crates/pliant-onnx/src/generated/onnx.rs` from the file `onnx-ml.proto` of the PyPI package `onnx`:
//! `cargo run --manifest-path xtask/onnx-proto/Cargo.toml -- PATH/TO/site-packages/onnx/onnx-ml.proto`.
//!
//! This crate is outside the workspace, so that builds of the workspace do not compile the protobuf compiler.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: onnx-proto PATH/TO/onnx-ml.proto".into()).and_then(|p| generate(&p)) {
        Ok(to) => {
            println!("wrote {}", to.display());
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn generate(proto: &Path) -> Result<PathBuf, String> {
    let dir = proto.parent().ok_or("the path has no folder")?;
    let descriptors = protox::compile([proto], [dir]).map_err(|e| format!("{e:?}"))?;
    let out = std::env::temp_dir().join(format!("onnx-proto-{}", std::process::id()));
    std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
    let mut config = prost_build::Config::new();
    // Byte fields share the mapped file instead of copying it. The comments of the schema are not copied into the generated file.
    config.bytes(["."]).disable_comments(["."]).out_dir(&out);
    config.compile_fds(descriptors).map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(out.join("onnx.rs")).map_err(|e| e.to_string())?;
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/pliant-onnx/src/generated/onnx.rs");
    std::fs::write(&to, text).map_err(|e| e.to_string())?;
    Ok(to)
}
