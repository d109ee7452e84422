"""Optimizers. An optimizer is initialized with the parameters to train, and :meth:`Optimizer.get_function` returns the graph function
of one step: ``(params, gradients, optim_states) -> (new params, new optim_states)``. All three are tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant import _core, nd
from pliant.relax import op
from pliant.relax.block_builder import BlockBuilder
from pliant.relax.training.schedule import Schedule

__all__ = ["SGD", "Adam", "AdamW", "MomentumSGD", "Optimizer"]

_relax = _core.relax


class Optimizer:
    """The base class of optimizers.

    ``lr`` is a number or a schedule (:mod:`pliant.relax.training.schedule`). With ``clip_norm``, gradients are scaled so that the norm of
    all gradients together is at most ``clip_norm``; with ``clip_value``, their elements are clamped to ``-clip_value .. clip_value``.
    """

    dtype: str
    name: str
    param_list: list[Any]
    state: tuple[Any, ...]

    def __init__(
        self,
        name: str,
        lr: float | Schedule = 0.01,
        *,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        self.name = name
        self.lr = lr
        self.clip_norm = clip_norm
        self.clip_value = clip_value
        self.param_list = []
        self.dtype = ""

    def init(self, params: Any) -> Optimizer:
        """Sets the parameters to train, a variable or a list of variables with static shapes, and the initial state.

        Raises ``ValueError`` unless there is at least one parameter, all differ, have known shapes and the same float type.
        """
        if not isinstance(params, Sequence):
            params = [params]
        self.param_list = list(params)
        self._check_params()
        self.dtype = str(self.param_list[0].struct_info.dtype)
        self.state = tuple(nd.array(value) for value in self._initial_state())
        return self

    def _check_params(self) -> None:
        if not self.param_list:
            raise ValueError(f"{self.name}: there are no parameters to train")
        names, dtypes = set(), set()
        for param in self.param_list:
            info = param.struct_info
            if not isinstance(info, _relax.TensorStructInfo):
                raise ValueError(f"{self.name}: parameter {param.name_hint} must be a tensor, but is {info}")
            if self._shape(param) is None:
                raise ValueError(f"{self.name}: the shape of parameter {param.name_hint} must be constant, but is {info}")
            names.add(param.name_hint)
            dtypes.add(str(info.dtype))
        if len(names) < len(self.param_list):
            raise ValueError(f"{self.name}: a parameter occurs twice")
        if len(dtypes) > 1 or not next(iter(dtypes)).startswith(("float", "bfloat")):
            raise ValueError(f"{self.name}: all parameters must have the same float type, but have {', '.join(sorted(dtypes))}")

    @staticmethod
    def _shape(param: Any) -> tuple[int, ...] | None:
        shape = param.struct_info.shape
        if shape is None:
            return None
        sizes = [int(d) if isinstance(d, int) or hasattr(d, "value") else None for d in shape]
        return None if None in sizes else tuple(s for s in sizes if s is not None)

    def _zeros(self) -> list[np.ndarray]:
        dtype = "float32" if self.dtype == "bfloat16" else self.dtype
        return [np.zeros(self._shape(p) or (), dtype) for p in self.param_list]

    def _initial_state(self) -> list[np.ndarray]:
        """The initial state: the number of steps, then what the subclass needs."""
        return [np.array(0, "int64")]

    def _const(self, value: float) -> Any:
        return _relax.relax_const(value, self.dtype)

    def get_function(self) -> Any:
        """The graph function of one step: ``(params, gradients, optim_states) -> (new params, new optim_states)``.

        Raises ``RuntimeError`` if :meth:`init` has not been called.
        """
        if not self.param_list:
            raise RuntimeError(f"{self.name}: call init with the parameters to train before get_function")
        types = _relax.TupleStructInfo([p.struct_info for p in self.param_list])
        states = _relax.TupleStructInfo([_state_type(s) for s in self.state])
        params, gradients = _relax.Var("params", types), _relax.Var("gradients", types)
        optim_states = _relax.Var("optim_states", states)
        builder = BlockBuilder()
        with builder.function(self.name, [params, gradients, optim_states]):
            with builder.dataflow():
                new_params, new_states = self._step(builder, params, gradients, optim_states)
                results = [builder.emit_output(_relax.Tuple(list(values))) for values in (new_params, new_states)]
            builder.emit_func_output(_relax.Tuple(results))
        return builder.get()[self.name]

    def _step(self, builder: Any, params: Any, gradients: Any, states: Any) -> tuple[list[Any], list[Any]]:
        count = len(self.param_list)
        p = [builder.emit(_relax.TupleGetItem(params, k), self.param_list[k].name_hint) for k in range(count)]
        g = [builder.emit(_relax.TupleGetItem(gradients, k), f"{self.param_list[k].name_hint}_grad") for k in range(count)]
        s = [builder.emit(_relax.TupleGetItem(states, k)) for k in range(len(self.state))]
        steps = builder.emit(op.add(s[0], _relax.relax_const(1, "int64")), "num_steps_new")
        rate = self._learning_rate(builder, steps)
        new_params, new_states = self._update(builder, p, self._clipped(builder, g), s[1:], rate)
        return new_params, [steps, *new_states]

    def _learning_rate(self, builder: Any, steps: Any) -> Any:
        if isinstance(self.lr, int | float):
            return self._const(float(self.lr))
        return builder.emit(self.lr(builder.emit(op.astype(steps, self.dtype)), self.dtype), "lr")

    def _clipped(self, builder: Any, gradients: list[Any]) -> list[Any]:
        if self.clip_value is not None:
            bound = self._const(self.clip_value)
            low = self._const(-self.clip_value)
            gradients = [builder.emit(op.minimum(op.maximum(g, low), bound)) for g in gradients]
        if self.clip_norm is not None:
            total = builder.emit(op.sum(op.square(gradients[0])))
            for g in gradients[1:]:
                total = builder.emit(op.add(total, op.sum(op.square(g))))
            norm = builder.emit(op.sqrt(total), "gradient_norm")
            limit = self._const(self.clip_norm)
            # The epsilon avoids a division by 0.
            scale = builder.emit(op.minimum(op.divide(limit, op.add(norm, self._const(1e-6))), self._const(1.0)))
            gradients = [builder.emit(op.multiply(g, scale)) for g in gradients]
        return gradients

    def _decayed(self, builder: Any, p: Any, g: Any, weight_decay: float) -> Any:
        """The gradient with the gradient of an L2 penalty."""
        if not weight_decay:
            return g
        return builder.emit(op.add(op.multiply(self._const(weight_decay), p), g))

    def _update(
        self, builder: Any, params: list[Any], gradients: list[Any], states: list[Any], rate: Any
    ) -> tuple[list[Any], list[Any]]:
        """The new parameters and the new state without the number of steps."""
        raise NotImplementedError(f"{type(self).__name__} does not define _update")


def _state_type(state: Any) -> Any:
    return _relax.TensorStructInfo(tuple(state.shape), str(state.dtype))


class SGD(Optimizer):
    """Stochastic gradient descent: ``p - lr * (g + weight_decay * p)``. The state is the number of steps."""

    def __init__(self, lr: float | Schedule, weight_decay: float = 0, **clipping: Any) -> None:
        super().__init__("SGD", lr, **clipping)
        self.weight_decay = float(weight_decay)

    def _update(self, builder: Any, params: Any, gradients: Any, states: Any, rate: Any) -> tuple[list[Any], list[Any]]:
        new = []
        for p, g in zip(params, gradients):
            g = self._decayed(builder, p, g, self.weight_decay)
            new.append(builder.emit(op.subtract(p, op.multiply(rate, g)), f"{p.name_hint}_new"))
        return new, []


class MomentumSGD(Optimizer):
    """Stochastic gradient descent with momentum: ``v = momentum * v + (1 - dampening) * g`` and ``p - lr * v``.

    With ``nesterov``, the step is ``lr * (g + momentum * v)``. The state is the number of steps and ``v`` of each parameter.
    """

    def __init__(
        self,
        lr: float | Schedule,
        momentum: float,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        **clipping: Any,
    ) -> None:
        super().__init__("MomentumSGD", lr, **clipping)
        self.momentum, self.dampening = float(momentum), float(dampening)
        self.weight_decay, self.nesterov = float(weight_decay), nesterov

    def _initial_state(self) -> list[np.ndarray]:
        return [*super()._initial_state(), *self._zeros()]

    def _update(self, builder: Any, params: Any, gradients: Any, states: Any, rate: Any) -> tuple[list[Any], list[Any]]:
        momentum, share = self._const(self.momentum), self._const(1 - self.dampening)
        new, velocities = [], []
        for p, g, v in zip(params, gradients, states):
            g = self._decayed(builder, p, g, self.weight_decay)
            addend = op.multiply(share, g) if self.dampening else g
            v_new = builder.emit(op.add(op.multiply(momentum, v), addend), f"{p.name_hint}_v_new")
            step = builder.emit(op.add(g, op.multiply(momentum, v_new))) if self.nesterov else v_new
            new.append(builder.emit(op.subtract(p, op.multiply(rate, step)), f"{p.name_hint}_new"))
            velocities.append(v_new)
        return new, velocities


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015). Weight decay is added to the gradient as an L2 penalty.

    The state is the number of steps, the products of ``betas[0]`` and of ``betas[1]`` over the steps, and the first and then the second
    moments of all parameters.
    """

    decoupled_decay = False

    def __init__(
        self,
        lr: float | Schedule,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        *,
        name: str = "Adam",
        **clipping: Any,
    ) -> None:
        super().__init__(name, lr, **clipping)
        self.beta1, self.beta2 = float(betas[0]), float(betas[1])
        self.eps, self.weight_decay = float(eps), float(weight_decay)

    def _initial_state(self) -> list[np.ndarray]:
        one = np.array(1, "float32" if self.dtype == "bfloat16" else self.dtype)
        return [*super()._initial_state(), one, one.copy(), *self._zeros(), *self._zeros()]

    def _update(self, builder: Any, params: Any, gradients: Any, states: Any, rate: Any) -> tuple[list[Any], list[Any]]:
        const, count = self._const, len(params)
        prod1 = builder.emit(op.multiply(states[0], const(self.beta1)), "beta_0_prod")
        prod2 = builder.emit(op.multiply(states[1], const(self.beta2)), "beta_1_prod")
        correction1 = builder.emit(op.subtract(const(1.0), prod1))
        correction2 = builder.emit(op.subtract(const(1.0), prod2))
        new, first, second = [], [], []
        for p, g, m, v in zip(params, gradients, states[2 : 2 + count], states[2 + count :]):
            if self.decoupled_decay:
                keep = op.subtract(const(1.0), op.multiply(rate, const(self.weight_decay)))
                decayed = builder.emit(op.multiply(p, keep)) if self.weight_decay else p
            else:
                decayed, g = p, self._decayed(builder, p, g, self.weight_decay)
            m_new = op.add(op.multiply(const(self.beta1), m), op.multiply(const(1 - self.beta1), g))
            v_new = op.add(op.multiply(const(self.beta2), v), op.multiply(const(1 - self.beta2), op.multiply(g, g)))
            m_new, v_new = builder.emit(m_new, f"{p.name_hint}_m_new"), builder.emit(v_new, f"{p.name_hint}_v_new")
            m_hat, v_hat = op.divide(m_new, correction1), op.divide(v_new, correction2)
            step = builder.emit(op.divide(m_hat, op.add(op.sqrt(v_hat), const(self.eps))))
            new.append(builder.emit(op.subtract(decayed, op.multiply(rate, step)), f"{p.name_hint}_new"))
            first.append(m_new)
            second.append(v_new)
        return new, [prod1, prod2, *first, *second]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019): parameters are multiplied by ``1 - lr * weight_decay``."""

    decoupled_decay = True

    def __init__(
        self,
        lr: float | Schedule,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0.01,
        **clipping: Any,
    ) -> None:
        super().__init__(lr, betas, eps, weight_decay, name="AdamW", **clipping)
