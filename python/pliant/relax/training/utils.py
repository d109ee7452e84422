"""Helpers of training: appending a loss to a model, and gradients of loop functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pliant import _core
from pliant.relax import transform
from pliant.relax.block_builder import BlockBuilder
from pliant.transform import module_pass

__all__ = ["AppendLoss", "register_te_gradient"]

_relax = _core.relax


def register_te_gradient(te_grad_name: str, te_grad_func: Callable[..., Any] | None = None) -> Any:
    """Registers a function that computes the gradient of ``R.call_tir_with_grad(..., te_grad_name=...)``. Without ``te_grad_func``,
    returns a decorator.

    The function receives the adjoint of the result as a ``te.Tensor`` (a tuple of them for several results), then the arguments of
    the loop function, and ``te_grad_kwargs`` as keyword arguments. It returns one ``te.Tensor`` per argument, in a list.
    """

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        _core.relax.register_te_gradient(te_grad_name, func)
        return func

    return register if te_grad_func is None else register(te_grad_func)


@module_pass(name="AppendLoss")
class AppendLoss:
    """A pass that appends a loss to a function. It adds the function ``<func_name>_loss``, or ``new_func_name``.

    The first ``num_backbone_outputs`` results of the function are the first operands of the loss. The remaining parameters of the loss
    become parameters of the new function, after those of the function. The new function returns the loss, or the tuple of the loss and
    the remaining results.

    Raises ``ValueError`` if the function has too few results, or the loss too few parameters.
    """

    def __init__(
        self,
        func_name: str,
        loss_function: Any,
        num_backbone_outputs: int = 1,
        new_func_name: str | None = None,
    ) -> None:
        self.func_name = func_name
        self.loss_function = loss_function
        self.num_backbone_outputs = num_backbone_outputs
        self.new_func_name = new_func_name or f"{func_name}_loss"

    def transform_module(self, mod: Any, ctx: Any) -> Any:
        """Returns the module with the new function."""
        backbone, loss = mod[self.func_name], self.loss_function
        count = self.num_backbone_outputs
        results = _results(backbone.ret_struct_info)
        if len(results) < count or len(loss.params) < count:
            raise ValueError(
                f"AppendLoss: the loss uses {count} results, but '{self.func_name}' returns {len(results)}, and the loss has "
                f"{len(loss.params)} parameters"
            )
        builder = BlockBuilder(mod)
        callee = builder.add_func(_private(backbone), f"{self.func_name}_inlined")
        loss_callee = builder.add_func(_private(loss), "loss_inlined")
        params = _fresh_params([*backbone.params, *loss.params[count:]])
        split = len(backbone.params)
        with builder.function(self.new_func_name, params):
            with builder.dataflow():
                out = builder.emit(_relax.Call(callee, params[:split]))
                fields = _fields(builder, out, backbone.ret_struct_info)
                value = builder.emit(_relax.Call(loss_callee, [*fields[:count], *params[split:]]), "loss")
                rest = fields[count:]
                value = builder.emit_output(_relax.Tuple([value, *rest]) if rest else value, "loss")
            builder.emit_func_output(value)
        whole = transform.InlinePrivateFunctions()(builder.get())
        result = mod.clone()
        result[self.new_func_name] = transform.CanonicalizeBindings()(whole)[self.new_func_name]
        return result


def _results(info: Any) -> list[Any]:
    """The types of the results of a function."""
    return list(info.fields) if isinstance(info, _relax.TupleStructInfo) else [info]


def _fields(builder: Any, value: Any, info: Any) -> list[Any]:
    """The results of a call as separate values."""
    if not isinstance(info, _relax.TupleStructInfo):
        return [value]
    return [builder.emit(_relax.TupleGetItem(value, k)) for k in range(len(info.fields))]


def _private(func: Any) -> Any:
    """The function without a global symbol, so that it can be inlined."""
    return func if func.private else func.without_attr("global_symbol")


def _fresh_params(params: Any) -> list[Any]:
    """New variables of the same types, with different names."""
    taken: set[str] = set()
    fresh = []
    for param in params:
        name, count = param.name_hint, 0
        while name in taken:
            count += 1
            name = f"{param.name_hint}{count}"
        taken.add(name)
        fresh.append(_relax.Var(name, param.struct_info))
    return fresh
