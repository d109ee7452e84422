"""Caches of the keys and values of attention, for programs that generate one token after another.

:class:`PagedKVCache` holds several sequences in pages; :class:`ContiguousKVCache` holds the rows of one tensor. Programs use them
through packed functions with the names of TVM, such as ``vm.builtin.kv_state_add_sequence``."""

from __future__ import annotations

from pliant.runtime.kv_cache.contiguous import ContiguousKVCache
from pliant.runtime.kv_cache.paged import CacheConfig, PagedKVCache

__all__ = ["CacheConfig", "ContiguousKVCache", "PagedKVCache"]
