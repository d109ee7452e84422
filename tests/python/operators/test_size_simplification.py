"""Tests that the sizes after fifty layers stay short: the sizes that convolutions and pools compute are simplified at each
layer.

`benches/shape_inference_time.py` measures the time.
"""

from __future__ import annotations

import pytest

from pliant.script import from_source

LAYERS = 50


def last_size(padding: int, every: int, pool: str) -> str:
    """Returns the height after 3 by 3 convolutions, with a pool after each `every`-th of them."""
    lines, last = [], "x"
    for k in range(LAYERS):
        lines.append(f"a{k} = R.nn.conv2d({last}, w, padding={padding})")
        last = f"a{k}"
        if every and k % every == every - 1:
            lines.append(f"b{k} = R.nn.max_pool2d(a{k}, {pool})")
            last = f"b{k}"
    body = "".join(f"            {line}\n" for line in lines)
    module = from_source(
        "@I.ir_module\nclass Module:\n    @R.function\n"
        '    def main(x: R.Tensor(("n", 4, "h", "w_"), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):\n'
        f"        with R.dataflow():\n{body}            R.output({last})\n        return {last}\n"
    )
    return str(module["main"].ret_struct_info.shape[2])


@pytest.mark.parametrize(
    ("padding", "every", "pool", "size"),
    [
        (1, 0, "", "h"),
        (0, 0, "", "h - 100"),
        (1, 10, "pool_size=3, strides=2, padding=1", "(h + 31) // 32"),
        (1, 2, "pool_size=3, strides=2, padding=1", "(h + 33554431) // 33554432"),
        (1, 10, "pool_size=2, strides=2", "h // 32"),
        (1, 10, "pool_size=2, strides=2, ceil_mode=True", "(h + 31) // 32"),
    ],
)
def test_sizes_of_fifty_layers(padding: int, every: int, pool: str, size: str) -> None:
    assert last_size(padding, every, pool) == size
