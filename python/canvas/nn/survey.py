"""What one forward pass shows about the layers of a network: which run, in which order, on what,
and whether a kernel can stand for them.

Rules, in this order (paper 4.2 and 6.1, and docs/networks.md): a layer of one weight that runs,
accepted by the filter, not the first convolution, of one stride and one dilation.  A subclass of a
convolution is one if all it does with its input is one convolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from ..errors import CanvasError
from ..layer_choice import LayerChoice
from .layer_target import Target, plain_name
from .layer_view import View, Window
from .placeholder import Placeholder, examples_of, run_quietly

CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
FEW = 2  # channels: a kernel of one channel has no groups
MOST_COPIES = 2048  # of a kernel in one layer

ONE_PIXEL = "its image has one pixel, no neighbours (policy 'all' replaces it)"
DEPTHWISE = "it is depth-wise (depthwise replaces it)"
FUNCTIONS = {F.conv1d: 1, F.conv2d: 2, torch.conv1d: 1, torch.conv2d: 2}

Filter = Callable[[nn.Module, str], bool]


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
        if common == min(self.cin, self.cout):
            return ""
        if choice.unequal == "skip":
            return f"neither of its channels {self.cin} -> {self.cout} is a multiple of the other"
        if common < FEW or copies > MOST_COPIES:
            what = f"its channels {self.cin} -> {self.cout} have {common} as common divisor"
            return f"{what}, a kernel would run in {copies} copies"
        return ""


@dataclass
class Survey:
    """What one forward pass shows about every convolution and, if wanted, linear layer."""

    layers: dict[str, Any]  # by path, in the order they run; those that do not run come last
    shapes: dict[str, list[tuple[int, ...]]]
    shared: dict[str, str]  # path -> with whom
    geometries: dict[str, Geometry | str]  # or why it has none
    total: int  # MACs of one image, all layers
    images: int  # in the example
    named: frozenset[str]  # targets that a pack names; empty: any layer may be one

    @property
    def paths(self) -> list[str]:
        return list(self.layers)

    @classmethod
    def of(
        cls, model: nn.Module, example_input: Any, linear: bool, named: Collection[str]
    ) -> Survey:
        hidden = {
            id(inside)
            for placeholder in model.modules()
            if isinstance(placeholder, Placeholder)
            for inside in placeholder.modules()
        }
        kinds = (*CONVOLUTIONS, nn.Linear) if linear else CONVOLUTIONS
        found: dict[str, Any] = {
            path: layer
            for path, layer in model.named_modules()
            if isinstance(layer, kinds) and id(layer) not in hidden
        }
        if not found:
            what = "convolution and no linear layer" if linear else "convolution"
            raise CanvasError(f"the network has no {what}; put canvas.Placeholder() into it")
        shapes: dict[nn.Module, list[tuple[int, ...]]] = {}

        def note(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
            if inputs and isinstance(inputs[0], Tensor):
                shapes.setdefault(layer, []).append(tuple(inputs[0].shape))

        with FlopCounterMode(display=False) as counter:
            run_quietly(model, example_input, dict.fromkeys(found.values(), note))
        order = {layer: place for place, layer in enumerate(shapes)}
        paths = sorted(found, key=lambda path: order.get(found[path], len(order)))
        images = examples_of(example_input)
        return cls(
            {path: found[path] for path in paths},
            {path: shapes.get(found[path], []) for path in paths},
            _shared(found),
            {path: geometry(found[path], shapes.get(found[path], [])) for path in paths},
            counter.get_total_flops() // 2 // images,
            images,
            frozenset(named),
        )

    def reason(self, path: str, choice: LayerChoice, filter_fn: Filter | None) -> str:
        """Why the layer stays, "" if it is replaced."""
        layer = self.layers[path]
        return (
            self._not_standard(path, layer)
            or self._not_of_the_pack(path)
            or ("it has canvas_keep" if getattr(layer, "canvas_keep", False) else "")
            or ("the filter leaves it out" if filter_fn and not filter_fn(layer, path) else "")
            or ("it is the first convolution" if path == self._first_convolution else "")
            or self._unsuitable(path, choice)
        )

    @property
    def _first_convolution(self) -> str | None:
        found = (p for p in self.paths if isinstance(self.layers[p], CONVOLUTIONS))
        return next(found, None)

    def _unsuitable(self, path: str, choice: LayerChoice) -> str:
        shape, made = self.geometries[path], self.layers[path]
        if isinstance(shape, str):
            return shape
        why = shape.unsuitable(choice)
        if why or isinstance(made, nn.Linear):
            return why or ("its window is 1x1" if choice.policy == "spatial" else "")
        if choice.policy == "spatial" and shape.size == (1, 1):
            return "its window is 1x1"
        return ONE_PIXEL if choice.policy != "all" and self._is_one_pixel(path) else ""

    def _is_one_pixel(self, path: str) -> bool:
        """Of what a kernel sees, the input pooled by the stride; targets that are named do not
        count.
        """
        target = self.target(path, path)
        if plain_name(path, set()) in self.named:
            return False
        return target.h <= target.stride and target.w <= target.stride

    def _not_of_the_pack(self, path: str) -> str:
        """A pack names all layers that it was made for, if it names some of this network."""
        name, known = plain_name(path, set()), self.named.intersection(self._names)
        return "the pack does not name it" if known and name not in self.named else ""

    @property
    def _names(self) -> set[str]:
        return {plain_name(path, set()) for path in self.paths}

    def _not_standard(self, path: str, layer: Any) -> str:
        calls = self.shapes[path]
        if not isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Linear)):
            return f"its type is {type(layer).__name__}"
        if path in self.shared:
            return f"it shares its weight with '{self.shared[path]}'"
        if not calls:
            return "the example input does not reach it"
        if len({len(shape) for shape in calls}) > 1:
            return "it runs on inputs of different numbers of axes"
        if layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks:
            return "it has hooks of its own"
        axes = len(calls[0])
        if isinstance(layer, nn.Linear) and not 2 <= axes <= 4:
            return f"its input has {axes} axes"
        if not isinstance(layer, nn.Linear) and axes != len(layer.kernel_size) + 2:
            return f"its input {list(calls[0])} has no batch axis"
        return ""

    def kind(self, path: str) -> str:
        return "linear" if isinstance(self.layers[path], nn.Linear) else "convolution"

    def view(self, path: str) -> View:
        """How the layer's tensors become images."""
        shape, rank = self.geometries[path], len(self.shapes[path][0])
        assert isinstance(shape, Geometry)
        last = isinstance(self.layers[path], nn.Linear)
        pieces = max(1, self.shapes[path][0][0] // self.images) if last else 1
        return View(rank, last, pieces, shape.down, shape.right)

    def target(self, path: str, name: str) -> Target:
        """The layer at the largest of its inputs, as a kernel sees it."""
        shape, view = self.geometries[path], self.view(path)
        assert isinstance(shape, Geometry)
        largest = max(self.shapes[path], key=math.prod)
        seen = view.images(torch.empty(largest, device="meta"))
        kh, kw = shape.size
        h, w = seen.shape[2:]
        more = shape.stride, shape.groups, shape.spread
        return Target(name, shape.cin, shape.cout, h, w, kh, kw, *more)

    def macs(self, path: str) -> int:
        """Multiply-accumulates of one image, by the layer's own sizes, over all its calls."""
        layer, total = self.layers[path], 0
        for shape in self.shapes[path]:
            if isinstance(layer, nn.Linear):
                total += layer.weight.numel() * math.prod(shape[:-1]) // self.images
            else:
                spatial = shape[len(shape) - len(layer.kernel_size) :]
                total += layer.weight.numel() * _pixels(layer, spatial, self.geometries[path])
        return total


def _pixels(layer: Any, spatial: tuple[int, ...], known: Geometry | str) -> int:
    """Places where the whole weight is applied: of the output, or of the input of a transposed
    one.
    """
    if layer.transposed:
        return math.prod(spatial)
    if isinstance(known, Geometry):
        height, width = (1, *spatial)[-2:]
        return known.down.places(height) * known.right.places(width)
    windows = windows_of(layer)
    return math.prod(window.places(size) for window, size in zip(windows, spatial, strict=True))


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


def _shared(found: Mapping[str, Any]) -> dict[str, str]:
    """Layers whose weights are one tensor."""
    first: dict[int, str] = {}
    shared: dict[str, str] = {}
    for path, layer in found.items():
        computed = parametrize.is_parametrized(layer)
        other = first.setdefault(id(layer if computed else layer.weight), path)
        if other != path:
            shared[path] = other
            shared.setdefault(other, path)
    return shared


# -- subclasses --


def geometry(layer: Any, calls: list[tuple[int, ...]]) -> Geometry | str:
    """What kind of convolution a layer is, or why a kernel cannot stand for it."""
    if isinstance(layer, nn.Linear):
        if type(layer).forward is not nn.Linear.forward:
            return f"its type is {type(layer).__name__}"
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
        self.found: list[tuple[Any, list[Window] | None]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if func in FUNCTIONS:
            self.found.append((result, self._windows(FUNCTIONS[func], *args, **(kwargs or {}))))
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
        x: Any,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> list[Window] | None:
        if id(x) not in self.zeros:
            return None
        windows = _windows(weight.shape[2:], stride, padding, dilation)
        zeros = (self.zeros[id(x)] + [0] * 2 * axes)[: 2 * axes]  # the last axis first
        return [
            replace(
                window,
                before=window.before + zeros[2 * at],
                behind=window.behind + zeros[2 * at + 1],
            )
            for at, window in zip(reversed(range(axes)), windows)
        ]

    @classmethod
    def within(cls, layer: Any, shape: tuple[int, ...]) -> list[Window] | str:
        """The windows of the one convolution that a layer is, or what it is instead."""
        why = f"its type {type(layer).__name__} computes more than a convolution"
        weight = layer.weight
        x = torch.zeros(shape, dtype=weight.dtype, device=weight.device)
        training = layer.training
        with torch.no_grad(), cls(x) as seen:
            try:
                made = layer.eval()(x)
            except Exception:
                return why
            finally:
                layer.train(training)
        if len(seen.found) != 1 or seen.found[0][0] is not made:
            return why
        return seen.found[0][1] or why
