"""The packed functions that Pliant defines in Python. They are registered when the package is imported; a module with the code of a
function is imported when the function is called first."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pliant import _core

_KV_CACHE = "pliant.runtime.kv_cache"

# The module of each function, by the start of its name. The rest of the name is the name of the function in the module.
_FUNCTIONS = {
    ("effect.", "pliant.runtime.effects"): ("print",),
    ("vm.builtin.", "pliant.runtime.effects"): ("invoke_debug_func",),
    ("vm.builtin.", "pliant.runtime.builtins"): ("copy", "make_tuple", "reshape", "shape_of", "tuple_getitem"),
    ("vm.builtin.", "pliant.runtime.sampling"): (
        "apply_presence_and_frequency_penalty",
        "apply_repetition_penalty",
        "apply_softmax_with_temperature",
        "sample_top_p_from_logits",
        "sample_top_p_from_prob",
    ),
    ("vm.builtin.", f"{_KV_CACHE}.contiguous"): (
        "attention_kv_cache_append",
        "attention_kv_cache_array_clear",
        "attention_kv_cache_array_popn",
        "attention_kv_cache_create",
        "attention_kv_cache_create_multiple",
        "attention_kv_cache_update",
        "attention_kv_cache_view",
        "attention_kv_cache_window_override",
        "attention_kv_cache_window_override_with_sinks",
    ),
    ("vm.builtin.", f"{_KV_CACHE}.functions"): (
        "attention_kv_cache_append_mla_kv",
        "attention_kv_cache_attention_with_fused_qkv",
        "attention_kv_cache_commit_accepted_token_tree_nodes",
        "attention_kv_cache_cross_attention",
        "attention_kv_cache_debug_get_kv",
        "attention_kv_cache_empty",
        "attention_kv_cache_enable_sliding_window_for_seq",
        "attention_kv_cache_get_num_available_pages",
        "attention_kv_cache_get_query_positions",
        "attention_kv_cache_get_total_sequence_length",
        "attention_kv_cache_merge_attn_output_inplace",
        "attention_kv_cache_self_attention",
        "kv_state_add_sequence",
        "kv_state_begin_forward",
        "kv_state_clear",
        "kv_state_end_forward",
        "kv_state_fork_sequence",
        "kv_state_popn",
        "kv_state_remove_sequence",
        "paged_attention_kv_cache_create",
    ),
}


def _deferred(module: str, name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return getattr(import_module(module), name)(*args)

    call.__name__ = name
    return call


def register() -> None:
    """Registers the functions, unless functions with their names are registered."""
    known = set(_core.registry_names())
    for (prefix, module), names in _FUNCTIONS.items():
        for name in names:
            if prefix + name not in known:
                _core.registry_register(prefix + name, _deferred(module, name))


__all__ = ["register"]
