"""Tests that calls that are provably invalid are refused when the script is parsed, at their line."""

from __future__ import annotations

import pytest

import pliant
from pliant.script import from_source

F = 'R.Tensor(("n", 3), "float32")'
V = 'R.Tensor(("n",), "float32")'
I = 'R.Tensor(("n", 3), "int64")'  # noqa: E741 - the table reads better with short names
S = 'R.Tensor((), "float32")'
B = 'R.Tensor(("n", 3), "bool")'
X4 = 'R.Tensor((1, 2, 5, 5), "float32")'
ROIS = 'R.Tensor(("n", 5), "float32")'
ROWS = 'R.Tensor((2, "n", 6), "float32")'
SEQ = 'R.Tensor(("t", "n", 3), "float32")'
W = 'R.Tensor((1, 20, 3), "float32")'
R5 = 'R.Tensor((1, 20, 5), "float32")'
POOL = "pooled_size=[2, 2], spatial_scale=1.0"

# The operands' types, the call of x, y, z, and a part of the message.
CALLS: list[tuple[tuple[str, ...], str, str]] = [
    ((F,), "R.flip(x, axis=2)", "axis 2 is out of range"),
    ((F,), "R.flip(x, axis=[0, -2])", "appears twice"),
    ((F, V), "R.stack((x, y))", "differs in rank"),
    ((F, I), "R.stack((x, y))", "data type"),
    ((F, F), "R.stack((x, y), axis=3)", "out of range"),
    ((F,), "R.concat(())", "tensors must contain at least one tensor"),
    ((F,), "R.meshgrid((x,))", "tensors[0] must have 0 or 1 dims"),
    ((V,), 'R.meshgrid((x,), indexing="yx")', "indexing must be one of"),
    ((F, V), "R.reverse_sequence(x, y)", "integers"),
    ((F, I), "R.reverse_sequence(x, y)", "1 dim"),
    ((I, S), "R.one_hot(x, y, y, depth=-2)", "depth must not be negative"),
    ((F, S), "R.one_hot(x, y, y, depth=2)", "integers"),
    ((F,), "R.collapse_sum_to(x, R.shape([2]))", "cannot be summed to size 2"),
    ((F, F), "R.collapse_sum_like(x, R.const([1.0, 2.0]))", "cannot be summed to size 2"),
    ((F,), 'R.layout_transform(x, index_map="lambda i: i")', "takes 1 indices"),
    ((F,), 'R.layout_transform(x, index_map="i")', "must be a lambda"),
    ((F,), "R.eye(R.prim_value(-3))", "must not be negative"),
    ((V,), "R.eye_like(x)", "2 dims"),
    ((V,), 'R.hamming_window(R.prim_value(4), dtype="int32")', "float type"),
    ((F, F), "R.gather_elements(x, y)", "integers"),
    ((F, I), "R.gather_elements(x, y, axis=2)", "out of range"),
    ((F, 'R.Tensor((2, 5), "int64")'), "R.gather_elements(x, y, axis=0)", "dim 1 of indices has size 5, which is larger"),
    ((F, I), "R.gather_nd(x, y)", "the last dim of indices is"),
    ((F, I), "R.gather_nd(x, y, batch_dims=2)", "batch_dims 2 is out of range"),
    ((F, F), "R.index_tensor(x, (y,))", "integers"),
    ((V, I), "R.index_tensor(x, (y, y))", "more than data has dims"),
    ((F, F), "R.bucketize(x, y)", "1 dim"),
    ((F, I, F), 'R.scatter_elements(x, y, z, reduction="sum")', "reduction must be one of"),
    ((F, I, V), "R.scatter_elements(x, y, z)", "updates must be of shape"),
    ((F, I, I), "R.scatter_elements(x, y, z)", "x"),
    ((B, I, B), 'R.scatter_elements(x, y, z, reduction="add")', "operand 'data' has data type bool"),
    ((F, I, F), "R.scatter_nd(x, y, z)", "the last dim of indices is"),
    ((F, F, F), "R.index_put(x, (y,), z)", "integers"),
    ((F, F), "R.slice_scatter(x, y, R.prim_value(0), R.prim_value(2), R.prim_value(0))", "step must be"),
    ((F, F, I), "R.slice_scatter(x, y, R.prim_value(0), z, R.prim_value(1))", "end must be"),
    (('R.Tensor(dtype="float32")', F, I), "R.slice_scatter(x, y, R.prim_value(0), R.prim_value(2), z)", "step must be"),
    ((B, B), "R.linear(x, y)", "data must be a tensor of numbers"),
    ((F, B), "R.linear(x, y)", "data is float32, but weight is bool"),
    ((F, I, I), "R.dynamic_strided_slice(x, y, y, y)", "1 dim"),
    ((F, I), 'R.take(x, y, axis=0, mode="raise")', "mode must be one of"),
    ((I, I), 'R.take(x, y, axis=0, mode="nan")', "floats"),
    ((F,), "R.cumsum(x, axis=2)", "out of range"),
    ((B,), "R.cumsum(x)", "bool"),
    ((F,), "R.cumprod(x, axis=-3)", "out of range"),
    ((F,), "R.sort(x, axis=2)", "out of range"),
    ((F,), 'R.argsort(x, dtype="bool")', "numeric data type"),
    ((F,), "R.topk(x, k=-1)", "k must not be negative"),
    ((F,), "R.topk(x, k=4)", "k is 4, but must be at most the size of axis 1, which is 3"),
    ((F,), 'R.topk(x, k=1, ret_type="all")', "ret_type must be one of"),
    ((F,), "R.median(x, axis=[0, 1])", "one integer"),
    ((F, F), 'R.einsum((x, y), subscripts="ij->ij")', "terms for 1 operands"),
    ((F,), 'R.einsum((x,), subscripts="ijk")', "does not fit the rank"),
    ((F,), 'R.einsum((x,), subscripts="ij->k")', "in no operand"),
    ((F, F), 'R.einsum((x, R.const([1.0, 2.0])), subscripts="ij,j")', "but has the sizes 3 and 2"),
    ((I, S, S), "R.quantize(x, y, z)", "floats"),
    ((F, S, S), 'R.quantize(x, y, z, out_dtype="float32")', "integer"),
    ((F, S, S), "R.dequantize(x, y, z)", "integers"),
    ((I, F, S), "R.dequantize(x, y, z)", "scalar or a vector"),
    ((F, F, F), "R.multinomial_from_uniform(x, y, z)", "integers"),
    ((F, F, I), "R.multinomial_from_uniform(x, y, z)", "(n, 1)"),
    ((F,), "R.vision.get_valid_counts(x)", "3 dims"),
    ((ROWS,), "R.vision.get_valid_counts(x, score_index=6)", "score_index is 6, which is out of range"),
    ((ROWS, V, I), "R.vision.non_max_suppression(x, y, z)", "integers"),
    ((ROWS, ROWS, S), "R.vision.all_class_non_max_suppression(x, y, z, z, z)", "integers"),
    ((ROWS, F, ROWS), "R.vision.multibox_transform_loc(x, y, z)", "must have the shapes"),
    ((X4, ROIS), f'R.vision.roi_align(x, y, {POOL}, layout="CHWN")', "layout must be one of"),
    ((X4, ROIS), "R.vision.roi_align(x, y, pooled_size=[0, 2], spatial_scale=1.0)", "at least 1"),
    ((X4, F), f"R.vision.roi_pool(x, y, {POOL})", "5 columns"),
    ((SEQ, W, W), "R.nn.lstm(x, y, z)", "must be of shape"),
    ((SEQ, W, R5), 'R.nn.lstm(x, y, z, direction="both")', "direction must be one of"),
    ((SEQ, W, R5), "R.nn.gru(x, y, z)", "must be of shape"),
    ((SEQ, W, F), "R.nn.rnn(x, y, z)", "3 dims"),
    ((F,), "R.signal.dft(x)", "must be 1 (real) or 2 (complex)"),
    ((ROWS,), "R.signal.dft(x, axis=2)", "axis must not name the last dim"),
    ((SEQ,), "R.signal.stft(x, R.prim_value(2))", "window or frame_length is required"),
]


@pytest.mark.parametrize(("types", "call", "part"), CALLS, ids=[call for _, call, _ in CALLS])
def test_rejected_at_the_line(types: tuple[str, ...], call: str, part: str) -> None:
    params = ", ".join(f"{name}: {ty}" for name, ty in zip("xyz", types, strict=False))
    script = f"@I.ir_module\nclass Module:\n    @R.function\n    def main({params}):\n        a = {call}\n        return a\n"
    with pytest.raises(pliant.PliantError) as error:
        from_source(script)
    text = str(error.value)
    assert part in text, text
    assert "line 5" in text, text
