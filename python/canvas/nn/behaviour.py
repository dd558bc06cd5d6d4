"""What a network does at its first step: the check that it can be trained at all, and a record by
which a later run knows that its code is still the same.

    structure    sha256 of the names and types of its modules, and the shapes of its tensors
    `answers`    its outputs for fixed images, with the weights and the chance of fixed seeds,
                 while it trains (so that another share of dropout shows) and in evaluation

Outputs are compared with a tolerance, because another processor rounds otherwise.  A network whose
outputs differ each time it is built has no `answers` in its record.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import CanvasError, one_line
from ..inputs import Inputs, tensors_of

IMAGES = 2
DIGITS = 7
ANSWERS = 32  # numbers of each output that a record of any network keeps


def record(build: Callable[[], nn.Module], name: str, shape: Sequence[int], classes: int) -> str:
    """The record of the network that `build` makes anew each time, as JSON; raises CanvasError
    where it cannot be trained.
    """
    images = torch.randn(IMAGES, *shape, generator=torch.Generator().manual_seed(0))
    model = build()
    with _failing_as(name):
        output = _train_mode(model, images)
    check_answer(output, name, classes, IMAGES, " while it trains")
    with _failing_as(name), torch.no_grad():
        again = _train_mode(build(), images)
    with _failing_as(name):
        F.cross_entropy(output, torch.arange(IMAGES) % classes).backward()
        model.eval()
        with torch.no_grad():
            evaluated = model(images.clone())
    output = output.detach()
    answers: list[float] = [*output.flatten().tolist(), *evaluated.flatten().tolist()]
    if not all(map(math.isfinite, answers)) or not _equal(output, again):
        answers = []
    rounded = [float(f"{value:.{DIGITS}g}") for value in answers]
    return json.dumps({"structure": structure(model), "answers": rounded})


def record_answers(model: nn.Module, inputs: Inputs, name: str) -> str:
    """The record of a network of any form, by its outputs for `inputs` in evaluation mode."""
    with _failing_as(name), torch.no_grad():
        found = tensors_of(inputs.call(model.eval()))
    numbers = [float(n) for tensor in found for n in tensor.flatten()[:ANSWERS].tolist()]
    answers = numbers if all(map(math.isfinite, numbers)) else []
    rounded = [float(f"{value:.{DIGITS}g}") for value in answers]
    return json.dumps({"structure": structure(model), "answers": rounded})


def _equal(output: Tensor, again: Tensor) -> bool:
    """Up to rounding; `output` is finite."""
    return torch.allclose(output, again, rtol=0, atol=1e-5 * float(output.abs().max()))


def _train_mode(model: nn.Module, images: Tensor) -> Any:
    model.train()
    torch.manual_seed(0)  # for dropout
    return model(images.clone())


@contextmanager
def _failing_as(name: str) -> Iterator[None]:
    """Around what runs the code of a model, which can raise anything."""
    try:
        yield
    except Exception as error:
        raise CanvasError(f"model '{name}' cannot be trained: {one_line(error)}") from error


def check_first_step(model: nn.Module, name: str, shape: Sequence[int], classes: int) -> None:
    """Reject a network that fails in the first step of a training, before anything else is done
    with it.  Leaves it in training mode, with its buffers, gradients and the chance as they were.
    """
    images = torch.randn(IMAGES, *shape, generator=torch.Generator().manual_seed(0))
    with _buffers_restored(model), torch.random.fork_rng(devices=[]), torch.enable_grad():
        with _failing_as(name):
            output = model.train()(images)
        check_answer(output, name, classes, IMAGES, " while it trains")
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        if weights:
            with _failing_as(name):
                loss = F.cross_entropy(output, torch.arange(IMAGES) % classes)
                torch.autograd.grad(loss, weights, allow_unused=True)


@contextmanager
def _buffers_restored(model: nn.Module) -> Iterator[None]:
    """A training step changes statistics, in place or by another tensor."""
    saved = [(module, dict(module._buffers)) for module in model.modules()]
    values = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for module, buffers in saved:
            module._buffers.update(buffers)
        with torch.no_grad():
            for buffer, value in values:
                buffer.copy_(value)


def check_answer(output: object, name: str, classes: int, count: int, when: str = "") -> None:
    """Reject what is not one score for each class and image."""
    if isinstance(output, Tensor) and tuple(output.shape) == (count, classes):
        return
    got = list(output.shape) if isinstance(output, Tensor) else f"a {type(output).__name__}"
    raise CanvasError(
        f"model '{name}' must answer [N, {classes}] for N images of this data{when}, "
        f"not {got} for {count}"
    )


def structure(model: nn.Module) -> str:
    """A sha256 of what the network is made of."""
    parts = [f"{path} {type(module).__qualname__}" for path, module in model.named_modules()]
    parts += [f"{path} {list(value.shape)}" for path, value in model.named_parameters()]
    parts += [f"{path} {list(value.shape)}" for path, value in model.named_buffers()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
