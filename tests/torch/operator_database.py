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

TOLERANCE = {"rtol": 2e-4, "atol": 2e-4}

SEED = 42
"""The seed that ``op_db`` sets in random operators."""

EXCLUDED = {
    "empty": "the values are not initialized",
    "empty_like": "the values are not initialized",
    "empty_permuted": "the values are not initialized",
    "empty_strided": "the values are not initialized",
    "new_empty": "the values are not initialized",
    "new_empty_strided": "the values are not initialized",
    "item": "torch.export returns a tensor instead of the number",
    "equal": "torch.export rejects functions that return a bool that depends on values",
    "allclose": "torch.export rejects functions that return a bool that depends on values",
    "jiterator_unary": "exists only on GPUs",
    "jiterator_binary": "exists only on GPUs",
    "jiterator_binary_return_by_ref": "exists only on GPUs",
    "jiterator_4inputs_with_extra_args": "exists only on GPUs",
    "jiterator_2inputs_2outputs": "exists only on GPUs",
    "as_strided.partial_views": "the sample reads outside of its inputs, which are views of larger tensors",
    "native_layer_norm": "a sample has a negative epsilon",
    "masked_select": "torch's own bound of the number of elements is wrong for a sample that broadcasts",
    "cov": "torch.export rejects the operator, which depends on values",
    "corrcoef": "torch.export rejects the operator, which depends on values",
    "narrow": "torch.export rejects the sample, whose start is a tensor",
    "nn.functional.gaussian_nll_loss": "torch.export rejects the operator, which depends on values",
    "nn.functional.ctc_loss": "torch.export rejects the operator, whose lengths are values",
    "linalg.eigh": "eigenvectors are determined up to their sign",
    "linalg.lstsq": "torch.export rejects the operator",
    "linalg.lstsq.grad_oriented": "torch.export rejects the operator",
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


def compare(case: Case) -> None:
    """Raises an exception unless the compiled call agrees with the eager one."""
    inputs = [t.clone() for t in case.tensors]
    torch.manual_seed(SEED)
    expected = case(*[t.clone() for t in inputs])
    model = pliant.compile(export(case, {"args": tuple(inputs)}))
    torch.manual_seed(SEED)
    actual = model(*inputs)
    torch.testing.assert_close(actual, expected, equal_nan=True, **TOLERANCE)


def check_entry(entry: Any, dtype: torch.dtype, count: int) -> str | None:
    """``None`` if all samples agree, or the first difference."""
    torch.manual_seed(0)
    cases = list(samples(entry, dtype, count))
    if not cases:
        return "no samples"
    for case in cases:
        try:
            compare(case)
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
