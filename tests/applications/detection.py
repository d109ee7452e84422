"""Detects objects with the packages ddddocr and nudenet, and prints boxes and scores as JSON."""

from __future__ import annotations

import json

import cv2
import ddddocr
import numpy as np
import skimage.data
from nudenet import NudeDetector

image = np.full((200, 300, 3), 255, np.uint8)
for column, letter in enumerate("ABC"):
    cv2.putText(image, letter, (20 + 90 * column, 60 + 50 * column), cv2.FONT_HERSHEY_SIMPLEX, 2, (0, 0, 0), 4)
letters = ddddocr.DdddOcr(det=True, show_ad=False).detection(cv2.imencode(".png", image)[1].tobytes())
photo = np.ascontiguousarray(skimage.data.astronaut()[..., ::-1])
found = NudeDetector().detect(photo)
print(json.dumps({"letters": letters, "photo": [[item["class"], item["score"], *item["box"]] for item in found]}))
