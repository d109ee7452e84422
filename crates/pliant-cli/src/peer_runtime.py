"""Runs an ONNX model on another runtime for `pliant diff`.

Reads `job.json` from the folder argv[1], and writes `answer.json` and the arrays into it.
"""

import json
import sys
from pathlib import Path

# The exit code if the peer is not installed.
PEER_MISSING = 3

folder = Path(sys.argv[1])
job = json.loads((folder / "job.json").read_text())
try:
    import numpy as np

    if job["peer"] == "onnxruntime":
        import onnxruntime
    else:
        from onnx.reference import ReferenceEvaluator
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(PEER_MISSING)

feeds = {name: np.load(folder / file) for name, file in job["feeds"]}
if job["peer"] == "onnxruntime":
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if job["unoptimized"]:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, feeds)
else:
    session = ReferenceEvaluator(job["model"])
    names = list(session.output_names)
    values = session.run(None, feeds)

outputs = []
for i, (name, value) in enumerate(zip(names, values)):
    file = None
    # Strings, sequences, and element types from other packages such as ml_dtypes are not compared.
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "biuf":
        file = f"out{i}.npy"
        np.save(folder / file, np.asarray(value, order="C"))
    outputs.append((name, file))
(folder / "answer.json").write_text(json.dumps({"outputs": outputs}))
