"""The model all-MiniLM-L6-v2 with its real weights, as a Relax module and as a NumPy reference.

| module | owns |
|---|---|
| `weights` | the configuration and tensors of the model, read from the installed package |
| `encoder` | the network, as a Relax module |
| `reference` | the same network in float64 NumPy, written independently |
| `tokenization` | splits sentences into token ids |
"""
