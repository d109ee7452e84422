"""Modules that hold modules or parameters in a list or a dict."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Generic, TypeVar

from pliant.relax.frontend.nn.core import Module, Parameter

T = TypeVar("T")


class _List(Module, Generic[T]):
    """A list whose items have their indices as names."""

    _items: list[T]

    def _children(self) -> Iterator[tuple[str, Any]]:
        for index, item in enumerate(self._items):
            yield str(index), item

    def _set_child(self, name: str, value: Any) -> None:
        self._items[int(name)] = value

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __getitem__(self, idx: int) -> T:
        return self._items[idx]

    def __setitem__(self, idx: int, item: T) -> None:
        self._items[idx] = item

    def __len__(self) -> int:
        return len(self._items)

    def append(self, item: T) -> None:
        """Adds an item at the end."""
        self._items.append(item)

    def extend(self, items: Iterable[T]) -> None:
        """Adds items at the end."""
        self._items.extend(items)


class _Dict(Module, Generic[T]):
    """A dict whose items have their keys as names."""

    _items: dict[str, T]

    def _children(self) -> Iterator[tuple[str, Any]]:
        yield from self._items.items()

    def _set_child(self, name: str, value: Any) -> None:
        self._items[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __getitem__(self, key: str) -> T:
        return self._items[key]

    def __setitem__(self, key: str, item: T) -> None:
        self._items[key] = item

    def __delitem__(self, key: str) -> None:
        del self._items[key]

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def keys(self) -> KeysView[str]:
        """The keys, in order of insertion."""
        return self._items.keys()

    def values(self) -> ValuesView[T]:
        """The items, in order of insertion."""
        return self._items.values()

    def items(self) -> ItemsView[str, T]:
        """The pairs of key and item, in order of insertion."""
        return self._items.items()

    def get(self, key: str, default: T | None = None) -> T | None:
        """Returns the item of a key, or ``default`` if there is none."""
        return self._items.get(key, default)

    def update(self, items: Mapping[str, T]) -> None:
        """Adds the items of another dict."""
        self._items.update(items)

    def pop(self, key: str) -> T:
        """Removes the item of a key and returns it. Raises ``KeyError`` if there is none."""
        return self._items.pop(key)

    def clear(self) -> None:
        """Removes all items."""
        self._items.clear()


class ModuleList(_List[Module]):
    """A list of modules. Calling it applies them one after another. The modules have names such as ``layers.0``."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._items = list(modules)

    @property
    def modules(self) -> list[Module]:
        """The modules as a list."""
        return self._items

    def forward(self, x: Any) -> Any:
        """Applies the modules one after another."""
        for module in self._items:
            x = module(x)
        return x


class ModuleDict(_Dict[Module]):
    """A dict of modules. The modules have names such as ``blocks.attention``."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self._items = dict(modules or {})

    @property
    def modules(self) -> dict[str, Module]:
        """The modules as a dict."""
        return self._items


class ParameterList(_List[Parameter]):
    """A list of parameters. The parameters have names such as ``scales.0``."""

    def __init__(self, parameters: Iterable[Parameter] = ()) -> None:
        self._items = list(parameters)


class ParameterDict(_Dict[Parameter]):
    """A dict of parameters. The parameters have names such as ``scales.query``."""

    def __init__(self, parameters: Mapping[str, Parameter] | None = None) -> None:
        self._items = dict(parameters or {})


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList"]
