"""What the rest asks of a device; other kinds are in cuda.py and fake.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import CanvasError, one_line

if TYPE_CHECKING:
    import torch
    from torch import nn

# How the driver of a GPU, cuBLAS and cuDNN put it, in lower case.
FULL = ("cuda out of memory", "cuda error: out of memory", "alloc_failed")
LOST = (
    "no cuda-capable device",
    "device(s) is/are busy or unavailable",
    "device unavailable",
    "invalid device ordinal",
    "uncorrectable ecc",
    "gpu is lost",
    "fallen off the bus",
    "driver shutting down",
    "system not yet initialized",
    "cuda error: unknown error",
)


GO_ON = "what is done is kept, the same command goes on, also with another --device"


class OutOfDeviceMemory(MemoryError):
    """A device has no memory left: with fewer trainings beside it, the same may go well."""


class DeviceLost(RuntimeError):
    """A device does not answer any more: the same may go well on another one."""


class DeviceFailed(CanvasError):
    """The same in one message, for a command that has no other device: what is done is kept."""


def device_error(error: BaseException) -> OutOfDeviceMemory | DeviceLost | None:
    """What a device did wrong; None where the error is a program's own."""
    if isinstance(error, (OutOfDeviceMemory, DeviceLost)):
        return error
    if not isinstance(error, RuntimeError):  # torch.OutOfMemoryError is one
        return None
    text = str(error).lower()
    if any(word in text for word in FULL):
        return OutOfDeviceMemory(one_line(error))
    if any(word in text for word in LOST):
        return DeviceLost(one_line(error))
    return None


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
        """(free, all) bytes of its own; 0 where it has none.  Raises RuntimeError."""
        return 0, 0

    def peak(self) -> int:
        """Bytes that this process took at most since `training` began; 0 where unknown."""
        return 0

    @contextmanager
    def training(self, network: nn.Module) -> Iterator[None]:
        """Around the training of a network.  What the device does wrong is OutOfDeviceMemory or
        DeviceLost; every other error passes through.
        """
        try:
            self.begin(network)
            yield
        except Exception as error:
            if (known := device_error(error)) is None:
                raise
            raise known from error
        finally:
            self.end(network)

    @contextmanager
    def alone(self, network: nn.Module, go_on: str = GO_ON) -> Iterator[None]:
        """The same for a command that trains on no other device: DeviceFailed, with the words on
        how to go on.
        """
        try:
            with self.training(network):
                yield
        except OutOfDeviceMemory as error:
            raise DeviceFailed(f"{self.name} has too little memory: {error}; {go_on}") from error
        except DeviceLost as error:
            raise DeviceFailed(f"{self.name} does not answer: {error}; {go_on}") from error

    def begin(self, network: nn.Module) -> None:
        """Make ready for a training."""

    def end(self, network: nn.Module) -> None:
        """Give back what a training took."""

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
