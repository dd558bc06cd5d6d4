"""Placeholders for the convolutions of any network.

One real forward pass with hooks shows which convolutions run, in which order and on what; each
gets a row in a table: replaced, or skipped and why.  Nothing else of the network changes, all
weights stay.

Rules, in this order (paper 4.2 and 6.1): a standard Conv2d that runs once, accepted by the filter,
not the first convolution, one group, no dilation, odd window, zero padding of half the window,
C_in and C_out equal or one a multiple of the other, the same stride along both axes.  Its output
is then ceil(H/stride): the kernel sees the input average-pooled by the stride.  policy="spatial"
leaves out 1x1 windows.  An image of one pixel has no neighbours to see: a convolution on one (in
squeeze-and-excitation, behind a global pooling) stays, but for policy="all".
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ..arguments import FUNCTION, SWITCH, TEXT, checked, shown
from ..errors import CanvasError
from .layer_target import Target, plain_name, targets_text
from .placeholder import Placeholder, replace, run_quietly

__all__ = ["Conversion", "Row", "convert", "replace"]

POLICIES = ("paper", "spatial", "all")
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


@dataclass(frozen=True)
class Row:
    """What became of one convolution; `macs` of one image, 0 where it did not run."""

    name: str
    status: str  # "replaced" or "skipped"
    reason: str
    macs: int


@dataclass(frozen=True)
class Conversion:
    """A network with placeholders, its targets text, and a row per convolution in the order they
    run.

    `covered` is the share of the network's MACs in the layers replaced: it bounds the speed-up.
    str() is the table.
    """

    model: nn.Module
    targets: str
    table: tuple[Row, ...]
    covered: float

    def __str__(self) -> str:
        names = max(len(row.name) for row in self.table)
        lines = [f"{'layer':{names}}  {'MACs':>13}"]
        for row in self.table:
            what = row.status if row.status == "replaced" else f"skipped: {row.reason}"
            lines.append(f"{row.name:{names}}  {row.macs:13,}  {what}")
        count = sum(row.status == "replaced" for row in self.table)
        lines.append(
            f"{count} of {len(self.table)} convolutions replaced, "
            f"{self.covered:.1%} of the network's MACs"
        )
        return "\n".join(lines) + "\n"


@checked(policy=TEXT, filter_fn=FUNCTION, inplace=SWITCH)
def convert(
    model: nn.Module,
    example_input: Any,
    policy: str = "paper",
    filter_fn: Filter | None = None,
    inplace: bool = False,
) -> Conversion:
    """Replace the convolutions of a network by placeholders.

    `example_input`: a tensor, or a tuple or dict of arguments, as the network takes it.  `policy`:
    "paper" (any odd window), "spatial" (only larger than 1x1) or "all" (also on images of one
    pixel).  ``filter_fn(layer, path)`` returns False for layers to keep.  Without `inplace`, a
    deep copy is converted.  Until canvas.replace, a placeholder computes the layer it replaces.

    Raises CanvasError for bad input, and if no layer can be replaced; the message names a policy
    that finds some.
    """
    return convert_layers(model, example_input, policy, filter_fn, inplace)


def convert_layers(
    model: nn.Module,
    example_input: Any,
    policy: str = "paper",
    filter_fn: Filter | None = None,
    inplace: bool = False,
    named: Collection[str] = (),
) -> Conversion:
    """`convert`, where targets that are `named` are replaced on images of one pixel, too: a pack
    of an earlier version may have sizes for them.
    """
    if not isinstance(model, nn.Module):
        raise CanvasError(f"a torch.nn.Module is needed, not {type(model).__name__}")
    if policy not in POLICIES:
        raise CanvasError(f"policy '{policy}' is unknown, it is one of: {', '.join(POLICIES)}")
    if isinstance(model, nn.Conv2d):
        raise CanvasError("the network is a single convolution; wrap it in nn.Sequential")
    model = model if inplace else copied(model)
    survey = _Survey.of(model, example_input, frozenset(named))
    reasons = {path: survey.reason(path, policy, filter_fn) for path in survey.paths}
    if not any(reason == "" for reason in reasons.values()):
        raise CanvasError(_nothing(survey, policy, filter_fn, reasons))
    targets, taken = [], set[str]()
    for path, reason in reasons.items():
        if not reason:
            target = survey.target(path, plain_name(path, taken))
            put_layer(model, path, Placeholder.instead_of(survey.layers[path], target))
            targets.append(target)
    rows = tuple(
        Row(path, "skipped" if reason else "replaced", reason, survey.macs(path))
        for path, reason in reasons.items()
    )
    covered = sum(row.macs for row in rows if row.status == "replaced") / max(survey.total, 1)
    return Conversion(model, targets_text(targets), rows, covered)


def restore_kept(model: nn.Module) -> nn.Module:
    """Put the convolutions of placeholders without a kernel back in their places, and return the
    network: after `replace`, those of layers that a pack keeps.
    """
    if not isinstance(model, nn.Module):
        raise CanvasError(f"restore_kept takes a torch.nn.Module, not {shown(model)}")
    for path, child in list(model.named_modules()):
        if isinstance(child, Placeholder) and child.kernel is None and child.original is not None:
            put_layer(model, path, child.original)
    return model


def copied(model: nn.Module) -> nn.Module:
    """A deep copy; CanvasError with one message if the model cannot be copied."""
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise CanvasError(
            f"the network cannot be copied ({type(error).__name__}); convert it with inplace=True"
        ) from error


def put_layer(model: nn.Module, path: str, layer: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, layer)


@dataclass
class _Survey:
    """What one forward pass shows about every convolution."""

    layers: dict[str, Any]  # by path, in the order they run; those that do not run come last
    shapes: dict[str, list[tuple[int, ...]]]
    shared: dict[str, str]  # path -> with whom
    total: int  # MACs of one image, all layers
    named: frozenset[str]  # targets that are replaced on one pixel, too

    @property
    def paths(self) -> list[str]:
        return list(self.layers)

    @classmethod
    def of(cls, model: nn.Module, example_input: Any, named: frozenset[str]) -> _Survey:
        hidden = {
            id(inside)
            for placeholder in model.modules()
            if isinstance(placeholder, Placeholder)
            for inside in placeholder.modules()
        }
        found: dict[str, Any] = {}
        for path, layer in model.named_modules(remove_duplicate=False):
            if isinstance(layer, CONVOLUTIONS) and id(layer) not in hidden:
                found[path] = layer
        if not found:
            raise CanvasError("the network has no convolution; put canvas.Placeholder() into it")
        shapes: dict[nn.Module, list[tuple[int, ...]]] = {}

        def note(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
            shapes.setdefault(layer, []).append(tuple(inputs[0].shape))

        with FlopCounterMode(display=False) as counter:
            run_quietly(model, example_input, dict.fromkeys(found.values(), note))
        order = {layer: place for place, layer in enumerate(shapes)}
        paths = sorted(found, key=lambda path: order.get(found[path], len(order)))
        images = max((calls[0][0] for calls in shapes.values() if len(calls[0]) == 4), default=1)
        return cls(
            {path: found[path] for path in paths},
            {path: shapes.get(found[path], []) for path in paths},
            _shared(found),
            counter.get_total_flops() // 2 // max(images, 1),
            named,
        )

    def reason(self, path: str, policy: str, filter_fn: Filter | None) -> str:
        """Why the convolution stays, "" if it is replaced."""
        layer = self.layers[path]
        return (
            self._not_standard(path, layer)
            or ("the filter leaves it out" if filter_fn and not filter_fn(layer, path) else "")
            or ("it is the first convolution" if path == self.paths[0] else "")
            or _unsuitable(layer)
            or ("its window is 1x1" if policy == "spatial" and layer.kernel_size == (1, 1) else "")
            or (ONE_PIXEL if policy != "all" and self._is_one_pixel(path) else "")
        )

    def _is_one_pixel(self, path: str) -> bool:
        """Of what a kernel sees, the input pooled by the stride; targets that are named do not
        count.
        """
        if plain_name(path, set()) in self.named:
            return False
        (_, _, h, w), (down, right) = self.shapes[path][0], self.layers[path].stride
        return h <= down and w <= right

    def _not_standard(self, path: str, layer: Any) -> str:
        calls = self.shapes[path]
        if type(layer) is not nn.Conv2d:
            return f"its type is {type(layer).__name__}"
        if path in self.shared:
            return f"it shares its weight with '{self.shared[path]}'"
        if not calls:
            return "the example input does not reach it"
        if len({shape[1:] for shape in calls}) > 1:
            return "it runs several times on different shapes"
        if len(calls) > 1:
            return f"it runs {len(calls)} times in one pass"
        if len(calls[0]) != 4:
            return f"its input {list(calls[0])} has no batch axis"
        if layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks:
            return "it has hooks of its own"
        return ""

    def target(self, path: str, name: str) -> Target:
        layer, (_, _, h, w) = self.layers[path], self.shapes[path][0]
        kh, kw = layer.kernel_size
        return Target(name, layer.in_channels, layer.out_channels, h, w, kh, kw, layer.stride[0])

    def macs(self, path: str) -> int:
        """Multiply-accumulates of one image, by the layer's own sizes, over all its calls."""
        layer, total = self.layers[path], 0
        for shape in self.shapes[path]:
            spatial = shape[len(shape) - len(layer.kernel_size) :]
            pixels = _pixels(layer, spatial)
            total += layer.weight.numel() * pixels
        return total


