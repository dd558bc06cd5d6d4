"""A network in every engine that it is timed in: as PyTorch runs it, under torch.compile, and as
native code of the whole network (docs/networks.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ..errors import CanvasError, one_line
from ..nn.latency import COMPILED, EAGER, NATIVE, compiled


@dataclass
class Engines:
    """A network by engine; of engines that it cannot have, the reason; seconds of making each."""

    networks: dict[str, nn.Module] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Native(nn.Module):
    """A network's native code, called as a module is."""

    def __init__(self, code: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.code = code

    def forward(self, images: Tensor) -> Any:
        return self.code(images)


def native(network: nn.Module, images: Tensor) -> nn.Module:
    """Raises CanvasError with one line where there is no compiler, or the network has no native
    code.
    """
    from ..inference.compiled_network import compile as compile_network

    return Native(compile_network(network.eval(), images))


def eager(network: nn.Module, images: Tensor) -> nn.Module:
    return network


MAKE: dict[str, Callable[[nn.Module, Tensor], nn.Module]] = {
    EAGER: eager,
    COMPILED: compiled,
    NATIVE: native,
}


def build_engines(make: Callable[[], nn.Module], names: Iterable[str], images: Tensor) -> Engines:
    """`make` gives the network, anew for each engine; `images` [N, C, H, W] are what it is
    compiled for.
    """
    engines = Engines()
    for name in names:
        began = time.perf_counter()
        try:
            engines.networks[name] = MAKE[name](make(), images)
        except (RuntimeError, CanvasError) as error:
            engines.missing[name] = one_line(error)
        engines.seconds[name] = time.perf_counter() - began
    return engines
