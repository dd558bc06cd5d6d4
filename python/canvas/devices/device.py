"""What the rest asks of a device; other kinds are in cuda.py and fake.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn


class OutOfDeviceMemory(MemoryError):
    """A device has no memory left: with fewer trainings beside it, the same may go well."""


class DeviceLost(OSError):
    """A device does not answer any more: the same may go well on another one."""


class Device:
    """A device that can train a network, and nothing that it could not do: the CPU."""

    kind = "cpu"
    shared = False  # whether trainings on it share a memory of its own

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    @property
    def place(self) -> torch.device:
        """Where tensors go."""
        import torch

        return torch.device("cpu")

    def memory(self) -> tuple[int, int]:
        """(free, all) bytes of its own; 0 where it has none."""
        return 0, 0

    def synchronize(self) -> None:
        """Wait until it has done what it was given."""

    def peak(self) -> int:
        """Bytes that this process took at most since `training` began; 0 where unknown."""
        return 0

    @contextmanager
    def training(self, network: nn.Module) -> Iterator[None]:
        """Around the training of a network that is there.  What the device does wrong is
        OutOfDeviceMemory or DeviceLost; every other error passes through.
        """
        yield

    def has_bf16(self) -> bool:
        return True

    def has_fp16(self) -> bool:
        """Whether a training with gradients in 16 bits is any use."""
        return False

    def seconds(self, run: Callable[[], Any], times: int) -> float:
        """Seconds of the device for one call of `run`, the mean of `times` in a row."""
        raise NotImplementedError

    def graph(self, network: nn.Module, images: Any) -> nn.Module:
        """The network as one graph of the device, for inputs of the form of `images`."""
        raise NotImplementedError
