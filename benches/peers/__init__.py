"""Benchmarks that compare Pliant with other libraries and runtimes (the "peers")."""
