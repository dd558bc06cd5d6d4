"""What one forward pass shows about the layers of a network: which run, in which order, on what,
and whether a kernel can stand for them.

Rules, in this order (paper 4.2 and 6.1, and docs/layer-kinds.md): a layer with a weight of its own
that runs on one tensor, whose first axis is the examples; accepted by the filter; not the first
convolution; of a suitable geometry (geometry.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrize
from torch.utils.flop_counter import FlopCounterMode

from ..errors import CanvasError
from ..layer_choice import LayerChoice
from .batch_axis import mixed
from .geometry import Geometry, geometry, windows_of
from .layer_target import Target, plain_name
from .layer_view import View
from .placeholder import Placeholder, examples_of, run_quietly

CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
ONE_PIXEL = "its image has one pixel, no neighbours (policy 'all' replaces it)"

Filter = Callable[[nn.Module, str], bool]


@dataclass
class Survey:
    """What one forward pass shows about every convolution and, if wanted, linear layer."""

    layers: dict[str, Any]  # by path, in the order they run; those that do not run come last
    shapes: dict[str, list[tuple[int, ...]]]
    shared: dict[str, str]  # path -> with whom
    geometries: dict[str, Geometry | str]  # or why it has none
    odd: dict[str, str]  # path -> what is unusual about how it is called
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
        images = examples_of(example_input)
        there = [child for child in model.modules() if isinstance(child, Placeholder)]
        hidden = {id(inside) for placeholder in there for inside in placeholder.modules()}
        kinds = (*CONVOLUTIONS, nn.Linear) if linear else CONVOLUTIONS
        found: dict[str, Any] = {
            path: layer
            for path, layer in model.named_modules()
            if isinstance(layer, kinds) and id(layer) not in hidden
        }
        if not found:
            what = "convolution and no linear layer" if linear else "convolution"
            if there:
                raise CanvasError(f"the network has {len(there)} placeholders and no other {what}")
            raise CanvasError(f"the network has no {what}; put canvas.Placeholder() into it")
        shapes: dict[nn.Module, list[tuple[int, ...]]] = {}
        odd: dict[nn.Module, str] = {}

        def note(layer: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            value = args[0] if args else kwargs.get("input")
            if isinstance(value, Tensor):
                shapes.setdefault(layer, []).append(tuple(value.shape))
            if len(args) + len(kwargs) != 1:
                odd[layer] = "it is called with more than its input"

        with FlopCounterMode(display=False) as counter, _unfused():
            run_quietly(model, example_input, dict.fromkeys(found.values(), note))
        linears = [layer for layer in shapes if isinstance(layer, nn.Linear)]
        if linears:
            lengths = {layer: shapes[layer][0][0] for layer in linears if shapes[layer][0]}
            for layer in mixed(model, example_input, linears, lengths):
                odd[layer] = "the first axis of its input is not the examples"
        order = {layer: place for place, layer in enumerate(shapes)}
        paths = sorted(found, key=lambda path: order.get(found[path], len(order)))
        return cls(
            {path: found[path] for path in paths},
            {path: shapes.get(found[path], []) for path in paths},
            _shared(model, found),
            {path: geometry(found[path], shapes.get(found[path], [])) for path in paths},
            {path: odd[found[path]] for path in paths if found[path] in odd},
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
        shape = self.geometries[path]
        assert isinstance(shape, Geometry)
        return plain_name(path, set()) not in self.named and max(self._image(path)) <= shape.stride

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
        if layer.weight.is_complex():
            return "its weights are complex"
        if path in self.shared:
            return f"it shares its weight with '{self.shared[path]}'"
        if not calls:
            return "the example input does not reach it"
        if len({len(shape) for shape in calls}) > 1:
            return "it runs on inputs of different numbers of axes"
        if not all(math.prod(shape) for shape in calls):
            return f"its input {list(calls[0])} is empty"
        if path in self.odd:
            return self.odd[path]
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

    def _image(self, path: str) -> torch.Size:
        """Height and width of the largest image that a kernel sees."""
        largest = max(self.shapes[path], key=math.prod)
        return self.view(path).images(torch.empty(largest, device="meta")).shape[2:]

    def target(self, path: str, name: str, choice: LayerChoice) -> Target:
        """The layer at the largest of its inputs, as a kernel sees it."""
        shape = self.geometries[path]
        assert isinstance(shape, Geometry)
        (h, w), (kh, kw) = self._image(path), shape.size
        projected = int(shape.unequal and choice.unequal == "project")
        more = shape.stride, shape.groups, shape.spread, projected
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


def _shared(model: nn.Module, found: Mapping[str, Any]) -> dict[str, str]:
    """Layers whose weights other modules have, too."""
    owners: dict[int, list[str]] = {}
    for path, module in model.named_modules():
        for value in module._parameters.values():
            if value is not None:
                owners.setdefault(id(value), []).append(path)
    shared: dict[str, str] = {}
    for path, layer in found.items():
        if not parametrize.is_parametrized(layer):
            others = [other for other in owners.get(id(layer.weight), []) if other != path]
            if others:
                shared[path] = others[0] or "the network"
    return shared


@contextmanager
def _unfused() -> Iterator[None]:
    """Attention as matrix products, which are counted."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
