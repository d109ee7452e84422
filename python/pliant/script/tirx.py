"""What newer versions of TVM call :mod:`pliant.script.tir`."""

import sys

from pliant.script import tir

sys.modules[__name__] = tir
