"""The classes of the nn front end: tensors, parameters, effects, and the base class of modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pliant import _core
from pliant._core import IntImm, IRModule, NDArray, PrimExpr
from pliant._core import Var as TirVar
from pliant.relax.block_builder import BlockBuilder
from pliant.relax.frontend.nn._tensor_operators import TensorOperators
from pliant.relax.frontend.nn.subroutine import SubroutineMixin

if TYPE_CHECKING:
    import os

    from pliant._core import Device
    from pliant._core.relax import Expr, Var
    from pliant.relax.frontend.nn import extern
    from pliant.transform import Pass

_relax = _core.relax
_default_dtype = "float32"


def get_default_dtype() -> str:
    """Returns the data type of parameters that are created without one. It is float32 initially."""
    return _default_dtype


def set_default_dtype(dtype: str) -> None:
    """Sets the data type of parameters that are created without one."""
    global _default_dtype
    _default_dtype = str(dtype)


def current_builder() -> BlockBuilder:
    """Returns the block builder of the method that is being exported.

    Raises ``RuntimeError`` outside of an export.
    """
    builder = BlockBuilder.current()
    if builder is None:
        raise RuntimeError(
            "operators of nn run while a method is exported: call export_tvm or jit of the module, "
            "or open a function with 'with bb.function(...)'"
        )
    return builder


class Tensor(TensorOperators):
    """A tensor of the method that is being exported. It has no elements: operators on it emit bindings. Its rank, its data type and
    its dims are known, and the dims may be symbolic.

    Raises ``TypeError`` if ``_expr`` is not a tensor of known shape.
    """

    _expr: Expr

    def __init__(self, *, _expr: Expr) -> None:
        info = _expr.struct_info_
        if not isinstance(info, _relax.TensorStructInfo) or not isinstance(info.shape, _relax.ShapeExpr):
            raise TypeError(f"nn.Tensor requires a tensor of known shape, but the expression has the type {info}")
        self._expr = _expr

    @staticmethod
    def from_const(data: Any) -> Tensor:
        """Creates a constant from a number, a list or an array."""
        return Tensor(_expr=_relax.relax_const(data))

    @staticmethod
    def from_scalar(data: int | float, dtype: str) -> Tensor:
        """Creates a constant without dims."""
        return Tensor(_expr=_relax.relax_const(data, dtype))

    @staticmethod
    def from_struct_info(struct_info: Any, name: str = "tensor") -> Tensor:
        """Creates a placeholder of a type."""
        return Tensor(_expr=_relax.Var(name, struct_info))

    @staticmethod
    def placeholder(shape: Sequence[int | str | PrimExpr], dtype: str, name: str = "tensor") -> Tensor:
        """Creates a placeholder. A dim that is a string is a new size variable; equal strings in one shape are one variable.

        Raises ``TypeError`` for a dim that is neither a size nor a string, and ``ShapeError`` for a negative size.
        """
        symbols: dict[str, TirVar] = {}
        dims: list[int | PrimExpr] = []
        for dim in shape:
            if isinstance(dim, str):
                dims.append(symbols.setdefault(dim, TirVar(dim, "int64")))
            elif isinstance(dim, PrimExpr) and not isinstance(dim, IntImm):
                dims.append(dim)
            elif isinstance(dim, int | np.integer | IntImm):
                dims.append(int(dim))
            else:
                raise TypeError(f"'{name}': a dim must be an int, a string or a tir expression, got {dim!r} in {list(shape)}")
        return Tensor(_expr=_relax.Var(name, _relax.TensorStructInfo(dims, dtype)))

    @property
    def shape(self) -> list[Any]:
        """The dims: ints, and ``tir`` expressions for symbolic sizes."""
        return [int(dim) if isinstance(dim, IntImm) else dim for dim in self._expr.struct_info.shape.values]

    @property
    def ndim(self) -> int:
        """The rank."""
        return int(self._expr.struct_info.ndim)

    @property
    def dtype(self) -> str:
        """The data type of the elements."""
        return str(self._expr.struct_info.dtype)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.shape}, "{self.dtype}")'


class Parameter(Tensor):
    """A weight of a module. Its elements may be set (``param.data = array``) before or after the export."""

    _data: NDArray | None

    def __init__(self, shape: Sequence[int | str | PrimExpr], dtype: str | None = None) -> None:
        super().__init__(_expr=Tensor.placeholder(shape, dtype or get_default_dtype(), name="param")._expr)
        self._data = None
        self.attrs: OrderedDict[str, Any] = OrderedDict()

    @property
    def data(self) -> NDArray | None:
        """The elements, or ``None`` if they are not set.

        Accepts an ``NDArray``, a NumPy array, which is copied, or any DLPack tensor, such as one of PyTorch, which is shared.
        Raises ``ValueError`` for another shape or data type, and ``TypeError`` for other objects.
        """
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if data is None:
            self._data = None
            return
        array = as_ndarray(data)
        if problem := self.mismatch(array):
            raise ValueError(f"the parameter {problem}")
        self._data = array

    def mismatch(self, array: NDArray) -> str | None:
        """Describes how an array differs from the shape and data type of this parameter, or returns ``None`` if it fits. A symbolic
        dim fits any size."""
        fits = len(array.shape) == self.ndim and all(
            not isinstance(dim, int) or dim == size for dim, size in zip(self.shape, array.shape, strict=False)
        )
        if not fits:
            dims = ", ".join(str(dim) for dim in self.shape)
            return f"has the shape ({dims}), but the array has the shape {tuple(array.shape)}"
        if array.dtype != self.dtype:
            return f"has the data type {self.dtype}, but the array has {array.dtype}"
        return None

    def to(self, dtype: str | None = None) -> None:
        """Changes the data type. Raises ``ValueError`` if the elements are already set."""
        if dtype is None:
            return
        if self._data is not None:
            raise ValueError(
                f"cannot change the data type of a parameter from {self.dtype} to {dtype}, because its elements are set; "
                "call to() before loading the parameters"
            )
        self._expr = Tensor.placeholder(self.shape, dtype, name="param")._expr


class Object:
    """A value of the method that is being exported that is not a tensor, such as a KV cache."""

    _expr: Expr

    def __init__(self, *, _expr: Expr, _name: str) -> None:
        if not isinstance(_expr, _relax.Var):
            _expr = current_builder().emit(_expr, _name)
        self._expr = _expr
        if not isinstance(_expr.struct_info_, _relax.ObjectStructInfo):
            raise TypeError(f"nn.Object '{_name}' requires a value of the type R.Object, not {_expr.struct_info_}")


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


def wrap_nested(expr: Expr, name: str) -> Any:
    """Binds an expression to a variable and returns it as an ``nn.Tensor``, or as a tuple of tensors.

    Raises ``TypeError`` if the type of the expression contains other values.
    """
    if not isinstance(expr, _relax.DataflowVar):
        expr = current_builder().emit(expr, name)
    info = expr.struct_info_
    if isinstance(info, _relax.TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, _relax.TupleStructInfo):
        return tuple(wrap_nested(_relax.TupleGetItem(expr, i), f"{name}.{i}") for i in range(len(info.fields)))
    raise TypeError(f"'{name}' must be a tensor or a tuple of tensors, but has the type {info}")


def as_ndarray(data: Any) -> NDArray:
    """Converts an array to an ``NDArray``. NumPy arrays are copied; arrays of other libraries are shared if possible.

    Raises ``TypeError`` for other objects.
    """
    if isinstance(data, NDArray):
        return data
    if isinstance(data, np.ndarray):
        return _core.array(data)
    if hasattr(data, "__dlpack__"):
        tensor = data.detach() if hasattr(data, "detach") else data
        return _core.from_dlpack(tensor if not hasattr(tensor, "contiguous") else tensor.contiguous())
    raise TypeError(f"expected an array of NumPy, PyTorch or Pliant, got {type(data).__name__}")


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
    "find_attributes",
    "get_default_dtype",
    "set_default_dtype",
    "wrap_nested",
]
