"""The order of a tensor's axes in memory: channels_last is (0, 2, 3, 1)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

Order = tuple[int, ...] | None


def memory_order(tensor: Tensor) -> Order:
    """The axes from the one with the longest steps to that whose elements stand side by side; None
    where that is their own order, or there are gaps or elements that share memory.
    """
    if tensor.is_contiguous():
        return None
    strides = tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda axis: (-strides[axis], axis)))
    return order if tensor.permute(order).is_contiguous() else None


def ordered(shape: Sequence[int], order: Order) -> tuple[int, ...]:
    """The sizes in that order."""
    return tuple(shape) if order is None else tuple(shape[axis] for axis in order)


def restoring(order: Order) -> Order:
    """The order that undoes it."""
    return None if order is None else tuple(order.index(axis) for axis in range(len(order)))
