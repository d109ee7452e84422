"""The parts of language models: paged KV caches, and rotary position embeddings."""

from __future__ import annotations

from pliant.relax.frontend.nn.llm import kv_cache, position_embedding

__all__ = ["kv_cache", "position_embedding"]