def _pixels(layer: Any, spatial: tuple[int, ...]) -> int:
    """Places where the whole weight is applied: of the output, or of the input of a transposed
    one.
    """
    count = 1
    for axis, size in enumerate(spatial):
        if not layer.transposed:
            pad = _padding(layer)[axis]
            reach = layer.dilation[axis] * (layer.kernel_size[axis] - 1) + 1
            size = (size + pad - reach) // layer.stride[axis] + 1
        count *= size
    return count


def _padding(layer: Any) -> tuple[int, ...]:
    """Both sides together, along each axis."""
    if layer.padding == "valid":
        return (0,) * len(layer.kernel_size)
    if layer.padding == "same":
        return tuple(d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size))
    return tuple(2 * p for p in layer.padding)


def _shared(found: Mapping[str, Any]) -> dict[str, str]:
    """Layers that are one module under two paths, or whose weights are one tensor."""
    first: dict[int, str] = {}
    shared: dict[str, str] = {}
    for path, layer in found.items():
        other = first.setdefault(id(layer.weight), path)
        if other != path:
            shared[path] = other
            shared.setdefault(other, path)
    return shared


def _unsuitable(layer: Any) -> str:
    """Why no kernel can stand for a Conv2d of these attributes, "" if one can."""
    (kh, kw), (cin, cout) = layer.kernel_size, (layer.in_channels, layer.out_channels)
    if layer.groups != 1:
        return "it is depth-wise" if layer.groups == cin else f"it has {layer.groups} groups"
    if layer.dilation != (1, 1):
        return f"its dilation is {'x'.join(map(str, layer.dilation))}"
    if kh % 2 == 0 or kw % 2 == 0:
        return f"its window {kh}x{kw} is even"
    if layer.padding_mode != "zeros":
        return f"its padding mode is '{layer.padding_mode}'"
    if _padding(layer) != (kh - 1, kw - 1):
        return f"its padding is not {kh // 2}x{kw // 2}, half the window"
    if layer.stride[0] != layer.stride[1]:
        return f"its strides {layer.stride[0]} and {layer.stride[1]} differ"
    if cin % cout and cout % cin:
        return f"neither of its channels {cin} -> {cout} is a multiple of the other"
    return ""


def _nothing(
    survey: _Survey, policy: str, filter_fn: Filter | None, reasons: Mapping[str, str]
) -> str:
    """The message for a network in which no convolution can be replaced."""
    for other in POLICIES:
        count = sum(not survey.reason(path, other, filter_fn) for path in survey.paths)
        if count:
            return (
                f"policy '{policy}' finds no convolution to replace; "
                f"policy '{other}' would replace {count}"
            )
    counts: dict[str, int] = {}
    for reason in reasons.values():
        counts[reason] = counts.get(reason, 0) + 1
    common = sorted(counts.items(), key=lambda item: -item[1])[:3]
    why = ", ".join(f"{count} because {reason}" for reason, count in common)
    return f"no policy finds a convolution to replace in this network: {why}"
