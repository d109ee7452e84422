//! Links the object file that the environment variable `MODEL_OBJECT` names.

use std::path::absolute;

fn main() {
    println!("cargo::rerun-if-env-changed=MODEL_OBJECT");
    let object =
        std::env::var("MODEL_OBJECT").expect("MODEL_OBJECT is the path of the object file");
    // The linker does not run in the directory of the package.
    let object = absolute(object).expect("the current directory exists");
    println!("cargo::rerun-if-changed={}", object.display());
    println!("cargo::rustc-link-arg={}", object.display());
}
