"""Fit an operator to one layer: train it to give what the layer gives on the layer's own inputs.

Outputs are compared after each channel is brought to mean 0 and variance 1, as a BatchNorm behind
the layer mends both; the loss is then 2 (1 - r), r the correlation.  Adam under a one-cycle rate.
Afterwards the last weights and a bias take the mean and the size of each channel of the layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .layer_data import LayerData
from .train import recompute_statistics

RATE = 0.03  # peak; measured: 0.01 ends 1.3 times worse, 0.003 2 to 3 times
WARM_UP = 0.15  # share of the steps in which the rate rises
BATCH = 32
CLIP = 2.0  # norm of the gradient
SMALL = 1e-5  # added to variances
TINY = 1e-12
SCORED = 256  # images compared at once
HELD_OUT = 256  # recorded images for the error, not for the fit


def fit_layer(module: nn.Module, data: LayerData, steps: int, seed: int) -> float:
    """Train `module` for so many steps to give `data.outputs` on `data.inputs`; returns the last
    loss.  The batches are a function of the seed.  A loss that is not finite ends the fit with
    infinity.
    """
    weights = [p for p in module.parameters() if p.requires_grad]
    if not weights:
        return math.nan
    optimizer = torch.optim.Adam(weights, lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=RATE, total_steps=max(steps, 2), pct_start=WARM_UP, cycle_momentum=False
    )
    order = torch.Generator().manual_seed(seed)
    count, loss = len(data.inputs), math.inf
    module.train()
    for _ in range(steps):
        inputs, outputs = data.batch(torch.randint(count, (min(BATCH, count),), generator=order))
        optimizer.zero_grad(set_to_none=True)
        value = nn.functional.mse_loss(standardised(module(inputs)), standardised(outputs))
        loss = value.item()
        if not math.isfinite(loss):
            return math.inf
        value.backward()
        nn.utils.clip_grad_norm_(weights, CLIP)
        optimizer.step()
        schedule.step()
    return loss


def fit_module(
    module: nn.Module,
    data: LayerData,
    steps: int,
    seed: int,
    start: Callable[[nn.Module, LayerData], object] | None = None,
) -> tuple[float, Match]:
    """`fit_layer` on a part of the recorded images, then new statistics of BatchNorm: the error on
    the images that the fit did not see, and how the module compares on some that it saw.  `start`
    gives the module better weights to start from.
    """
    held_out, seen = data.split(min(HELD_OUT, len(data.inputs) // 4))
    if start is not None:
        start(module, seen)
    fit_layer(module, seen, steps, seed)
    recompute_statistics(module, seen.inputs[: 2 * HELD_OUT].float().split(BATCH))
    error = compare(module, held_out).error
    return error, compare(module, seen.split(2 * HELD_OUT)[0])


def standardised(values: Tensor) -> Tensor:
    """[N, C, H, W] with mean 0 and variance 1 in each channel, taken over the batch."""
    variance, mean = torch.var_mean(values, dim=(0, 2, 3), correction=0, keepdim=True)
    return (values - mean) * torch.rsqrt(variance + SMALL)


@dataclass(frozen=True)
class Match:
    """How a module's output compares with the layer's, per channel: the correlation, and the scale
    and the shift that bring it nearest; zeros where an output is not finite.
    """

    correlation: Tensor
    scale: Tensor
    shift: Tensor
    offset: Tensor  # the shift if nothing is scaled

    @property
    def error(self) -> float:
        """1 - r^2, the mean over channels, 0..1."""
        return float((1 - self.correlation.square()).mean())


def compare(module: nn.Module, data: LayerData) -> Match:
    """Compare `module`, in evaluation mode, with the layer on all images of `data`."""
    module.eval()
    total, count = torch.zeros(()), 0
    with torch.no_grad():
        for at in range(0, len(data.inputs), SCORED):
            inputs, wanted = data.batch(slice(at, at + SCORED))
            ours, theirs = (
                v.double().transpose(0, 1).flatten(1) for v in (module(inputs), wanted)
            )
            count += ours.shape[1]
            products = (ours, theirs, ours * ours, theirs * theirs, ours * theirs)
            total = total + torch.stack([p.sum(1) for p in products])
    mean, wanted_mean, square, wanted_square, product = total / count
    variance = (square - mean**2).clamp_min(0) + TINY
    wanted_variance = (wanted_square - wanted_mean**2).clamp_min(0) + TINY
    covariance = product - mean * wanted_mean
    scale = covariance / variance
    found = (
        covariance / torch.sqrt(variance * wanted_variance),
        scale,
        wanted_mean - scale * mean,
        wanted_mean - mean,
    )
    return Match(*(torch.nan_to_num(v, 0.0, 0.0, 0.0).float() for v in found))


def take_scale(module: nn.Module, match: Match) -> Tensor:
    """Scale the output channels of a kernel's module as the layer's are, in its last weights, and
    return the bias [C_out] that remains.  Without such weights nothing is scaled.
    """
    last = _last_weight(module)
    if last is None:
        return match.offset
    scale = match.scale.reshape(-1, last.shape[1])  # of each block of outputs
    scale = scale.repeat_interleave(module.blocks, dim=0)  # and of its copies
    with torch.no_grad():
        last.mul_(scale.to(last).reshape(*scale.shape, *[1] * (last.dim() - 2)))
    return match.shift


def _last_weight(module: nn.Module) -> Tensor | None:
    """The weight [copies, outputs, ...] of the fully connected primitive whose value a kernel
    hands on as it is; None where another primitive stands last.
    """
    nodes = nodes_of(module)
    weighted = [words[0] for words in nodes if words[2:3] == ["fc"]]
    out = nodes[-1][1]
    return module.get_parameter(f"w{weighted.index(out)}") if out in weighted else None


def nodes_of(module: nn.Module) -> list[list[str]]:
    """The words of each node of a module's kernel, without its shape; "out" and a name at last."""
    lines = type(module).pack.kernel.splitlines()[2:]
    return [line.partition(":")[0].split() for line in lines]
