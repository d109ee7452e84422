"""``Trainer``: holds the parameters of a model, and trains and evaluates it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pliant import _core, nd
from pliant.relax.training import setup_trainer

__all__ = ["Trainer"]

_relax = _core.relax


class Trainer:
    """Trains the model of a module that :class:`pliant.relax.training.SetupTrainer` has made. ``vm`` is a virtual machine for the compiled module.

    The compiled functions accept every size that the types of the model allow, so batches may differ in size. With
    ``zero_init_param_state``, all parameters and states start as zeros; otherwise initialize or load them before training.
    """

    BACKBONE_FUNC = setup_trainer.BACKBONE_FUNC
    BACKBONE_LOSS_FUNC = setup_trainer.BACKBONE_LOSS_FUNC
    ADJOINT_FUNC = setup_trainer.ADJOINT_FUNC
    UPDATE_PARAMS_FUNC = setup_trainer.UPDATE_PARAMS_FUNC

    def __init__(self, train_mod: Any, vm: Any, device: Any = None, zero_init_param_state: bool = True) -> None:
        self.mod, self.vm, self.device = train_mod, vm, device
        attr = train_mod.get_attr
        param_num, state_num = int(attr("param_num")), int(attr("state_num"))
        variables = train_mod[self.BACKBONE_FUNC].params
        self._input_num = len(variables) - param_num - state_num
        self._param_vars = variables[self._input_num : self._input_num + param_num]
        self._state_vars = variables[self._input_num + param_num :]
        self._outputs = len(_types(train_mod[self.BACKBONE_FUNC].ret_struct_info)) - state_num
        self._params: list[Any] = []
        self._states: list[Any] = []
        state_types = train_mod[self.UPDATE_PARAMS_FUNC].params[2].struct_info.fields
        self._optim_state = [
            nd.array(np.full(_shape(info), value, str(info.dtype)))
            for info, value in zip(state_types, attr(setup_trainer.OPTIM_STATE_ATTR_KEY))
        ]
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    def xaiver_uniform_init_params(self, seed: int | None = None) -> None:
        """Initializes parameters of two or more dims with uniform random numbers (Glorot and Bengio, 2010), and the others with zeros.

        The method has the name that it has in TVM.
        """
        rng = np.random.default_rng(seed)
        self._params = []
        for var in self._param_vars:
            shape, dtype = _shape(var.struct_info), str(var.struct_info.dtype)
            if len(shape) < 2:
                self._params.append(nd.array(np.zeros(shape, dtype)))
                continue
            receptive = math.prod(shape[2:])
            bound = math.sqrt(6.0 / ((shape[0] + shape[1]) * receptive))
            self._params.append(nd.array(rng.uniform(-bound, bound, shape).astype(dtype)))

    def zero_init_params(self) -> None:
        """Sets all parameters to zeros."""
        self._params = [nd.array(np.zeros(_shape(v.struct_info), str(v.struct_info.dtype))) for v in self._param_vars]

    def zero_init_states(self) -> None:
        """Sets the states of the model to zeros."""
        self._states = [nd.array(np.zeros(_shape(v.struct_info), str(v.struct_info.dtype))) for v in self._state_vars]

    def load_params(self, params: Sequence[Any] | Mapping[str, Any] | str | os.PathLike[str]) -> None:
        """Sets the parameters: a list in the order of the model's parameters, a dict by name, or the path of a safetensors file.

        Raises ``ValueError`` for missing parameters and wrong shapes or data types.
        """
        if isinstance(params, str | os.PathLike):
            from pliant.relax.frontend.nn._safetensors import load

            params = load(params)
        self._params = _loaded("parameter", self._param_vars, params)

    def load_states(self, states: Sequence[Any] | Mapping[str, Any]) -> None:
        """Sets the states of the model, with the arguments and errors of :meth:`load_params`."""
        self._states = _loaded("state", self._state_vars, states)

    def export_params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {var.name_hint: value for var, value in zip(self._param_vars, self._params)}

    def save_params(self, path: str | os.PathLike[str]) -> None:
        """Writes the parameters to a safetensors file, from which ``load_params`` of this class and ``nn.Module.load_safetensors``
        read them."""
        from pliant.relax.frontend.nn._safetensors import save

        save(self.export_params(), path)

    def export_states(self) -> dict[str, Any]:
        """The states of the model by name."""
        return {var.name_hint: value for var, value in zip(self._state_vars, self._states)}

    def predict(self, *input_instances: Any) -> Any:
        """The result of the model for the given inputs, without its new states."""
        self._check(input_instances)
        result = self.vm[self.BACKBONE_FUNC](*_tensors(input_instances), *self._params, *self._states)
        if not isinstance(result, list | tuple):
            return result
        outputs = list(result)[: self._outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    def update(self, input_instances: Any, targets: Any) -> Any:
        """Runs one training step: gradients, then the optimizer. Returns the loss before the step.

        ``input_instances`` and ``targets`` are the inputs of the model and the targets of the loss: a list or a single one.
        """
        inputs, targets = _as_list(input_instances), _as_list(targets)
        self._check(inputs)
        arguments = [*_tensors(inputs), *self._params, *self._states, *_tensors(targets)]
        result, gradients = self.vm[self.ADJOINT_FUNC](*arguments)
        results = list(result) if isinstance(result, list | tuple) else [result]
        if self._state_vars:
            self._states = results[-len(self._state_vars) :]
        params, state = self.vm[self.UPDATE_PARAMS_FUNC](tuple(self._params), tuple(gradients), tuple(self._optim_state))
        self._params, self._optim_state = list(params), list(state)
        return results[0]

    def gradients(self, input_instances: Any, targets: Any) -> dict[str, Any]:
        """The gradients of the loss by parameter name, without a training step."""
        inputs = _as_list(input_instances)
        arguments = [*_tensors(inputs), *self._params, *self._states, *_tensors(_as_list(targets))]
        gradients = self.vm[self.ADJOINT_FUNC](*arguments)[1]
        return {var.name_hint: gradient for var, gradient in zip(self._param_vars, gradients)}

    def _check(self, inputs: Sequence[Any]) -> None:
        if len(inputs) != self._input_num:
            raise ValueError(f"the model has {self._input_num} inputs, but {len(inputs)} were given")
        if len(self._params) != len(self._param_vars) or len(self._states) != len(self._state_vars):
            raise ValueError("initialize or load the parameters and states of the trainer first")


def _types(info: Any) -> list[Any]:
    return list(info.fields) if isinstance(info, _relax.TupleStructInfo) else [info]


def _shape(info: Any) -> tuple[int, ...]:
    return tuple(int(d) for d in info.shape)


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _tensors(values: Sequence[Any]) -> list[Any]:
    return [nd.array(v) if isinstance(v, np.ndarray) else v for v in values]


def _loaded(what: str, variables: Sequence[Any], values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    """The values in the order of the variables. Raises ``ValueError`` if one is missing or has another type."""
    if isinstance(values, Mapping):
        missing = [v.name_hint for v in variables if v.name_hint not in values]
        if missing:
            raise ValueError(f"there is no value for the {what}s {', '.join(missing)}")
        values = [values[v.name_hint] for v in variables]
    if len(values) != len(variables):
        raise ValueError(f"the model has {len(variables)} {what}s, but {len(values)} were given")
    tensors = _tensors(values)
    for var, value in zip(variables, tensors):
        shape, dtype = _shape(var.struct_info), str(var.struct_info.dtype)
        if tuple(value.shape) != shape or str(value.dtype) != dtype:
            raise ValueError(
                f"{what} {var.name_hint} must have shape {shape} and dtype {dtype}, but has {tuple(value.shape)} and {value.dtype}"
            )
    return tensors
