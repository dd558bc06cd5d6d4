"""Tensors that machine code writes: on the CPU, whatever torch.set_default_device chose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

CPU = torch.device("cpu")

Empty = Callable[[tuple[int, ...], tuple[int, ...], Any], Tensor]  # sizes, strides and dtype


def by_torch(sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.empty_strided(sizes, strides, dtype=dtype, device=CPU)


def _empty() -> Empty:
    """The function by which code of torch.compile has its memory takes a third of the time."""
    found = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    direct: Empty = getattr(found, "_empty_strided_cpu", by_torch)
    try:
        made = direct((2, 3), (4, 1), torch.float64)
        kept = (made.shape, made.stride(), made.dtype, made.device) == (
            (2, 3),
            (4, 1),
            torch.float64,
            CPU,
        )
    except Exception:  # another PyTorch than those that are known
        return by_torch
    return direct if kept else by_torch


empty = _empty()
