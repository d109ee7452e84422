//! Criterion benchmarks of single parts of the compiler and the VM; `cargo bench` runs them. The Python scripts beside this
//! folder compare Pliant with other runtimes.
