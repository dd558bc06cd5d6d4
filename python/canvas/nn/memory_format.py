"""Which memory format a network trains faster in: contiguous, or channels_last.

Neither is faster for all kernels.  A choice by the clock is not the same every time and changes
results in the last digits, so it is made once per network and stored; every further training of
the network takes what is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

FORMATS = ("contiguous", "channels_last")
STEPS = 3  # that are timed in each format, after one that is not
MARGIN = 0.95  # a smaller gain may be noise


# Input channels of a group, below which a strided 1x1 convolution is not trained in channels_last.
FEW = 16


def put_in(network: nn.Module, memory_format: str) -> nn.Module:
    """The network, which now holds its weights in this format and takes images of any as it.
    Strided 1x1 convolutions of few channels stay contiguous: with channels last the gradient of
    their weights is written past its end on CPUs with AVX2 (oneDNN issue 6035).
    """
    if memory_format == "channels_last":
        network.to(memory_format=torch.channels_last)
        network.register_forward_pre_hook(_images_last)
    for module in network.modules():
        if isinstance(module, nn.Conv2d) and _is_narrow_and_strided(module):
            weight = module.weight.data
            # contiguous() leaves strides alone where a size is 1, and they choose the format
            module.weight.data = weight.reshape(weight.shape[:2])[:, :, None, None]
            module.register_forward_pre_hook(_images_contiguous)
    return network


def _is_narrow_and_strided(module: nn.Conv2d) -> bool:
    strided = tuple(module.kernel_size) == (1, 1) and max(module.stride) > 1
    return strided and module.in_channels // module.groups < FEW


def faster(make: Callable[[], nn.Module], loss: Callable[[nn.Module], Tensor]) -> str:
    """The format in which a network that `make` builds does a training step faster, by processor
    time, where `loss` gives that of a batch; contiguous for one that cannot be trained in the
    other.
    """
    steps: dict[str, Callable[[], float]] = {}
    seconds: dict[str, list[float]] = {name: [] for name in FORMATS}
    try:
        for name in FORMATS:
            steps[name] = _stepper(put_in(make(), name), loss)
            steps[name]()
        for turn in range(STEPS):
            for name in FORMATS if turn % 2 == 0 else reversed(FORMATS):
                seconds[name].append(steps[name]())
    except Exception:  # whatever it is, the training meets it or does well without the format
        return "contiguous"
    return choice(seconds)


def choice(seconds: dict[str, list[float]]) -> str:
    """The format of the least time, that others on the machine disturbed least."""
    last, first = min(seconds["channels_last"]), min(seconds["contiguous"])
    return "channels_last" if last < MARGIN * first else "contiguous"


def _stepper(network: nn.Module, loss: Callable[[nn.Module], Tensor]) -> Callable[[], float]:
    """A function that trains one step and returns its seconds."""
    optimizer = torch.optim.SGD(network.train().parameters(), lr=1e-3, momentum=0.9)

    def step() -> float:
        start = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss(network).backward()
        optimizer.step()
        return time.process_time() - start

    return step


def _images_last(network: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (inputs[0].contiguous(memory_format=torch.channels_last), *inputs[1:])


def _images_contiguous(network: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (inputs[0].contiguous(), *inputs[1:])
