"""Converts sentences to token ids, with the tokenizer of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from tokenizers import Tokenizer

from .weights import model_dir


def load_tokenizer() -> Tokenizer:
    """Loads the model's tokenizer and disables its padding to a fixed length, so that each batch
    keeps its own length.
    """
    tokenizer = Tokenizer.from_file(str(model_dir() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=512)
    return tokenizer


def encode(tokenizer: Tokenizer, sentences: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the token ids and the mask of a batch, both int64 of shape (batch, seq), padded to
    the longest sentence.
    """
    encoded = tokenizer.encode_batch(list(sentences))
    seq = max(len(e.ids) for e in encoded)
    ids = np.zeros((len(encoded), seq), np.int64)
    mask = np.zeros((len(encoded), seq), np.int64)
    for row, e in enumerate(encoded):
        ids[row, : len(e.ids)] = e.ids
        mask[row, : len(e.ids)] = 1
    return ids, mask


def batches(sentences: Sequence[str], sizes: Sequence[int]) -> Iterator[list[str]]:
    """Yields the sentences in order, in batches whose sizes repeat the given pattern."""
    start, turn = 0, 0
    while start < len(sentences):
        size = sizes[turn % len(sizes)]
        yield list(sentences[start : start + size])
        start, turn = start + size, turn + 1
