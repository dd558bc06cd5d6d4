"""Multi-label classification: any number of labels for each example.

Outputs are scores [N, labels] before the sigmoid, targets 0 or 1 of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import CanvasError
from .evaluate import NotFinite, device_of, pair_of, tensor_of, to_device
from .task import Task


def _pair(scores: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
    if not isinstance(scores, Tensor) or scores.shape != labels.shape or scores.ndim != 2:
        got = list(scores.shape) if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
        raise CanvasError(
            f"outputs are {got} and targets {list(labels.shape)}: multi-label classification "
            "needs [N, labels] of both"
        )
    if bool(((labels != 0) & (labels != 1)).any()):
        raise CanvasError("a target is neither 0 nor 1: multi-label targets are")
    return scores, labels.to(scores.dtype)


def loss(model: nn.Module, batch: Any) -> Tensor:
    """Binary cross-entropy, the mean over labels and examples."""
    inputs, labels = to_device(batch, device_of(model))
    return F.binary_cross_entropy_with_logits(*_pair(model(inputs), labels))


def mean_average_precision(model: nn.Module, batches: Iterable[Any]) -> float:
    """The average precision of each label that some example has, its mean; 0..1.

    The average precision is the mean, over the examples that have the label, of the share of
    examples with it among those that the network puts no lower.  Raises NotFinite.
    """
    device = device_of(model)
    found: list[tuple[Tensor, Tensor]] = []
    for inputs, labels in map(pair_of, batches):
        found.append(_pair(tensor_of(model(inputs.to(device))), labels))
    scores, labels = (torch.cat(parts) for parts in zip(*found))
    if not torch.isfinite(scores).all():
        raise NotFinite("outputs for some examples are not finite")
    precisions = [
        average_precision(scores[:, at], labels[:, at] > 0)
        for at in range(labels.shape[1])
        if bool((labels[:, at] > 0).any())
    ]
    if not precisions:
        raise CanvasError("no example has a label: there is nothing to be right about")
    return sum(precisions) / len(precisions)


def average_precision(scores: Tensor, wanted: Tensor) -> float:
    """Of one label; examples with equal scores count as put at the same place."""
    order = torch.argsort(scores, descending=True, stable=True)
    ranked, right = scores[order], wanted[order].double()
    ends = torch.ones(len(ranked), dtype=torch.bool)
    ends[:-1] = ranked[1:] != ranked[:-1]
    places = torch.arange(1, len(ranked) + 1, dtype=torch.float64)[ends]
    hits = right.cumsum(0)[ends]
    new = torch.diff(hits, prepend=torch.zeros(1, dtype=torch.float64))
    return float((new * hits / places).sum() / right.sum())


def divergence(outputs: Tensor, teacher: Tensor) -> Tensor:
    """Binary KL(teacher, outputs) in nats, the sum over the labels, the mean over the examples."""
    p = torch.sigmoid(teacher)
    yes = F.logsigmoid(teacher) - F.logsigmoid(outputs)
    no = F.logsigmoid(-teacher) - F.logsigmoid(-outputs)
    return (p * yes + (1 - p) * no).flatten(1).sum(1).mean()


MULTI_LABEL = Task(
    loss, mean_average_precision, divergence, name="multi-label",
    metric_name="mean average precision",
)  # fmt: skip
