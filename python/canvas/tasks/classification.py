"""Classification: one of several classes for each example.

Outputs are scores [N, classes], targets class numbers [N].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .evaluate import NotFinite, device_of, pair_of, tensor_of, to_device
from .task import Task

TEMPERATURE = 4.0  # of distillation


def cross_entropy(model: nn.Module, batch: Any) -> Tensor:
    """The usual loss of classification."""
    images, labels = to_device(batch, device_of(model))
    return F.cross_entropy(model(images), labels)


def right(outputs: Tensor, labels: Tensor) -> Tensor | None:
    """Which examples are classified right: bool [N]; None where an output is NaN or infinite, as
    the largest of such outputs means nothing.
    """
    if not torch.isfinite(outputs).all():
        return None
    return outputs.argmax(1) == labels


def hits_in(outputs: Tensor, batch: Any) -> int:
    """How many examples of a training batch are classified right."""
    return int((outputs.argmax(1) == batch[1].to(outputs.device)).sum())


def hits(model: nn.Module, batches: Iterable[Any]) -> Tensor:
    """Which examples the network classifies right, in evaluation mode: bool [N].  Raises NotFinite
    where an output for one of them is NaN or infinite.
    """
    model.eval()
    device = device_of(model)
    rights: list[Tensor] = []
    failed = count = 0
    with torch.no_grad():
        for images, labels in map(pair_of, batches):
            outputs = tensor_of(model(images.to(device)))
            found = right(outputs, labels)
            count += len(labels)
            if found is None:
                failed += int((~torch.isfinite(outputs).flatten(1).all(1)).sum())
            else:
                rights.append(found)
    if failed:
        raise NotFinite(f"outputs for {failed} of {count} images are not finite")
    return torch.cat(rights)


def accuracy(model: nn.Module, batches: Iterable[Any]) -> float:
    """Share of the examples that are classified right, 0..1.  Raises NotFinite."""
    found = hits(model, batches)
    return int(found.sum()) / len(found)


def divergence(outputs: Tensor, teacher: Tensor) -> Tensor:
    """KL(teacher, outputs) in nats, the mean over the examples."""
    log_p = F.log_softmax(teacher.double(), 1)
    log_q = F.log_softmax(outputs.double(), 1)
    return (log_p.exp() * (log_p - log_q)).sum(1).mean()


def softened(outputs: Tensor, teacher: Tensor) -> Tensor:
    """KL at a temperature, times its square as usual: what distillation minimises (Hinton et al.,
    2015).
    """
    soft = F.kl_div(
        F.log_softmax(outputs / TEMPERATURE, 1),
        F.log_softmax(teacher / TEMPERATURE, 1),
        reduction="none",
        log_target=True,
    )
    return TEMPERATURE**2 * soft.sum(1).mean()


CLASSIFICATION = Task(
    cross_entropy, accuracy, divergence, name="classification", metric_name="accuracy",
    distillation=softened, hits=hits,
)  # fmt: skip
UNLABELLED = Task(
    None, None, divergence, name="unlabelled", metric_name="no metric", distillation=softened
)
