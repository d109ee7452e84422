"""The source of a program that defines ``module``, for tests that run it in a process of its own."""

from __future__ import annotations

PROGRAM = """
import os, sys
import numpy as np
import pliant
from pliant.script import from_source

module = from_source('''
from pliant.script import ir as I, relax as R
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.exp(R.tanh(x))
            R.output(y)
        return y
''')
"""
