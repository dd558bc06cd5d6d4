"""A network's text by the interpreter on torch tensors."""

from typing import Any

import numpy as np
import torch

from canvas import _testing


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().double().contiguous().numpy().tobytes()


def run(imported: Any, inputs: Any, text: str | None = None) -> list[np.ndarray]:
    """Flat outputs; weights are what they are now."""
    given = [*inputs, *imported.weights.values()]
    answer = _testing.network_evaluate(text or imported.text, [_bytes(x) for x in given])
    return [np.frombuffer(each) for each in answer]


def differences(imported: Any, inputs: Any, expected: Any, text: str | None = None) -> list[float]:
    """How far each output is from PyTorch's, in units of the largest one (1 at least)."""
    answer = []
    for got, wanted in zip(run(imported, inputs, text), expected, strict=True):
        flat = wanted.detach().double().contiguous().numpy().reshape(-1)
        assert got.shape == flat.shape
        finite = np.isfinite(flat)
        assert np.array_equal(np.isnan(got), np.isnan(flat))
        assert np.array_equal(got[~finite & ~np.isnan(flat)], flat[~finite & ~np.isnan(flat)])
        scale = max(1.0, float(np.abs(flat[finite]).max(initial=0)))
        answer.append(float(np.abs(got[finite] - flat[finite]).max(initial=0)) / scale)
    return answer
