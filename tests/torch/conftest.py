"""Settings of the tests of the torch front end, which need their own environment: torch, torchvision, transformers, timm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "python")]


@pytest.fixture(scope="session", autouse=True)
def backend_by_name() -> None:
    """Registers the backend of ``torch.compile`` by name, as the entry point of an installed package does."""
    import torch._dynamo as dynamo

    from pliant.frontend.torch.dynamo_backend import pliant

    if "pliant" not in dynamo.list_backends():
        dynamo.register_backend(pliant, name="pliant")
