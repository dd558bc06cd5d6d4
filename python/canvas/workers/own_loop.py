"""Trainings by a loop of the user's: `train(model, context)`, a generator that yields after each
epoch, and `score(model)`, the metric.

The loop brings its own data, loss and optimizer; a search brings the network, the seed and how
many epochs there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..arguments import shown
from ..errors import CanvasError
from ..imports import find_by_name
from ..tasks.evaluate import NotFinite, evaluate, failing_as
from ..tasks.task import Task
from ..training.train import Epoch, check_finite


@dataclass
class Context:
    """What a loop may use: the `device` that the network is on, the `seed` of this training, how
    many `epochs` it has, and a `folder` of its own for checkpoints, which stays until the study
    goes.
    """

    device: torch.device
    seed: int
    epochs: int
    folder: Path
    _reported: list[float] = field(default_factory=list, repr=False)

    def report(self, value: float) -> None:
        """The metric after the epoch that is about to end; without it `score` is called."""
        self._reported[:] = [value]

    def taken(self) -> float | None:
        """What was reported since the last epoch."""
        return self._reported.pop() if self._reported else None


def epochs_of(
    network: nn.Module,
    task: Task,
    words: dict[str, Any],
    seed: int,
    epochs: int,
    place: torch.device,
) -> Iterator[Epoch]:
    """The epochs of a training, each with its score; `words` name the loop, the score and the
    folder, `place` is where the network is.  Raises NotFinite, and CanvasError where the user's
    functions fail.
    """
    train, score = (find_by_name(words[name], name) for name in ("train", "score"))
    folder = Path(words["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    context = Context(place, seed, epochs, folder)
    judged = _judge(task, score)
    loop = _begun(train, network.train(), context)
    for number in range(epochs):
        with failing_as("the loop of train"):
            try:
                loss = next(loop)
            except StopIteration:
                raise CanvasError(
                    f"the loop of train ended after {number} of {epochs} epochs: it must yield "
                    "after each"
                ) from None
        check_finite(network, f"after epoch {number + 1}")
        reported = context.taken()
        value = evaluate(judged, network, ()) if reported is None else _checked(judged, reported)
        assert value is not None
        yield Epoch(number, value, _number(loss), math.nan, 0.0)
        network.train()


def _begun(train: Any, network: nn.Module, context: Context) -> Iterator[Any]:
    with failing_as("the loop of train"):
        loop = train(network, context)
    if not isinstance(loop, Iterator):
        raise CanvasError(
            f"train returned {shown(loop)}: it must be a generator that yields after each epoch"
        )
    return loop


def _judge(task: Task, score: Any) -> Task:
    """The task with the user's score as its metric."""

    def metric(model: nn.Module, _batches: Any) -> Any:
        with failing_as("the score function"):
            return score(model)

    return Task(
        None, metric, None, task.higher_is_better, task.unit, task.name,
        metric_name=task.metric_name,
    )  # fmt: skip


def _checked(task: Task, reported: Any) -> float | None:
    return evaluate(
        Task(None, lambda *_: reported, None, task.higher_is_better, task.unit, task.name),
        nn.Identity(),
        (),
    )


def _number(loss: Any) -> float:
    """What a loop yields, as a loss; 0 where it is none."""
    try:
        value = float(loss)
    except (TypeError, ValueError):
        return 0.0
    if not math.isfinite(value):
        raise NotFinite(f"the loss is {value}")
    return value
