"""Whether a task, its data and a network go together: a check before anything is trained."""

from __future__ import annotations

import math

from torch import Tensor, nn

from ..data import Source
from ..errors import CanvasError
from ..inputs import Inputs, join
from .evaluate import divergence_of, finite, loss_of
from .task import Task

SAME = 1e-4  # a divergence of equal outputs, at most


def some_inputs(source: Source, task: Task, split: str, count: int, memory: int) -> Inputs:
    """The inputs of `count` examples from all over a split, fewer where they would take more than
    `memory` bytes.
    """
    parts = [task.inputs_of(batch) for batch in source.first(split, 1)]
    count = max(1, min(count, memory // max(parts[0].bytes_each, 1)))
    return join(source.sample(split, count, task.inputs_of))[:count]


def check_task(network: nn.Module, source: Source, task: Task, distilled: bool = True) -> None:
    """Run the task once on a network that may be spent: the loss of a training batch, and, where
    networks are `distilled`, the divergence from itself.  Raises CanvasError for what cannot be,
    so that nothing fails hours later.
    """
    batch = source.first("train", 1)[0]
    student = network.eval().requires_grad_(True)
    loss, call = loss_of(task, student, batch)
    if not finite(call.outputs):
        raise CanvasError("the network gives outputs that are NaN or infinite")
    if task.loss is not None:
        _check_scalar(loss, f"the loss of task '{task.name}'")
    if not distilled:
        return
    what = f"the divergence of task '{task.name}'"
    for distance in dict.fromkeys((task.divergence, task.distillation or task.divergence)):
        value = divergence_of(task.name, distance, call.outputs, call.outputs)
        _check_scalar(value, what)
        if abs(value.item()) > SAME:
            raise CanvasError(
                f"{what} is {value.item():.3g} for equal outputs, where it must be 0"
            )


def _check_scalar(value: Tensor, what: str) -> None:
    """What is minimised must be finite and have a gradient."""
    if not math.isfinite(value.item()):
        raise CanvasError(f"{what} is {value.item()}")
    if not value.requires_grad:
        raise CanvasError(
            f"{what} has no gradient: it must be computed from the outputs of the network with "
            "torch"
        )
