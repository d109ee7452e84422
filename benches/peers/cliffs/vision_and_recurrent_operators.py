"""Test cases for image operators, signals, recurrent layers, control flow and attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import helper

from .benchmark_case import (
    BOOL,
    FLOAT,
    INT64,
    OperatorCase,
    bools,
    branch,
    grid,
    ints,
    generated,
    normal,
    uniform,
)
from .elementwise_operators import IMAGE, PLANE

SMALL = grid(n=[1, 1, 2], c=[3, 16, 32], h=[5, 24, 96], w=[7, 24, 96])


RESIZES: dict[str, tuple[list[float], dict[str, Any]]] = {
    "nearest x2": ([1, 1, 2, 2], {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    "nearest half_pixel x2": ([1, 1, 2, 2], {"mode": "nearest"}),
    "nearest x0.5": ([1, 1, 0.5, 0.5], {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}),
    "linear x2": ([1, 1, 2, 2], {"mode": "linear"}),
    "linear pytorch x2": ([1, 1, 2, 2], {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}),
    "linear align_corners x2": ([1, 1, 2, 2], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    "linear x0.5": ([1, 1, 0.5, 0.5], {"mode": "linear"}),
    "linear antialias x0.5": ([1, 1, 0.5, 0.5], {"mode": "linear", "antialias": 1}),
    "linear x1.7": ([1, 1, 1.7, 1.3], {"mode": "linear"}),
    "cubic x2": ([1, 1, 2, 2], {"mode": "cubic"}),
    "cubic pytorch x2": (
        [1, 1, 2, 2],
        {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel", "cubic_coeff_a": -0.75},
    ),
    "cubic x0.5": ([1, 1, 0.5, 0.5], {"mode": "cubic"}),
    "cubic antialias x0.5": ([1, 1, 0.5, 0.5], {"mode": "cubic", "antialias": 1}),
    "linear width alone": ([1, 1, 1, 2], {"mode": "linear"}),
}


def resizes() -> Iterator[OperatorCase]:
    """Yields test cases for Resize and GridSample."""
    for variant, (scales, attrs) in RESIZES.items():
        constants = {"s": np.array(scales, np.float32)}
        yield OperatorCase("Resize", {"x": normal("n c h w")}, SMALL, constants, attrs, variant=variant, order=("x", "", "s"))
    target = {"x": normal("n c h w"), "z": generated("4", lambda r, s: np.array([1, 1, 64, 48]), "int64")}
    one = grid(n=[1, 1, 1], c=[1, 1, 1], h=[5, 24, 512], w=[7, 24, 512])
    yield OperatorCase("Resize", target, one, attrs={"mode": "linear"}, variant="non-constant sizes", order=("x", "", "", "z"))
    bytes_ = {"x": ints("n c h w", 0, 99, "uint8")}
    constants = {"s": np.array([1, 1, 2, 2], np.float32)}
    yield OperatorCase(
        "Resize", bytes_, SMALL, constants, RESIZES["nearest x2"][1], variant="nearest uint8", order=("x", "", "s")
    )
    half = {"x": normal("n c h w", "float16")}
    yield OperatorCase(
        "Resize", half, SMALL, constants, {"mode": "linear"}, variant="linear float16", order=("x", "", "s"), error=1e-2
    )
    volume = {"x": normal("n c 4 h w")}
    scales3 = {"s": np.array([1, 1, 2, 2, 2], np.float32)}
    yield OperatorCase("Resize", volume, SMALL, scales3, {"mode": "linear"}, variant="linear 3-D", order=("x", "", "s"))
    yield OperatorCase("Upsample", {"x": normal("n c h w")}, SMALL, constants, {"mode": "nearest"}, opset=9)
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            operands = {"x": normal("n c h w"), "g": uniform("n h w 2", -1.1, 1.1)}
            attrs = {"mode": mode, "padding_mode": padding}
            yield OperatorCase("GridSample", operands, SMALL, attrs=attrs, variant=f"{mode} {padding}", opset=20, error=1e-3)
    operands = {"x": normal("n c 4 h w"), "g": uniform("n 4 h w 3", -1.1, 1.1)}
    yield OperatorCase("GridSample", operands, SMALL, variant="3-D", opset=20, error=1e-3)
    shape = [
        helper.make_node("Shape", ["x"], ["z"]),
        helper.make_node("AffineGrid", ["t", "z"], ["y"]),
    ]
    yield OperatorCase("AffineGrid", {"x": bools("n c h w"), "t": normal("n 2 3")}, SMALL, nodes=shape, opset=20)


def regions(extent: float) -> Any:
    """Returns a function that generates random boxes, as corners within about `extent` in each dim."""

    def fill(rand: np.random.Generator, shape: tuple[int, ...]) -> Any:
        corner = rand.random((shape[0], 2)) * extent / 2
        return np.concatenate([corner, corner + 1 + rand.random(corner.shape) * extent / 2], 1)

    return fill


def rois() -> Iterator[OperatorCase]:
    """Yields test cases for regions of interest and deformable convolutions."""
    sizes = grid(r=[2, 50, 500], c=[3, 32, 128], h=[16, 32, 64], w=[16, 32, 64])
    operands = {"x": normal("1 c h w"), "b": generated("r 4", regions(14)), "i": ints("r", 0, 1)}
    for mode, ratio in (("avg", 2), ("max", 2), ("avg", 0)):
        attrs = {"output_height": 7, "output_width": 7, "sampling_ratio": ratio, "mode": mode}
        # The maximum of samples, not of their weighted corners (docs/reference/onnx-operators.md): results differ.
        error = None if mode == "max" else 1e-3
        yield OperatorCase("RoiAlign", operands, sizes, attrs=attrs, variant=f"{mode} {ratio}", opset=16, error=error)
    five = {
        "x": normal("1 c h w"),
        "b": generated("r 5", lambda r, s: np.concatenate([np.zeros((s[0], 1)), regions(14)(r, s)], 1)),
    }
    yield OperatorCase("MaxRoiPool", five, sizes, attrs={"pooled_shape": [7, 7]}, opset=22)
    deform = {"x": normal("n 16 h w"), "w": normal("16 16 3 3", scale=0.1), "o": normal("n 18 h w")}
    yield OperatorCase("DeformConv", deform, SMALL, attrs={"kernel_shape": [3, 3], "pads": [1] * 4}, opset=19, error=1e-3)


def signals() -> Iterator[OperatorCase]:
    """Yields test cases for Fourier transforms and window functions."""
    for length in (256, 400, 1009):
        for onesided in (0, 1):
            attrs = {"onesided": onesided}
            where = {"l": np.int64(length), "axis": np.int64(1)}
            x = {"x": normal(f"n {length} 1")}
            sizes = grid(n=[1, 32, 512])
            yield OperatorCase("DFT", x, sizes, where, attrs, variant=f"{length} onesided={onesided}", opset=20, error=1e-3)
    yield OperatorCase(
        "DFT",
        {"x": normal("n s 1")},
        grid(n=[1, 16, 64], s=[16, 500, 4096]),
        variant="symbolic length",
        opset=20,
        order=("x", "", ""),
        error=1e-3,
    )
    constants: dict[str, Any] = {"step": np.int64(160), "win": np.hanning(400).astype(np.float32), "len": np.int64(400)}
    yield OperatorCase("STFT", {"x": normal("n s 1")}, grid(n=[1, 1, 4], s=[800, 16000, 160000]), constants, error=1e-3)
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        nodes = [helper.make_node("Size", ["x"], ["l"]), helper.make_node(op, ["l"], ["y"])]
        yield OperatorCase(op, {"x": bools("n c")}, PLANE[:2], nodes=nodes)
    mel = {"bins": np.int64(80), "dft": np.int64(400), "rate": np.int64(16000), "lo": np.float32(0), "hi": np.float32(8000)}
    nodes = [helper.make_node("MelWeightMatrix", list(mel), ["m"]), helper.make_node("MatMul", ["x", "m"], ["y"])]
    yield OperatorCase("MelWeightMatrix", {"x": normal("n 201")}, grid(n=[1, 100, 3000]), mel, nodes=nodes, error=1e-3)


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def weights(op: str, units: int, directions: int, scale: float = 0.1) -> dict[str, Any]:
    """Returns the weights of a recurrent layer whose input is as wide as its state."""
    gates = GATES[op] * units
    dims = {"w": f"{directions} {gates} {units}", "r": f"{directions} {gates} {units}", "b": f"{directions} {2 * gates}"}
    return {name: normal(d, scale=scale) for name, d in dims.items()}


def recurrent() -> Iterator[OperatorCase]:
    """Yields test cases for LSTM, GRU and RNN."""
    sizes = grid(s=[3, 32, 128], b=[1, 1, 8])
    for op, units in [(o, u) for o in GATES for u in (32, 256)]:
        variants: dict[str, dict[str, Any]] = {
            "": {},
            "reverse": {"direction": "reverse"},
            "bidirectional": {"direction": "bidirectional"},
        }
        if op == "GRU":
            variants["linear before reset"] = {"linear_before_reset": 1}
        for variant, attrs in variants.items():
            constants = weights(op, units, 2 if variant == "bidirectional" else 1)
            attrs = {**attrs, "hidden_size": units}
            yield OperatorCase(op, {"x": normal(f"s b {units}")}, sizes, constants, attrs, variant=f"{units} {variant}".strip())
    lengths = {"x": normal("s b 64"), "l": ints("b", 1, 4, "int32")}
    order = ("x", "w", "r", "b", "l")
    states = {"h": normal("1 b 64"), "c": normal("1 b 64")}
    for op in ("LSTM", "GRU"):
        attrs = {"hidden_size": 64}
        yield OperatorCase(op, lengths, sizes, weights(op, 64, 1), attrs, variant="lengths", order=order, outputs=("y", "yh"))
        initial = states if op == "LSTM" else {"h": states["h"]}
        operands = {"x": normal("s b 64"), **initial}
        yield OperatorCase(
            op, operands, sizes, weights(op, 64, 1), attrs, variant="initial states", order=("x", "w", "r", "b", "", *initial)
        )
        free = {"x": normal("s b 64"), **weights(op, 64, 1)}
        yield OperatorCase(op, free, sizes, attrs=attrs, variant="non-constant weights")
        yield conditional(op, sizes)
    batch_major = {"layout": 1, "hidden_size": 64}
    yield OperatorCase("LSTM", {"x": normal("b s 64")}, sizes, weights("LSTM", 64, 1), batch_major, variant="batch-major")


def conditional(op: str, sizes: list[dict[str, int]]) -> OperatorCase:
    """Returns a test case with a recurrent layer in a branch of an If."""
    inner = [helper.make_node(op, ["x", "w", "r", "b"], ["t"], hidden_size=64)]
    other = [helper.make_node("Unsqueeze", ["x", "axis"], ["e"])]
    attrs = {"then_branch": branch("then", inner, {"t": FLOAT}), "else_branch": branch("else", other, {"e": FLOAT})}
    operands = {"x": normal("s b 64"), "p": generated("", lambda r, s: np.array(True), "bool")}
    constants = {**weights(op, 64, 1), "axis": np.array([1])}
    return OperatorCase(op, operands, sizes, constants, nodes=[helper.make_node("If", ["p"], ["y"], **attrs)], variant="in an If")


def control() -> Iterator[OperatorCase]:
    """Yields test cases for Loop, Scan and If."""
    value = helper.make_tensor_value_info
    plane = grid(n=[2, 64, 256], c=[4, 64, 1024])
    body = branch(
        "body",
        [
            helper.make_node("Gather", ["x", "i"], ["row"]),
            helper.make_node("Mul", ["state", "half"], ["m"]),
            helper.make_node("Add", ["m", "row"], ["next"]),
            helper.make_node("Identity", ["next"], ["out"]),
            helper.make_node("Identity", ["c"], ["go"]),
        ],
        {"go": BOOL, "next": FLOAT, "out": FLOAT},
        [value("i", INT64, []), value("c", BOOL, []), value("state", FLOAT, None)],
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=0, end=1),
        helper.make_node("Loop", ["s", "", "z"], ["last", "y"], body=body),
    ]
    operands = {"x": normal("n c"), "z": normal("c")}
    constants = {"half": np.float32(0.5)}
    yield OperatorCase("Loop", operands, plane, constants, nodes=nodes, variant="rows", outputs=("last", "y"))
    step = branch(
        "step",
        [
            helper.make_node("MatMul", ["state", "w"], ["p"]),
            helper.make_node("Add", ["p", "row"], ["q"]),
            helper.make_node("Tanh", ["q"], ["next"]),
            helper.make_node("Identity", ["next"], ["out"]),
        ],
        {"next": FLOAT, "out": FLOAT},
        [value("state", FLOAT, None), value("row", FLOAT, None)],
    )
    scan = [helper.make_node("Scan", ["z", "x"], ["last", "y"], body=step, num_scan_inputs=1)]
    rows_ = {"z": normal("b 64"), "x": normal("s b 64")}
    sizes = grid(s=[3, 64, 512], b=[1, 4, 32])
    yield OperatorCase("Scan", rows_, sizes, {"w": normal("64 64", scale=0.1)}, nodes=scan, variant="RNN", outputs=("last", "y"))
    attrs = {
        "then_branch": branch("then", [helper.make_node("Mul", ["x", "x"], ["t"])], {"t": FLOAT}),
        "else_branch": branch("else", [helper.make_node("Neg", ["x"], ["e"])], {"e": FLOAT}),
    }
    chosen = {"x": normal("n c"), "p": generated("", lambda r, s: np.array(True), "bool")}
    yield OperatorCase("If", chosen, PLANE, nodes=[helper.make_node("If", ["p"], ["y"], **attrs)])


def attention() -> Iterator[OperatorCase]:
    """Yields test cases for the ONNX operators Attention and RotaryEmbedding."""
    sizes = grid(b=[1, 1, 2], s=[4, 64, 512], t=[5, 64, 512])
    heads = {"q": normal("b 8 s 64"), "k": normal("b 8 t 64"), "v": normal("b 8 t 64")}
    yield OperatorCase("Attention", heads, sizes, opset=23, error=1e-3)
    yield OperatorCase("Attention", heads, sizes, attrs={"is_causal": 1}, variant="causal", opset=23, error=1e-3)
    for variant, mask in {"bool mask": bools("b 1 s t"), "bias": normal("b 8 s t"), "2-D bias": normal("s t")}.items():
        yield OperatorCase("Attention", {**heads, "m": mask}, sizes, variant=variant, opset=23, error=1e-3)
    grouped = {"q": normal("b 8 s 64"), "k": normal("b 2 t 64"), "v": normal("b 2 t 64")}
    yield OperatorCase("Attention", grouped, sizes, variant="grouped queries", opset=23, error=1e-3)
    flat = {"q": normal("b s 512"), "k": normal("b t 512"), "v": normal("b t 512")}
    yield OperatorCase("Attention", flat, sizes, attrs={"q_num_heads": 8, "kv_num_heads": 8}, variant="3-D", opset=23, error=1e-3)
    half = {k: normal(x.dims, "float16") for k, x in heads.items()}
    yield OperatorCase("Attention", half, sizes, variant="float16", opset=23, error=2e-2)
    past = {**heads, "pk": normal("b 8 p 64"), "pv": normal("b 8 p 64")}
    cached = grid(b=[1, 1, 4], s=[1, 1, 1], t=[1, 1, 1], p=[3, 64, 1024])
    order = ("q", "k", "v", "", "pk", "pv")
    yield OperatorCase(
        "Attention", past, cached, variant="with past", opset=23, order=order, outputs=("y", "ok", "ov"), error=1e-3
    )
    caches = {"x": normal("b 8 s 64"), "c": normal("b s 32"), "n": normal("b s 32")}
    yield OperatorCase("RotaryEmbedding", caches, sizes, opset=23)
    yield OperatorCase("RotaryEmbedding", caches, sizes, attrs={"interleaved": 1}, variant="interleaved", opset=23)


def rows() -> Iterator[OperatorCase]:
    """Yields all test cases of this file."""
    yield from resizes()
    yield from rois()
    yield from signals()
    yield from recurrent()
    yield from control()
    yield from attention()
    yield OperatorCase("RandomNormalLike", {"x": normal("n c")}, PLANE, error=None)
    yield OperatorCase("RandomUniformLike", {"x": normal("n c")}, PLANE, error=None)
    yield OperatorCase("Bernoulli", {"x": uniform("n c", 0, 1)}, PLANE, error=None)
    yield OperatorCase("Binarizer", {"x": normal("n c")}, PLANE, attrs={"threshold": 0.5}, domain="ai.onnx.ml")
    yield OperatorCase("LRN", {"x": normal("n c h w")}, IMAGE, attrs={"size": 3, "alpha": 0.1}, variant="size 3")
