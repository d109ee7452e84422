"""The helpers of tests, under the module name used by code written for TVM."""

from __future__ import annotations

from pliant.testing import *  # noqa: F403
from pliant.testing import __all__ as __all__
