"""Train a small transformer on Pliant's documentation, compiled once, with batches of many shapes.

Reads the pages in `docs/`, trains on windows of characters, prints the progress and a loss curve, saves the weights as safetensors,
and generates text.

    python examples/train_text.py [--steps 300] [--weights model.safetensors]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pliant import IRModule, relax, tir
from pliant.relax.frontend import nn
from pliant.relax.training import SetupTrainer, Trainer, loss, optimizer, schedule

DOCS = Path(__file__).resolve().parent.parent / "docs"
BATCH_SIZES = (4, 8, 12)
LENGTHS = (32, 48, 64)
BARS = " ▁▂▃▄▅▆▇█"


@dataclass
class Config:
    """The sizes of the model."""

    vocab: int
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    max_length: int = 256


class Block(nn.Module):
    """A transformer block with normalization before attention and before the MLP."""

    def __init__(self, c: Config) -> None:
        self.heads, self.size = c.heads, c.hidden // c.heads
        self.norm1, self.norm2 = nn.LayerNorm(c.hidden), nn.LayerNorm(c.hidden)
        self.qkv, self.out = nn.Linear(c.hidden, 3 * c.hidden), nn.Linear(c.hidden, c.hidden)
        self.up, self.down = nn.Linear(c.hidden, 4 * c.hidden), nn.Linear(4 * c.hidden, c.hidden)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """Returns the activations after the block, of the shape of ``x``: (batch, length, hidden)."""
        batch, length, hidden = x.shape
        qkv = nn.op.reshape(self.qkv(self.norm1(x)), (batch, length, 3, self.heads, self.size))
        q, k, v = (nn.op.reshape(part, (batch, length, self.heads, self.size)) for part in nn.op.split(qkv, 3, axis=2))
        attention = relax.op.nn.attention(q._expr, k._expr, v._expr, causal_mask="TopLeft")
        x = x + self.out(nn.op.reshape(nn.wrap_nested(attention, "attention"), (batch, length, hidden)))
        return x + self.down(nn.op.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Predicts the next character at every position."""

    def __init__(self, c: Config) -> None:
        self.vocab = c.vocab
        self.embedding = nn.Embedding(c.vocab, c.hidden)
        self.positions = nn.Embedding(c.max_length, c.hidden)
        self.blocks = nn.ModuleList([Block(c) for _ in range(c.layers)])
        self.norm, self.head = nn.LayerNorm(c.hidden), nn.Linear(c.hidden, c.vocab)

    def forward(self, ids: nn.Tensor) -> nn.Tensor:
        """Returns logits of shape (batch * length, vocab) for the characters ``ids`` of shape (batch, length)."""
        batch, length = ids.shape
        x = self.embedding(ids) + self.positions(nn.op.arange(0, length, dtype="int64"))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(nn.op.reshape(x, (batch * length, x.shape[2]))))


def train_module(c: Config, steps: int) -> IRModule:
    """The module of the trainer."""
    exported, params = Transformer(c).export_tvm({"forward": {"ids": nn.spec.Tensor(["batch", "length"], "int64")}})
    backbone = exported["forward"].with_attr("global_symbol", "backbone")
    module = IRModule({"backbone": backbone}).with_attrs({"param_num": len(params), "state_num": 0})
    rate = schedule.linear_warmup(schedule.cosine(3e-3, steps, 3e-4), max(steps // 20, 1))
    count = tir.Var("count", "int64")
    types = [relax.TensorStructInfo((count, c.vocab), "float32"), relax.TensorStructInfo((count,), "int64")]
    return SetupTrainer(loss.CrossEntropyLoss(), optimizer.AdamW(rate, clip_norm=1.0), types)(module)


def initial_params(trainer: Trainer, seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights: normalization starts as the identity, biases as zeros."""
    rng = np.random.default_rng(seed)
    values = {}
    for name, value in trainer.export_params().items():
        shape = value.shape
        if "norm" in name and name.endswith("weight"):
            values[name] = np.ones(shape, "float32")
        elif len(shape) == 1:
            values[name] = np.zeros(shape, "float32")
        else:
            scale = 0.02 if "embedding" in name or "positions" in name else 1 / math.sqrt(shape[1])
            values[name] = (rng.standard_normal(shape) * scale).astype("float32")
    return values


def batch_of(text: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A batch of random windows of the text, of a random size and length, and the next characters."""
    size, length = int(rng.choice(BATCH_SIZES)), int(rng.choice(LENGTHS))
    starts = rng.integers(0, len(text) - length - 1, size)
    windows = np.stack([text[s : s + length + 1] for s in starts])
    return np.ascontiguousarray(windows[:, :-1]), windows[:, 1:].reshape(-1)


def curve(losses: list[float], width: int = 60) -> str:
    """The losses as a line of bars, each the mean of several steps."""
    parts = [float(np.mean(part)) for part in np.array_split(losses, min(width, len(losses)))]
    low, high = min(parts), max(parts)
    scale = (len(BARS) - 1) / (high - low or 1.0)
    return f"{high:.2f} {''.join(BARS[round((p - low) * scale)] for p in parts)} {low:.2f}"


def generate(trainer: Trainer, c: Config, chars: list[str], start: str, length: int, seed: int = 0) -> str:
    """Continues a text: samples one character after the other."""
    rng, ids = np.random.default_rng(seed), [chars.index(ch) for ch in start]
    for _ in range(length):
        context = np.array([ids[-c.max_length :]], "int64")
        logits = trainer.predict(context).numpy()[-1] / 0.7
        weights = np.exp(logits - logits.max())
        ids.append(int(rng.choice(len(chars), p=weights / weights.sum())))
    return "".join(chars[i] for i in ids)


def progress(step: int, steps: int, value: float, seconds: float) -> None:
    """Prints the state of the training: one line that is overwritten on a terminal, otherwise a line every 50 steps."""
    line = f"step {step}/{steps}  loss {value:.3f}  {1000 * seconds / step:.0f} ms a step"
    if sys.stderr.isatty():
        print(f"\r{line}", end="\n" if step == steps else "", file=sys.stderr, flush=True)
    elif step % 50 == 0 or step == steps:
        print(line, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> list[float]:
    """Runs the example and returns the losses of all steps."""
    parser = argparse.ArgumentParser(description="Trains a small transformer on Pliant's documentation.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--weights", type=Path, default=Path("train_text.safetensors"))
    parser.add_argument("--hidden", type=int, default=64)
    options = parser.parse_args(argv)
    content = "\n".join(page.read_text() for page in sorted(DOCS.rglob("*.md")))
    chars = sorted(set(content))
    numbers: dict[str, int] = {ch: i for i, ch in enumerate(chars)}
    text = np.array([numbers[ch] for ch in content], "int64")
    c = Config(len(chars), hidden=options.hidden)

    started = time.perf_counter()
    module = train_module(c, options.steps)
    trainer = Trainer(module, relax.VirtualMachine(relax.build(module)))
    trainer.load_params(initial_params(trainer))
    print(f"{len(text)} characters; compiled once in {time.perf_counter() - started:.1f} s")

    rng, losses, started = np.random.default_rng(1), [], time.perf_counter()
    for step in range(1, options.steps + 1):
        ids, targets = batch_of(text, rng)
        losses.append(float(trainer.update([ids], [targets]).numpy()))
        progress(step, options.steps, losses[-1], time.perf_counter() - started)
    print(curve(losses))

    trainer.save_params(options.weights)
    print(f"saved the weights to {options.weights}")
    print(generate(trainer, c, chars, "Pliant ", 120))
    return losses


if __name__ == "__main__":
    main()
