"""A sequence of tokens whose keys and values are stored in pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.runtime.kv_cache.pages import Page, PagePool


class Sequence:
    """The pages of a sequence. Page ``i`` holds the tokens from ``i * page_size``. With a sliding window, pages of tokens that no
    later token attends to are missing.

    ``window`` is the number of tokens that a token attends to, including itself, or ``None`` for all. The first ``sinks``
    tokens stay visible to all tokens.
    """

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self._pages: dict[int, Page] = {}
        self.length = 0
        self.window: int | None = None
        self.sinks = 0

    def pages_to_append(self, count: int) -> tuple[int, list[Page]]:
        """The number of new pages that :meth:`append` of ``count`` tokens needs, and the shared pages to which it writes."""
        pages = [self._pages.get(index) for index in self._page_range(self.length, self.length + count)]
        return pages.count(None), [page for page in pages if page is not None and page.users > 1]

    def append(self, count: int) -> None:
        """Adds tokens, whose keys and values are set later. Raises ``MemoryError`` if there are not enough pages; the sequence then
        is unchanged."""
        try:
            for index in self._page_range(self.length, self.length + count):
                page = self._pages.get(index)
                self._pages[index] = self._pool.allocate() if page is None else self._pool.writable(page)
        except MemoryError:
            self.remove_after(self.length)
            raise
        self.length += count

    def _page_range(self, start: int, end: int) -> range:
        """The indices of the pages of tokens ``start`` to ``end`` (exclusive)."""
        size = self._pool.page_size
        return range(start // size, -(-end // size)) if end > start else range(0)

    def write(self, layer: int, start: int, keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
        """Sets the keys and values of consecutive tokens in a layer: arrays of shape ``(tokens, kv_heads, head_dim)``."""
        size, done = self._pool.page_size, 0
        while done < keys.shape[0]:
            index, offset = divmod(start + done, size)
            count = min(size - offset, keys.shape[0] - done)
            page = self._pages[index]
            page.keys[layer, offset : offset + count] = keys[done : done + count]
            page.values[layer, offset : offset + count] = values[done : done + count]
            done += count

    def read(self, layer: int, length: int | None = None) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The keys and values in a layer of all stored tokens, in order, or of those before position ``length``."""
        end = self.length if length is None else length
        size = self._pool.page_size
        pages = [(self._pages[i], min(size, end - i * size)) for i in sorted(self._pages) if i * size < end]
        if not pages:
            return self._pool.no_tokens()
        if len(pages) == 1:
            page, count = pages[0]
            return page.keys[layer, :count], page.values[layer, :count]
        keys = np.concatenate([page.keys[layer, :count] for page, count in pages])
        return keys, np.concatenate([page.values[layer, :count] for page, count in pages])

    def positions(self, length: int | None = None) -> np.ndarray[Any, Any]:
        """The positions of the tokens that :meth:`read` returns."""
        end = self.length if length is None else length
        size = self._pool.page_size
        if len(self._pages) * size >= end:
            return np.arange(end)
        parts = [np.arange(i * size, min((i + 1) * size, end)) for i in sorted(self._pages) if i * size < end]
        return np.concatenate(parts) if parts else np.arange(0)

    def fork(self, length: int) -> Sequence:
        """Returns a sequence of the first ``length`` tokens, which shares their pages. Raises ``ValueError`` if the sliding
        window has discarded one of the tokens that the new sequence would attend to."""
        self._require(length, f"cannot fork at position {length}")
        child = Sequence(self._pool)
        child.length, child.window, child.sinks = length, self.window, self.sinks
        child._pages = {i: self._pool.share(self._pages[i]) for i in self._page_range(0, length) if i in self._pages}
        return child

    def truncate(self, length: int) -> None:
        """Removes the tokens from position ``length``. Raises ``ValueError`` as :meth:`fork` does."""
        self._require(length, f"cannot remove the last {self.length - length} tokens")
        self.remove_after(length)

    def remove_after(self, length: int) -> None:
        """Removes the tokens from position ``length``, without the check of :meth:`truncate`."""
        keep = self._page_range(0, length)
        for index in [i for i in self._pages if i not in keep]:
            self._pool.release(self._pages.pop(index))
        self.length = length

    def _require(self, length: int, action: str) -> None:
        needed = [*self._page_range(0, min(self.sinks, length) if self.window is not None else length)]
        if self.window is not None:
            needed += self._page_range(max(0, length - self.window + 1), length)
        if any(index not in self._pages for index in needed):
            raise ValueError(f"{action}: the sliding window has discarded tokens that would be visible again")

    def discard_invisible(self) -> None:
        """Releases the pages whose tokens no later token attends to."""
        if self.window is None:
            return
        size = self._pool.page_size
        visible = self.length - self.window + 1
        for index in [i for i in self._pages if (i + 1) * size <= visible and i * size >= self.sinks]:
            self._pool.release(self._pages.pop(index))

    def release(self) -> None:
        """Releases all pages."""
        for page in self._pages.values():
            self._pool.release(page)
        self._pages = {}
        self.length = 0


__all__ = ["Sequence"]
