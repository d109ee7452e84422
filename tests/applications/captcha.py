"""Reads a word with the package ddddocr and prints it as JSON."""

from __future__ import annotations

import json

import cv2
import ddddocr
import numpy as np

image = np.full((64, 200, 3), 255, np.uint8)
cv2.putText(image, "pliant", (20, 45), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (0, 0, 0), 3)
content = cv2.imencode(".png", image)[1].tobytes()
print(json.dumps([ddddocr.DdddOcr(show_ad=False, beta=True).classification(content)]))
