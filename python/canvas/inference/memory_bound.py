"""What a network needs of memory, refused with a sentence where the machine has not got it: else
the system ends the process when pages are first written to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import CanvasError

GROUP = Path("/sys/fs/cgroup")  # limits of the container
GIB = 1 << 30
MOST_ELEMENTS = 1 << 40  # of a tensor of a program (docs/program.md, Limits)


def check_memory(what: str, needed: int) -> None:
    """Raises CanvasError where `needed` bytes are more than the machine has left."""
    if needed < GIB // 4:  # not worth looking
        return
    left = memory_left()
    if needed > left:
        raise CanvasError(
            f"{what} {needed / GIB:,.1f} GiB of memory, and {left / GIB:,.1f} GiB are left on "
            "this machine: give smaller inputs, or a smaller batch"
        )


def check_elements(name: str, value: Any) -> None:
    """Raises CanvasError where a value of the graph is larger than a program can say."""
    if isinstance(value, Tensor) and value.numel() > MOST_ELEMENTS:
        raise CanvasError(
            f"the model computes '{name}', whose sizes are {list(value.shape)}, and a tensor has "
            "2^40 elements at most: give smaller inputs, or a smaller batch"
        )


def row_major_bytes(values: Iterable[Any]) -> int:
    """Of the tensors among them, as whole copies: what is expanded has all of its elements.  Those
    whose sizes depend on values are not counted.
    """
    return sum(v.numel() * v.element_size() for v in values if has_fixed_sizes(v))


def has_fixed_sizes(value: Any) -> bool:
    """Whether it is a tensor of which sizes and strides are known before values are."""
    if not isinstance(value, Tensor):
        return False
    steps = value.stride() if value.layout == torch.strided else ()
    return all(isinstance(number, int) for number in (*value.shape, *steps))


def memory_left() -> int:
    """Bytes that can still be had without swapping."""
    left = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        left = min(left, int(kib) << 10)
    with suppress(OSError, ValueError):  # "max": no limit
        most = int((GROUP / "memory.max").read_text())
        used = int((GROUP / "memory.current").read_text()) - _cached_files()
        left = min(left, max(0, most - used))
    return left


def _cached_files() -> int:
    """Bytes of files that count as used in the container, and that the system gives back."""
    with suppress(OSError, ValueError, KeyError):
        lines = (GROUP / "memory.stat").read_text().splitlines()
        figures = dict(line.split() for line in lines)
        return int(figures["active_file"]) + int(figures["inactive_file"])
    return 0
