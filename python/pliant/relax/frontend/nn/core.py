"""The classes of the nn front end: tensors, parameters, effects, and the base class of modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from pliant.relax.frontend.nn._tensor import (
    Object,
    Parameter,
    Tensor,
    as_ndarray,
    current_builder,
    get_default_dtype,
    set_default_dtype,
    wrap_nested,
)
from pliant.relax.frontend.nn.subroutine import SubroutineMixin

if TYPE_CHECKING:
    import os

    from pliant._core import Device, IRModule, NDArray
    from pliant._core.relax import Var
    from pliant.relax.block_builder import BlockBuilder
    from pliant.relax.frontend.nn import extern
    from pliant.transform import Pass


class Effect:
    """A side effect as a value: methods take the state of all effects as additional inputs, and return the new state as
    additional results."""

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        """Emits the initial state."""
        raise NotImplementedError

    def create(self, name_hint: str) -> list[Var]:
        """Creates the parameters of a method that hold the state."""
        raise NotImplementedError

    def set_state(self, state_vars: list[Var]) -> None:
        """Sets the variables that hold the state."""
        raise NotImplementedError

    def finalize(self) -> list[Var]:
        """Returns the variables that hold the state at the end of a method, and forgets them."""
        raise NotImplementedError

    def to(self, dtype: str | None = None) -> None:
        """Changes the data type of the state, if it has one."""


class StateDictError(KeyError, ValueError):
    """The parameters of a module and the given ones differ in their names, shapes or data types."""

    def __str__(self) -> str:
        return str(self.args[0])


class Module(SubroutineMixin):
    """The base class of layers and models. A subclass creates parameters and other modules as attributes, and defines ``forward``
    and other methods that :meth:`export_tvm` turns into functions."""

    def _children(self) -> Iterator[tuple[str, Any]]:
        """Yields the names and values in which parameters, effects and modules are searched."""
        yield from self.__dict__.items()

    def _set_child(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Yields all parameters with their names, such as ``layers.0.weight``, in the order of their creation."""
        yield from find_attributes(self, prefix, lambda value: isinstance(value, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """Yields all parameters."""
        for _, param in self.named_parameters():
            yield param

    def state_dict(
        self, *, prefix: str = "", destination: dict[str, Parameter] | None = None
    ) -> dict[str, Parameter]:
        """Returns all parameters by name, in ``destination`` if that is given."""
        if destination is None:
            destination = OrderedDict()
        destination.update(self.named_parameters(prefix))
        return destination

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Sets the elements of the parameters from a dict of parameters or arrays. Returns the names of the parameters that the
        dict lacks, and the names in the dict that are no parameters.

        If the dict does not fit, no parameter is changed, and a ``StateDictError`` (a ``KeyError`` and a ``ValueError``) names all
        differences: arrays of another shape or data type, and, unless ``strict`` is false, missing and unexpected names.
        """
        params = self.state_dict()
        arrays: dict[str, NDArray] = {}
        problems: list[str] = []
        for name in params.keys() & state_dict.keys():
            value = state_dict[name]
            if isinstance(value, Parameter):
                value = value.data
            if value is None:
                problems.append(f"'{name}' has no elements in the given dict")
                continue
            arrays[name] = as_ndarray(value)
            if problem := params[name].mismatch(arrays[name]):
                problems.append(f"'{name}' {problem}")
        loaded = {id(params[name]) for name in params.keys() & state_dict.keys()}
        missing = [name for name, param in params.items() if id(param) not in loaded]
        unexpected = [name for name in state_dict if name not in params]
        if strict and missing:
            problems.append(f"missing: {', '.join(missing)}")
        if strict and unexpected:
            problems.append(f"unexpected: {', '.join(unexpected)}")
        if problems:
            raise StateDictError(f"the parameters do not fit {type(self).__name__}: {'; '.join(sorted(problems))}")
        for name, array in arrays.items():
            params[name].data = array
        return missing, unexpected

    def load_safetensors(
        self, source: str | os.PathLike[str] | Mapping[str, Any], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Sets the elements of the parameters from a file in the safetensors format, from the index file of several
        (``model.safetensors.index.json``), or from a dict of arrays. The names in the file are those of
        :meth:`named_parameters`. Files are mapped into memory and not copied.

        Returns and raises the same as :meth:`load_state_dict`. Raises ``ValueError`` for a damaged file.
        """
        from pliant.relax.frontend.nn._safetensors import load

        return self.load_state_dict(source if isinstance(source, Mapping) else load(source), strict)

    def save_safetensors(self, path: str | os.PathLike[str]) -> None:
        """Writes the elements of all parameters to a file in the safetensors format.

        Raises ``ValueError`` for a parameter without elements.
        """
        from pliant.relax.frontend.nn._safetensors import save

        save(self.state_dict(), path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls ``forward``. Raises ``NotImplementedError`` if the class does not define it."""
        forward = getattr(self, "forward", None)
        if forward is None:
            raise NotImplementedError(f"{type(self).__name__} does not define the method forward")
        return forward(*args, **kwargs)

    def to(self, dtype: str | None = None) -> None:
        """Changes the data type of all parameters and effects, and of ``self.dtype``."""
        for _, value in self._children():
            if isinstance(value, Module | Parameter | Effect):
                value.to(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Calls a function on every module inside this one, and last on this module, which is returned."""
        for _, value in self._children():
            if isinstance(value, Module):
                value.apply(function)
        function(self)
        return self

    def export_tvm(
        self, spec: Any, debug: bool = False, allow_extern: bool = False
    ) -> tuple[IRModule, list[tuple[str, Parameter]]] | tuple[IRModule, list[tuple[str, Parameter]], list[extern.ExternModule]]:
        """Exports methods of the module as functions of an ``IRModule``.

        ``spec`` maps the name of each method to the types of its arguments: ``{"forward": {"x": nn.spec.Tensor(["n", 4],
        "float32")}}``. A function takes the arguments, then the state of the effects, then the parameters. With ``debug``,
        methods may call ``nn.op.print_`` and ``nn.op.debug_func``. Returns the module and the parameters by name. With
        ``allow_extern``, also returns the external modules.

        Raises ``TypeError`` or ``ValueError`` for an invalid spec, and ``ValueError`` if the module uses external modules, unless
        ``allow_extern`` is set.
        """
        from pliant.relax.frontend.nn.exporter import Exporter
        from pliant.relax.frontend.nn.spec import ModuleSpec

        mod, params, extern_mods = Exporter(debug=debug).build(ModuleSpec.from_raw(spec, self))
        if allow_extern:
            return mod, params, extern_mods
        if extern_mods:
            raise ValueError("the module uses external modules: export it with allow_extern=True")
        return mod, params

    def jit(
        self,
        spec: Any,
        device: str | Device = "cpu",
        pipeline: str | Pass | None = "default_build",
        out_format: str = "torch",
        debug: bool = False,
        target: Any = None,
    ) -> Any:
        """Exports, compiles and loads the module. The result takes and returns tensors of PyTorch, or, with ``out_format="numpy"``,
        NumPy arrays: ``model.jit(spec)["forward"](x)``. The state of effects is stored in the result.

        ``pipeline`` is the pipeline of graph passes, as for ``relax.build``. Raises ``ValueError`` for an unknown
        ``out_format`` and for parameters without elements, and ``ModuleNotFoundError`` if PyTorch is required but not
        installed.
        """
        from pliant.relax.frontend.nn._compiled_module import compile_module

        return compile_module(self, spec, device, pipeline, out_format, debug, target)


def find_attributes(
    root: Module, prefix: str, condition: Callable[[Any], bool]
) -> Iterator[tuple[str, Any]]:
    """Yields the attributes of a module and of the modules inside it that satisfy a condition, with their names."""
    for name, value in root._children():
        if condition(value):
            yield prefix + name, value
        elif isinstance(value, Module):
            yield from find_attributes(value, f"{prefix}{name}.", condition)


# Defined last, because containers derive from Module.
from pliant.relax.frontend.nn._containers import (  # noqa: E402
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
)

__all__ = [
    "Effect",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Object",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "StateDictError",
    "Tensor",
    "as_ndarray",
    "current_builder",
    "find_attributes",
    "get_default_dtype",
    "set_default_dtype",
    "wrap_nested",
]
