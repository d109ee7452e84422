"""A KV cache for several sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence as Sizes
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.runtime.kv_cache.attention import Array, attend, attend_with_logarithms, merge
from pliant.runtime.kv_cache.pages import PagePool
from pliant.runtime.kv_cache.rotary import RotaryEmbedding
from pliant.runtime.kv_cache.sequence import Sequence


@dataclass(frozen=True)
class CacheConfig:
    """The sizes and limits of a cache. ``sliding_layers`` are the layers to which a sliding window applies, or ``None`` for all."""

    layers: int
    query_heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    dtype: np.dtype[Any]
    max_batch_size: int
    max_total_tokens: int
    max_tokens_per_forward: int
    page_size: int
    support_sliding_window: bool = False
    sliding_layers: frozenset[int] | None = None

    def __post_init__(self) -> None:
        for name in ("layers", "query_heads", "kv_heads", "key_dim", "value_dim", "max_batch_size", "page_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"a KV cache requires {name} >= 1, got {getattr(self, name)}")
        if self.query_heads % self.kv_heads:
            raise ValueError(f"{self.query_heads} query heads cannot be divided among {self.kv_heads} heads of keys and values")


@dataclass
class _Appended:
    """The new tokens of one sequence in a forward pass: ``count`` tokens from ``start``. ``rows`` are their rows in the tensors of
    the batch. ``parents`` are the parents of the tokens in a token tree, or ``None`` for consecutive tokens."""

    sequence: Sequence
    start: int
    count: int
    rows: slice
    parents: Array | None

    def positions(self) -> Array:
        """The position of each token in its sequence: in a tree, that of its parent plus 1."""
        if self.parents is None:
            return np.arange(self.start, self.start + self.count)
        depths = np.zeros(self.count, np.int64)
        for i, parent in enumerate(self.parents):
            depths[i] = depths[parent] + 1 if parent >= 0 else 0
        return self.start + depths

    def ancestors(self) -> Array:
        """Whether token ``j`` of the tree is token ``i`` or one of its ancestors."""
        assert self.parents is not None
        visible = np.eye(self.count, dtype=bool)
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                visible[i] |= visible[parent]
        return visible


class PagedKVCache:
    """The keys and values of several sequences, in pages that sequences share after a fork. Memory is proportional to the number of
    stored tokens, rounded up to pages.

    A forward pass consists of :meth:`begin_forward`, one call of :meth:`attention_with_fused_qkv` per layer, and
    :meth:`end_forward`. Methods raise ``ValueError`` for invalid arguments, such as unknown sequences, and ``MemoryError`` if all
    pages are in use; the cache then is unchanged.
    """

    def __init__(self, config: CacheConfig, rotary: RotaryEmbedding | None = None) -> None:
        self.config = config
        self.rotary = rotary
        pages = -(-config.max_total_tokens // config.page_size)
        self.pool = PagePool(
            pages, config.layers, config.page_size, config.kv_heads, config.key_dim, config.value_dim, config.dtype
        )
        self._sequences: dict[int, Sequence] = {}
        self._batch: list[_Appended] | None = None
        self._trees: dict[int, _Appended] = {}
        self._positions: Array = np.arange(0)
        self._angles: tuple[Array, Array] | None = None

    # --- sequences --------------------------------------------------------------------------------

    def sequence(self, seq_id: int) -> Sequence:
        """The sequence with an id."""
        if seq_id not in self._sequences:
            known = ", ".join(map(str, sorted(self._sequences))) or "none"
            raise ValueError(f"the KV cache has no sequence {seq_id} (there are: {known})")
        return self._sequences[seq_id]

    def _new_id(self, seq_id: int) -> int:
        if seq_id in self._sequences:
            raise ValueError(f"the KV cache already has a sequence {seq_id}")
        return seq_id

    def add_sequence(self, seq_id: int) -> None:
        """Adds an empty sequence."""
        self._sequences[self._new_id(seq_id)] = Sequence(self.pool)

    def remove_sequence(self, seq_id: int) -> None:
        """Removes a sequence and releases its pages."""
        self._idle("remove a sequence")
        self.sequence(seq_id).release()
        del self._sequences[seq_id]
        self._trees.pop(seq_id, None)

    def fork_sequence(self, parent_id: int, child_id: int, fork_pos: int = -1) -> None:
        """Adds a sequence that starts with the first ``fork_pos`` tokens of another one, or with all for -1. Both share the
        pages of these tokens; a page is copied when one of them appends to it."""
        self._idle("fork a sequence")
        parent = self.sequence(parent_id)
        length = parent.length if fork_pos == -1 else fork_pos
        if not 0 <= length <= parent.length:
            raise ValueError(f"cannot fork sequence {parent_id} of {parent.length} tokens at position {fork_pos}")
        self._uncommitted(parent_id)
        self._sequences[self._new_id(child_id)] = parent.fork(length)

    def popn(self, seq_id: int, count: int) -> None:
        """Removes tokens from the end of a sequence."""
        self._idle("remove tokens")
        sequence = self.sequence(seq_id)
        if not 0 <= count <= sequence.length:
            raise ValueError(f"cannot remove {count} tokens of sequence {seq_id}, which has {sequence.length}")
        self._uncommitted(seq_id)
        sequence.truncate(sequence.length - count)

    def clear(self) -> None:
        """Removes all sequences, and ends a forward pass."""
        for sequence in self._sequences.values():
            sequence.release()
        self._sequences, self._batch, self._trees = {}, None, {}

    def enable_sliding_window_for_seq(self, seq_id: int, window: int, sinks: int = 0) -> None:
        """Limits attention in a sequence to the last ``window`` tokens, including the token itself, and the first ``sinks`` tokens.
        The pages of other tokens are released after a forward pass."""
        if not self.config.support_sliding_window:
            raise ValueError("the KV cache was created without support_sliding_window")
        sequence = self.sequence(seq_id)
        if window < 1 or not 0 <= sinks < window:
            raise ValueError(f"a sliding window requires window >= 1 and 0 <= sinks < window, got {window} and {sinks}")
        if sequence.window is not None:
            raise ValueError(f"sequence {seq_id} already has a sliding window")
        sequence.window, sequence.sinks = window, sinks

    @property
    def empty(self) -> bool:
        """Whether the cache has no sequences."""
        return not self._sequences

    @property
    def num_available_pages(self) -> int:
        """The number of pages that are not in use."""
        return self.pool.available

    @property
    def total_sequence_length(self) -> int:
        """The sum of the lengths of all sequences."""
        return sum(sequence.length for sequence in self._sequences.values())

    # --- forward passes ---------------------------------------------------------------------------

    def _idle(self, action: str) -> None:
        if self._batch is not None:
            raise ValueError(f"cannot {action} during a forward pass: call end_forward first")

    def _uncommitted(self, seq_id: int) -> None:
        if seq_id in self._trees:
            raise ValueError(f"sequence {seq_id} has a token tree: commit accepted tokens first")

    def begin_forward(self, seq_ids: Sizes[int], append_lengths: Sizes[int], parents: Sizes[int] | None = None) -> None:
        """Begins a forward pass that appends ``append_lengths[i]`` tokens to sequence ``seq_ids[i]``.

        ``parents`` makes the new tokens of each sequence a tree: for each token of the batch, the index of its parent among the new
        tokens of its sequence, or -1. A token attends to its ancestors only; :meth:`commit_accepted_token_tree_nodes` keeps one
        path.
        """
        self._idle("begin a forward pass")
        ids, counts = [int(i) for i in seq_ids], [int(n) for n in append_lengths]
        self._check_batch(ids, counts, parents)
        sequences = [self.sequence(i) for i in ids]
        pages = [s.pages_to_append(n) for s, n in zip(sequences, counts, strict=True)]
        needed = self.pool.needed(sum(new for new, _ in pages), [page for _, shared in pages for page in shared])
        if needed > self.pool.available:
            limits = f"{self.pool.available} of {self.pool.max_pages} are available"
            raise MemoryError(f"the forward pass needs {needed} pages of the KV cache, but {limits}")
        batch: list[_Appended] = []
        row = 0
        try:
            for sequence, count in zip(sequences, counts, strict=True):
                tree = None if parents is None else np.asarray(parents[row : row + count], np.int64)
                appended = _Appended(sequence, sequence.length, count, slice(row, row + count), tree)
                sequence.append(count)
                batch.append(appended)
                row += count
        except MemoryError:
            for appended in batch:
                appended.sequence.remove_after(appended.start)
            raise
        if parents is not None:
            self._trees.update(zip(ids, batch, strict=True))
        self._batch = batch
        self._positions = np.concatenate([a.positions() for a in batch]) if batch else np.arange(0)
        self._angles = self.rotary.angles(self._positions) if self.rotary is not None else None

    def _check_batch(self, ids: list[int], counts: list[int], parents: Sizes[int] | None) -> None:
        if len(ids) != len(counts):
            raise ValueError(f"{len(ids)} sequences, but {len(counts)} numbers of tokens")
        if len(set(ids)) != len(ids):
            raise ValueError(f"a sequence occurs several times in the batch: {ids}")
        if len(ids) > self.config.max_batch_size:
            raise ValueError(f"the batch has {len(ids)} sequences, but at most {self.config.max_batch_size} are allowed")
        if any(count < 0 for count in counts):
            raise ValueError(f"numbers of tokens must not be negative: {counts}")
        total = sum(counts)
        if total > self.config.max_tokens_per_forward:
            raise ValueError(f"the batch has {total} tokens, but at most {self.config.max_tokens_per_forward} are allowed")
        for seq_id in ids:
            self._uncommitted(seq_id)
        if parents is None:
            return
        if len(parents) != total:
            raise ValueError(f"{len(parents)} parents for {total} tokens")
        indices = [i for count in counts for i in range(count)]
        if any(not -1 <= parent < i for parent, i in zip(parents, indices, strict=True)):
            raise ValueError("the parent of a token must be an earlier token of its sequence, or -1")

    def end_forward(self) -> None:
        """Ends the forward pass, and releases pages outside of sliding windows."""
        for appended in self._current():
            if self.config.sliding_layers is None and appended.parents is None:
                appended.sequence.discard_invisible()
        self._batch = None

    def _current(self) -> list[_Appended]:
        if self._batch is None:
            raise ValueError("there is no forward pass: call begin_forward first")
        return self._batch

    def query_positions(self) -> Array:
        """The positions of the new tokens in their sequences, of type int32."""
        self._current()
        return self._positions.astype(np.int32)

    def commit_accepted_token_tree_nodes(self, seq_ids: Sizes[int], leaves: Sizes[int]) -> None:
        """Keeps the path to one token of each token tree, given as its index in the tree, or no token for -1."""
        self._idle("commit tokens")
        if len(seq_ids) != len(leaves):
            raise ValueError(f"{len(seq_ids)} sequences, but {len(leaves)} accepted tokens")
        for seq_id, leaf in zip(seq_ids, leaves, strict=True):
            tree = self._trees.get(int(seq_id))
            if tree is None or tree.parents is None:
                raise ValueError(
                    f"sequence {seq_id} has no token tree: pass parents to begin_forward to add a tree"
                )
            if not -1 <= leaf < tree.count:
                raise ValueError(f"the token tree of sequence {seq_id} has {tree.count} tokens, so {leaf} is no token of it")
            path = []
            while leaf >= 0:
                path.append(int(leaf))
                leaf = int(tree.parents[leaf])
            self._keep_path(tree, path[::-1])
            del self._trees[int(seq_id)]

    def _keep_path(self, tree: _Appended, path: list[int]) -> None:
        sequence = tree.sequence
        for layer in range(self.config.layers):
            keys, values = sequence.read(layer)
            first = keys.shape[0] - tree.count
            chosen = [first + i for i in path]
            sequence.write(layer, tree.start, keys[chosen], values[chosen])
        sequence.truncate(tree.start + len(path))
        if self.config.sliding_layers is None:
            sequence.discard_invisible()

    # --- attention --------------------------------------------------------------------------------

    def attention_with_fused_qkv(self, layer: int, scale: float, qkv: Array) -> Array:
        """Stores the keys and values of the new tokens in a layer, and computes their attention to all tokens of their sequences.

        ``qkv`` has the shape ``(tokens, query_heads + 2 * kv_heads, head_dim)``: queries, keys and values, to which rotary
        embeddings are applied. The result has the shape ``(tokens, query_heads, head_dim)`` and the type of the cache.
        """
        config, batch = self.config, self._current()
        heads, kv_heads = config.query_heads, config.kv_heads
        if config.key_dim != config.value_dim:
            sizes = f"keys have {config.key_dim} and values {config.value_dim}"
            raise ValueError(f"fused queries, keys and values require one head size, but {sizes}")
        self._check_rows("qkv", qkv, (heads + 2 * kv_heads, config.key_dim))
        query, key, value = np.split(qkv.astype(config.dtype, copy=False), [heads, heads + kv_heads], axis=1)
        if self.rotary is not None and self._angles is not None:
            query, key = self.rotary.rotate(query, self._angles), self.rotary.rotate(key, self._angles)
        result = np.empty((qkv.shape[0], heads, config.value_dim), config.dtype)
        for appended in batch:
            rows = appended.rows
            appended.sequence.write(self._layer(layer), appended.start, key[rows], value[rows])
            keys, values = appended.sequence.read(layer)
            result[rows] = attend(query[rows], keys, values, scale, self._visible(appended, layer))
        return result

    def self_attention(self, layer: int, scale: float, query: Array, key: Array, value: Array) -> tuple[Array, Array]:
        """The causal attention of the new tokens to the new tokens of their sequences, without the stored ones. Takes and returns
        arrays as :func:`attend_with_logarithms` does. Nothing is stored."""
        self._layer(layer)
        batch = self._current()
        for name, array in (("query", query), ("key", key), ("value", value)):
            self._check_rows(name, array, array.shape[1:])
        result = np.empty((query.shape[0], query.shape[1], value.shape[2]), query.dtype)
        logarithms = np.empty(query.shape[:2], np.float32)
        for appended in batch:
            rows = appended.rows
            visible = np.tri(appended.count, dtype=bool) if appended.parents is None else appended.ancestors()
            result[rows], logarithms[rows] = attend_with_logarithms(query[rows], key[rows], value[rows], scale, visible)
        return result, logarithms

    def cross_attention(self, layer: int, scale: float, query: Array) -> tuple[Array, Array]:
        """The attention of the new tokens to the stored tokens before them, without the new ones."""
        batch = self._current()
        self._check_rows("query", query, (self.config.query_heads, self.config.key_dim))
        result = np.empty((query.shape[0], query.shape[1], self.config.value_dim), query.dtype)
        logarithms = np.empty(query.shape[:2], np.float32)
        for appended in batch:
            keys, values = appended.sequence.read(self._layer(layer), appended.start)
            rows, visible = appended.rows, self._visible(appended, layer)
            stored = np.ones((appended.count, keys.shape[0]), bool) if visible is None else visible[:, : keys.shape[0]]
            result[rows], logarithms[rows] = attend_with_logarithms(query[rows], keys, values, scale, stored)
        return result, logarithms

    merge_attention = staticmethod(merge)

    def _layer(self, layer: int) -> int:
        if not 0 <= layer < self.config.layers:
            raise ValueError(f"the KV cache has {self.config.layers} layers, but layer {layer} is requested")
        return layer

    def _check_rows(self, name: str, array: Array, unit: tuple[int, ...]) -> None:
        expected = (self._positions.shape[0], *unit)
        if array.shape != expected:
            raise ValueError(f"'{name}' must have the shape {expected} in this forward pass, but has {array.shape}")

    def _visible(self, appended: _Appended, layer: int) -> Array | None:
        """Which stored tokens each new token attends to, or ``None`` for all up to the token itself."""
        sequence = appended.sequence
        sliding = self.config.sliding_layers is None or layer in self.config.sliding_layers
        window = sequence.window if sliding else None
        if appended.parents is None and (window is None or sequence.length <= window):
            return None
        queries, keys = appended.positions()[:, None], sequence.positions()[None]
        visible = keys <= queries
        if window is not None:
            visible &= (keys > queries - window) | (keys < sequence.sinks)
        if appended.parents is not None:
            visible[:, keys.shape[1] - appended.count :] = appended.ancestors()
        return visible

    def stored(self, seq_id: int, layer: int, start: int, end: int) -> tuple[Array, Array]:
        """The keys and values of the tokens from ``start`` to ``end`` (exclusive) in a layer. Raises ``ValueError`` if a token
        is not stored."""
        sequence = self.sequence(seq_id)
        positions = sequence.positions()
        chosen = (positions >= start) & (positions < end)
        if not 0 <= start <= end or int(chosen.sum()) != end - start:
            raise ValueError(f"tokens {start} to {end} of sequence {seq_id} are not all stored: it has {sequence.length} tokens")
        keys, values = sequence.read(self._layer(layer))
        return keys[chosen], values[chosen]


__all__ = ["CacheConfig", "PagedKVCache"]
