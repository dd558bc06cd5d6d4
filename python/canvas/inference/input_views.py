"""Outputs that PyTorch answers as views of inputs: they are so here, the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class InputView:
    """`place`: of the input; `offset`: from its first element to the view's, in elements."""

    place: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    whole: bool

    def of(self, inputs: Sequence[Any]) -> Tensor:
        tensor: Tensor = inputs[self.place]
        tensor = tensor.detach() if tensor.requires_grad else tensor
        if self.whole:
            return tensor
        first = tensor.storage_offset() + self.offset
        return tensor.as_strided(self.shape, self.strides, first)


def view_of(value: Any, inputs: Sequence[Any], held: Sequence[Any]) -> InputView | None:
    """None: it has memory of its own, or that of a tensor in `held`, or of several inputs: another
    call may have inputs of which each has its own.
    """
    if not _has_memory(value) or any(_share(value, other) for other in held):
        return None
    found = [place for place, given in enumerate(inputs) if _share(value, given)]
    if len(found) != 1:
        return None
    given = inputs[found[0]]
    if (value.dtype, value.is_neg(), value.is_conj()) != (given.dtype, False, False):
        return None
    offset = value.storage_offset() - given.storage_offset()
    return InputView(found[0], tuple(value.shape), value.stride(), offset, value is given)


def _has_memory(value: Any) -> bool:
    dense = isinstance(value, Tensor) and value.layout == torch.strided
    return dense and value.numel() > 0


def _share(a: Tensor, b: Any) -> bool:
    return _has_memory(b) and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
