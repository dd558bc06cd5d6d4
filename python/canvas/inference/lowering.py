"""The road of a graph of PyTorch to machine code: canvas.aten writes a network's text, the core
compiles it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .. import aten
from .native_network import NativeNetwork


def lower(
    exported: Any, threads: int, log: Any, winograd: bool | int = False
) -> tuple[NativeNetwork, Mapping[str, Tensor]]:
    """(the network, the tensors of its weights by their names in its text)."""
    imported = aten.import_graph(exported)
    return NativeNetwork(imported.text, threads, log, winograd), imported.weights


def unsupported(node: Any) -> str | None:
    """Why an operator stays in PyTorch; None where it is known."""
    return aten.unsupported(node)


def constant(node: Any) -> bool:
    """Whether an operator is computed while a part is written."""
    return aten.constant(node) is not None
