"""Reads the text of an image with the package rapidocr_onnxruntime (three models) and prints text, boxes and scores as JSON."""

from __future__ import annotations

import json

import cv2
import numpy as np
from rapidocr_onnxruntime import RapidOCR

image = np.full((200, 640, 3), 255, np.uint8)
for row, line in enumerate(["Symbolic shapes", "compile once, run 1234 times"]):
    cv2.putText(image, line, (20, 70 + 80 * row), cv2.FONT_HERSHEY_SIMPLEX, 1.2, (0, 0, 0), 2)
result, _ = RapidOCR()(image)
print(json.dumps([[text, box, score] for box, text, score in result]))
