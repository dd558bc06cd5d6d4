"""Whether tensors have memory in common, exactly: slices of one tensor may lie between each other
without.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

Layout = tuple[tuple[int, ...], tuple[int, ...], int]  # sizes, strides in bytes, bytes an element
LAYOUTS = 1024  # pairs whose answer is kept


def has_memory(value: Any) -> bool:
    """Zeros that derivatives are made of have none."""
    return isinstance(value, Tensor) and value.numel() > 0 and not value._is_zerotensor()


def overlap(a: Any, b: Any) -> bool:
    """They may be on the same memory with two storages, as arrays of NumPy are."""
    if not (has_memory(a) and has_memory(b)):
        return False
    first, second = _layout(a), _layout(b)
    apart = b.data_ptr() - a.data_ptr()
    if apart >= _span(first) or -apart >= _span(second):
        return False
    return _meet(first, second, apart)


def overlaps_itself(tensor: Tensor) -> bool:
    """Several elements are in one place."""
    return _meets_itself(_layout(tensor))


def _layout(tensor: Tensor) -> Layout:
    """Without axes of one element."""
    rows = [(n, step) for n, step in zip(tensor.shape, tensor.stride()) if n > 1]
    size = tensor.element_size()
    return tuple(n for n, _ in rows), tuple(step * size for _, step in rows), size


def _span(layout: Layout) -> int:
    """Bytes from its first one to the one behind its last."""
    sizes, strides, size = layout
    return sum((n - 1) * step for n, step in zip(sizes, strides)) + size


@functools.lru_cache(LAYOUTS)
def _meet(a: Layout, b: Layout, apart: int) -> bool:
    if _is_dense(a) and _is_dense(b):
        return True  # their spans do
    unit = math.gcd(a[2], b[2], apart, *a[1], *b[1])
    start, first = min(0, apart), max(0, -apart)
    marks = _marks(a, first, max(_span(a), apart + _span(b)) - start, unit)
    return bool(_elements(marks, b, apart - start, unit).any())


@functools.lru_cache(LAYOUTS)
def _meets_itself(layout: Layout) -> bool:
    sizes, strides, size = layout
    reach = size
    for step, n in sorted(zip(strides, sizes)):
        if step < reach:
            break
        reach += (n - 1) * step
    else:
        return False  # each axis steps over those within it
    unit = math.gcd(size, *strides)
    marked = int(_marks(layout, 0, _span(layout), unit).sum())
    return marked < math.prod(sizes) * size // unit


def _is_dense(layout: Layout) -> bool:
    sizes, _, size = layout
    return not _meets_itself(layout) and _span(layout) == math.prod(sizes) * size


def _marks(layout: Layout, at: int, span: int, unit: int) -> Tensor:
    """Of `span` bytes the units in which an element lies."""
    marks = torch.zeros(span // unit, dtype=torch.bool, device="cpu")
    _elements(marks, layout, at, unit).fill_(True)
    return marks


def _elements(marks: Tensor, layout: Layout, at: int, unit: int) -> Tensor:
    sizes, strides, size = layout
    steps = tuple(step // unit for step in strides)
    return marks.as_strided((*sizes, size // unit), (*steps, 1), at // unit)
