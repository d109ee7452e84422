"""A sequence of numbers with fast comparison of positions and fast insertion, without a scan of the
whole sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# The maximum length of a chunk, which is short enough to be scanned.
_LONGEST = 512


class _Chunk:
    """A contiguous part of the sequence."""

    __slots__ = ("at", "items")

    def __init__(self, at: int, items: list[int]) -> None:
        self.at = at
        self.items = items


class Order:
    """A sequence of distinct numbers."""

    def __init__(self, items: Iterable[int] = ()) -> None:
        items = list(items)
        pieces = [items[i : i + _LONGEST] for i in range(0, len(items), _LONGEST)] or [[]]
        self._chunks = [_Chunk(at, piece) for at, piece in enumerate(pieces)]
        self._chunk_of = {item: chunk for chunk in self._chunks for item in chunk.items}

    def __iter__(self) -> Iterator[int]:
        for chunk in self._chunks:
            yield from chunk.items

    def place(self, item: int) -> tuple[int, int]:
        """The position of a number as a key that can be compared."""
        chunk = self._chunk_of[item]
        return chunk.at, chunk.items.index(item)

    def insert_after(self, before: int | None, item: int) -> None:
        """Inserts a new number after another one, or at the beginning."""
        chunk = self._chunks[0] if before is None else self._chunk_of[before]
        chunk.items.insert(0 if before is None else chunk.items.index(before) + 1, item)
        self._chunk_of[item] = chunk
        if len(chunk.items) > _LONGEST:
            rest = _Chunk(0, chunk.items[_LONGEST // 2 :])
            del chunk.items[_LONGEST // 2 :]
            self._chunk_of.update(dict.fromkeys(rest.items, rest))
            self._chunks.insert(chunk.at + 1, rest)
            for at, later in enumerate(self._chunks):
                later.at = at

    def remove(self, item: int) -> None:
        """Removes a number."""
        self._chunk_of.pop(item).items.remove(item)
