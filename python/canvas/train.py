"""One short training: the proxy by which candidates are ranked.

SGD with Nesterov momentum 0.9, weight decay 5e-4 and clipped gradients under a one-cycle rate that
peaks at 0.1, the same for every candidate and every control.  After each epoch the validation
split is scored and the caller is asked whether to go on, so that pruning needs no code here.  With
one thread and one seed the result is the same every time on one machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import augment
from .data import Data

PEAK_RATE = 0.1
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
CLIP = 2.0  # norm of the gradient: chains of fc without norms between them diverge otherwise
SETTLE = 8  # batches from which BatchNorm statistics are taken before each evaluation
SCORE_BATCH = 256


class NotFinite(ArithmeticError):
    """The loss became NaN or infinite: the candidate cannot be trained this way."""


@dataclass(frozen=True)
class Epoch:
    """What one epoch gave: its number from 0, accuracy on validation in 0..1, mean training
    loss.
    """

    number: int
    accuracy: float
    loss: float


def train(
    model: nn.Module,
    data: Data,
    epochs: int,
    seed: int,
    batch_size: int = 64,
    go_on: Callable[[Epoch], bool] = lambda epoch: True,
) -> list[Epoch]:
    """Train `model` on data.train for at most `epochs` epochs and return the curve on
    data.validation.

    The images of a batch are augmented as `data` says; the statistics of BatchNorm and every score
    are taken from images as they are.  `go_on` is asked after every epoch; False ends the
    training.  Raises NotFinite when the loss
    is no number.
    """
    images, labels = data.train
    batch_size = min(batch_size, len(labels))
    steps = math.ceil(len(labels) / batch_size)
    shuffle = torch.Generator().manual_seed(seed)
    chance = augment.generator(seed)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=PEAK_RATE,
        momentum=MOMENTUM,
        weight_decay=WEIGHT_DECAY,
        nesterov=True,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=PEAK_RATE, total_steps=epochs * steps, cycle_momentum=False
    )
    curve: list[Epoch] = []
    for number in range(epochs):
        model.train()
        order = torch.randperm(len(labels), generator=shuffle)
        total = 0.0
        for batch in _batches(order, batch_size):
            optimizer.zero_grad(set_to_none=True)
            seen = data.augmentation.apply(images[batch], chance)
            loss = F.cross_entropy(model(seen), labels[batch])
            value = loss.item()
            if not math.isfinite(value):
                raise NotFinite(f"the loss is {value} in epoch {number}")
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            total += value * len(batch)
        settle_statistics(model, images[order[: SETTLE * batch_size]], batch_size)
        curve.append(Epoch(number, score(model, data.validation), total / len(labels)))
        if not go_on(curve[-1]):
            break
    return curve


def settle_statistics(model: nn.Module, images: Tensor, batch_size: int) -> None:
    """Take the running statistics of BatchNorm anew from `images` [N, C, H, W] with the weights as
    they are.

    In the middle of a one-cycle schedule the weights move faster than running averages follow,
    and an evaluation would measure that lag: one network in its third epoch scored 23 % with
    running averages and 81 % without.
    """
    layers = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    if not layers:
        return
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over the batches
    model.train()
    with torch.no_grad():
        for batch in images.split(batch_size):
            if len(batch) > 1:
                model(batch)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


def _batches(order: Tensor, size: int) -> list[Tensor]:
    """Batches of `size`; a last batch of one image joins its neighbour, for BatchNorm cannot
    take one.
    """
    batches = list(order.split(size))
    if len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def score(model: nn.Module, split: tuple[Tensor, Tensor]) -> float:
    """Share of the split's images that the network classifies right, in evaluation mode;
    0..1.
    """
    images, labels = split
    model.eval()
    right = 0
    with torch.no_grad():
        for start in range(0, len(labels), SCORE_BATCH):
            output = model(images[start : start + SCORE_BATCH])
            right += int((output.argmax(1) == labels[start : start + SCORE_BATCH]).sum())
    return right / len(labels)
