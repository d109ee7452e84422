"""The backend of torch.compile: compilations are counted, and training equals eager execution."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from comparing import same_results
from torch import nn

from pliant.error import CallError
from pliant.frontend.torch import any_size
from pliant.frontend.torch.dynamo_backend import pliant as backend
from pliant.frontend.torch.dynamo_backend import statistics


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def small_model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 3)).eval()


def test_one_compilation_for_all_sizes() -> None:
    model = small_model()
    compiled = torch.compile(model, backend=backend, dynamic=True)
    before = statistics.compilations
    with torch.no_grad(), any_size():
        for n in (3, 5, 1, 0, 17):
            x = torch.randn(n, 4)
            same_results(compiled(x), model(x))
    assert statistics.compilations == before + 1


def test_graph_breaks_and_sizes_as_numbers() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * x.shape[0]
        torch._dynamo.graph_break()
        return y + x.shape[1]

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for shape in ((3, 4), (5, 6), (2, 9)):
        x = torch.randn(shape)
        same_results(compiled(x), function(x))


def test_mutation_and_views() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        x.add_(1)
        return x[1:], x, y.view(-1), (x @ y).t()

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for n in (3, 4):
        x, y = torch.randn(n, n), torch.randn(n, n)
        other = x.clone()
        same_results(compiled(x, y), function(other, y))
        same_results(x, other)


def test_unsupported_operators_run_in_torch() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x * 2) + 1

    before = statistics.islands
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = torch.compile(function, backend=backend, dynamic=True)
        x = torch.rand(4)
        same_results(compiled(x), function(x))
    assert statistics.islands == before + 1
    assert any("special_airy_ai" in str(w.message) for w in caught)


@torch.library.custom_op("pliant_tests::scale_", mutates_args=("x",))
def scale_in_place(x: torch.Tensor, factor: int) -> torch.Tensor:
    x.mul_(factor)
    return x.sum().reshape(1)


@scale_in_place.register_fake
def _(x: torch.Tensor, factor: int) -> torch.Tensor:
    return x.new_empty(1)


def test_custom_operators_that_mutate_inputs_run_in_torch() -> None:
    compiled = torch.compile(lambda x: (scale_in_place(x[1:], 3), x + 1), backend=backend, dynamic=True)
    for n in (3, 5):
        x = torch.ones(n)
        expected = torch.tensor([1.0] + [3.0] * (n - 1))
        same_results(compiled(x), (torch.tensor([3.0 * (n - 1)]), expected + 1))
        same_results(x, expected)


def test_complex_tensors() -> None:
    def function(x: torch.Tensor, c: torch.Tensor) -> Any:
        return torch.fft.fft(x), c * 2j, c, torch.linalg.eigvals(x.outer(x)), c.imag + x

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for n in (3, 4):
        x, c = torch.randn(n), torch.randn(n, dtype=torch.complex64).conj()
        same_results(compiled(x, c), function(x, c))


def test_gradients_of_complex_tensors() -> None:
    def gradient(function: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad((function(x) * x).abs().sum(), x)[0]

    x = torch.randn(4, dtype=torch.complex64, requires_grad=True)
    same_results(gradient(torch.compile(torch.fft.fft, backend=backend, dynamic=True), x), gradient(torch.fft.fft, x))


def test_tensors_outside_of_memory() -> None:
    with pytest.raises(CallError, match="on the device meta"):
        torch.compile(lambda x: x * 2, backend=backend)(torch.ones(3, device="meta"))


def test_options() -> None:
    def run(**settings: Any) -> torch.Tensor:
        torch._dynamo.reset()
        return torch.compile(lambda x: x + 1, backend=backend, **settings)(torch.ones(2))

    assert run(options={"threads": 1, "opt_level": 0}).tolist() == [2.0, 2.0]
    assert run(mode="default").tolist() == [2.0, 2.0]
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="did you mean 'threads'"):
        run(options={"thread": 1})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no mode 'max-autotune'"):
        run(mode="max-autotune")


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 8, 3, groups=2, padding=1), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = F.avg_pool2d(self.second(x), 2) + F.adaptive_avg_pool2d(x, 2)
        return self.head(x.mean((2, 3)))


class SmallGpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 16), nn.LayerNorm(16)
        self.qkv, self.out, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 11)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        batch, steps, _ = x.shape
        q, k, v = (t.view(batch, steps, 2, 8).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, steps, 16)
        return self.head(x + self.out(y))


def conv_batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(4 + step % 3, 3, 17, 17), torch.randint(0, 5, (4 + step % 3,))


def gpt_batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 11, (3, 7 + step % 4))
    return ids[:, :-1], ids[:, 1:]


def losses(kind: type[nn.Module], batch: Any, steps: int, compiled: bool) -> list[float]:
    torch.manual_seed(0)
    model = kind()
    call = torch.compile(model, backend=backend, dynamic=True) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    found = []
    for step in range(steps):
        x, y = batch(step)
        logits = call(x)
        loss = F.cross_entropy(logits.flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize(("kind", "batch"), [(ConvNet, conv_batch), (SmallGpt, gpt_batch)])
def test_training(kind: type[nn.Module], batch: Any) -> None:
    expected = losses(kind, batch, 60, compiled=False)
    before = statistics.compilations
    with any_size():
        actual = losses(kind, batch, 60, compiled=True)
    assert max(abs(a - e) for a, e in zip(actual, expected, strict=True)) < 1e-4
    assert statistics.compilations == before + 2, "one graph for the forward pass and one for the backward pass"
