"""The name of :mod:`pliant.tir` in newer versions of TVM."""

import sys

from pliant import tir

sys.modules[__name__] = tir
