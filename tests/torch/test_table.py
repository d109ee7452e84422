"""The table of operators, and samples of torch's operator database and of architectures."""

from __future__ import annotations

import os
from collections import Counter

import pytest
import torch
from architectures import ARCHITECTURES, check
from operator_database import EXCLUDED, check_entry, full_name

from pliant.frontend.torch import ops

ALL = os.environ.get("PLIANT_TORCH_ALL") == "1"
"""Whether the whole database and all architectures are compared, which takes half an hour."""


def test_each_operator_is_in_one_family() -> None:
    names = Counter(ops.full_name(name) for family in ops.FAMILIES for name in family.TABLE)
    assert not [name for name, count in names.items() if count > 1]


def test_operators_exist_in_torch() -> None:
    unknown = []
    for name in ops.OPERATORS:
        namespace, operator, overload = name.split(".")
        if namespace == "higher_order":
            continue
        packet = getattr(getattr(torch.ops, namespace), operator, None)
        if packet is None or overload not in packet.overloads():
            unknown.append(name)
    assert not unknown


def database() -> list[object]:
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    entries = [e for e in op_db if torch.float32 in e.dtypes and full_name(e) not in EXCLUDED]
    return entries if ALL else entries[::40]


def test_operator_database() -> None:
    entries = database()
    differing = {full_name(e): check_entry(e, torch.float32, 3 if ALL else 1) for e in entries}
    differing = {name: reason for name, reason in differing.items() if reason is not None}
    assert len(entries) - len(differing) >= (600 if ALL else len(entries) - 2), differing


SOME = ["squeezenet1_1", "bert", "llama", "t5", "whisper", "clip", "detr", "mamba", "wav2vec2", "yolos"]


@pytest.mark.parametrize("name", ARCHITECTURES if ALL else SOME)
def test_architectures(name: str) -> None:
    pytest.importorskip("torchvision")
    pytest.importorskip("transformers")
    assert check(name, with_dynamo=False) == 1
