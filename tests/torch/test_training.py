"""Training with ``torch.compile``: 200 steps of a small GPT, and the first of a ResNet."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from pliant.frontend.torch import any_size
from pliant.frontend.torch.dynamo_backend import pliant as backend
from pliant.frontend.torch.dynamo_backend import statistics

STEPS = 200


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, steps, width = x.shape
        q, k, v = (t.view(batch, steps, 4, width // 4).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, steps, width)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.second(x))))


class Gpt(nn.Module):
    """Two transformer blocks with token and position embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(17, 32), nn.Embedding(32, 32)
        self.blocks, self.norm, self.head = nn.Sequential(Block(32), Block(32)), nn.LayerNorm(32), nn.Linear(32, 17)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def resnet() -> nn.Module:
    """A ResNet of one block per stage, with batch normalization."""
    from torchvision.models.resnet import BasicBlock, ResNet

    return ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)


def gpt_batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Counting sequences of several lengths."""
    start = torch.randint(0, 17, (4 + step % 3, 1))
    ids = (start + torch.arange(9 + step % 4)) % 17
    return ids[:, :-1], ids[:, 1:]


def image_batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.randint(0, 5, (4 + step % 3,))
    return torch.randn(labels.shape[0], 3, 32, 32) + labels[:, None, None, None], labels


def losses(build: Any, batch: Any, compiled: bool, steps: int = STEPS) -> list[float]:
    torch.manual_seed(0)
    model = build()
    call = torch.compile(model, backend=backend, dynamic=True) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    found = []
    for step in range(steps):
        x, y = batch(step)
        loss = F.cross_entropy(call(x).flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_a_gpt_trains_as_in_eager_execution() -> None:
    torch._dynamo.reset()
    expected = losses(Gpt, gpt_batch, compiled=False)
    before = statistics.compilations
    with any_size():
        actual = losses(Gpt, gpt_batch, compiled=True)
    assert sum(expected[-20:]) < 0.9 * sum(expected[:20]), "the model learns"
    differences = [abs(a - e) for a, e in zip(actual, expected, strict=True)]
    assert max(differences) < 1e-4
    assert statistics.compilations == before + 2, "one graph for the forward pass and one for the backward pass"


def test_a_resnet_trains_as_in_eager_execution() -> None:
    # Batch normalization over few values amplifies rounding by a factor of 20 to 80 in each step, so few steps are compared, in float64.
    def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        images, labels = image_batch(step)
        return images.double(), labels

    torch._dynamo.reset()
    expected = losses(lambda: resnet().double(), batch, compiled=False, steps=4)
    with any_size():
        actual = losses(lambda: resnet().double(), batch, compiled=True, steps=4)
    assert max(abs(a - e) for a, e in zip(actual, expected, strict=True)) < 1e-6
