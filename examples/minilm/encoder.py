"""The encoder network of all-MiniLM-L6-v2 as a Relax module with a symbolic batch size and sequence
length.
"""

from __future__ import annotations

import math

import numpy as np

import pliant
from pliant import relax, tir
from pliant.relax import op

from .weights import Config


class Encoder:
    """Emits the layers of the encoder into a `relax.BlockBuilder`, with the weights as
    constants.
    """

    def __init__(self, bb: relax.BlockBuilder, config: Config, weights: dict[str, np.ndarray]):
        self.bb, self.config, self.weights = bb, config, weights
        self.batch, self.seq = tir.Var("batch", "int64"), tir.Var("seq", "int64")

    def constant(self, array: np.ndarray) -> relax.Expr:
        """Creates a constant tensor."""
        return relax.const(np.ascontiguousarray(array, np.float32))

    def weight(self, name: str) -> relax.Expr:
        """Returns a tensor of the checkpoint as a constant."""
        return self.constant(self.weights[name])

    def dense(self, x: relax.Expr, *names: str) -> relax.Expr:
        """Emits a dense layer `x @ w.T + b`. With several names, the weights of these layers are
        concatenated, so that one matrix product computes all of them.
        """
        w = np.concatenate([self.weights[f"{n}.weight"] for n in names])
        b = np.concatenate([self.weights[f"{n}.bias"] for n in names])
        return self.bb.emit(op.add(self.bb.emit(op.matmul(x, self.constant(w.T))), self.constant(b)))

    def layer_norm(self, x: relax.Expr, name: str) -> relax.Expr:
        """Emits layer normalization over the last axis."""
        gamma, beta = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        eps = self.config.layer_norm_eps
        return self.bb.emit(op.nn.layer_norm(x, gamma, beta, axes=[-1], epsilon=eps))

    def embeddings(self, ids: relax.Expr) -> relax.Expr:
        """Emits the sum of word, position and segment embeddings, of shape (batch, seq, hidden).
        All tokens are of segment 0.
        """
        emit = self.bb.emit
        words = emit(op.take(self.weight("embeddings.word_embeddings.weight"), ids, axis=0))
        positions = emit(op.arange(0, self.seq, 1, dtype="int64"))
        table = self.weights["embeddings.position_embeddings.weight"]
        table = table + self.weights["embeddings.token_type_embeddings.weight"][0]
        places = emit(op.take(self.constant(table), positions, axis=0))
        return self.layer_norm(emit(op.add(words, places)), "embeddings.LayerNorm")

    def heads(self, x: relax.Expr, axes: list[int]) -> relax.Expr:
        """Emits a reshape from (batch, seq, hidden) to attention heads, and a permutation of the
        axes.
        """
        c = self.config
        shape = (self.batch, self.seq, c.num_attention_heads, c.head_size)
        return self.bb.emit(op.permute_dims(self.bb.emit(op.reshape(x, shape)), axes))

    def attention(self, x: relax.Expr, bias: relax.Expr, name: str) -> relax.Expr:
        """Emits multi-head self-attention with the output projection. The result has shape (batch,
        seq, hidden).
        """
        emit, c = self.bb.emit, self.config
        parts = [f"{name}.self.{part}" for part in ("query", "key", "value")]
        fused = emit(op.split(self.dense(x, *parts), 3, axis=-1))
        q, k, v = (emit(relax.TupleGetItem(fused, i)) for i in range(3))
        q, k, v = self.heads(q, [0, 2, 1, 3]), self.heads(k, [0, 2, 3, 1]), self.heads(v, [0, 2, 1, 3])
        scale = relax.const(1.0 / math.sqrt(c.head_size), "float32")
        scores = emit(op.add(emit(op.multiply(emit(op.matmul(q, k)), scale)), bias))
        mixed = emit(op.matmul(emit(op.nn.softmax(scores, axis=-1)), v))
        merged = emit(op.permute_dims(mixed, [0, 2, 1, 3]))
        merged = emit(op.reshape(merged, (self.batch, self.seq, c.hidden_size)))
        return self.dense(merged, f"{name}.output.dense")

    def layer(self, x: relax.Expr, bias: relax.Expr, index: int) -> relax.Expr:
        """Emits one transformer layer."""
        emit, name = self.bb.emit, f"encoder.layer.{index}"
        attended = emit(op.add(self.attention(x, bias, f"{name}.attention"), x))
        x = self.layer_norm(attended, f"{name}.attention.output.LayerNorm")
        wide = emit(op.nn.gelu(self.dense(x, f"{name}.intermediate.dense")))
        return self.layer_norm(
            emit(op.add(self.dense(wide, f"{name}.output.dense"), x)), f"{name}.output.LayerNorm"
        )

    def pool(self, x: relax.Expr, mask: relax.Expr) -> relax.Expr:
        """Emits the mean over unmasked tokens, scaled to length 1. The result has shape (batch,
        hidden).
        """
        emit = self.bb.emit
        column = emit(op.expand_dims(mask, 2))
        total = emit(op.sum(emit(op.multiply(x, column)), axis=1))
        count = emit(op.maximum(emit(op.sum(column, axis=1)), relax.const(1e-9, "float32")))
        mean = emit(op.divide(total, count))
        norm = emit(op.sqrt(emit(op.sum(emit(op.multiply(mean, mean)), axis=1, keepdims=True))))
        return emit(op.divide(mean, emit(op.maximum(norm, relax.const(1e-12, "float32")))))


def build(config: Config, weights: dict[str, np.ndarray]) -> pliant.IRModule:
    """Builds the module. Its function `main(ids, mask)` maps two int64 tensors of shape (batch,
    seq) to float32 embeddings of shape (batch, hidden). Rows are sentences, `mask` is 1 for
    tokens and 0 for padding, and embeddings have length 1.
    """
    bb = relax.BlockBuilder()
    encoder = Encoder(bb, config, weights)
    tokens = relax.TensorStructInfo((encoder.batch, encoder.seq), "int64")
    ids, mask = relax.Var("ids", tokens), relax.Var("mask", tokens)
    with bb.function("main", [ids, mask]):
        with bb.dataflow():
            keep = bb.emit(op.astype(mask, "float32"))
            hidden = bb.emit(op.subtract(relax.const(1.0, "float32"), keep))
            bias = bb.emit(op.multiply(hidden, relax.const(-1e9, "float32")))
            bias = bb.emit(op.expand_dims(bias, [1, 2]))
            x = encoder.embeddings(ids)
            for index in range(config.num_hidden_layers):
                x = encoder.layer(x, bias, index)
            result = bb.emit_output(encoder.pool(x, keep))
        bb.emit_func_output(result)
    return bb.get()
