"""Segmentation: one of several classes for each pixel.

Outputs are scores [N, classes, H, W], or a dict that has them as "out"; targets class numbers
[N, H, W], of which 255 and negative numbers are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import CanvasError
from .classification import TEMPERATURE
from .evaluate import NotFinite, device_of, pair_of, to_device
from .task import Task

IGNORED = 255


def scores_of(outputs: Any) -> Tensor:
    """The scores of the classes, of networks that answer with a dict, too (torchvision's)."""
    scores = outputs["out"] if isinstance(outputs, Mapping) and "out" in outputs else outputs
    if not isinstance(scores, Tensor) or scores.ndim != 4:
        got = list(scores.shape) if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
        raise CanvasError(f"segmentation needs outputs [N, classes, H, W], not {got}")
    return scores


def _counted(masks: Tensor, scores: Tensor) -> Tensor:
    """The targets, with -1 for pixels that do not count; raises CanvasError where they are no
    classes of the scores.
    """
    if masks.ndim == 4 and masks.shape[1] == 1:
        masks = masks[:, 0]
    if masks.shape != (len(scores), *scores.shape[2:]):
        raise CanvasError(
            f"masks are {list(masks.shape)}, the outputs {list(scores.shape)}: each pixel of the "
            "outputs needs a class"
        )
    masks = masks.long()
    masks = torch.where((masks == IGNORED) | (masks < 0), -1, masks)
    if masks.numel() and int(masks.max()) >= scores.shape[1]:
        raise CanvasError(
            f"a mask has class {int(masks.max())}, the network has {scores.shape[1]} classes"
        )
    return masks


def loss(model: nn.Module, batch: Any) -> Tensor:
    """Cross-entropy, the mean over the pixels that count."""
    images, masks = to_device(batch, device_of(model))
    scores = scores_of(model(images))
    wanted = _counted(masks, scores)
    total = F.cross_entropy(scores, wanted, ignore_index=-1, reduction="sum")
    return total / max(int((wanted >= 0).sum()), 1)


def mean_iou(model: nn.Module, batches: Iterable[Any]) -> float:
    """Intersection over union of each class over all pixels, the mean of the classes that occur in
    targets or outputs; 0..1.  Raises NotFinite.
    """
    device = device_of(model)
    table = torch.zeros(0, 0, dtype=torch.int64)  # [target, answer]
    for images, masks in map(pair_of, batches):
        scores = scores_of(model(images.to(device))).cpu()
        if not torch.isfinite(scores).all():
            raise NotFinite("outputs for some images are not finite")
        wanted = _counted(masks, scores)
        classes = scores.shape[1]
        if not len(table):
            table = torch.zeros(classes, classes, dtype=torch.int64)
        counts = wanted >= 0
        pairs = wanted[counts] * classes + scores.argmax(1)[counts]
        table += torch.bincount(pairs, minlength=classes**2).reshape(classes, classes)
    both = table.diag().double()
    either = table.sum(0) + table.sum(1) - table.diag()
    occurs = either > 0
    if not bool(occurs.any()):
        raise CanvasError("no pixel of the masks counts: there is nothing to be right about")
    return float((both[occurs] / either[occurs]).mean())


def divergence(outputs: Any, teacher: Any) -> Tensor:
    """KL(teacher, outputs) in nats, the mean over the pixels."""
    log_p = F.log_softmax(scores_of(teacher), 1)
    log_q = F.log_softmax(scores_of(outputs), 1)
    return (log_p.exp() * (log_p - log_q)).sum(1).mean()


def softened(outputs: Any, teacher: Any) -> Tensor:
    """The same at a temperature, times its square."""
    warm, wanted = (scores_of(one) / TEMPERATURE for one in (outputs, teacher))
    return TEMPERATURE**2 * divergence(warm, wanted)


SEGMENTATION = Task(
    loss, mean_iou, divergence, name="segmentation", metric_name="mean IoU",
    distillation=softened,
)  # fmt: skip
