"""Tests computed indices: an index out of range must be refused with an error that names the operator, the index and the
size, in both execution modes and by the interpreter, unless indices are trusted (`relax.trust_indices`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.script import from_source
from pliant.testing import interpret

I64 = "int64"
F32 = "float32"


@dataclass(frozen=True)
class Indexing:
    """An operator that takes indices: its call, the types of its operands, and valid and invalid
    operands.
    """

    call: str
    types: str
    good: tuple[Any, ...]
    bad: tuple[Any, ...]
    message: str
    trusted: bool = True
    """Whether `relax.trust_indices` accepts such indices."""

    @property
    def op(self) -> str:
        return "relax." + self.call[2 : self.call.index("(")]

    @property
    def script(self) -> str:
        return (
            "@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({self.types}):\n        a = {self.call}\n        return a\n"
        )


def vector(*values: int) -> Any:
    return np.array(values, I64)


X = np.arange(4, dtype=I64)
V = 'x: R.Tensor(("n",), "int64"), i: R.Tensor(("k",), "int64")'
T = 'x: R.Tensor(("n",), "int64"), i: R.Tensor(("k", 1), "int64")'
U = ', u: R.Tensor(("k",), "int64")'
AXIS = "index 9 is out of range for axis 0 of size 4"
IMAGE = 'x: R.Tensor(("n", 2, "h", "w"), "float32"), r: R.Tensor(("k", 5), "float32")'
POOL = "pooled_size=[1, 1], spatial_scale=1.0"
pixels = np.ones((2, 2, 4, 4), F32)
boxes = np.array([[1, 0, 0, 2, 2]], F32)
beyond = np.array([[0, 0, 0, 2, 2], [7, 0, 0, 2, 2]], F32)
negative = np.array([[-1, 0, 0, 2, 2]], F32)
rows = np.zeros((1, 3, 6), F32)
places = np.zeros((1, 3), "int32")
NMS = (
    'x: R.Tensor(("b", "n", 6), "float32"), c: R.Tensor(("b",), "int32"), i: R.Tensor(("b", "n"), "int32")'
)
LOSS = 'p: R.Tensor(("n", "c"), "float32"), t: R.Tensor(("n",), "int64")'
DRAWS = 'p: R.Tensor(("n", "v"), "float32"), u: R.Tensor(("k", 1), "float32"), i: R.Tensor(("k", 1), "int64")'
half = np.full((2, 3), 0.5, F32)
LSTM = (
    'x: R.Tensor(("t", "n", 3), "float32"), w: R.Tensor((1, 20, 3), "float32"), r: R.Tensor((1, 20, 5), "float32"), '
    'b: R.Tensor((1, 40), "float32"), l: R.Tensor(("n",), "int32")'
)
weights = tuple(np.zeros(s, F32) for s in ((4, 1, 3), (1, 20, 3), (1, 20, 5), (1, 40)))

INDEXING = [
    Indexing("R.take(x, i, axis=0)", V, (X, vector(-4, 3)), (X, vector(0, 9)), AXIS),
    Indexing("R.take(x, i, axis=0)", V, (X, vector(1)), (X, vector(-5)), "index -5 is out of range for axis 0 of size 4"),
    Indexing("R.take(x, i, axis=0)", V, (X[:0], vector()), (X[:0], vector(0)), "index 0 is out of range for axis 0 of size 0"),
    Indexing("R.gather_elements(x, i)", V, (X, vector(-4, 3)), (X, vector(0, 9)), AXIS),
    Indexing("R.gather_nd(x, i)", T, (X, vector(-4, 3)[:, None]), (X, vector(0, 9)[:, None]), AXIS),
    Indexing("R.index_tensor(x, (i,))", V, (X, vector(-4, 3)), (X, vector(0, 9)), AXIS),
    Indexing("R.scatter_elements(x, i, i, axis=0)", V, (X, vector(-4, 3)), (X, vector(0, 9)), AXIS),
    Indexing("R.scatter_nd(x, i, u)", T + U, (X, vector(3)[:, None], vector(1)), (X, vector(9)[:, None], vector(1)), AXIS),
    Indexing(
        "R.tensor_scatter(x, u, i, axis=1)",
        'x: R.Tensor(("n", 4), "int64"), u: R.Tensor(("n", 1), "int64"), i: R.Tensor(("n",), "int64")',
        (X[None], vector(1)[None], vector(3)),
        (X[None], vector(1)[None], vector(9)),
        "1 updates do not fit at position 9 of axis 1 of size 4",
    ),
    Indexing("R.index_put(x, (i,), i)", V, (X, vector(-4, 3)), (X, vector(0, 9)), AXIS),
    Indexing(
        "R.reverse_sequence(x, i, seq_axis=0, batch_axis=1)",
        'x: R.Tensor(("n", "m"), "int64"), i: R.Tensor(("m",), "int64")',
        (X[:, None], vector(4)),
        (X[:, None], vector(9)),
        "the length 9 is out of range for a sequence of size 4",
    ),
    Indexing(
        "R.multinomial_from_uniform(p, u, i)",
        DRAWS,
        (half, half[:, :1], vector(0, 1)[:, None]),
        (half, half[:, :1], vector(0, 2)[:, None]),
        "index 2 is out of range for axis 0 of size 2",
    ),
    Indexing(
        "R.nn.nll_loss(p, t)", LOSS, (half, vector(0, -100)), (half, vector(2, 5)), "target 5 is out of range for 3 classes", False
    ),
    Indexing(
        "R.nn.lstm(x, w, r, b, l)",
        LSTM,
        (*weights, np.array([4], "int32")),
        (*weights, np.array([7], "int32")),
        "the sequence length 7 is out of range for 4 steps",
    ),
    *(
        Indexing(
            f"R.vision.{op}(x, r, {POOL})",
            IMAGE,
            (pixels, boxes),
            (pixels, wrong),
            f"index {index} of rois is out of range for axis 0 of size 2",
            trusted=False,
        )
        for op in ("roi_align", "roi_pool")
        for wrong, index in ((beyond, 7), (negative, -1))
    ),
    Indexing(
        "R.vision.non_max_suppression(x, c, i)",
        NMS,
        (rows, np.array([3], "int32"), places),
        (rows, np.array([4], "int32"), places),
        "valid_count 4 is out of range for 3 boxes",
        trusted=False,
    ),
    Indexing(
        "R.dynamic_strided_slice(x, i, i, s)",
        V + ', s: R.Tensor(("k",), "int64")',
        (X, vector(0), vector(1)),
        (X, vector(0), vector(0)),
        "the stride of dim 0 is 0",
        trusted=False,
    ),
]


@pytest.mark.parametrize("mode", ["bytecode", "compiled", "interpreted"])
@pytest.mark.parametrize("case", INDEXING, ids=[f"{c.call}-{k}" for k, c in enumerate(INDEXING)])
def test_index_out_of_range(case: Indexing, mode: str) -> None:
    module = from_source(case.script)
    if mode == "interpreted":
        interpret(module, *case.good)
        with pytest.raises(pliant.PliantError) as caught:
            interpret(module, *case.bad)
    else:
        model: Any = pliant.compile(module, exec_mode=mode)
        model(*case.good)
        with pytest.raises(pliant.PliantError) as caught:
            model(*case.bad)
        # The failed run has no effect on the next one.
        model(*case.good)
    assert f"{case.op}: {case.message}" in str(caught.value), caught.value


@pytest.mark.parametrize("case", INDEXING[3:], ids=[c.call for c in INDEXING[3:]])
def test_trusted_indices_are_not_checked(case: Indexing) -> None:
    """Checks that with trusted indices, an invalid index accesses another element of the tensor, but no memory outside of the
    tensor.
    """
    module = from_source(case.script)
    model: Any = pliant.compile(module)
    trusting: Any = pliant.compile(module, config={"relax.trust_indices": True})

    def arrays(result: Any) -> list[Any]:
        return [np.asarray(r) for r in (result if isinstance(result, list | tuple) else [result])]

    want = arrays(model(*case.good))
    for one, other in zip(arrays(trusting(*case.good)), want, strict=True):
        np.testing.assert_array_equal(one, other)
    if case.trusted:
        trusting(*case.bad)


def test_every_indexing_operator_has_a_case() -> None:
    """Checks that the test covers all operators with an operand for indices, which is identified by
    its name.
    """
    words = ("indices", "rois", "seq_lengths", "sequence_lens", "valid_count", "targets")
    table = pliant._core.relax
    found = set()
    for name in table.op_names():
        operands = [n for n, kind, _ in table.get_op(name).parameters if kind in ("operand", "optional")]
        if any(o in words or o.endswith("_indices") for o in operands):
            found.add(name)
    # An index outside the range is valid there: no element is set.
    defined = {"relax.one_hot"}
    # nn.gru and nn.rnn are implemented like nn.lstm, with other gates.
    same = {"relax.nn.gru", "relax.nn.rnn"}
    # The adjoints of take and nll_loss read the indices through the tensor expressions of these operators.
    same |= {"relax.grad.take_backward", "relax.grad.nll_loss_backward"}
    assert found - defined - same <= {case.op for case in INDEXING}, found


TOP = 2**64 - 1
UNSIGNED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("R.take(x, i, axis=0)", 'i: R.Tensor(("k",), "uint64")', (np.array([0, TOP], "uint64"),)),
    ("R.gather_elements(x, i)", 'i: R.Tensor(("k",), "uint64")', (np.array([0, TOP], "uint64"),)),
    ("R.gather_nd(x, i)", 'i: R.Tensor(("k", 1), "uint64")', (np.array([[0], [TOP]], "uint64"),)),
    ("R.index_tensor(x, (i,))", 'i: R.Tensor(("k",), "uint64")', (np.array([0, TOP], "uint64"),)),
    (
        'R.scatter_elements(x, i, u, reduction="add")',
        'i: R.Tensor(("k",), "uint64"), u: R.Tensor(("k",), "int64")',
        (np.array([0, TOP], "uint64"), vector(1, 1)),
    ),
    (
        "R.scatter_nd(x, i, u)",
        'i: R.Tensor(("k", 1), "uint64"), u: R.Tensor(("k",), "int64")',
        (np.array([[0], [TOP]], "uint64"), vector(1, 1)),
    ),
    (
        "R.index_put(x, (i,), u)",
        'i: R.Tensor(("k",), "uint64"), u: R.Tensor(("k",), "int64")',
        (np.array([0, TOP], "uint64"), vector(1, 1)),
    ),
]


def module_of(types: str, call: str) -> Any:
    return from_source(
        f"@I.ir_module\nclass Module:\n    @R.function\n    def main({types}):\n        a = {call}\n        return a\n"
    )


def runners(module: Any) -> list[Any]:
    modes = [pliant.compile(module, exec_mode=mode) for mode in ("bytecode", "compiled")]
    return [*modes, lambda *args: interpret(module, *args)]


@pytest.mark.parametrize(("call", "types", "args"), UNSIGNED, ids=[u[0] for u in UNSIGNED])
def test_unsigned_indices_are_not_negative(call: str, types: str, args: tuple[Any, ...]) -> None:
    for run in runners(module_of('x: R.Tensor(("n",), "int64"), ' + types, call)):
        with pytest.raises(pliant.PliantError, match=f"index {TOP} is out of range for axis 0 of size 4"):
            run(X, *args)


@pytest.mark.parametrize(("mode", "wanted"), [("clip", [0, 2, 2]), ("wrap", [0, 0, 2])])
def test_unsigned_indices_are_clamped_or_wrapped(mode: str, wanted: list[int]) -> None:
    module = module_of('x: R.Tensor((3,), "int64"), i: R.Tensor((3,), "uint64")', f'R.take(x, i, axis=0, mode="{mode}")')
    for run in runners(module):
        np.testing.assert_array_equal(run(X[:3], np.array([0, TOP, 2**63], "uint64")).numpy(), wanted)


ROI = 'x: R.Tensor(("n", 2, "h", "w"), "float32"), r: R.Tensor(("k", 5), "float32")'
HUGE = [
    [0, -1e10, -1e10, 1e10, 1e10],
    [0, -np.inf, -np.inf, np.inf, np.inf],
    [0, 3e38, 3e38, -3e38, -3e38],
    [0, np.nan, 0, 1, 1],
    [0, 1e9, 1e9, 2e9, 2e9],
]


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("aligned", [True, False])
def test_unbounded_regions_take_bounded_time(mode: str, aligned: bool) -> None:
    call = f'R.vision.roi_align(x, r, pooled_size=[2, 2], spatial_scale=1.0, mode="{mode}", aligned={aligned})'
    for run in runners(module_of(ROI, call)):
        found = run(np.ones((1, 2, 4, 4), F32), np.array(HUGE, F32)).numpy()
        assert found.shape == (5, 2, 2, 2)
        assert np.all((found >= 0) & (found <= 1))
        # A region that is larger than the image is averaged over all of its area.
        some = run(np.ones((1, 2, 4, 4), F32), np.array([[0, -4, 0, 4, 4]], F32)).numpy()
        assert np.all(some[..., 1] == 1)


@pytest.mark.parametrize("op", ["roi_align", "roi_pool"])
def test_fractional_image_indices_are_rejected(op: str) -> None:
    for run in runners(module_of(ROI, f"R.vision.{op}(x, r, {POOL})")):
        with pytest.raises(pliant.PliantError, match="of rois is out of range"):
            run(np.ones((3, 2, 4, 4), F32), np.array([[1.5, 0, 0, 2, 2]], F32))


@pytest.mark.parametrize("starts", [[0, 200, 600000], [-5, 3, 6], [0, 4, 2], [0, 3, 7]])
def test_sequence_offsets_are_checked(starts: list[int]) -> None:
    q = 'R.Tensor((1, "n", 1, 2), "float32")'
    module = module_of(f'q: {q}, s: R.Tensor(("b",), "int32")', "R.nn.attention_var_len(q, q, q, s, R.prim_value(6))")
    data = np.ones((1, 6, 1, 2), F32)
    for run in runners(module):
        run(data, np.array([0, 3, 6], "int32"))
        with pytest.raises(pliant.PliantError, match="the sequence of .* is out of range for 6 positions"):
            run(data, np.array(starts, "int32"))
