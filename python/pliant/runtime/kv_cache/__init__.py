"""Caches of the keys and values of attention, for programs that generate one token after another.

Programs use them through packed functions with the names of TVM, such as ``vm.builtin.attention_kv_cache_append``."""

from __future__ import annotations

from pliant.runtime.kv_cache.contiguous import ContiguousKVCache

__all__ = ["ContiguousKVCache"]
