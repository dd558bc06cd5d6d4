"""A GPU of torch.cuda."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import one_line
from .device import Device, DeviceLost, OutOfDeviceMemory

if TYPE_CHECKING:
    import torch
    from torch import nn

# How the driver, cuBLAS and cuDNN put it, in lower case.
FULL = ("out of memory", "alloc_failed", "failed to allocate")
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


class Cuda(Device):
    """`name`: cuda:N."""

    kind = "cuda"
    shared = True

    @property
    def index(self) -> int:
        return int(self.name.partition(":")[2])

    @property
    def place(self) -> torch.device:
        import torch

        return torch.device("cuda", self.index)

    def memory(self) -> tuple[int, int]:
        import torch

        free, total = torch.cuda.mem_get_info(self.index)
        return int(free), int(total)

    def synchronize(self) -> None:
        import torch

        torch.cuda.synchronize(self.index)

    def peak(self) -> int:
        """With what the process holds beside tensors: its context takes hundreds of megabytes."""
        import torch

        return int(torch.cuda.max_memory_reserved(self.index)) + CONTEXT

    @contextmanager
    def training(self, network: nn.Module) -> Iterator[None]:
        import torch

        try:
            torch.cuda.set_device(self.index)
            torch.cuda.reset_peak_memory_stats(self.index)
            yield
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            text = str(error).lower()
            if isinstance(error, torch.OutOfMemoryError) or any(word in text for word in FULL):
                raise OutOfDeviceMemory(one_line(error)) from error
            if any(word in text for word in LOST):
                raise DeviceLost(f"{self.name}: {one_line(error)}") from error
            raise
        finally:
            empty(torch)

    def has_bf16(self) -> bool:
        import torch

        with torch.cuda.device(self.index):
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))

    def has_fp16(self) -> bool:
        return True

    def seconds(self, run: Callable[[], Any], times: int) -> float:
        """Between two events on the device: what the CPU does meanwhile does not count."""
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / times / 1e3

    def graph(self, network: nn.Module, images: Any) -> nn.Module:
        from .cuda_graph import Graph

        return Graph(network, images)


CONTEXT = 600 << 20  # bytes of a process on a device beside its tensors, about


def empty(torch: Any) -> None:
    """Give cached memory back; a device that is gone has none."""
    try:
        torch.cuda.empty_cache()
    except RuntimeError:
        pass
