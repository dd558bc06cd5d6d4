"""A network in every engine that it is timed in: as PyTorch runs it, under torch.compile, and as
native code of the whole network (docs/networks.md).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..devices import Device, autocast
from ..errors import CanvasError, one_line
from ..inputs import Inputs
from ..nn.latency import COMPILED, EAGER, GPU, GPU_COMPILED, GPU_GRAPH, NATIVE, compiled


@dataclass
class Engines:
    """A network by engine; of engines that it cannot have, the reason; seconds of making each, by
    the clock and of processors.
    """

    networks: dict[str, nn.Module] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)

    def bytes(self) -> int:
        """Of the parameters of all its networks."""
        every = [p for network in self.networks.values() for p in network.parameters()]
        return sum(p.numel() * p.element_size() for p in every)


class Native(nn.Module):
    """A network's native code, called as a module is."""

    def __init__(self, code: Callable[..., Any]) -> None:
        super().__init__()
        self.code = code

    def forward(self, *args: Tensor, **named: Tensor) -> Any:
        return self.code(*args, **named)


def native(network: nn.Module, images: Tensor | Inputs, _compilers: int = 0) -> nn.Module:
    """Raises CanvasError with one line where there is no compiler, or the network has no native
    code.
    """
    from ..inference.compiled_network import compile as compile_network

    return Native(compile_network(network.eval(), Inputs.of(images).example))


def eager(network: nn.Module, images: Tensor | Inputs, _compilers: int = 0) -> nn.Module:
    return network


class Mixed(nn.Module):
    """A network in the 16 bits of `amp`."""

    def __init__(self, network: nn.Module, place: torch.device, amp: str) -> None:
        super().__init__()
        self.network, self.place, self.amp = network, place, amp

    def forward(self, *args: Tensor, **named: Tensor) -> Any:
        with autocast(self.place, self.amp):
            return self.network(*args, **named)


def on_gpu(network: nn.Module, device: Device, amp: str) -> nn.Module:
    """The network there; raises CanvasError on a CPU."""
    if not device.shared:
        raise CanvasError(f"{device.name} is no GPU: give --device cuda")
    network = network.eval().to(device.place)
    return network if amp == "no" else Mixed(network, device.place, amp)


def on_graph(network: nn.Module, given: Inputs, device: Device) -> nn.Module:
    """As one graph of the device; raises CanvasError for a network of several inputs."""
    if len(given.tensors) != 1 or given.named:
        raise CanvasError("graphs are made of networks with one input")
    return device.graph(network, given.args[0].to(device.place))


MAKE: dict[str, Callable[[nn.Module, Tensor | Inputs, int], nn.Module]] = {
    EAGER: eager,
    COMPILED: compiled,
    NATIVE: native,
}


ON_GPU: dict[str, Callable[[nn.Module, Inputs, Device], nn.Module]] = {
    GPU: lambda network, images, device: network,
    GPU_COMPILED: lambda network, images, device: compiled(network, images.to(device.place)),
    GPU_GRAPH: lambda network, images, device: on_graph(network, images, device),
}


def processor_seconds() -> float:
    """Of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def build_engines(
    make: Callable[[], nn.Module],
    names: Iterable[str],
    images: Tensor | Inputs,
    engines: Engines | None = None,
    compilers: int = 0,
    device: Device | None = None,
    amp: str = "no",
) -> Engines:
    """`make` gives the network, anew for each engine; `images`, [N, C, H, W] or whatever it
    takes, are what it is compiled for, under torch.compile by so many compilers at a time (0: one
    for each core).  Engines of a GPU are on `device`, in the 16 bits of `amp`.  What `engines`
    has, or lacks for a reason, is not made again.
    """
    engines, given = engines or Engines(), Inputs.of(images)
    device = device or Device("cpu")
    for name in names:
        if name in engines.networks or name in engines.missing:
            continue
        began, used = time.perf_counter(), processor_seconds()
        try:
            if name in ON_GPU:
                there = on_gpu(make(), device, amp)
                engines.networks[name] = ON_GPU[name](there, given, device)
            else:
                engines.networks[name] = MAKE[name](make(), given, compilers)
        except (RuntimeError, CanvasError) as error:
            engines.missing[name] = one_line(error)
        engines.seconds[name] = time.perf_counter() - began
        engines.processor[name] = processor_seconds() - used
    return engines
