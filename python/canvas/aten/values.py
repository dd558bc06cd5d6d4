"""What the operators of a graph pass on: tensors of the network's text, tensors that are known
while the text is written, and plain numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..errors import CanvasError

Shape = tuple[int, ...]


class Unsupported(CanvasError):
    """Why an operator has no program; the sentence is completed where the operator is known."""


@dataclass(frozen=True)
class Value:
    """A tensor of the network. Bools are 0 and 1; `constant`: weights alone are in it; `given`: an
    input of the network; i32 is of indices, which only inputs and weights hold.
    """

    name: str
    shape: Shape
    constant: bool = False
    given: bool = False
    boolean: bool = False
    dtype: str = "f32"

    @property
    def rank(self) -> int:
        return len(self.shape)


AXES = ("", "i", "i j", "i j k", "n c h w", "n c d h w")


def axes(rank: int) -> list[str]:
    """Names for the axes of a tensor."""
    return AXES[rank].split() if rank < len(AXES) else [f"i{at}" for at in range(rank)]


def number(value: Any) -> str:
    """A number as programs write it."""
    if isinstance(value, (bool, int)):
        text = str(int(value))
    elif not isinstance(value, float):
        raise Unsupported(f"{value!r} is no number that is known while the graph is read")
    elif math.isnan(value):
        return "(inf - inf)"
    elif math.isinf(value):
        text = "inf" if value > 0 else "-inf"
    else:
        whole = value.is_integer() and abs(value) < 1e15 and (value or math.copysign(1, value) > 0)
        text = repr(int(value)) if whole else repr(value)
    return f"({text})" if text.startswith("-") else text


def place(dim: int, rank: int) -> int:
    """A dimension counted from the front."""
    return dim % rank if rank else 0


def places(dims: Any, rank: int) -> list[int]:
    """Dimensions counted from the front, in order; None and () are all of them."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    return sorted(place(dim, rank) for dim in ([dims] if isinstance(dims, int) else dims))


def spread(values: Any, count: int) -> list[int]:
    """A number per axis of an image; one stands for all."""
    values = [values] if isinstance(values, int) else list(values)
    return values * count if len(values) == 1 else values


def broadcast(*shapes: Shape) -> Shape:
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*padded))


def uniform(tensor: Tensor) -> float | int | bool | None:
    """The number that every element of a constant is; None where they differ."""
    if tensor.numel() == 0:
        return None
    first = tensor.reshape(-1)[0]
    alike = (tensor == first) & (tensor.signbit() == first.signbit())  # 0 and -0 are not
    return first.item() if bool(alike.all()) else None
