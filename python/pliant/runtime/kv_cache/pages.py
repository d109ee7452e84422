"""Pages: blocks of memory for the keys and values of a fixed number of tokens, which sequences share."""

from __future__ import annotations

from typing import Any

import numpy as np


class Page:
    """The keys and values of up to ``page_size`` consecutive tokens in all layers: two arrays of shape ``(layers, page_size,
    kv_heads, head_dim)``. ``users`` is the number of sequences that refer to the page."""

    __slots__ = ("keys", "users", "values")

    def __init__(self, keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
        self.keys = keys
        self.values = values
        self.users = 1


class PagePool:
    """Allocates pages. A page takes memory only while a sequence refers to it. At most ``max_pages`` pages exist at a time."""

    def __init__(
        self, max_pages: int, layers: int, page_size: int, kv_heads: int, key_dim: int, value_dim: int, dtype: np.dtype[Any]
    ) -> None:
        self.max_pages = max_pages
        self.page_size = page_size
        self.live = 0
        self._key_shape = (layers, page_size, kv_heads, key_dim)
        self._value_shape = (layers, page_size, kv_heads, value_dim)
        self._dtype = dtype

    def needed(self, new: int, shared: list[Page]) -> int:
        """The number of pages that are allocated for ``new`` pages and for writes to shared pages, in a list with one entry per
        user that writes. The last user of a page does not copy it."""
        writers: dict[int, int] = {}
        for page in shared:
            writers[id(page)] = writers.get(id(page), 0) + 1
        users = {id(page): page.users for page in shared}
        return new + sum(min(count, users[page] - 1) for page, count in writers.items())

    @property
    def available(self) -> int:
        """The number of pages that can be allocated."""
        return self.max_pages - self.live

    def no_tokens(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The keys and values of no tokens in a layer."""
        return np.empty((0, *self._key_shape[2:]), self._dtype), np.empty((0, *self._value_shape[2:]), self._dtype)

    @property
    def held_bytes(self) -> int:
        """The memory of all pages."""
        elements = int(np.prod(self._key_shape)) + int(np.prod(self._value_shape))
        return self.live * elements * self._dtype.itemsize

    def allocate(self) -> Page:
        """Returns a new page with one user. Raises ``MemoryError`` if all pages are in use."""
        if self.live >= self.max_pages:
            raise MemoryError(f"all {self.max_pages} pages of the KV cache are in use")
        self.live += 1
        return Page(np.empty(self._key_shape, self._dtype), np.empty(self._value_shape, self._dtype))

    def share(self, page: Page) -> Page:
        """Adds a user to a page and returns it."""
        page.users += 1
        return page

    def release(self, page: Page) -> None:
        """Removes a user of a page. The memory of a page without users is freed."""
        page.users -= 1
        if page.users == 0:
            self.live -= 1

    def writable(self, page: Page) -> Page:
        """Returns the page itself if it has one user. Otherwise removes the user and returns a copy."""
        if page.users == 1:
            return page
        copy = self.allocate()
        copy.keys[...] = page.keys
        copy.values[...] = page.values
        self.release(page)
        return copy


__all__ = ["Page", "PagePool"]
