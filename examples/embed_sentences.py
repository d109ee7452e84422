"""Embed real sentences with all-MiniLM-L6-v2, compiled once, in batches of many shapes.

Reads the model's own weights and tokenizer, compiles the encoder with symbolic `batch` and `seq`, embeds a
file of sentences, checks the result against float64 NumPy, and prints the nearest pairs, the time of each
shape and how often it compiled.

    python examples/embed_sentences.py [SENTENCES.txt]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pliant
from minilm import encoder, reference, tokenization, weights

BATCH_SIZES = (1, 4, 2, 7, 1, 3)
TOLERANCE = 1e-4


@dataclass
class Run:
    """The run of one batch: its token ids and mask, the embeddings, and the elapsed seconds."""

    ids: np.ndarray
    mask: np.ndarray
    embeddings: np.ndarray
    seconds: float


def progress(done: int, total: int) -> None:
    """Prints a progress bar of `done` of `total` batches if the error output is a terminal."""
    if not sys.stderr.isatty():
        return
    filled = 30 * done // max(total, 1)
    bar = "#" * filled + "." * (30 - filled)
    end = "\n" if done == total else ""
    print(f"\rembedding [{bar}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def embed_all(model: pliant.Model, sentences: list[str]) -> Iterator[Run]:
    """Embeds the sentences batch by batch."""
    tokenizer = tokenization.load_tokenizer()
    done = 0
    progress(0, len(sentences))
    for batch in tokenization.batches(sentences, BATCH_SIZES):
        ids, mask = tokenization.encode(tokenizer, batch)
        start = time.perf_counter()
        result = np.array(model(ids, mask))
        yield Run(ids, mask, result, time.perf_counter() - start)
        done += len(batch)
        progress(done, len(sentences))


def print_nearest(sentences: list[str], embeddings: np.ndarray, count: int = 8) -> None:
    """Prints the pairs of sentences whose embeddings are nearest."""
    similarity = embeddings @ embeddings.T
    rows, columns = np.triu_indices(len(sentences), k=1)
    order = np.argsort(-similarity[rows, columns])[:count]
    print("\nNearest pairs")
    for row, column in zip(rows[order], columns[order]):
        left, right = sentences[row][:56], sentences[column][:56]
        print(f"  {similarity[row, column]:.3f}  {left:<56} | {right}")


def print_shapes(runs: list[Run]) -> None:
    """Prints the time of each shape, in the order of the runs."""
    print("\n  batch   seq   milliseconds")
    for run in runs:
        batch, seq = run.ids.shape
        print(f"  {batch:5} {seq:5}   {run.seconds * 1e3:12.2f}")


def largest_error(runs: list[Run], config: weights.Config, tensors: dict[str, np.ndarray]) -> float:
    """Returns the largest difference from the float64 reference over all runs."""
    return max(
        float(np.abs(run.embeddings - reference.embed(run.ids, run.mask, config, tensors)).max())
        for run in runs
    )


def main() -> int:
    """Runs the example. The exit status is 1 if a result is wrong or if the model was compiled more
    than once.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).with_name("sentences.txt")
    parser.add_argument("sentences", nargs="?", type=Path, default=default, help="one sentence a line")
    lines = parser.parse_args().sentences.read_text(encoding="utf-8").splitlines()
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        parser.error("the file holds no sentence")

    config, tensors = weights.load_config(), weights.load_weights()
    module = encoder.build(config, tensors)
    start = time.perf_counter()
    model = pliant.compile(module)
    print(f"Compiled all-MiniLM-L6-v2 in {time.perf_counter() - start:.2f} s")
    for parameter in model.inputs:
        print(f"  input {parameter}")

    runs = list(embed_all(model, sentences))
    print_nearest(sentences, np.concatenate([run.embeddings for run in runs]))
    print_shapes(runs)

    shapes = {run.ids.shape for run in runs}
    compilations = model.stats().compilations
    error = largest_error(runs, config, tensors)
    print(f"\n{len(runs)} runs, {len(shapes)} shapes, {compilations} compilation")
    print(f"Largest difference from the float64 reference: {error:.1e} (at most {TOLERANCE:.0e})")
    return 0 if error <= TOLERANCE and compilations == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
