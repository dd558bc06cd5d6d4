"""What may stand in a layer: known operators and drawn ones, each at several sizes.

An *operator* is a kernel text with a name; at a layer and a share of the layer's MACs the core
gives it sizes, and it is an *item*.  `keep` is the layer as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import _core
from ..errors import NoSolution
from ..nn import controls
from ..nn.layer_target import Target
from ..nn.pack import KernelPack

SHARES = (0.7, 0.5, 0.3, 0.15)
KEEP = "keep"
NORM = "batch"


@dataclass(frozen=True)
class Operator:
    """A kernel by name; `fixed` ones have one size whatever the budget, `grouped` ones are sized
    by their number of groups.
    """

    name: str
    kernel: str
    control: bool = True
    fixed: bool = False
    grouped: bool = False
    groups: int | None = None  # G, for a drawn kernel that uses it


CONTROLS = (
    Operator("identity", controls.IDENTITY, fixed=True),
    Operator("1x1", controls.POINTWISE, fixed=True),
    Operator("depthwise-separable", controls.DEPTHWISE_SEPARABLE, fixed=True),
    Operator("spatially-separable", controls.SPATIALLY_SEPARABLE),
    Operator("bottleneck", controls.BOTTLENECK),
    Operator("grouped", controls.GROUPED, grouped=True),
)


@dataclass(frozen=True)
class Sized:
    """An operator at one layer: `share` of the layer's MACs was its limit (1 for a fixed size)."""

    operator: Operator
    layer: str
    share: float
    pack: KernelPack

    @property
    def name(self) -> str:
        """Such as bottleneck@0.5, or 1x1 for a fixed size."""
        return self.operator.name + ("" if self.operator.fixed else f"@{self.share:g}")


def sizes_of(operator: Operator, target: Target, shares: Sequence[float] = SHARES) -> list[Sized]:
    """The operator at a layer, once for every share of its MACs that gives other sizes; none where
    no sizes are legal.
    """
    found: dict[str, Sized] = {}
    for share in (1.0,) if operator.fixed else shares:
        pack = _solve(operator, target, "macs=none" if operator.fixed else f"macs={share:g}x")
        if pack is not None:
            found.setdefault(pack, Sized(operator, target.name, share, KernelPack(pack)))
    return list(found.values())


def _solve(operator: Operator, target: Target, budget: str) -> str | None:
    layer = target.line()
    budget += ",params=none"
    options = f"{controls.EXEMPT} norm={NORM}"
    if operator.grouped:
        return controls.grouped(layer, budget).pack or None
    if operator.groups:
        options += f" G={operator.groups}"
    try:
        return _core.solve(operator.kernel, layer, budget, options)
    except NoSolution:
        return None
