"""The road of a graph of PyTorch to machine code: canvas.aten writes a network's text, the core
compiles it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .. import aten
from ..aten.memory_order import Order
from .native_network import NativeNetwork


@dataclass(frozen=True)
class Lowered:
    """`tensors`: those of the network's weights by their names in its text; the orders of the axes
    in which it has its inputs and outputs, as those lie in memory.
    """

    network: NativeNetwork
    tensors: Mapping[str, Tensor]
    input_orders: Sequence[Order]
    output_orders: Sequence[Order]


def lower(exported: Any, threads: int, log: Any, winograd: bool | int = False) -> Lowered:
    imported = aten.import_part(exported)
    network = NativeNetwork(imported.text, threads, log, winograd)
    return Lowered(network, imported.weights, imported.input_orders, imported.output_orders)


def unsupported(node: Any) -> str | None:
    """Why an operator stays in PyTorch; None where it is known."""
    return aten.unsupported(node)


def constant(node: Any) -> bool:
    """Whether an operator is computed while a part is written."""
    return aten.constant(node) is not None
