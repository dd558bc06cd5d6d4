"""A GPU of torch.cuda."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .device import Device

if TYPE_CHECKING:
    import torch
    from torch import nn

CONTEXT = 600 << 20  # bytes of a process on a device beside its tensors, about


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

    def peak(self) -> int:
        """With what the process holds beside tensors: its context takes hundreds of megabytes."""
        import torch

        return int(torch.cuda.max_memory_reserved(self.index)) + CONTEXT

    def begin(self, network: nn.Module) -> None:
        import torch

        torch.cuda.set_device(self.index)
        torch.cuda.reset_peak_memory_stats(self.index)

    def end(self, network: nn.Module) -> None:
        import torch

        with suppress(RuntimeError):  # a device that is gone has no memory to give back
            torch.cuda.empty_cache()

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
