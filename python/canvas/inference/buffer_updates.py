"""Buffers that a model's forward rebinds to other tensors: read and replaced in its modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class BufferUpdates:
    """`rebound`: names of the buffers that forward rebinds; `weights`: names of all weights and
    buffers that the graph reads.  `follow(before, after)` is called when `set` replaces tensors.
    """

    follow: Callable[[Sequence[Any], Sequence[Any]], None] | None = None

    def __init__(self, module: nn.Module, rebound: Sequence[str], weights: Sequence[str]) -> None:
        paths = dict(module.named_modules(remove_duplicate=False)) if rebound else {}
        places = [_place(paths, name) for name in rebound]
        known = {(id(table), name) for table, name in places}
        read = [(at, _place(paths, name)) for at, name in enumerate(weights if rebound else ())]
        self._places = places
        self._read = [(at, table, n) for at, (table, n) in read if (id(table), n) in known]

    def tensors(self) -> list[Any]:
        """The rebound buffers as the modules hold them now."""
        return [table[name] for table, name in self._places]

    def set(self, tensors: Sequence[Any]) -> None:
        before = self.tensors()
        tensors = [_with_version(tensor) for tensor in tensors]
        for (table, name), tensor in zip(self._places, tensors):
            table[name] = tensor
        if self.follow is not None:
            self.follow(before, tensors)

    def current_weights(self, weights: Sequence[Any]) -> list[Any]:
        """The weights, the rebound ones replaced by the tensors that the modules hold now."""
        held = list(weights)
        for at, table, name in self._read:
            held[at] = table[name]
        return held


def _place(paths: dict[str, nn.Module], name: str) -> tuple[dict[str, Any], str]:
    path, _, last = name.rpartition(".")
    module = paths.get(path)
    return ({} if module is None else module._buffers), last


def _with_version(tensor: Any) -> Any:
    """A copy of a tensor made under torch.inference_mode(), which has no version counter."""
    if not isinstance(tensor, Tensor) or not tensor.is_inference():
        return tensor
    with torch.inference_mode(False):
        return tensor.clone()


def alike(first: Tensor, second: Tensor) -> bool:
    """Whether code that was compiled for one tensor accepts the other."""
    return first.shape == second.shape and first.dtype == second.dtype
