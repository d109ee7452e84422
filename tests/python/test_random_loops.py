"""Compares random loop functions, with negative and zero extents, strides and offsets, with the same text run as Python."""

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest

import pliant

SIZES = [0, 1, 2, 3, 7, 16, 17, 33]
KINDS = ["range", "T.serial", "T.parallel"]


def extent(r: random.Random, outer: list[str]) -> str:
    c = r.randint(-40, 40)
    forms = ["n", "m", "s", f"n - {abs(c)}", f"m // 2 - {abs(c)}", "T.min(s, m)", f"{c}", f"n - m + {c}", "n % 5 - 2"]
    return r.choice(forms + [f"{v} - {abs(c) % 6}" for v in outer])


def index(r: random.Random, loops: list[str]) -> str:
    v, c = r.choice(loops), r.randint(-3, 3)
    return r.choice([v, f"{v} + {c}", f"{v} * {r.randint(-2, 3)} + {abs(c)}", f"{v} + s", f"{v} - {r.choice(loops)} + {c}"])


def value(r: random.Random, at: str) -> str:
    return r.choice([f"a[{at}]", f"a[{at}] * T.float32(2) + T.float32(1)", f"T.exp(a[{at}])", "T.float32(3)"])


def function(r: random.Random) -> str:
    """Returns the statements of a random loop nest. Each iteration of a parallel loop writes a
    distinct element.
    """
    loops: list[str] = []
    lines = []
    for k in range(r.randint(1, 3)):
        lines.append(f"{'    ' * k}for i{k} in {r.choice(KINDS[:2])}({extent(r, loops)}):")
        loops.append(f"i{k}")
    pad = "    " * len(loops)
    at, source = index(r, loops), index(r, loops)
    if r.random() < 0.15 and len(loops) == 1:
        lines[0] = lines[0].replace("range(", "T.parallel(").replace("T.serial(", "T.parallel(")
        at = r.choice(["i0", "i0 + 1", "i0 * 2", "2 - i0"])
    if r.random() < 0.7:
        lines.append(f"{pad}if 0 <= {at} and {at} < n and 0 <= {source} and {source} < n:")
        pad += "    "
    lines.append(f"{pad}o[{at}] = {value(r, source)}")
    return "\n".join(lines)


SCRIPT = """
from pliant.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(var_a: T.handle, var_o: T.handle, m: T.int64, s: T.int64):
        n = T.int64()
        a = T.match_buffer(var_a, (n,), "float32")
        o = T.match_buffer(var_o, (n,), "float32")
{body}
"""


class Checked:
    """An array that rejects indices out of range, including negative ones."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def _inside(self, at: int) -> int:
        if not 0 <= at < len(self.values):
            raise IndexError(at)
        return at

    def __getitem__(self, at: int) -> np.float32:
        return self.values[self._inside(at)]

    def __setitem__(self, at: int, new: np.float32) -> None:
        self.values[self._inside(at)] = new


T = SimpleNamespace(
    serial=range, parallel=range, min=min, max=max, float32=np.float32, exp=lambda x: np.float32(math.exp(x))
)


def as_python(body: str, a: np.ndarray, o: np.ndarray, m: int, s: int) -> bool:
    """Runs the statements as Python on `o`. Returns whether all indices are in range."""
    names = {"T": T, "a": Checked(a), "o": Checked(o), "n": len(a), "m": m, "s": s}
    try:
        exec(body, names)
    except IndexError:
        return False
    return True


@pytest.mark.parametrize("seed", range(120))
def test_loops_equal_python(seed: int) -> None:
    r = random.Random(seed)
    body = function(r)
    text = SCRIPT.format(body="\n".join(" " * 8 + line for line in body.split("\n")))
    model = pliant.compile(pliant.script.from_source(text))
    for _ in range(8):
        n, m, s = r.choice(SIZES), r.choice(SIZES), r.randint(-40, 40)
        a = np.array([(i * 7) % 5 - 2 for i in range(n)], "float32")
        want, got = np.full(n, 9, "float32"), np.full(n, 9, "float32")
        if as_python(body, a, want, m, s):
            model(a, got, m, s)
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=f"{text}\nn={n} m={m} s={s}")
        else:
            with pytest.raises(pliant.PliantError, match="index"):
                model(a, got, m, s)
