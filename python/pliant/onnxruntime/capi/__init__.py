"""The modules of ``onnxruntime.capi`` that applications import."""
