"""Training of models: losses, optimizers, and a trainer that compiles a model with its gradient once for all sizes.

>>> mod = relax.training.SetupTrainer(loss.CrossEntropyLoss(), optimizer.Adam(1e-3), [prediction_type, target_type])(backbone)
>>> trainer = relax.training.Trainer(mod, relax.VirtualMachine(relax.build(mod)))
>>> trainer.update([x], [labels])
"""

from pliant.relax.training import loss, optimizer, schedule, utils
from pliant.relax.training.setup_trainer import SetupTrainer
from pliant.relax.training.trainer import Trainer
from pliant.relax.training.utils import AppendLoss

__all__ = ["AppendLoss", "SetupTrainer", "Trainer", "loss", "optimizer", "schedule", "utils"]
