"""The range of a figure's axis: a few extreme values are left outside, and marked at its edge."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

STRETCH = 1.0  # how far other values may extend the range of the kept ones, in widths of it
EDGE = 0.03  # distance of a mark at the edge from it, in widths of the axis
MARKS = {(0, -1): "v", (0, 1): "^", (-1, 0): "<", (1, 0): ">"}  # they point to the value


class Inside(NamedTuple):
    """Where a point is drawn, and on which sides of the axes its values are: -1, 0 or 1."""

    x: float
    y: float
    sides: tuple[int, int]

    @property
    def mark(self) -> str:
        """The shape of a mark at the edge; "" inside.  In a corner it points up or down."""
        across, along = self.sides
        return MARKS.get((0, along) if along else (across, 0), "")


def shown_values(
    kept: Sequence[float], others: Sequence[float], better: int
) -> tuple[float, float]:
    """The least and the largest value that the axis shows: all of `kept`, each of `others` that is
    better, and those that are worse by at most STRETCH widths.  A width is the range of `kept`,
    and not less than the quartiles' distance of all.  `better` is 1 where more is better, else -1.
    """
    worst = min(kept, key=lambda value: better * value)
    width = max(max(kept) - min(kept), quartile_distance([*kept, *others]))
    shown = [*kept, *(x for x in others if better * (worst - x) <= STRETCH * width)]
    return min(shown), max(shown)


def typical(values: Sequence[float]) -> list[float]:
    """The values that are no outliers by Tukey's rule."""
    if len(values) < 2:
        return list(values)
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    room = 1.5 * (third - first)
    return [value for value in values if first - room <= value <= third + room]


def quartile_distance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return third - first


def limits(values: Sequence[float]) -> tuple[float, float]:
    """The limits of an axis: a little more than the values that it shows."""
    low, high = min(values), max(values)
    room = 0.12 * (high - low) or abs(high) * 0.1 or 1.0
    return low - room, high + room


def moved_inside(value: float, low: float, high: float) -> tuple[float, int]:
    """The place of a value on an axis, and its side: a value outside is drawn at the edge."""
    edge = EDGE * (high - low)
    if value < low:
        return low + edge, -1
    return (high - edge, 1) if value > high else (value, 0)
