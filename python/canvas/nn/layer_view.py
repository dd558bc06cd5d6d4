"""How the tensors of a layer become the images that a kernel takes, and back.

    [N, C, H, W]     2-D convolutions
    [N, C, W]        1-D convolutions: images of one row
    [N, .., C]       linear layers: the channels last, one or two axes of pixels between

A kernel makes ceil(H/stride) rows of H.  A layer whose padding is not half its window makes more
or fewer: rows and columns at the border are then cut off the input, or zeros added to it, so that
both make the same.  Exports hold the source of this file.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.fx
from torch import Tensor, nn
from torch.nn import functional as F


class Window(NamedTuple):
    """The window of a layer along one axis: pixels from its first to its last, distance from one
    window to the next, and the zeros on both sides of the image.
    """

    span: int = 1
    stride: int = 1
    before: int = 0
    behind: int = 0

    @property
    def is_half_padded(self) -> bool:
        """Whether it makes ceil(size/stride) of any size, with windows centred on the pixels."""
        return self.before == self.behind == (self.span - 1) / 2

    def places(self, size: int) -> int:
        return windows_along(size, self.numbers)

    @property
    def numbers(self) -> list[int]:
        return [self.span, self.stride, self.before, self.behind]


def windows_along(size: int, window: list[int]) -> int:
    """How many places a window (its `numbers`) has along an axis."""
    span, stride, before, behind = window
    return (size + before + behind - span) // stride + 1


def window_padding(size: int, window: list[int]) -> list[int]:
    """Zeros to add on both sides of an axis of what a kernel sees; negative: pixels to cut off.

    The first pixel is the one in the middle of the first window; if the window does not reach
    beyond its stride, the first one of the window.
    """
    span, stride, before, _ = window
    middle = (span - 1) // 2 - before
    corner = (span - stride) // 2 - before
    first = min(max(0, corner), middle)
    most = windows_along(size, window) * stride
    kept = min(max(size - first, most - stride + 1), most)
    return [-first, kept - (size - first)]


def padded(x: Tensor, down: list[int], right: list[int]) -> Tensor:
    """[N, C, H, W] as a kernel in the place of a layer with these windows sees it."""
    both = window_padding(x.shape[3], right) + window_padding(x.shape[2], down)
    return F.pad(x, both) if any(both) else x


torch.fx.wrap("padded")  # whose sizes a trace cannot know


def arranged(x: Tensor, rank: int, last: bool, pieces: int) -> Tensor:
    """See View.arranged."""
    if last:
        if pieces > 1:
            x = x.unflatten(0, [-1, pieces])
            if rank == 4:
                x = x.flatten(1, 2)
        x = x.movedim(-1, 1)
    if rank == 2:
        return x.unsqueeze(3) if last and pieces > 1 else x.unsqueeze(2).unsqueeze(3)
    return x.unsqueeze(2) if rank == 3 and pieces == 1 else x


def restored(y: Tensor, rank: int, last: bool, pieces: int) -> Tensor:
    """See View.restored."""
    if rank == 2:
        y = y.squeeze(3) if pieces > 1 else y.squeeze(3).squeeze(2)
    elif rank == 3 and pieces == 1:
        y = y.squeeze(2)
    if not last:
        return y
    y = y.movedim(1, -1)
    if pieces > 1:
        if rank == 4:
            y = y.unflatten(1, [pieces, -1])
        y = y.flatten(0, 1)
    return y


class View(NamedTuple):
    """`rank`: axes of the layer's tensors.  `last`: the channels are the last axis.  `pieces`: so
    many entries of the first axis belong to one example, and become rows of its image.  `down`,
    `right`: the window along H and W.
    """

    rank: int = 4
    last: bool = False
    pieces: int = 1
    down: Window = Window()
    right: Window = Window()

    @property
    def is_plain(self) -> bool:
        """Whether the tensors are the images."""
        half = self.down.is_half_padded and self.right.is_half_padded
        return self.rank == 4 and not self.last and half

    def arranged(self, x: Tensor) -> Tensor:
        """A tensor that the layer takes or makes, as [N, C, H, W]."""
        return arranged(x, self.rank, self.last, self.pieces)

    def restored(self, y: Tensor) -> Tensor:
        """An image that a kernel made, as the layer would have made it."""
        return restored(y, self.rank, self.last, self.pieces)

    def images(self, x: Tensor) -> Tensor:
        """The images that a kernel takes, [N, C_in, H, W]."""
        return padded(self.arranged(x), self.down.numbers, self.right.numbers)


class Images(nn.Module):
    """A view's images, in a form that torch.fx and torch.jit.script take."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.rank, self.last, self.pieces = view.rank, view.last, view.pieces
        self.down, self.right = view.down.numbers, view.right.numbers

    def forward(self, x: Tensor) -> Tensor:
        return padded(arranged(x, self.rank, self.last, self.pieces), self.down, self.right)


class Restored(nn.Module):
    """The layer's tensors of images that a kernel made."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.rank, self.last, self.pieces = view.rank, view.last, view.pieces

    def forward(self, y: Tensor) -> Tensor:
        return restored(y, self.rank, self.last, self.pieces)
