"""What a network tells before it is trained: whether it can be, and a fingerprint of its function.

    broken        why no training can begin: a loss that is not finite, a layer without gradient
    fingerprint   equal for kernels that are the same function of their weights, however written

The first is taken of the network as its training begins: train mode, its norms, its weights, its
first batch, its loss.  The fingerprint is taken with other weights, since what it compares is the
function and not where it starts:

- Weights are matched by shape, not by name or place in the text.  First all weights of one shape
  in a layer get the same values; the norm of each one's gradient then tells its role whatever
  it is called.  In the order of these norms they get different values, and the function is
  measured once more.  Weights whose roles cannot be told apart may be swapped without changing it.
- Loss and gradient norm of both times are computed in float64 and kept to 8 digits.  Another order
  of evaluation moves them by about 1e-13, so that equal functions fall on two sides of a rounding
  about once in 1e5 pairs; float32 would leave 5 digits at best, and half of them shared by chance.

A difference that the kernel's text does not show stays unseen: functions equal only after the
channels of a weight are reordered have two fingerprints, and both are trained.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..inputs import map_tensors

FINGERPRINT_IMAGES = 16
DIGITS = 8  # of a fingerprint's numbers in float64 ...
DIGITS_SINGLE = 4  # ... and in float32, for a network that computes in nothing else
SEED = 20  # of the weights that a fingerprint is taken with


@dataclass(frozen=True)
class Signals:
    """What `measure` found.  `fingerprint` is None where it cannot be said.

    `broken` says in one sentence why the network cannot be trained as it is, "" where it can.
    `seconds` is the processor time that each took.
    """

    fingerprint: str | None = None
    broken: str = ""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


LossOf = Callable[[nn.Module, Any], Tensor]  # of a network and a batch


def measure(
    network: nn.Module, batch: Any, loss_of: LossOf, replaced: Sequence[nn.Module]
) -> Signals:
    """All signals of `network` at its start, on one batch of its training with its loss.

    The network is spent: weights, statistics and type are others afterwards.
    """
    network.train()
    seconds: dict[str, float] = {}
    with _timed(seconds, "gradients"):
        loss, norms = _first_step(network, batch, loss_of, replaced)
    broken = _broken(loss, norms)
    if broken:
        return Signals(broken=broken, seconds=seconds)
    with _timed(seconds, "fingerprint"):
        print_ = fingerprint(network, _few(batch), loss_of, replaced)
    return Signals(print_, "", seconds)


def _few(batch: Any) -> Any:
    """The first examples of a batch."""
    return map_tensors(lambda tensor: tensor[:FINGERPRINT_IMAGES], batch)


def _as(dtype: torch.dtype, batch: Any) -> Any:
    """A batch with its numbers in another type; whole ones stay."""
    return map_tensors(lambda t: t.to(dtype) if t.is_floating_point() else t, batch)


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    begun = time.process_time()
    yield
    seconds[name] = round(time.process_time() - begun, 4)


def _first_step(
    network: nn.Module, batch: Any, loss_of: LossOf, replaced: Sequence[nn.Module]
) -> tuple[float, list[float]]:
    """The loss, and the gradient norm of each replaced layer that has weights."""
    loss = loss_of(network, batch)
    if not math.isfinite(loss.item()):
        return loss.item(), []
    loss.backward()
    return loss.item(), [_norm(weights) for layer in replaced if (weights := weights_of(layer))]


def weights_of(layer: nn.Module) -> list[nn.Parameter]:
    """The weights of a layer; scales and offsets of its norms and its bias are none."""
    return [weight for weight in layer.parameters() if weight.dim() > 1]


def _norm(weights: Iterable[nn.Parameter]) -> float:
    """Norm of the gradient of all of them; 0 where none arrives."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    return math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))


def _broken(loss: float, norms: Sequence[float]) -> str:
    """Why no training can begin like this, or ""."""
    if not math.isfinite(loss):
        return f"the loss is {loss} before the first step"
    if not all(math.isfinite(norm) for norm in norms):
        return "a gradient is not finite at the first step"
    dead = sum(norm == 0 for norm in norms)
    if dead:
        return f"no gradient reaches {dead} of {len(norms)} layers at the first step"
    return ""


# ---- the fingerprint ----------------------------------------------------------------------------


def fingerprint(
    network: nn.Module, batch: Any, loss_of: LossOf, replaced: Sequence[nn.Module]
) -> str | None:
    """Loss and gradient norm with weights that follow from their shapes, see above; None where one
    of them is not finite, which says nothing about the function.
    """
    try:
        return _fingerprint(network.double(), _as(torch.float64, batch), loss_of, replaced, DIGITS)
    except RuntimeError:  # the network holds float32 that no conversion finds
        single = _as(torch.float32, batch)
        return _fingerprint(network.float(), single, loss_of, replaced, DIGITS_SINGLE)


def _fingerprint(
    network: nn.Module, batch: Any, loss_of: LossOf, replaced: Sequence[nn.Module], digits: int
) -> str | None:
    layers = [weights_of(layer) for layer in replaced]
    for number, weights in enumerate(layers):
        for weight in weights:
            fill(weight, number, 0)
    found = list(_loss_and_norm(network, batch, loss_of))
    for number, weights in enumerate(layers):
        for weight, place in zip(weights, _places(weights)):
            fill(weight, number, place + 1)
    found += _loss_and_norm(network, batch, loss_of)
    if not all(math.isfinite(number) for number in found):
        return None
    return " ".join(f"{number:.{digits - 1}e}" for number in found)


def _loss_and_norm(network: nn.Module, batch: Any, loss_of: LossOf) -> tuple[float, float]:
    network.zero_grad(set_to_none=True)
    torch.manual_seed(SEED)  # for a network with dropout
    loss = loss_of(network, batch)
    loss.backward()
    return loss.item(), _norm(network.parameters())


def fill(weight: nn.Parameter, layer: int, place: int) -> None:
    """Normal numbers of variance 1 / fan_in, which follow from the shape and the two numbers
    alone.  A kernel's weights are [copies, outputs, inputs, ...].
    """
    seed = SEED
    for number in (layer, place, *weight.shape):
        seed = (seed * 1_000_003 + number + 1) % (2**61 - 1)
    values = torch.randn(
        weight.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    with torch.no_grad():
        weight.copy_(values / math.sqrt(max(1, math.prod(weight.shape[2:]))))


def _places(weights: Sequence[nn.Parameter]) -> list[int]:
    """The place of each weight among those of its shape, by the norm of its gradient."""
    order = sorted(range(len(weights)), key=lambda i: (_role(weights[i]), i))
    seen: dict[torch.Size, int] = {}
    places = [0] * len(weights)
    for i in order:
        places[i] = seen.get(weights[i].shape, 0)
        seen[weights[i].shape] = places[i] + 1
    return places


def _role(weight: nn.Parameter) -> float:
    """The norm of its gradient to 6 digits: rounding decides no order.  Not finite: 0."""
    norm = _norm([weight])
    return float(f"{norm:.5e}") if math.isfinite(norm) else 0.0
