"""The speed of a matrix product that `tir.Schedule` tiles and packs, relative to the library, by code generator and size.

The schedule is that of `docs/extend/schedule.md`.
"""

from __future__ import annotations

import argparse

import numpy as np

import pliant
from pliant import tir
from pliant.script import from_source
from timing import interleaved, require_release

SCRIPT = """
@I.ir_module
class Module:
    @T.prim_func
    def matmul(a: T.handle, b: T.handle, c: T.handle):
        n, m, k = T.int64(), T.int64(), T.int64()
        A = T.match_buffer(a, (n, k), "float32")
        B = T.match_buffer(b, (k, m), "float32")
        C = T.match_buffer(c, (n, m), "float32")
        for i, j, l in T.grid(n, m, k):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
LIBRARY = """
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor(("n", "k"), "float32"), b: R.Tensor(("k", "m"), "float32")):
        with R.dataflow():
            c = R.matmul(a, b)
            R.output(c)
        return c
"""
TILES = {"llvm": (8, 2, 16), "cranelift": (4, 2, 4)}
"""The tile of each code generator: rows, vectors per row, and floats per vector."""
SIZES = [
    (64, 64, 64),
    (256, 256, 256),
    (512, 512, 512),
    (2048, 2048, 2048),
    (1000, 1000, 1000),
    (500, 500, 500),
    (7, 500, 500),
    (1, 512, 512),
]
"""The sizes n, m, k. The last four fill no tile in n or m."""


def schedule(tile: tuple[int, int, int], *, pack: bool) -> tir.Schedule:
    """Schedules the product in tiles, with the right operand packed if `pack` is set."""
    rows, vectors, lanes = tile
    sch = tir.Schedule(from_source(SCRIPT))
    sch.work_on("matmul")
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    write = sch.cache_write(block, 0, "local")
    read = sch.cache_read(block, 1, "global") if pack else None
    i0, i1 = sch.split(i, [None, rows])
    j0, j1, j2 = sch.split(j, [None, vectors, lanes])
    sch.reorder(j0, i0, k, i1, j1, j2)
    sch.reverse_compute_at(write, i0)
    init = sch.decompose_reduction(block, k)
    sch.vectorize(j2)
    sch.unroll(i1)
    sch.unroll(j1)
    *_, i1, j1, j2 = sch.get_loops(init)
    sch.vectorize(j2)
    sch.unroll(i1)
    sch.unroll(j1)
    *_, i1, j = sch.get_loops(write)
    j1, j2 = sch.split(j, [None, lanes])
    sch.vectorize(j2)
    sch.unroll(i1)
    sch.unroll(j1)
    if read is not None:
        sch.compute_at(read, j0)
        *_, j = sch.get_loops(read)
        _, j2 = sch.split(j, [None, lanes])
        sch.vectorize(j2)
    sch.parallel(j0)
    return sch


def speeds(target: str, size: tuple[int, int, int], candidates: dict[str, tir.Schedule]) -> dict[str, float]:
    """Returns the GFLOP/s of each scheduled product and of the library at one size. Checks the results first."""
    n, m, k = size
    random = np.random.default_rng(0)
    a, b = random.random((n, k), np.float32), random.random((k, m), np.float32)
    operands = [pliant.nd.array(a), pliant.nd.array(b), pliant.nd.array(np.zeros((n, m), np.float32))]
    library = pliant.compile(from_source(LIBRARY), target=target)
    runs = {"library": lambda: library(*operands[:2])}
    for name, sch in candidates.items():
        function = pliant.build(sch.mod, target=target)["matmul"]
        function(*operands)
        np.testing.assert_allclose(operands[2].numpy(), a @ b, rtol=1e-4)
        runs[name] = lambda function=function: function(*operands)
    return {name: 2 * n * m * k / seconds / 1e9 for name, seconds in interleaved(runs, rounds=15).items()}


def main() -> None:
    """Prints a row for each size: GFLOP/s of the library, and the scheduled products as fractions of that."""
    require_release()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="+", default=pliant.build_info()["backends"], choices=list(TILES))
    for target in parser.parse_args().targets:
        candidates = {"tiled": schedule(TILES[target], pack=False), "packed": schedule(TILES[target], pack=True)}
        print(f"\n| {target}: n, m, k | library, GFLOP/s | tiled | packed |\n|---|---|---|---|")
        for size in SIZES:
            rate = speeds(target, size, candidates)
            relative = [f"{rate[name] / rate['library']:.2f}" for name in candidates]
            print(f"| {', '.join(map(str, size))} | {rate['library']:.0f} | {' | '.join(relative)} |", flush=True)


if __name__ == "__main__":
    main()
