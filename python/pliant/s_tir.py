"""What newer versions of TVM call :mod:`pliant.tir`."""

import sys

from pliant import tir

sys.modules[__name__] = tir
