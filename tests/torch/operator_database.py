"""Compares operators with eager execution on the samples of torch's own operator database (``op_db``).

    python tests/torch/operator_database.py [--out results.json] [--samples 3] [NAMES ...]

prints how many entries agree, and the reason for each of the others. Needs the package ``expecttest``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

import pliant
from pliant.frontend.torch.compiling import export

TOLERANCES = {
    torch.float32: 2e-4,
    torch.float64: 1e-6,
    torch.bfloat16: 4e-2,
    torch.float16: 5e-3,
    torch.int64: 2e-4,  # Many operators convert integers to float32.
    torch.bool: 2e-4,
}
"""The relative and absolute tolerance by the data type of the samples. Narrow floats are computed in float32 within an operator, where
eager execution may round in between."""

SEED = 42
"""The seed that ``op_db`` sets in random operators."""

UNINITIALIZED = frozenset("empty empty_like empty_permuted empty_strided new_empty new_empty_strided".split())
"""Entries whose values are arbitrary: only shapes and data types are compared."""

UP_TO_SIGN = frozenset(["linalg.eigh"])
"""Entries whose results are determined up to a sign: magnitudes are compared."""

IN_TORCH_COMPILE = {
    "item": "torch.export returns a tensor instead of the number",
    "equal": "torch.export rejects functions that return a bool that depends on values",
    "allclose": "torch.export rejects functions that return a bool that depends on values",
    "corrcoef": "torch.export rejects the operator, which depends on values",
    "narrow": "torch.export rejects the sample, whose start is a tensor",
    "nn.functional.gaussian_nll_loss": "torch.export rejects the operator, which depends on values",
    "nn.functional.ctc_loss": "torch.export rejects the operator, whose lengths are values",
    "linalg.lstsq": "torch.export rejects the operator",
    "linalg.lstsq.grad_oriented": "torch.export rejects the operator",
    "masked_select": "torch.export's own bound of the number of elements is wrong for a sample that broadcasts",
}
"""Entries that are compared with ``torch.compile``, since ``torch.export`` rejects them, each with the reason. Parts may run in torch."""

EXCLUDED = {
    "jiterator_unary": "exists only on GPUs",
    "jiterator_binary": "exists only on GPUs",
    "jiterator_binary_return_by_ref": "exists only on GPUs",
    "jiterator_4inputs_with_extra_args": "exists only on GPUs",
    "jiterator_2inputs_2outputs": "exists only on GPUs",
    "as_strided.partial_views": "the sample reads outside of its inputs, which are views of larger tensors",
    "cov": "torch.export and torch.compile reject samples with weights, on whose values the operator depends",
    "to_sparse": "sparse tensors are not supported",
    "sparse.mm.reduce": "sparse tensors are not supported",
    "sparse.sampled_addmm": "sparse tensors are not supported",
}
"""Entries that are not compared, each with the reason."""


class Case(torch.nn.Module):
    """A call of an operator as a module whose inputs are the tensors among the arguments."""

    def __init__(self, operator: Any, arguments: Any) -> None:
        super().__init__()
        self.operator = operator
        flat, self.spec = pytree.tree_flatten(arguments)
        self.tensors = [v for v in flat if isinstance(v, torch.Tensor)]
        self.flat = [None if isinstance(v, torch.Tensor) else v for v in flat]
        self.positions = [i for i, v in enumerate(flat) if isinstance(v, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        flat = list(self.flat)
        for i, tensor in zip(self.positions, tensors, strict=True):
            flat[i] = tensor
        args, kwargs = pytree.tree_unflatten(flat, self.spec)
        return self.operator(*args, **kwargs)


def samples(entry: Any, dtype: torch.dtype, count: int) -> Iterator[Case]:
    """Some samples of an entry, spread over all of them."""
    every = list(entry.sample_inputs("cpu", dtype, requires_grad=False))
    step = max(1, len(every) // count)
    for sample in every[::step][:count]:
        yield Case(entry.op, ((sample.input, *sample.args), sample.kwargs))


def compiled(case: Case, inputs: tuple[torch.Tensor, ...], name: str) -> Any:
    """The case as a compiled callable."""
    if name not in IN_TORCH_COMPILE:
        return pliant.compile(export(case, {"args": inputs}))
    from pliant.frontend.torch.dynamo_backend import pliant as backend

    torch._dynamo.reset()
    return torch.compile(case, backend=backend, dynamic=True)


def compare(case: Case, tolerance: float, name: str = "") -> None:
    """Raises an exception unless the compiled call agrees with the eager one. ``name`` is that of the entry."""
    inputs = [t.clone() for t in case.tensors]
    torch.manual_seed(SEED)
    expected = case(*[t.clone() for t in inputs])
    run = compiled(case, tuple(inputs), name)
    torch.manual_seed(SEED)
    actual = run(*inputs)
    if name in UNINITIALIZED or name in UP_TO_SIGN:
        change = torch.zeros_like if name in UNINITIALIZED else torch.abs
        actual, expected = (pytree.tree_map_only(torch.Tensor, change, r) for r in (actual, expected))
    torch.testing.assert_close(actual, expected, equal_nan=True, rtol=tolerance, atol=tolerance)


def check_entry(entry: Any, dtype: torch.dtype, count: int) -> str | None:
    """``None`` if all samples agree, or the first difference."""
    torch.manual_seed(0)
    cases = list(samples(entry, dtype, count))
    if not cases:
        return "no samples"
    for case in cases:
        try:
            compare(case, TOLERANCES[dtype], full_name(entry))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return None


def full_name(entry: Any) -> str:
    """The name of an entry with its variant."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    dtype = getattr(torch, options.dtype)
    results: dict[str, str | None] = {}
    for entry in op_db:
        name = full_name(entry)
        if dtype not in entry.dtypes or name in EXCLUDED or (options.names and not {name, entry.name} & set(options.names)):
            continue
        start = time.perf_counter()
        results[name] = check_entry(entry, dtype, options.samples)
        text = "ok" if results[name] is None else str(results[name]).replace("\n", " ")[:300]
        print(f"{name} ({time.perf_counter() - start:.1f} s): {text}", file=sys.stderr, flush=True)
        if options.out:
            options.out.write_text(json.dumps(results, indent=1))
    agreeing = sum(r is None for r in results.values())
    print(f"{agreeing} of {len(results)} entries agree")


if __name__ == "__main__":
    main()
