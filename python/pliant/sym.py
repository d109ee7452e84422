"""The name of :mod:`pliant.arith` in newer versions of TVM."""

import sys

from pliant import arith

sys.modules[__name__] = arith
