"""What may stand in a layer: known operators and drawn ones, each at several sizes.

An *operator* is a kernel text with a name; at a layer and a share of the layer's MACs the core
gives it sizes, and it is an *item*.  A strided layer has two items of a size: the operator behind
an average pooling, and the operator whose own windows take the stride.  `keep` is the layer as it
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import _core
from ..errors import CanvasError
from ..nn import controls
from ..nn.layer_target import Target
from ..nn.pack import KernelPack

SHARES = (0.7, 0.5, 0.3, 0.15)
KEEP = "keep"
NORM = "batch"
TURN = 3  # drawn operators fitted at a time: as many as there are known ones of several sizes
FLOOR = "dense"  # the layer's own operator behind a pooling: what the pooling alone costs


@dataclass(frozen=True)
class Operator:
    """A kernel by name; `fixed` ones have one size whatever the budget, `grouped` ones are sized
    by their number of groups, `pooled` ones stand only behind the pooling of a strided layer.
    """

    name: str
    kernel: str
    control: bool = True
    fixed: bool = False
    grouped: bool = False
    pooled: bool = False
    groups: int | None = None  # G, for a drawn kernel that uses it


CONTROLS = (
    Operator("identity", controls.IDENTITY, fixed=True),
    Operator("1x1", controls.POINTWISE, fixed=True),
    Operator("depthwise-separable", controls.DEPTHWISE_SEPARABLE, fixed=True),
    Operator("spatially-separable", controls.SPATIALLY_SEPARABLE),
    Operator("bottleneck", controls.BOTTLENECK),
    Operator("grouped", controls.GROUPED, grouped=True),
    Operator(FLOOR, controls.DENSE, fixed=True, pooled=True),
)


@dataclass(frozen=True)
class Sized:
    """An operator at one layer: `share` of the layer's MACs was its limit (1 for a fixed size)."""

    operator: Operator
    layer: str
    share: float
    pack: KernelPack
    windowed: bool = False  # its windows take the stride, nothing is pooled

    @property
    def name(self) -> str:
        """Such as bottleneck@0.5, or 1x1 for a fixed size, or bottleneck@0.5/window."""
        size = "" if self.operator.fixed else f"@{self.share:g}"
        return self.operator.name + size + ("/window" if self.windowed else "")


def in_turns(menu: Sequence[Sized]) -> list[Sized]:
    """The order of fitting, which a time limit may cut: known operators and the first TURN drawn
    ones together, a share for all of them before the next, then the others, TURN at a time.
    """
    middle = sum(SHARES) / len(SHARES)
    number = {sized.operator.name: 0 for sized in menu if not sized.operator.control}
    number = {name: at // TURN for at, name in enumerate(number)}

    def order(sized: Sized) -> tuple[int, float, bool]:
        far = -1.0 if sized.operator.fixed else abs(sized.share - middle)
        return number.get(sized.operator.name, 0), far, not sized.operator.control

    return sorted(menu, key=order)


def sized_from(layer: str, name: str, text: str) -> Sized:
    """The item of that name at a layer, whose sizes stand in its pack."""
    pack = KernelPack(text)
    plain = name.removesuffix("/window")
    operator_name, _, share = plain.partition("@")
    known = {operator.name: operator for operator in CONTROLS}
    operator = known.get(operator_name) or Operator(operator_name, pack.kernel, control=False)
    return Sized(operator, layer, float(share or 1.0), pack, plain != name)


def sizes_of(
    operator: Operator, target: Target, shares: Sequence[float] | None = None
) -> list[Sized]:
    """The operator at a layer, once for every share (None: SHARES) of its MACs that gives other
    sizes, and in both ways of a stride; none where no sizes are legal.
    """
    found: dict[str, Sized] = {}
    ways = _ways(operator.kernel, target.stride)
    if operator.pooled:
        ways = ways[:1] if target.stride > 1 else []
    for kernel, windowed in ways:
        for share in (1.0,) if operator.fixed else shares or SHARES:
            budget = "macs=none" if operator.fixed else f"macs={share:g}x"
            pack = _solve(operator, kernel, target.line(), f"{budget},params=none")
            if pack is not None:
                sized = Sized(operator, target.name, share, KernelPack(pack), windowed)
                found.setdefault(pack, sized)
    return list(found.values())


def _ways(kernel: str, stride: int) -> list[tuple[str, bool]]:
    """The kernel behind a pooling, and with a stride of its own if the layer has one."""
    ways = [(kernel, False)]
    if stride > 1:
        try:
            ways.append((_core.strided(kernel, "window"), True))
        except CanvasError:  # as of weights that hold the size of the image
            pass
    return ways


def _solve(operator: Operator, kernel: str, layer: str, budget: str) -> str | None:
    options = f"{controls.EXEMPT} norm={NORM}"
    if operator.grouped:
        return controls.grouped(layer, budget, kernel).pack or None
    if operator.groups:
        options += f" G={operator.groups}"
    try:
        return _core.solve(kernel, layer, budget, options)
    except CanvasError:  # no sizes, or an image that is no multiple of the stride
        return None
