"""Methods and properties of the classes of expressions and types that only combine other ones: TVM's names of 2022 and early
2023."""

from __future__ import annotations

from typing import Any

from pliant import _core

_relax = _core.relax


def _checked_type_or_none(self: Any) -> Any:
    """The type of the expression without sizes, or ``None`` if it is not known yet."""
    info = self.struct_info_
    return None if info is None else _relax.static_struct_info(info)


def _checked_type(self: Any) -> Any:
    """The type of the expression without sizes: its ``struct_info`` as TVM had it in 2022."""
    return _relax.static_struct_info(self.struct_info)


def _shape(self: Any) -> Any:
    """The shape in the type of the expression, or ``None`` if it is unknown."""
    info = self.struct_info_
    if isinstance(info, _relax.TupleStructInfo):
        shapes = [getattr(field, "shape", None) for field in info.fields]
        return None if None in shapes else _relax.Tuple(shapes)
    return getattr(info, "shape", None)


def _is_base_of(self: Any, derived: Any) -> bool:
    """Whether every value of the type ``derived`` has this type."""
    from pliant.relax.ty import is_base_of

    return is_base_of(self, derived)


def _arg_types(self: Any) -> Any:
    """The types of the parameters without sizes."""
    return None if self.params is None else tuple(_relax.static_struct_info(p) for p in self.params)


def _no_derive_func(self: Any) -> None:
    """Always ``None``: result types are not computed by functions."""
    return None


def _ret_type(self: Any) -> Any:
    """The type of the result without sizes."""
    return _relax.static_struct_info(self.ret)


def _ret_struct_info(self: Any) -> Any:
    """The type of the function's result, under its name in newer versions of TVM."""
    return self.ret_struct_info


def _type_of_body(self: Any) -> Any:
    """The type of the result of the sequence."""
    return self.body.struct_info


def _type_arguments(self: Any) -> Any:
    """The explicit types of the results, under their name in newer versions of TVM."""
    return self.sinfo_args


def _struct_info(self: Any) -> Any:
    """The type for which the value is checked, under its name in newer versions of TVM."""
    return self.struct_info


def _pattern(self: Any) -> Any:
    """The sizes for which the value is checked, under their name in 2022."""
    info = self.struct_info
    return info.values if isinstance(info, _relax.ShapeStructInfo) else info.shape.values


def _none(self: Any) -> None:
    """Always ``None``."""
    return None


def _jit(self: Any, **options: Any) -> Any:
    """The executable itself, whose code is compiled on loading. ``options`` are ignored."""
    return self


def _device(self: Any) -> Any:
    """The device, under its name in older versions of TVM."""
    return self.device


def _same_object(self: Any, other: object) -> bool:
    """Whether both are the same object."""
    return self is other


def _is_contiguous(self: Any) -> bool:
    """Whether the elements are in row-major order without gaps."""
    return bool(self.numpy().flags["C_CONTIGUOUS"])


def _to_dlpack(self: Any) -> Any:
    """Returns the tensor as a DLPack capsule, without a copy."""
    return self.__dlpack__()


def _astype(self: Any, dtype: str) -> Any:
    """Returns a copy with the elements converted to another data type."""
    from pliant.runtime import tensor

    return tensor(self.numpy().astype(dtype))


def _astext(self: Any, show_meta_data: bool = True) -> str:
    """Returns the module as script text, under the name of Relay's text form."""
    text: str = self.script(show_meta=show_meta_data)
    return text


def _type_annotation(self: Any) -> Any:
    """The type of the variable."""
    from pliant.ir import PrimType

    return PrimType(self.dtype)


def _executable_of(cls: Any, mod: Any) -> Any:
    """The constructor of TVM, which wraps a loaded module. Here, the loaded module is the executable."""
    if not isinstance(mod, cls):
        raise TypeError(f"Executable takes a loaded executable, not {type(mod).__name__}")
    return mod


def _itself(self: Any) -> Any:
    """The executable itself, for code that calls ``ex.mod.export_library``."""
    return self


def _node_script(self: Any, **options: Any) -> str:
    """Returns the node as script text, with the options of TVM's printer. Variables that the node does not define are declared
    in front of it."""
    from pliant.ir._script_text import node_script

    return node_script(self, **options)


def _show_node(self: Any, *args: Any, **options: Any) -> None:
    """Prints the node as script text."""
    print(_node_script(self))


def _with_options(script: Any, uses: str) -> Any:
    """Extends the method ``script`` of a class by the options of TVM's printer."""

    def with_options(self: Any, *, name: str | None = None, show_meta: bool = False, **options: Any) -> str:
        from pliant.ir._script_text import function_script

        text = script(self, name=name, show_meta=show_meta)
        return function_script(text, uses, **options)

    with_options.__name__ = "script"
    with_options.__doc__ = script.__doc__
    return with_options


_relax.SeqExpr.struct_info = property(_type_of_body)  # type: ignore[misc,assignment]
_NODES = (_relax.Expr, _relax.StructInfo, _relax.Binding, _relax.BindingBlock)
_ADDED: list[tuple[Any, str, Any]] = [
    (_relax.Expr, "checked_type", property(_checked_type)),
    (_relax.Expr, "checked_type_", property(_checked_type_or_none)),
    (_relax.Expr, "_checked_type_", property(_checked_type_or_none)),
    (_relax.Expr, "shape_", property(_shape)),
    (_relax.StructInfo, "is_base_of", _is_base_of),
    (_relax.FuncStructInfo, "arg_types", property(_arg_types)),
    (_relax.FuncStructInfo, "derive_func", property(_no_derive_func)),
    (_relax.FuncStructInfo, "ret_type", property(_ret_type)),
    (_relax.Call, "ty_args", property(_type_arguments)),
    (_relax.MatchCast, "ty", property(_struct_info)),
    (_relax.MatchCast, "pattern", property(_pattern)),
    (_relax.StructInfo, "span", property(_none)),
    (_relax.ExternFunc, "attrs", property(_none)),
    (_core.PrimFunc, "span", property(_none)),
    (_core.IRModule, "astext", _astext),
    (_core.Var, "type_annotation", property(_type_annotation)),
    (_core.NDArray, "ctx", property(_device)),
    (_core.NDArray, "same_as", _same_object),
    (_core.NDArray, "is_contiguous", _is_contiguous),
    (_core.NDArray, "to_dlpack", _to_dlpack),
    (_core.NDArray, "astype", _astype),
    (_core.Executable, "jit", _jit),
    (_core.Executable, "__new__", staticmethod(_executable_of)),
    (_core.Executable, "mod", property(_itself)),
    (_relax.Function, "ret_ty", property(_ret_struct_info)),
]
_ADDED += [(node, "script", _node_script) for node in _NODES]
_ADDED += [(node, "_relax_script", _node_script) for node in _NODES]
_ADDED += [(node, "show", _show_node) for node in _NODES]
for _class, _uses in ((_core.IRModule, "IRT"), (_relax.Function, "R"), (_core.PrimFunc, "T")):
    _class.script = _with_options(_class.script, _uses)  # type: ignore[method-assign]
for _class, _name, _value in _ADDED:
    setattr(_class, _name, _value)
del _class, _name, _uses, _value
