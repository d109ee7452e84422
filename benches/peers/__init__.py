"""Benchmarks beside other libraries and runtimes."""
