"""Recognizes the types of files with the package magika and prints them as JSON."""

from __future__ import annotations

import json

from magika import Magika

CONTENTS = [b"def f(x):\n    return x + 1\n" * 20, b"{\"a\": [1, 2, 3]}" * 30, b"<html><body>text</body></html>" * 20, b"#include <stdio.h>\nint main(void) { return 0; }\n" * 9]

magika = Magika()
results = [magika.identify_bytes(content) for content in CONTENTS]
print(json.dumps([[str(result.output.label), float(result.score)] for result in results]))
