"""What every find is measured against: operators that everybody knows, written as kernels.

A control is a kernel text and goes the way of a find: solved for the targets, with norms where
finds have them, turned into the same kind of module, trained and timed by the same code.
Identity, 1x1 and depth-wise separable stand in the table whatever they cost; spatially separable,
bottleneck (both by their inner channels) and grouped (by its groups) fill the budget.  The
unchanged network is the baseline, which has no kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .. import _core
from ..errors import CanvasError, NoSolution

BASELINE = "baseline"
EXEMPT = (
    "exempt=1"  # a window on a small image has weights that see padding alone, as in any network
)

IDENTITY = """canvas 1
kernel identity
a = input
out a
"""

POINTWISE = """canvas 1
kernel pointwise
a = input
b = fc a to=C
out b
"""

DEPTHWISE_SEPARABLE = """canvas 1
kernel depthwise_separable
a = input
b = group a each
c = unfold b over=H,W k=K
d = fc c to=C
e = fc d to=C
out e
"""

DENSE = """canvas 1
kernel dense
a = input
b = unfold a over=H,W k=K
c = fc b to=C
out c
"""

GROUPED = """canvas 1
kernel grouped
a = input
b = group a by=G
c = unfold b over=H,W k=K
d = fc c to=C
out d
"""


SPATIALLY_SEPARABLE = """canvas 1
kernel spatially_separable
a = input
b = unfold a over=H k=K
c = fc b to=x0
d = unfold c over=W k=K
e = fc d to=C
out e
"""

BOTTLENECK = """canvas 1
kernel bottleneck
a = input
b = fc a to=x0
c = relu b
d = unfold c over=H,W k=K
e = fc d to=x0
f = relu e
g = fc f to=C
out g
"""


@dataclass(frozen=True)
class Control:
    """A control that was solved (`pack`), or the reason why it is missing."""

    name: str
    pack: str = ""
    missing: str = ""


def solve_controls(targets: str, norm: str) -> list[Control]:
    """Identity, 1x1 and depth-wise separable, whatever they cost, in the order of the table;
    `norm` is batch or none.
    """
    free = "macs=none,params=none"
    return [
        _control("identity", IDENTITY, targets, free, EXEMPT),
        _control("1x1", POINTWISE, targets, free, EXEMPT),
        _control(
            "depthwise-separable", DEPTHWISE_SEPARABLE, targets, free, f"{EXEMPT} norm={norm}"
        ),
    ]


def budget_controls(targets: str, budget: str, norm: str) -> list[Control]:
    """Those that fill a budget: spatially separable and bottleneck by their inner channels,
    grouped by its groups.
    """
    with_norm = f"{EXEMPT} norm={norm}"
    return [
        _control("spatially-separable", SPATIALLY_SEPARABLE, targets, budget, with_norm),
        _control("bottleneck", BOTTLENECK, targets, budget, with_norm),
        grouped(targets, budget),
    ]


def grouped_within(targets: str, macs: int) -> Control:
    """The grouped convolution with the most MACs up to `macs`, called by its groups."""
    control = grouped(targets, f"macs={macs},params=none")
    groups = re.search(r"\bG=(\d+)", control.pack)
    return replace(control, name=f"grouped-by-{groups[1]}") if groups else control


def grouped(targets: str, budget: str, kernel: str = GROUPED) -> Control:
    """The grouped convolution, or another kernel with G, with the fewest groups that the budget
    allows.
    """
    missing = ""
    for groups in group_counts(targets):
        try:
            return Control("grouped", _core.solve(kernel, targets, budget, f"{EXEMPT} G={groups}"))
        except NoSolution as error:
            missing = str(error)
    return Control(
        "grouped", missing=missing or "the channel counts have no common divisor above 1"
    )


def group_counts(targets: str) -> list[int]:
    """Common divisors above 1 of all channel counts in a targets text, smallest first."""
    counts = channel_counts(targets)
    low = min(counts)
    return [g for g in range(2, low + 1) if all(count % g == 0 for count in counts)]


def channel_counts(targets: str) -> Sequence[int]:
    """C_in and C_out of every line `name C_in C_out H W ...` of a targets text."""
    counts: list[int] = []
    for line in targets.splitlines():
        words = line.partition("#")[0].replace(",", " ").split()
        if words:
            counts += [int(words[1]), int(words[2])]
    return counts


def _control(name: str, kernel: str, targets: str, budget: str, options: str) -> Control:
    try:
        return Control(name, _core.solve(kernel, targets, budget, options))
    except CanvasError as error:
        return Control(name, missing=str(error))
