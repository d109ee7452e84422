"""``SetupTrainer``: a pass that makes a trainable module from a model, a loss and an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import _core
from pliant.relax import transform
from pliant.relax.training.loss import Loss
from pliant.relax.training.optimizer import Optimizer
from pliant.relax.training.utils import AppendLoss
from pliant.transform import module_pass

__all__ = ["SetupTrainer"]

# The names of the functions of a trainer module.
BACKBONE_FUNC = "backbone"
BACKBONE_LOSS_FUNC = "backbone_loss"
ADJOINT_FUNC = "backbone_loss_adjoint"
UPDATE_PARAMS_FUNC = "optimizer"

# The names of its attributes.
PARAM_NUM_ATTR_KEY = "param_num"
STATE_NUM_ATTR_KEY = "state_num"
OPTIM_STATE_ATTR_KEY = "optim_state"


@module_pass(name="SetupTrainer")
class SetupTrainer:
    """A pass over a module with the function ``backbone``, the model. It adds the functions that :class:`pliant.relax.training.Trainer`
    calls:

    * ``backbone_loss``: the model and the loss,
    * ``backbone_loss_adjoint``: the loss, the remaining results, and the gradients of the parameters,
    * ``optimizer``: one step of the optimizer.

    The module or the function has the attributes ``param_num`` and ``state_num``: the last ``state_num`` parameters of ``backbone`` are
    its state, such as moving statistics, and the ``param_num`` parameters before them are trained. ``backbone`` returns ``num_backbone_
    outputs`` results of the loss and then the new state.

    ``loss_args`` are the types of the operands of the loss. With ``legalize``, the functions are lowered to loop functions, as in TVM;
    by default, operators remain, so that the compiler can replace them by kernels.

    Raises ``ValueError`` if ``backbone`` or an attribute is missing, or the parameters do not have constant shapes and one float type.
    """

    def __init__(self, loss: Loss, optimizer: Optimizer, loss_args: Sequence[Any], legalize: bool = False) -> None:
        self._loss = loss
        self._optimizer = optimizer
        self._loss_args = list(loss_args)
        self._legalize = legalize

    def transform_module(self, mod: Any, ctx: Any) -> Any:
        """Returns the module with the functions of the trainer."""
        if BACKBONE_FUNC not in mod:
            raise ValueError(f"SetupTrainer: the module has no function '{BACKBONE_FUNC}'")
        backbone = mod[BACKBONE_FUNC]
        param_num, state_num = (read_count(mod, backbone, key) for key in (PARAM_NUM_ATTR_KEY, STATE_NUM_ATTR_KEY))
        first = len(backbone.params) - param_num - state_num
        if first < 0 or param_num == 0:
            raise ValueError(
                f"SetupTrainer: '{BACKBONE_FUNC}' has {len(backbone.params)} parameters, but param_num is {param_num} and "
                f"state_num is {state_num}"
            )
        params = backbone.params[first : first + param_num]
        outputs = getattr(self._loss, "num_backbone_outputs", 1)
        append_loss: Any = AppendLoss(BACKBONE_FUNC, self._loss(*self._loss_args), outputs, BACKBONE_LOSS_FUNC)
        mod = append_loss(mod)
        names = [param.name_hint for param in mod[BACKBONE_LOSS_FUNC].params[first : first + param_num]]
        mod = transform.Gradient(BACKBONE_LOSS_FUNC, names)(mod)
        self._optimizer.init(params)
        mod[UPDATE_PARAMS_FUNC] = self._optimizer.get_function().with_attr("global_symbol", UPDATE_PARAMS_FUNC)
        mod = mod.with_attrs(
            {
                PARAM_NUM_ATTR_KEY: param_num,
                STATE_NUM_ATTR_KEY: state_num,
                # The initial tensors of an optimizer are filled with one value each.
                OPTIM_STATE_ATTR_KEY: [float(state.numpy().flat[0]) if state.numpy().size else 0.0 for state in self._optimizer.state],
            }
        )
        return transform.LegalizeOps()(mod) if self._legalize else mod


def read_count(mod: Any, backbone: Any, key: str) -> int:
    """An integer attribute of the module or of the function ``backbone``. Raises ``ValueError`` if it is missing."""
    for owner in (mod, backbone):
        value = (owner.attrs or {}).get(key) if not isinstance(owner, _core.IRModule) else owner.get_attr(key)
        if value is not None:
            return int(value)
    raise ValueError(f"SetupTrainer: the module has no attribute '{key}' (help: set it with mod.with_attr('{key}', n))")
