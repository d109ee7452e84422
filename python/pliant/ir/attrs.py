"""The attributes of calls, functions and modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Attrs", "DictAttrs"]


def _refused(name: str) -> Callable[..., NoReturn]:
    def method(self: Attrs, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError(
            "attributes cannot be changed in place "
            '(help: func.with_attr("name", value) returns a function with the attribute, relax.Call(op, args, attrs) creates a call)'
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Raises ``TypeError``, because attributes are immutable."
    return method


class AttrInt(int):
    """An integer attribute. It is an ``int`` that also has the properties of TVM's ``IntImm``."""

    __slots__ = ()
    dtype = "int64"

    @property
    def value(self) -> int:
        """The number as a plain ``int``."""
        return int(self)


def _with_int_properties(value: Any) -> Any:
    if type(value) is int:
        return AttrInt(value)
    return [_with_int_properties(item) for item in value] if type(value) is list else value


class Attrs(dict[str, Any]):
    """Attributes by name, in an immutable dict: ``call.attrs.axes``, ``func.attrs["Composite"]``.
    Methods that would change the dict raise ``TypeError``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return _with_int_properties(self[name])
        except KeyError:
            pass
        names = f"there are: {', '.join(self)}" if self else "there are none"
        raise AttributeError(f"the call or function has no attribute '{name}' ({names})", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __reduce__(self) -> tuple[type[Attrs], tuple[dict[str, Any]]]:
        return (Attrs, (dict(self),))

    def get_int(self, key: str) -> int:
        """The value of an attribute as an int. Raises ``AttributeError`` if there is no such
        attribute."""
        return int(getattr(self, key))

    def get_str(self, key: str) -> str:
        """The value of an attribute as a string. Raises ``AttributeError`` if there is no such
        attribute."""
        return str(getattr(self, key))

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """The value of an attribute, a list of ints, as a tuple. Raises ``AttributeError`` if there
        is no such attribute."""
        return tuple(int(value) for value in getattr(self, key))

    __setitem__ = _refused("__setitem__")
    __delitem__ = _refused("__delitem__")
    __setattr__ = _refused("__setattr__")
    __delattr__ = _refused("__delattr__")
    __ior__ = _refused("__ior__")  # type: ignore[assignment]
    clear = _refused("clear")
    pop = _refused("pop")
    popitem = _refused("popitem")
    setdefault = _refused("setdefault")
    update = _refused("update")


DictAttrs = Attrs
