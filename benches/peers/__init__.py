"""The libraries and runtimes that the benchmarks compare with."""
