"""A task: the loss of a batch, the metric of a network, the divergence of two outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from torch import Tensor, nn

from ..arguments import shown
from ..errors import CanvasError, one_line
from ..inputs import Inputs
from ..metric import POINTS, Metric

Loss = Callable[[nn.Module, Any], Tensor]
Score = Callable[[nn.Module, Iterable[Any]], float]
Divergence = Callable[[Any, Any], Tensor]


def first_of(batch: Any) -> Any:
    """The inputs of a batch (inputs, targets, ...), or of one that is inputs alone."""
    if isinstance(batch, Mapping):
        raise CanvasError(
            "the batches are dicts: give the task inputs=, a function of the batch that returns "
            "what the network takes"
        )
    if isinstance(batch, (tuple, list)):
        if not batch:
            raise CanvasError("a batch is empty")
        return batch[0]
    return batch


@dataclass(frozen=True)
class Task:
    """What a network is for.

    `loss(model, batch)` runs the network on a batch and returns a scalar tensor; None tunes by
    distillation alone.  `metric(model, batches)` judges a network, in evaluation mode and without
    gradients, on an iterable of batches, and returns a number; None judges by nothing.
    `divergence(outputs, teacher_outputs)` is a scalar tensor, at least 0 and 0 for equal outputs:
    it scores what is fitted, and distillation minimises it; a search does without.

    `higher_is_better`: which way the metric goes.  `unit`: "points" for shares from 0 to 1, which
    are shown in percent, else the unit of the metric, or "".  `name` stands in a study.

    `metric_name` stands in tables (default: the name of the task).  `inputs(batch)` is what the
    network takes: a tensor, a tuple of arguments or a dict of named ones, each with the examples
    along its first axis (default: the first element of the batch).  `distillation` replaces the
    divergence while networks are tuned.  `hits(model, batches)`, bool [N], are what the metric is
    the mean of; with them a claim counts the chance of the examples, too.
    """

    loss: Loss | None
    metric: Score | None
    divergence: Divergence | None = None
    higher_is_better: bool = True
    unit: str = POINTS
    name: str = "own"
    _: KW_ONLY
    metric_name: str = ""
    inputs: Callable[[Any], Any] = first_of
    distillation: Divergence | None = None
    hits: Callable[[nn.Module, Iterable[Any]], Tensor] | None = None

    def __post_init__(self) -> None:
        for what in ("loss", "metric", "divergence", "distillation", "hits"):
            value = getattr(self, what)
            if value is not None and not callable(value):
                raise CanvasError(f"{what} of a task is a function or None, not {shown(value)}")
        if not callable(self.inputs):
            raise CanvasError(f"inputs of a task is a function, not {shown(self.inputs)}")
        if not isinstance(self.name, str) or not self.name.strip():
            raise CanvasError(f"the name of a task is a text, not {shown(self.name)}")
        if not isinstance(self.metric_name, str):
            raise CanvasError(
                f"the metric_name of a task is a text, not {shown(self.metric_name)}"
            )
        self.judged_by  # noqa: B018  (checks names and unit)

    @property
    def judged_by(self) -> Metric:
        """The metric as reports show it."""
        name = self.metric_name or self.name
        return Metric(name, self.unit, self.higher_is_better, self.hits is not None)

    def inputs_of(self, batch: Any) -> Inputs:
        """What a network takes of a batch; raises CanvasError with one message."""
        try:
            inputs = self.inputs(batch)
        except CanvasError:
            raise
        except Exception as error:
            raise CanvasError(f"inputs of task '{self.name}' failed: {one_line(error)}") from error
        return Inputs.of(inputs)
