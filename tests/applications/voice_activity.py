"""Computes the probability of speech with the package silero_vad, frame by frame and as a sequence, and prints it as JSON."""

from __future__ import annotations

import json

import numpy as np
import torch
from silero_vad import load_silero_vad

RATE, FRAME = 16000, 512
time = np.arange(RATE) / RATE
voiced = sum(np.sin(2 * np.pi * 140 * k * time) / k for k in range(1, 12)) * (1 + np.sin(2 * np.pi * 4 * time))
noise = np.random.default_rng(0).normal(0, 0.01, RATE)
audio = np.concatenate([noise, 0.2 * voiced + noise, noise]).astype(np.float32)

frames = load_silero_vad(onnx=True)
probabilities = [float(frames(torch.from_numpy(audio[i : i + FRAME]), RATE)) for i in range(0, len(audio) - FRAME, FRAME)]
sequence = load_silero_vad(sequence=True)
print(json.dumps({"frames": probabilities, "sequence": sequence.audio_forward(audio, RATE).ravel().tolist()}))
