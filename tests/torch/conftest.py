"""Settings of the tests of the torch front end, which need their own environment: torch, torchvision, transformers, timm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "python")]
