"""What kind of convolution a layer is: its windows, and whether a kernel can stand for it.

A subclass of a convolution is one if all it does with its input, in training and in evaluation, is
one convolution whose weight does not depend on the input.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ..layer_choice import LayerChoice
from .layer_view import Window

FEW = 2  # channels: a kernel of one channel has no groups
MOST_COPIES = 2048  # of a kernel in one layer
DEPTHWISE = "it is depth-wise (depthwise replaces it)"
FUNCTIONS = {F.conv1d: 1, F.conv2d: 2, torch.conv1d: 1, torch.conv2d: 2}
ARGUMENTS = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")


@dataclass(frozen=True)
class Geometry:
    """A convolution without its weights: windows along H and W, with (KH, KW) weights each."""

    cin: int
    cout: int
    size: tuple[int, int]
    down: Window
    right: Window
    groups: int
    dilation: tuple[int, int]

    @property
    def stride(self) -> int:
        return self.right.stride

    @property
    def spread(self) -> int:
        """The dilation along the axes with windows."""
        return max((d for d, k in zip(self.dilation, self.size) if k > 1), default=1)

    @property
    def unequal(self) -> bool:
        """Whether neither number of channels is a multiple of the other."""
        return math.gcd(self.cin, self.cout) < min(self.cin, self.cout)

    def unsuitable(self, choice: LayerChoice) -> str:
        """Why no kernel can stand for it, "" if one can."""
        (kh, kw), (down, right) = self.size, self.dilation
        common = math.gcd(self.cin, self.cout)
        copies = self.cin // common * (self.cout // common)
        if self.groups == self.cin > 1 and not choice.depthwise:
            return DEPTHWISE
        if down != right and kh > 1 and kw > 1:
            return f"its dilations {down} and {right} differ"
        if self.down.stride != self.right.stride:
            return f"its strides {self.down.stride} and {self.right.stride} differ"
        if not self.unequal or choice.unequal == "project":
            return ""
        if choice.unequal == "skip":
            return f"neither of its channels {self.cin} -> {self.cout} is a multiple of the other"
        if common < FEW or copies > MOST_COPIES:
            what = f"its channels {self.cin} -> {self.cout} have {common} as common divisor"
            return f"{what}, a kernel would run in {copies} copies (unequal='project': in one)"
        return ""


def windows_of(layer: Any) -> list[Window]:
    """A convolution's window along each of its axes."""
    return _windows(layer.kernel_size, layer.stride, layer.padding, layer.dilation)


def _windows(sizes: Any, stride: Any, padding: Any, dilation: Any) -> list[Window]:
    """Of the arguments of a convolution: a number for each axis, or one for all."""
    each = (_of_each(value, len(sizes)) for value in (stride, dilation))
    strides, spans = next(each), [d * (k - 1) + 1 for d, k in zip(next(each), sizes)]
    if isinstance(padding, str):
        whole = [span - 1 if padding == "same" else 0 for span in spans]
        sides = [(both // 2, both - both // 2) for both in whole]
    else:
        sides = [(one, one) for one in _of_each(padding, len(sizes))]
    return [Window(span, s, *both) for span, s, both in zip(spans, strides, sides)]


def _of_each(value: Any, axes: int) -> list[int]:
    """A number for each axis."""
    several = [value] if isinstance(value, int) else list(value)
    return several * (axes // len(several))


# -- subclasses --


def geometry(layer: Any, calls: list[tuple[int, ...]]) -> Geometry | str:
    """What kind of convolution a layer is, or why a kernel cannot stand for it."""
    if isinstance(layer, nn.Linear):
        if type(layer).forward is not nn.Linear.forward:
            return f"its type is {type(layer).__module__}.{type(layer).__name__}"
        return Geometry(
            layer.in_features, layer.out_features, (1, 1), Window(), Window(), 1, (1, 1)
        )
    if not isinstance(layer, (nn.Conv1d, nn.Conv2d)) or not calls:
        return f"its type is {type(layer).__name__}"
    windows = windows_of(layer)
    if not _is_plain(layer):
        seen = _Convolutions.within(layer, calls[0])
        if isinstance(seen, str):
            return seen
        windows = seen
    right = windows[-1]
    down = windows[0] if len(windows) == 2 else Window(1, right.stride)
    size, dilation = ((1, *values)[-2:] for values in (layer.kernel_size, layer.dilation))
    channels = layer.in_channels, layer.out_channels
    return Geometry(*channels, size, down, right, layer.groups, dilation)


def _is_plain(layer: Any) -> bool:
    """Whether a layer computes what PyTorch's own class does."""
    own = nn.Conv1d if isinstance(layer, nn.Conv1d) else nn.Conv2d
    names = ("forward", "_conv_forward", "__call__")
    return all(getattr(type(layer), name) is getattr(own, name) for name in names)


class _Convolutions(TorchFunctionMode):
    """Notes what a subclass of a convolution does with its input: zeros, and convolutions."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.zeros: dict[int, list[int]] = {id(x): []}  # of the input, padded so far
        self.kept: list[Any] = [x]
        self.found: list[tuple[Any, Tensor, list[Window] | None]] = []  # result, weight

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if func in FUNCTIONS:
            given = dict(zip(ARGUMENTS, args)) | (kwargs or {})
            windows = self._windows(FUNCTIONS[func], **given)
            self.found.append((result, given["weight"], windows))
        elif func is F.pad and args and id(args[0]) in self.zeros:
            self._pad(result, *args, **(kwargs or {}))
        return result

    def _pad(
        self, result: Tensor, x: Any, pad: Any, mode: str = "constant", value: Any = 0
    ) -> None:
        if not value:
            before = self.zeros[id(x)]
            self.zeros[id(result)] = [a + b for a, b in zip_longest(before, pad, fillvalue=0)]
            self.kept.append(result)

    def _windows(
        self,
        axes: int,
        input: Any,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> list[Window] | None:
        if id(input) not in self.zeros:
            return None
        windows = _windows(weight.shape[2:], stride, padding, dilation)
        zeros = (self.zeros[id(input)] + [0] * 2 * axes)[: 2 * axes]  # the last axis first
        return [
            window._replace(
                before=window.before + zeros[2 * at], behind=window.behind + zeros[2 * at + 1]
            )
            for at, window in zip(reversed(range(axes)), windows)
        ]

    @classmethod
    def within(cls, layer: Any, shape: tuple[int, ...]) -> list[Window] | str:
        """The windows of the one convolution that a layer is, or what it is instead."""
        why = f"its type {type(layer).__name__} computes more than a convolution"
        weight = layer.weight
        x = torch.zeros(shape, dtype=weight.dtype, device=weight.device)
        noise = x if x.is_meta else torch.randn_like(x)
        passes = []
        try:
            layer = copy.deepcopy(layer)  # a training may change its buffers
            for given, training in ((x, False), (noise, False), (noise, True)):
                with torch.no_grad(), cls(given) as seen:
                    made = layer.train(training)(given)
                if len(seen.found) != 1 or seen.found[0][0] is not made:
                    return why
                passes.append(seen.found[0])
        except Exception:
            return why
        (_, first, windows), (_, second, _), _ = passes
        if not x.is_meta and not torch.equal(first, second):
            return f"its type {type(layer).__name__} has a weight that depends on its input"
        return windows or why
