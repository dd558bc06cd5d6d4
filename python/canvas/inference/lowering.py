"""The road of a graph of PyTorch to machine code: canvas.aten writes a network's text, the core
compiles it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .native_network import NativeNetwork


def lower(exported: Any, threads: int, log: Any) -> tuple[NativeNetwork, Mapping[str, Tensor]]:
    """(the network, the tensors of its weights by their names in its text)."""
    imported = _aten().import_graph(exported)
    return NativeNetwork(imported.text, threads, log), imported.weights


def unsupported(node: Any) -> str | None:
    """Why an operator stays in PyTorch; None where it is known."""
    reason: str | None = _aten().unsupported(node)
    return reason


def _aten() -> Any:
    return importlib.import_module("canvas.aten")
