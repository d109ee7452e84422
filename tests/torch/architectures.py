"""Architectures of torchvision, transformers and timm with random weights and small configurations.

    python tests/torch/architectures.py [--compile] [NAMES ...]

exports each with dynamic shapes (or runs it with ``torch.compile``, ``--compile``), and compares it with eager execution at five
shapes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import transformers_architectures
from architecture import Architecture, FirstResult
from comparing import same_results
from torch.export import Dim

import pliant

os.environ.setdefault("HF_HUB_OFFLINE", "1")
TOLERANCE = 1e-4
"""The allowed difference, relative to the largest element: random weights make the results of some models large."""


IMAGE_SIZES = ((2, 64, 96), (1, 64, 64), (3, 96, 64), (1, 128, 64), (2, 65, 97))
FIXED_SIZES = ((2,), (1,), (3,), (5,), (4,))
TEXT_SIZES = ((3, 11), (1, 1), (2, 17), (1, 33), (5, 6), (4, 23))


def vision(name: str, fixed: int = 0, **options: Any) -> Architecture:
    """A model of torchvision. Images of ``fixed`` size have a dynamic batch only."""

    def build() -> torch.nn.Module:
        import torchvision

        return torchvision.models.get_model(name, weights=None, **options)

    return _images(build, fixed)


def timm_model(name: str, fixed: int = 0, **options: Any) -> Architecture:
    def build() -> torch.nn.Module:
        import timm

        return timm.create_model(name, pretrained=False, **options)

    return _images(build, fixed)


def _images(build: Callable[[], torch.nn.Module], fixed: int) -> Architecture:
    if fixed:
        return Architecture(build, lambda s: (torch.randn(s[0], 3, fixed, fixed),), ({0: Dim("batch")},), FIXED_SIZES)
    return Architecture(build, lambda s: (torch.randn(s[0], 3, *s[1:]),), ({0: Dim("batch"), 2: Dim.AUTO, 3: Dim.AUTO},), IMAGE_SIZES)


SMALL = {
    "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 64,
}  # fmt: skip


def text(kind: str, config: str, names: tuple[str, ...] = ("input_ids",), options: dict[str, Any] | None = None, **values: Any) -> Architecture:
    """A language model of transformers."""

    def build() -> torch.nn.Module:
        import transformers

        settings = values if values.pop("own", False) else {**SMALL, **values}
        return FirstResult(getattr(transformers, kind)(getattr(transformers, config)(**settings)), names, **(options or {}))

    dims = ({0: Dim.AUTO, 1: Dim.AUTO},) * len(names)
    return Architecture(build, lambda s: tuple(torch.randint(1, 99, s) for _ in names), (dims,), TEXT_SIZES)


def causal(kind: str, config: str, **values: Any) -> Architecture:
    return text(kind, config, options={"use_cache": False}, **values)


ARCHITECTURES: dict[str, Architecture] = {
    **{name: vision(name) for name in """resnet18 resnet50 mobilenet_v2 mobilenet_v3_small squeezenet1_1 shufflenet_v2_x0_5
    efficientnet_b0 convnext_tiny regnet_y_400mf mnasnet0_5 densenet121 resnext50_32x4d wide_resnet50_2""".split()},
    **{name: vision(name, fixed=224) for name in ("vit_b_32", "alexnet", "vgg11")},
    **{name: vision(name, fixed=64) for name in ("swin_t", "swin_v2_t")},
    "googlenet": vision("googlenet", init_weights=False),
    "fcn_resnet50": vision("fcn_resnet50", weights_backbone=None),
    "deeplabv3_mobilenet": vision("deeplabv3_mobilenet_v3_large", weights_backbone=None),
    "lraspp": vision("lraspp_mobilenet_v3_large", weights_backbone=None),
    "bert": text("BertModel", "BertConfig", ("input_ids", "attention_mask")),
    "roberta": text("RobertaModel", "RobertaConfig"),
    "electra": text("ElectraModel", "ElectraConfig", embedding_size=32),
    "albert": text("AlbertModel", "AlbertConfig", embedding_size=16),
    "mpnet": text("MPNetModel", "MPNetConfig"),
    "deberta": text("DebertaV2Model", "DebertaV2Config"),
    "distilbert": text("DistilBertModel", "DistilBertConfig", own=True, vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
                       max_position_embeddings=64),
    "gpt2": causal("GPT2LMHeadModel", "GPT2Config", own=True, vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64),
    "llama": causal("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2),
    "qwen2": causal("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2),
    "qwen3": causal("Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=8),
    "gemma": causal("GemmaForCausalLM", "GemmaConfig", num_key_value_heads=2, head_dim=8),
    "mistral": causal("MistralForCausalLM", "MistralConfig", num_key_value_heads=2),
    "phi": causal("PhiForCausalLM", "PhiConfig"),
    "opt": causal("OPTForCausalLM", "OPTConfig", ffn_dim=64, word_embed_proj_dim=32),
    "gpt_neox": causal("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "bloom": causal("BloomForCausalLM", "BloomConfig", own=True, vocab_size=100, hidden_size=32, n_layer=2, n_head=4),
    "t5": text("T5ForConditionalGeneration", "T5Config", ("input_ids", "decoder_input_ids"), {"use_cache": False}, own=True,
               vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
    "bart": text("BartModel", "BartConfig", ("input_ids", "decoder_input_ids"), {"use_cache": False}, own=True, vocab_size=100, d_model=32,
                 encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                 decoder_ffn_dim=64, max_position_embeddings=64),
    **{name: timm_model(name, fixed=size) for name, size in {"vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224,
       "mixer_s32_224": 224, "levit_128s": 224, "mobilevit_xxs": 128, "pit_ti_224": 224, "poolformer_s12": 64, "coat_lite_tiny": 224,
       "visformer_tiny": 224, "gmixer_24_224": 224, "dla34": 64,
       "tf_mobilenetv3_small_minimal_100": 64}.items()},
    **{name: timm_model(name) for name in """resnest14d efficientnet_lite0 ghostnet_050 lcnet_050 hardcorenas_a repvgg_a0
    rexnet_100 edgenext_xx_small fbnetc_100""".split()},
    **transformers_architectures.ARCHITECTURES,
}  # fmt: skip
"""The architectures, by name."""


def check(name: str, with_dynamo: bool) -> int:
    """Compares one architecture with eager execution. Returns the number of compilations."""
    torch.manual_seed(0)
    entry = ARCHITECTURES[name]
    module = entry.build().eval()
    inputs = [entry.inputs(size) for size in entry.sizes]
    if with_dynamo:
        from pliant.frontend.torch import any_size
        from pliant.frontend.torch.dynamo_backend import pliant as backend
        from pliant.frontend.torch.dynamo_backend import statistics

        torch._dynamo.reset()
        before = statistics.compilations
        # Models of transformers branch on sizes of 1, for which torch traces them again.
        inputs = [args for args, size in zip(inputs, entry.sizes, strict=True) if min(size) > 1]
        compiled = torch.compile(module, backend=backend, dynamic=True)
        with torch.no_grad(), any_size():
            for args in inputs:
                _compare(compiled(*args), module(*args))
        return statistics.compilations - before
    model = pliant.compile(module, inputs[0], dynamic_shapes=entry.shapes)
    with torch.no_grad():
        for args in inputs:
            _compare(model(*args), module(*args))
    return model.stats().compilations


def _compare(actual: Any, expected: Any) -> None:
    for a, e in zip(_flat(actual), _flat(expected), strict=True):
        largest = float(e.abs().max()) if e.numel() else 1.0
        same_results(a, e, {"rtol": 1e-3, "atol": TOLERANCE * max(1.0, largest)})


def _flat(results: Any) -> list[torch.Tensor]:
    return [r for r in torch.utils._pytree.tree_leaves(results) if isinstance(r, torch.Tensor)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    agreeing = 0
    names = options.names or list(ARCHITECTURES)
    for name in names:
        start = time.perf_counter()
        try:
            text = f"ok, {check(name, options.compile)} compilations"
            agreeing += 1
        except Exception as error:
            text = f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
        print(f"{name} ({time.perf_counter() - start:.1f} s): {text}", file=sys.stderr, flush=True)
    print(f"{agreeing} of {len(names)} architectures agree")


if __name__ == "__main__":
    main()
