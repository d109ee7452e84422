"""Compares two builds of Pliant; `against.py` is the command.

`builds` finds or makes the Python environments of both builds, `workloads` lists the models and programs, `worker` runs in a process
of either build, `rounds` drives pairs of workers, `instructions` counts instead of timing, `intervals` estimates ratios and their
noise, and `report` prints the tables. Only `worker` imports Pliant, that of its own environment.
"""
