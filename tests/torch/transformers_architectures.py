"""Vision, detection, speech and state-space models of transformers, in small configurations, for ``architectures.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from architecture import Architecture, FirstResult
from torch.export import Dim

AUTO = Dim.AUTO
TEXT = {
    "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 64,
}  # fmt: skip
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8}
SPEECH = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "conv_dim": (16, 16),
    "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
BATCHES = ((2,), (1,), (3,), (5,), (4,))
IMAGES = ((2, 64, 96), (1, 64, 64), (3, 96, 64), (1, 128, 64), (2, 96, 96))
SOUNDS = ((2, 400), (1, 300), (3, 523), (1, 1000), (2, 777))
TOKENS = ((3, 11), (1, 4), (2, 17), (1, 33), (5, 6))


def _model(kind: str, config: str, names: tuple[str, ...], values: dict[str, Any], **options: Any) -> Callable[[], torch.nn.Module]:
    def build() -> torch.nn.Module:
        import transformers

        return FirstResult(getattr(transformers, kind)(getattr(transformers, config)(**values)), names, **options)

    return build


def small_images(kind: str, config: str, size: int = 32, **values: Any) -> Architecture:
    """A vision model for images of a fixed size."""
    build = _model(kind, config, ("pixel_values",), values)
    return Architecture(build, lambda s: (torch.randn(s[0], 3, size, size),), (({0: AUTO},),), BATCHES)


def images(kind: str, config: str, **values: Any) -> Architecture:
    """A vision model for images of any size."""
    build = _model(kind, config, ("pixel_values",), values)
    return Architecture(build, lambda s: (torch.randn(s[0], 3, *s[1:]),), (({0: AUTO, 2: AUTO, 3: AUTO},),), IMAGES)


def sounds(kind: str, config: str) -> Architecture:
    """A speech model for sequences of samples."""
    return Architecture(_model(kind, config, ("input_values",), SPEECH), lambda s: (torch.randn(s),), (({0: AUTO, 1: AUTO},),), SOUNDS)


def tokens(kind: str, config: str, **values: Any) -> Architecture:
    """A causal language model without a cache."""
    build = _model(kind, config, ("input_ids",), values, use_cache=False)
    return Architecture(build, lambda s: (torch.randint(1, 99, s),), (({0: AUTO, 1: AUTO},),), TOKENS)


def _whisper() -> Architecture:
    layers = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))}
    values = {
        **layers, "vocab_size": 100, "d_model": 32, "num_mel_bins": 16, "max_source_positions": 50, "max_target_positions": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    }  # fmt: skip
    build = _model("WhisperModel", "WhisperConfig", ("input_features", "decoder_input_ids"), values, use_cache=False)
    shapes = (({0: AUTO}, {0: AUTO, 1: AUTO}),)
    return Architecture(build, lambda s: (torch.randn(s[0], 16, 100), torch.randint(3, 99, s)), shapes, TOKENS)


def _clip() -> Architecture:
    values = {"text_config": {**TEXT, "eos_token_id": 2}, "vision_config": VISION, "projection_dim": 16}
    build = _model("CLIPModel", "CLIPConfig", ("input_ids", "pixel_values"), values)
    shapes = (({0: AUTO, 1: AUTO}, {0: AUTO}),)
    return Architecture(build, lambda s: (torch.randint(3, 99, s), torch.randn(s[0] + 1, 3, 32, 32)), shapes, TOKENS)


def _detr() -> Architecture:
    def build() -> torch.nn.Module:
        import transformers

        stages = {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "layer_type": "basic"}
        backbone = transformers.ResNetConfig(**stages, out_features=["stage4"])
        layers = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 1), ("attention_heads", 4), ("ffn_dim", 32))}
        config = transformers.DetrConfig(
            use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=backbone, d_model=32, num_queries=7, num_labels=5, **layers
        )
        return FirstResult(transformers.DetrForObjectDetection(config), ("pixel_values",))

    return Architecture(build, lambda s: (torch.randn(s[0], 3, *s[1:]),), (({0: AUTO, 2: AUTO, 3: AUTO},),), IMAGES)


def _mamba() -> Architecture:
    values = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}
    build = _model("MambaForCausalLM", "MambaConfig", ("input_ids",), values, use_cache=False)
    # The scan of the model is a loop of Python over the steps, so their number is fixed.
    return Architecture(build, lambda s: (torch.randint(3, 99, (s[0], 11)),), (({0: AUTO},),), BATCHES)


ARCHITECTURES: dict[str, Architecture] = {
    "whisper": _whisper(),
    "clip": _clip(),
    "detr": _detr(),
    "mamba": _mamba(),
    "wav2vec2": sounds("Wav2Vec2Model", "Wav2Vec2Config"),
    "hubert": sounds("HubertModel", "HubertConfig"),
    "vit": small_images("ViTModel", "ViTConfig", **VISION),
    "siglip": small_images("SiglipVisionModel", "SiglipVisionConfig", **VISION),
    "blip": small_images("BlipVisionModel", "BlipVisionConfig", **VISION),
    "yolos": small_images("YolosForObjectDetection", "YolosConfig", **{**VISION, "image_size": [32, 32]}, num_detection_tokens=5, num_labels=4),
    "dinov2": small_images("Dinov2Model", "Dinov2Config", 28, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2,
                           image_size=28, patch_size=7),
    "segformer": images("SegformerForSemanticSegmentation", "SegformerConfig", hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1],
                        num_attention_heads=[1, 2, 2, 2], decoder_hidden_size=16, num_labels=5),
    "falcon": tokens("FalconForCausalLM", "FalconConfig", vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                     alibi=False, max_position_embeddings=64),
    "gptj": tokens("GPTJForCausalLM", "GPTJConfig", vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4),
    "mixtral": tokens("MixtralForCausalLM", "MixtralConfig", **TEXT, num_key_value_heads=2, num_local_experts=3, num_experts_per_tok=2),
}  # fmt: skip
"""The architectures, by name."""
