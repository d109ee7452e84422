"""The name of :mod:`pliant.script.tir` in newer versions of TVM."""

import sys

from pliant.script import tir

sys.modules[__name__] = tir
