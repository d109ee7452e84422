"""A list of distinct ints with fast insertion, removal and comparison of positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# The maximum length of a chunk. Chunks are scanned, so they must be short.
_MAX_CHUNK_LENGTH = 512


class _Chunk:
    """A contiguous part of the list that an ``Order`` stores, and the position of the part in the list of parts."""

    __slots__ = ("index", "items")

    def __init__(self, index: int, items: list[int]) -> None:
        self.index = index
        self.items = items


class Order:
    """A list of distinct ints, stored in chunks, so that an operation does not scan the whole
    list."""

    def __init__(self, items: Iterable[int] = ()) -> None:
        items = list(items)
        pieces = [items[i : i + _MAX_CHUNK_LENGTH] for i in range(0, len(items), _MAX_CHUNK_LENGTH)] or [[]]
        self._chunks = [_Chunk(index, piece) for index, piece in enumerate(pieces)]
        self._chunk_of = {item: chunk for chunk in self._chunks for item in chunk.items}

    def __iter__(self) -> Iterator[int]:
        for chunk in self._chunks:
            yield from chunk.items

    def position(self, item: int) -> tuple[int, int]:
        """Returns a sort key for an element: keys have the order of the elements in the list."""
        chunk = self._chunk_of[item]
        return chunk.index, chunk.items.index(item)

    def insert_after(self, before: int | None, item: int) -> None:
        """Inserts ``item`` after the element ``before``, or at the beginning if ``before`` is
        ``None``."""
        chunk = self._chunks[0] if before is None else self._chunk_of[before]
        chunk.items.insert(0 if before is None else chunk.items.index(before) + 1, item)
        self._chunk_of[item] = chunk
        if len(chunk.items) > _MAX_CHUNK_LENGTH:
            rest = _Chunk(0, chunk.items[_MAX_CHUNK_LENGTH // 2 :])
            del chunk.items[_MAX_CHUNK_LENGTH // 2 :]
            self._chunk_of.update(dict.fromkeys(rest.items, rest))
            self._chunks.insert(chunk.index + 1, rest)
            for index, later in enumerate(self._chunks):
                later.index = index

    def remove(self, item: int) -> None:
        """Removes an element."""
        self._chunk_of.pop(item).items.remove(item)
