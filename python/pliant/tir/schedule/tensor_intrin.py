"""Tensor intrinsics: computations on tiles of fixed size, with implementations that replace them."""

from __future__ import annotations

from pliant import _core
from pliant._core import PrimFunc

__all__ = ["TensorIntrin"]

_registered: dict[str, TensorIntrin] = {}


class TensorIntrin:
    """A computation on tiles of fixed size. :meth:`Schedule.tensorize` replaces loops that compute the same as the description
    ``desc`` by the implementation ``impl``. Both are loop functions with the same parameters: tensors with constant sizes.

    The description updates its result: its blocks have no ``T.init``. The implementation may declare symbolic strides and offsets of
    its parameters (``strides`` and ``elem_offset`` of ``T.match_buffer``), which become those of the tile. Nothing checks that the
    implementation computes the same as the description.
    """

    def __init__(self, name: str, desc: PrimFunc, impl: PrimFunc) -> None:
        _core.check_tensor_intrin(name, desc, impl)
        self.name = name
        self.desc = desc
        self.impl = impl

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """Registers an intrinsic under a name, and returns it.

        Raises ``ScheduleError`` if the parameters of the two functions differ, and ``ValueError`` if the name is registered already,
        unless ``override`` is set.
        """
        if name in _registered and not override:
            raise ValueError(f"a tensor intrinsic named {name!r} is registered already; pass override=True to replace it")
        _registered[name] = TensorIntrin(name, desc, impl)
        return _registered[name]

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """Returns the intrinsic with a name. If there is none, returns ``None`` if ``allow_missing`` is set, and raises ``ValueError``
        otherwise.
        """
        found = _registered.get(name)
        if found is None and not allow_missing:
            known = ", ".join(map(repr, sorted(_registered))) or "none"
            raise ValueError(f"no tensor intrinsic named {name!r} is registered; the registered ones are: {known}")
        return found

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name!r})"
