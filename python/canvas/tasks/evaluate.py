"""A task at work: the loss of a step with what the network gave, the metric on a split, the
divergence of outputs.

What a user's functions do wrong is one message here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..arguments import shown
from ..devices import device_error
from ..errors import CanvasError, one_line
from ..inputs import tensors_of
from ..metric import LARGEST

if TYPE_CHECKING:
    from .task import Divergence, Task


class NotFinite(ArithmeticError):
    """A loss, an output, a weight or a statistic is NaN or infinite: there is no result."""


def device_of(model: nn.Module) -> torch.device:
    """Where the network's weights are; the CPU for a network without any."""
    return next((weight.device for weight in model.parameters()), torch.device("cpu"))


def to_device(batch: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    """(inputs, targets) of a batch on a device; raises CanvasError for a batch of another form."""
    inputs, targets = pair_of(batch)
    return inputs.to(device), targets.to(device)


def tensor_of(outputs: Any) -> Tensor:
    """The outputs of a network on the CPU; raises CanvasError where they are no tensor."""
    if not isinstance(outputs, Tensor):
        raise CanvasError(
            f"the network returns a {type(outputs).__name__}, this task takes a tensor: give a "
            "canvas.Task of your own"
        )
    return outputs.cpu()


def pair_of(batch: Any) -> tuple[Tensor, Tensor]:
    """(inputs, targets) of a batch; raises CanvasError for a batch of another form."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise CanvasError(
            f"a batch is (inputs, targets) for this task, not {shown(batch)}: give a canvas.Task "
            "with a loss and a metric of your own"
        )
    for what, value in zip(("inputs", "targets"), batch):
        if not isinstance(value, Tensor):
            raise CanvasError(f"the {what} of a batch are a tensor for this task, not "
                              f"{shown(value)}")  # fmt: skip
    return batch[0], batch[1]


@dataclass
class Call:
    """What a network was given last, and what it gave."""

    args: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    outputs: Any = None
    count: int = 0

    def again(self, network: nn.Module) -> Any:
        """What another network gives for the same."""
        return network(*self.args, **self.named)


@contextmanager
def watched(model: nn.Module) -> Iterator[Call]:
    """The last call of a network while the block runs."""
    call = Call()

    def note(
        _module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], outputs: Any
    ) -> None:
        call.args, call.named, call.outputs = args, named, outputs
        call.count += 1

    handle = model.register_forward_hook(note, with_kwargs=True)
    try:
        yield call
    finally:
        handle.remove()


def loss_of(task: Task, model: nn.Module, batch: Any) -> tuple[Tensor, Call]:
    """The task's loss on a batch, a scalar, and the call of the network that it made; without a
    loss 0 and the call.  Raises CanvasError where the user's function fails.
    """
    with watched(model) as call:
        if task.loss is None:
            task.inputs_of(batch).to(device_of(model)).call(model)
            return torch.zeros(()), call
        with failing_as(f"the loss of task '{task.name}'", task.loss):
            loss = task.loss(model, batch)
    if not isinstance(loss, Tensor) or loss.numel() != 1 or loss.is_complex():
        what = list(loss.shape) if isinstance(loss, Tensor) else shown(loss)
        raise CanvasError(
            f"the loss of task '{task.name}' returned {what}: it must return a tensor of one "
            "number"
        )
    if not call.count:
        raise CanvasError(
            f"the loss of task '{task.name}' did not run the network that it was given"
        )
    return loss.reshape(()), call


def evaluate(task: Task, model: nn.Module, batches: Iterable[Any]) -> float | None:
    """The metric of a network on batches, in evaluation mode and without gradients; None for a
    task without metric.

    Raises NotFinite for a metric that is NaN or infinite, CanvasError for one that fails or
    returns no number, or, with the unit points, one outside 0..1.
    """
    if task.metric is None:
        return None
    what = f"the metric of task '{task.name}'"
    model.eval()
    with torch.no_grad(), failing_as(what, task.metric):
        value = task.metric(model, batches)
    try:
        number = as_number(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise CanvasError(f"{what} returned {shown(value)}: it must return a number") from None
    if not abs(number) <= LARGEST:
        raise NotFinite(f"{what} is {number}")
    if task.judged_by.is_share and not 0 <= number <= 1:
        raise CanvasError(
            f'{what} returned {number:.4g}: the unit "points" is for shares from 0 to 1, give the '
            "task another unit"
        )
    return number


def as_number(value: Any) -> float:
    """A number, or a tensor of one number on any device; raises what `float` does."""
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, (str, bytes)):
        raise TypeError("a text is no number")
    return float(value)


def hits_of(task: Task, model: nn.Module, batches: Iterable[Any], count: int) -> Tensor | None:
    """Which of `count` examples the network is right on, bool [count]; None for a task that does
    not say so.  Raises as `evaluate` does.
    """
    if task.hits is None:
        return None
    what = f"the hits of task '{task.name}'"
    model.eval()
    with torch.no_grad(), failing_as(what, task.hits):
        found = task.hits(model, batches)
    if not isinstance(found, Tensor) or tuple(found.shape) != (count,):
        got = list(found.shape) if isinstance(found, Tensor) else shown(found)
        raise CanvasError(f"{what} are {got}: they must be a tensor [{count}] of True and False")
    return found.cpu().bool()


def divergence_of(name: str, divergence: Divergence | None, outputs: Any, teacher: Any) -> Tensor:
    """A scalar; raises CanvasError where there is no divergence or the user's function fails."""
    if divergence is None:
        raise CanvasError(f"task '{name}' has no divergence: canvas.fit needs one")
    what = f"the divergence of task '{name}'"
    with failing_as(what):
        value = divergence(outputs, teacher)
    if not isinstance(value, Tensor) or value.numel() != 1 or value.is_complex():
        raise CanvasError(f"{what} returned {shown(value)}: it must return a tensor of one number")
    return value.reshape(())


def finite(outputs: Any) -> bool:
    """Whether no number of an output is NaN or infinite."""
    return all(
        bool(torch.isfinite(tensor).all())
        for tensor in tensors_of(outputs)
        if tensor.is_floating_point()
    )


@contextmanager
def failing_as(what: str, function: Any = None) -> Iterator[None]:
    """Around a function of the user's, which can raise anything.  What a `function` of canvas
    raises is the network's own and stays as it is; so does what a device does wrong meanwhile.
    """
    try:
        yield
    except (CanvasError, NotFinite):
        raise
    except (Exception, SystemExit) as error:
        if str(getattr(function, "__module__", "")).startswith("canvas.") or device_error(error):
            raise
        raise CanvasError(f"{what} failed: {one_line(error)}") from error
