//! Criterion benchmarks of single mechanisms; `cargo bench` runs them. Comparisons with peers are
//! the Python scripts beside
//! this folder.
