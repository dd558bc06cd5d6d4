"""How far a network is from its teacher, and the loss of distillation.

The distance is that of the task: for a classification the Kullback-Leibler divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import CanvasError
from ..inputs import Inputs, tensors_of
from ..tasks.evaluate import divergence_of, loss_of
from ..tasks.task import Task

BATCH = 256
BATCH_BYTES = 64 << 20  # of the inputs of a batch
NEGATIVE = 1e-4  # what rounding may make of a divergence of 0
SHARE = 0.9  # of distillation; the rest is the task's own loss


def batch_of(inputs: Inputs) -> int:
    """Examples of a batch on which networks are scored."""
    return max(1, min(BATCH, BATCH_BYTES // max(inputs.bytes_each, 1)))


def outputs_of(network: nn.Module, inputs: Inputs) -> list[Any]:
    """The network's outputs, a batch at a time, in evaluation mode."""
    network.eval()
    with torch.no_grad():
        return [batch.call(network) for batch in inputs.split(batch_of(inputs))]


def bytes_of(outputs: Any) -> int:
    """Of the tensors of an output."""
    return sum(tensor.element_size() * tensor.numel() for tensor in tensors_of(outputs))


def divergence(
    task: Task, outputs: Sequence[Any], teacher: Sequence[Any], counts: Sequence[int]
) -> float:
    """The task's divergence of a network's outputs from the teacher's, the mean over the examples,
    `counts` of them in each batch; infinite for outputs that are NaN.
    """
    total = 0.0
    with torch.no_grad():
        for ours, theirs, count in zip(outputs, teacher, counts, strict=True):
            total += count * divergence_of(task.name, task.divergence, ours, theirs).item()
    value = total / sum(counts)
    if value < -NEGATIVE:
        raise CanvasError(
            f"the divergence of task '{task.name}' is {value:.3g}: it must be at least 0, and 0 "
            "for equal outputs"
        )
    return value if value == value else float("inf")


def imitation(
    task: Task, teacher: nn.Module, share: float = SHARE
) -> Callable[[nn.Module, Any], tuple[Tensor, Any]]:
    """The objective of distillation: `share` of the divergence from the teacher, which runs beside
    the network, and the rest of the task's loss; the divergence alone for a task without loss.
    """
    teacher.eval()
    distance = task.distillation or task.divergence

    def objective(network: nn.Module, batch: Any) -> tuple[Tensor, Any]:
        hard, call = loss_of(task, network, batch)
        with torch.no_grad():
            wanted = call.again(teacher)
        soft = divergence_of(task.name, distance, call.outputs, wanted)
        loss = soft if task.loss is None else share * soft + (1 - share) * hard
        return loss, call.outputs

    return objective
