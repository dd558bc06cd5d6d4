"""Curves of trainings, drawn by matplotlib in the colours and lines of figure.py.

    curves --> axes --> lines, the unnamed below the named --> names at the right ends --> SVG

Names stand beside the ends of their curves, apart from each other.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .axis_range import limits, shown_values
from .drawn import INK, SMALL, empty_figure, own_settings
from .figure import BLUE, COLOURS, DASHED, DOTTED, GREY, GRID, LINE

WIDTH, HEIGHT = 288.0, 178.0  # points
LEFT, TOP, FOOT = 40.0, 6.0, 26.0
NAMES = 112.0  # width of the names at the right
CUT = 35  # characters of a name
NAME_FONT = 5.6
LINES: dict[str, dict[str, Any]] = {
    "baseline": {"color": INK, "linestyle": DOTTED, "linewidth": 1.1},
    "control": {"color": COLOURS["control"], "linestyle": DASHED, "linewidth": 0.9},
    "front": {"color": BLUE, "linestyle": "-", "linewidth": 1.2},
    "find": {"color": GREY, "linestyle": "-", "linewidth": 0.5},
}


@dataclass(frozen=True)
class Curve:
    """Values of a training; `kind` as of a Point of figure.py.  Finds without a name are thin."""

    name: str
    kind: str  # baseline, control, front or find
    x: Sequence[float]
    y: Sequence[float]


def draw_curves(
    curves: Sequence[Curve], x: str, y: str, better: int, whole: bool = False
) -> bytes:
    """The curves as SVG; `better` is 1 where more of y is better, else -1.  `whole`: the y axis
    shows the begin of the curves, too.
    """
    with own_settings():
        from matplotlib.ticker import FuncFormatter

        figure = empty_figure(WIDTH, HEIGHT)
        width, height = WIDTH - LEFT - NAMES, HEIGHT - TOP - FOOT
        axes = figure.add_axes([LEFT / WIDTH, FOOT / HEIGHT, width / WIDTH, height / HEIGHT])
        low, high = shown_range(curves, better, whole)
        axes.set_ylim(low, high)
        axes.set_xlim(*span(curves))
        axes.grid(color=GRID, linewidth=0.5)
        axes.tick_params(width=0.6, length=2.5, pad=2)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.get_major_locator().set_params(integer=True, nbins=6)
        axes.set_xlabel(x, fontsize=SMALL + 0.4, labelpad=2)
        axes.set_ylabel(y, fontsize=SMALL + 0.4, labelpad=2)
        for order, kind in enumerate(("find", "control", "baseline", "front")):
            for curve in curves:
                if curve.kind == kind:
                    gid = f"curve {curve.name}"
                    dot = {"marker": "o", "markersize": 2.4} if len(curve.y) == 1 else {}
                    axes.plot(curve.x, curve.y, zorder=2 + order, gid=gid, **dot, **LINES[kind])
        named = [curve for curve in curves if curve.kind != "find"]
        ends = [(min(max(curve.y[-1], low), high) - low) / (high - low) for curve in named]
        wanted = [(1 - end) * height + TOP for end in ends]
        for curve, end, at in zip(named, ends, keep_apart(wanted, LINE, TOP, TOP + height)):
            if at is not None:
                _write_name(figure, axes, curve, end, at)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Title": f"{y} by {x}"})
        return file.getvalue()


def shown_range(curves: Sequence[Curve], better: int, whole: bool) -> tuple[float, float]:
    """The limits of y.  A curve that ends far below the named finds and the unchanged network sets
    no limit; nor do the values in the first third of the x axis, unless `whole`.
    """
    ends = [curve.y[-1] for curve in curves]
    kept = [curve.y[-1] for curve in curves if curve.kind in ("baseline", "front")] or ends
    low, high = shown_values(kept, ends, better)
    first, last = span(curves)
    begin = first if whole else first + (last - first) / 3
    shown = [curve for curve in curves if low <= curve.y[-1] <= high]
    late = [y for curve in shown for x, y in zip(curve.x, curve.y) if x >= begin]
    return limits([low, high, *late])


def span(curves: Sequence[Curve]) -> tuple[float, float]:
    """The limits of x: from the first value to the last one, and a little room."""
    first, last = min(c.x[0] for c in curves), max(c.x[-1] for c in curves)
    room = 0.02 * (last - first) or 1.0
    return first - room, last + room


def keep_apart(
    wanted: Sequence[float], least: float, low: float, high: float
) -> list[float | None]:
    """Places in low..high near the wanted ones, at least `least` apart, in the same order; None
    for the last of `wanted` where there is no room for all.
    """
    room = int((high - low) / least + 1e-9) + 1
    order = sorted(range(min(len(wanted), room)), key=lambda i: wanted[i])
    places: list[float | None] = [None] * len(wanted)
    at = low - least
    found = []
    for i in order:
        at = max(wanted[i], at + least)
        found.append(at)
    at = high + least
    for i, place in zip(reversed(order), reversed(found)):
        at = min(place, at - least)
        places[i] = at
    return places


def _write_name(figure: Any, axes: Any, curve: Curve, end: float, at: float) -> None:
    """The name of a curve at its right end, `at` points below the upper edge of the figure."""
    from matplotlib.lines import Line2D

    right = WIDTH - NAMES
    name = curve.name if len(curve.name) <= CUT else f"{curve.name[: CUT - 3]}..."
    colour, y = LINES[curve.kind]["color"], 1 - at / HEIGHT
    figure.text((right + 11) / WIDTH, y, name, fontsize=NAME_FONT, color=colour, va="center")
    height = HEIGHT - TOP - FOOT
    ends = ((right + 2) / WIDTH, (right + 10) / WIDTH), ((FOOT + end * height) / HEIGHT, y)
    figure.add_artist(
        Line2D(*ends, transform=figure.transFigure, color=colour, linewidth=0.4, gid="tie")
    )
