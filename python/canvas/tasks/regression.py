"""Regression: numbers for each example.

Outputs and targets have the same shape [N, ...]; [N] and [N, 1] are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import CanvasError
from .evaluate import NotFinite, device_of, pair_of, tensor_of, to_device
from .task import Task

LEAST_VARIANCE = 1e-12


def _pair(outputs: Any, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and targets [N, numbers]; raises CanvasError where their shapes differ."""
    if not isinstance(outputs, Tensor):
        raise CanvasError(f"regression needs a tensor as output, not a {type(outputs).__name__}")
    ours = outputs.reshape(len(outputs) if outputs.ndim else 1, -1)
    theirs = wanted.reshape(len(wanted) if wanted.ndim else 1, -1).to(outputs.dtype)
    if ours.shape != theirs.shape:
        raise CanvasError(
            f"outputs are {list(outputs.shape)} and targets {list(wanted.shape)}: regression "
            "needs one target for each number"
        )
    return ours, theirs


def loss(model: nn.Module, batch: Any) -> Tensor:
    """The mean squared error."""
    inputs, wanted = to_device(batch, device_of(model))
    return F.mse_loss(*_pair(model(inputs), wanted))


def rmse(model: nn.Module, batches: Iterable[Any]) -> float:
    """The root of the mean squared error, in the unit of the targets.  Raises NotFinite."""
    device = device_of(model)
    total, count = 0.0, 0
    for inputs, wanted in map(pair_of, batches):
        ours, theirs = _pair(tensor_of(model(inputs.to(device))), wanted)
        if not bool(theirs.isfinite().all()):
            raise CanvasError("a target is NaN or infinite: the data of a regression are numbers")
        total += float((ours.double() - theirs.double()).square().sum())
        count += ours.numel()
    if not math.isfinite(total):
        raise NotFinite("outputs for some examples are not finite")
    return math.sqrt(total / max(count, 1))


def divergence(outputs: Tensor, teacher: Tensor) -> Tensor:
    """The squared error against the teacher over the variance of the teacher's outputs, the mean
    over the numbers of an example.
    """
    ours, theirs = _pair(outputs, teacher)
    spread = theirs.var(0, unbiased=False) if len(theirs) > 1 else theirs.square()[0]
    # a number that hardly varies in this batch counts as the others do together
    least = spread.mean() / 100 + LEAST_VARIANCE
    return ((ours - theirs).square().mean(0) / spread.clamp(min=least)).mean()


REGRESSION = Task(
    loss, rmse, divergence, higher_is_better=False, unit="", name="regression",
    metric_name="RMSE",
)  # fmt: skip
