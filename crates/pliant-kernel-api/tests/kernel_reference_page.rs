//! Tests that `docs/reference/kernels.md` agrees with the kernel declarations. With
//! `PLIANT_BLESS=1`, writes the page instead.

use std::path::Path;

#[test]
fn the_reference_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/kernels.md");
    let page = pliant_kernel_api::reference_page();
    if std::env::var_os("PLIANT_BLESS").is_some() {
        std::fs::write(&path, page).expect("the page is writable");
        return;
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    let bless = "PLIANT_BLESS=1 cargo test --package pliant-kernel-api";
    assert!(current == page, "docs/reference/kernels.md is stale; regenerate it with {bless}");
}
