"""``R``, for editors: the operators with their signatures. All other names have no declared
types."""

from typing import Any

from pliant.relax.op import *
from pliant.relax.op import image as image
from pliant.relax.op import nn as nn
from pliant.relax.op import signal as signal
from pliant.relax.op import vision as vision

def __getattr__(name: str) -> Any: ...
