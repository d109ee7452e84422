"""Search for performance cliffs: ONNX models whose ratio of ONNX Runtime's time to Pliant's is low, and wrong results.

``python -m peers.cliffs``, within ``benches/``, runs one-node models of every operator; ``--zoo`` runs the models of ``peers/zoo``;
``--random N`` runs networks that are generated the way exporters write them. Pliant compiles a model once, with symbolic dims, and
runs it at every size. Each case runs in a worker process under a time limit, so that a crash or a hang is a finding.
"""
