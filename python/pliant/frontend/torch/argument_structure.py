"""Binds the arguments of a call to the structure of arguments with which a module was exported."""

from __future__ import annotations

from typing import Any

from torch.export import ExportedProgram
from torch.utils import _pytree as pytree


class ArgumentStructure:
    """The structure of the arguments of an exported module: positional ones, keyword arguments, and the containers in them."""

    def __init__(self, program: ExportedProgram) -> None:
        self._spec = program.call_spec.in_spec
        positional, named = self._spec.children()
        self._count = positional.num_children
        self._keywords = list(named.context)
        signature = program.module_call_graph[0].signature
        names = getattr(signature, "forward_arg_names", None) or []
        self._positional_names = list(names[: self._count])

    @property
    def is_flat(self) -> bool:
        """Whether all arguments are positional, and none contains others."""
        positional, _ = self._spec.children()
        return not self._keywords and all(child.is_leaf() for child in positional.children())

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Flattens the arguments of a call. As in calls of the module, arguments are passed by position or by keyword, and keyword
        arguments have any order.

        Raises ``TypeError`` if the structure differs from that of the exported module.
        """
        flat, spec = pytree.tree_flatten(self._bind(args, kwargs))
        if spec != self._spec:
            raise TypeError(
                "the arguments differ in structure from those with which the module was exported: "
                f"got {_call(spec)}, expected {_call(self._spec)}"
            )
        return flat

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Passes each argument as at export, by position or by keyword, if the names of the arguments are those at export."""
        names = [*self._positional_names, *self._keywords]
        if len(self._positional_names) != self._count or len(args) > len(names):
            return args, kwargs
        values = dict(zip(names, args, strict=False))
        if values.keys() & kwargs.keys():
            return args, kwargs
        values.update(kwargs)
        if values.keys() != set(names):
            return args, kwargs
        return tuple(values[n] for n in self._positional_names), {n: values[n] for n in self._keywords}


def _call(spec: pytree.TreeSpec) -> str:
    """The structure of arguments as a call: ``(*, [*, *], mask=*)``."""
    positional, named = spec.children()
    keywords = zip(named.context, named.children(), strict=True)
    return f"({', '.join([*map(_container, positional.children()), *(f'{name}={_container(child)}' for name, child in keywords)])})"


def _container(spec: pytree.TreeSpec) -> str:
    if spec.is_leaf():
        return "*"
    children = [_container(child) for child in spec.children()]
    if spec.type is dict:
        return f"{{{', '.join(f'{key!r}: {child}' for key, child in zip(spec.context, children, strict=True))}}}"
    if spec.type is list:
        return f"[{', '.join(children)}]"
    if spec.type is tuple:
        return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
    return f"{spec.type.__name__}({', '.join(children)})"
