//! Criterion benchmarks of single mechanisms; `cargo bench` runs them. The Python scripts beside this folder compare Pliant with
//! its peers.
