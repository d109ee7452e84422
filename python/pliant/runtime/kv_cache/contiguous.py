"""A cache of rows that grows at its end, and its packed functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant._core import NDArray


class ContiguousKVCache:
    """Rows of one shape and data type, such as the keys of all tokens. Rows are appended in place; the capacity doubles when it is
    exceeded."""

    def __init__(self, rows: np.ndarray[Any, Any], capacity: int, length: int) -> None:
        if not 0 <= length <= rows.shape[0]:
            raise ValueError(f"a KV cache cannot start with {length} of {rows.shape[0]} rows")
        self._rows = np.empty((max(capacity, length), *rows.shape[1:]), rows.dtype)
        self._rows[:length] = rows[:length]
        self.length = length
        # The position of the oldest row that is overwritten next, after the window is full.
        self._window_start = 0

    @property
    def capacity(self) -> int:
        """The number of rows for which memory is allocated."""
        return int(self._rows.shape[0])

    def view(self) -> np.ndarray[Any, Any]:
        """The rows, which share the memory of the cache."""
        return self._rows[: self.length]

    def append(self, rows: np.ndarray[Any, Any]) -> None:
        """Adds rows at the end. Raises ``ValueError`` for another row shape or data type."""
        rows = self._checked(rows)
        end = self.length + rows.shape[0]
        if end > self.capacity:
            grown = np.empty((max(end, 2 * self.capacity), *self._rows.shape[1:]), self._rows.dtype)
            grown[: self.length] = self.view()
            self._rows = grown
        self._rows[self.length : end] = rows
        self.length = end

    def _checked(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        unit = self._rows.shape[1:]
        if rows.shape == unit:
            rows = rows[None]
        if rows.shape[1:] != unit or rows.dtype != self._rows.dtype:
            raise ValueError(
                f"the KV cache has rows of shape {unit} and type {self._rows.dtype}, but the appended tensor has the shape "
                f"{rows.shape} and the type {rows.dtype}"
            )
        return rows

    def pop(self, count: int) -> None:
        """Removes rows from the end. Raises ``ValueError`` if there are fewer."""
        if not 0 <= count <= self.length:
            raise ValueError(f"cannot remove {count} rows from a KV cache with {self.length} rows")
        self.length -= count

    def clear(self) -> None:
        """Removes all rows. The memory is kept for later rows."""
        self.length = 0
        self._window_start = 0

    def append_in_window(self, rows: np.ndarray[Any, Any], window: int, sinks: int = 0) -> None:
        """Adds rows, of which at most ``window`` stay in the cache: after that, a row overwrites the oldest row except the first
        ``sinks``. So rows are not in the order of their tokens."""
        if not 0 <= sinks < window:
            raise ValueError(f"a window of {window} rows cannot keep {sinks} sinks")
        rows = self._checked(rows)
        fits = min(max(window - self.length, 0), rows.shape[0])
        self.append(rows[:fits])
        ring = window - sinks
        for row in rows[fits:]:
            self._rows[sinks + self._window_start % ring] = row
            self._window_start += 1


def attention_kv_cache_create(init_data: NDArray, reserve_shape: Sequence[int], init_fill_count: int = -1) -> ContiguousKVCache:
    """Creates a cache with memory for ``reserve_shape[0]`` rows, which starts with the first ``init_fill_count`` rows of
    ``init_data``, or with all if that is negative."""
    rows = init_data.numpy()
    shape = tuple(int(size) for size in reserve_shape)
    if rows.shape[1:] != shape[1:]:
        raise ValueError(f"the initial rows of a KV cache have the shape {rows.shape[1:]}, but {shape[1:]} is reserved")
    return ContiguousKVCache(rows, shape[0], rows.shape[0] if init_fill_count < 0 else init_fill_count)


def attention_kv_cache_create_multiple(
    init_data: NDArray, reserve_shape: Sequence[int], init_fill_count: int, num_caches: int
) -> tuple[ContiguousKVCache, ...]:
    """Creates several caches with equal contents."""
    return tuple(attention_kv_cache_create(init_data, reserve_shape, init_fill_count) for _ in range(num_caches))


def attention_kv_cache_update(cache: ContiguousKVCache, value: NDArray) -> ContiguousKVCache:
    """Replaces the rows of a cache."""
    cache.clear()
    cache.append(value.numpy())
    return cache


def attention_kv_cache_append(cache: ContiguousKVCache, value: NDArray) -> ContiguousKVCache:
    """Appends rows in place. Returns the cache."""
    cache.append(value.numpy())
    return cache


def attention_kv_cache_view(cache: ContiguousKVCache, shape: Sequence[int] | None = None) -> np.ndarray[Any, Any]:
    """Returns the rows of a cache, or the first ``shape[0]`` of them. Raises ``ValueError`` if there are fewer."""
    rows = cache.view()
    if shape is None:
        return rows
    dims = tuple(int(size) for size in shape)
    if dims[0] > rows.shape[0] or dims[1:] != rows.shape[1:]:
        raise ValueError(f"the KV cache has the shape {rows.shape}, but a view of shape {dims} is requested")
    return rows[: dims[0]]


def attention_kv_cache_array_popn(caches: Sequence[ContiguousKVCache], count: int) -> None:
    """Removes rows from the end of several caches."""
    for cache in caches:
        cache.pop(int(count))


def attention_kv_cache_array_clear(caches: Sequence[ContiguousKVCache]) -> None:
    """Removes all rows of several caches."""
    for cache in caches:
        cache.clear()


def attention_kv_cache_window_override(cache: ContiguousKVCache, value: NDArray, max_cache_size: int) -> ContiguousKVCache:
    """Appends rows to a sliding window, in place. Returns the cache."""
    cache.append_in_window(value.numpy(), int(max_cache_size))
    return cache


def attention_kv_cache_window_override_with_sinks(
    cache: ContiguousKVCache, value: NDArray, max_cache_size: int, num_attention_sinks: int
) -> ContiguousKVCache:
    """Appends rows to a sliding window that keeps the first rows, in place. Returns the cache."""
    cache.append_in_window(value.numpy(), int(max_cache_size), int(num_attention_sinks))
    return cache
