"""all-MiniLM-L6-v2 with its real weights: read, built with symbolic batch and seq, checked.

| module | owns |
|---|---|
| `weights` | the configuration and tensors of the model, read from the installed package |
| `encoder` | the network, as a Relax module |
| `reference` | the same network in float64 NumPy, written independently |
| `text` | sentences to token ids |
"""
