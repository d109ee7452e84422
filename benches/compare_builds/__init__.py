"""Compares two builds of Pliant; `against.py` is the command.

`build_environments` finds or makes the Python environments of both builds, and `workloads` lists the models and programs.
`worker_process` runs in a process of either build, and `measurement_rounds` drives pairs of workers. `instruction_counts` counts
instructions instead of timing. `confidence_intervals` estimates ratios and their noise, and `comparison_report` prints the
tables. Only `worker_process` imports Pliant, from the environment of the build that it measures.
"""
