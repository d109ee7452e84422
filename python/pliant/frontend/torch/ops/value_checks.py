"""Numbers in tensors, and checks of sizes and of the values of tensors."""

from __future__ import annotations

from typing import Any

from pliant import relax
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def item(cx: FunctionImporter, x: Any) -> Any:
    """The number in a tensor. An integer becomes a size, which a ``match_cast`` defines; a float stays a tensor."""
    meta = cx.out
    if not hasattr(meta, "node") or is_float(cx.dtype(x)):
        return cx.ops.reshape(x, [])
    value = cx.emit(relax.op.item(cx.cast(x, "int64")))
    size = cx.sizes.convert(meta)
    if cx.dtype(x) == "bool":
        raise UnsupportedError("conditions that depend on the values of tensors are not supported: use torch.cond")
    cx.sizes.define(meta)
    cx.builder.match_cast(value, relax.PrimStructInfo(value=size))
    return size


def assert_scalar(cx: FunctionImporter, condition: Any, message: str) -> None:
    """Converts ``_assert_scalar``: checks a condition on sizes at run time. Conditions on tensors are not supported."""
    if cx.is_tensor(condition):
        raise UnsupportedError("checks of the values of tensors are not supported")
    cx.check(condition, message)


def assert_async(cx: FunctionImporter, condition: Any, message: str = "the assertion of a tensor failed", *_: Any) -> None:
    """A check of the only element of a tensor."""
    text = message.replace("{", "{{").replace("}", "}}")
    cx.emit(relax.op.assert_op(cx.cast(cx.ops.reshape(condition, []), "bool"), format=text))


def with_effects(cx: FunctionImporter, token: Any, target: Any, *args: Any, **_: Any) -> list[Any]:
    """Operators that torch keeps in order by tokens: checks of values."""
    name = str(target)
    if name == "aten._linalg_check_errors.default":
        info = cx.ops.equal(args[0], cx.tensor(0, cx.dtype(args[0])))
        message = f"{args[1]}: the matrix has no such factorization or inverse, since it is singular or not positive definite"
        cx.emit(relax.op.assert_op(cx.ops.min(info), format=message))
    elif name.startswith("aten._assert_async"):
        assert_async(cx, *args)
    elif name != "aten._print.default":
        raise UnsupportedError(f"the operator {name} with side effects is not supported")
    return [None] * len(cx.out)


TABLE: dict[str, Converter] = {
    **dict.fromkeys("_local_scalar_dense item".split(), item),
    "_assert_scalar": assert_scalar,
    "higher_order.with_effects": with_effects,
    **dict.fromkeys("_assert_async _assert_async.msg _functional_assert_async.msg".split(), assert_async),
}
"""The converters of this family."""
