"""A sequence of numbers in which a place is found, and one put after another, without a walk over all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# A walk over so many is cheap.
_LONGEST = 512


class _Chunk:
    """A piece of the sequence."""

    __slots__ = ("at", "items")

    def __init__(self, at: int, items: list[int]) -> None:
        self.at = at
        self.items = items


class Order:
    """Numbers, each once, in an order of their own."""

    def __init__(self, items: Iterable[int] = ()) -> None:
        items = list(items)
        pieces = [items[i : i + _LONGEST] for i in range(0, len(items), _LONGEST)] or [[]]
        self._chunks = [_Chunk(at, piece) for at, piece in enumerate(pieces)]
        self._chunk_of = {item: chunk for chunk in self._chunks for item in chunk.items}

    def __iter__(self) -> Iterator[int]:
        for chunk in self._chunks:
            yield from chunk.items

    def place(self, item: int) -> tuple[int, int]:
        """What compares as the places of two numbers do."""
        chunk = self._chunk_of[item]
        return chunk.at, chunk.items.index(item)

    def insert_after(self, before: int | None, item: int) -> None:
        """Puts a new number right after another, or first."""
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
        """Takes a number out."""
        self._chunk_of.pop(item).items.remove(item)
