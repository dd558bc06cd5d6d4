"""What networks are judged by: the name of a number, its unit and which way is better.

The unit `points` stands for shares: 0.956 is shown as 95.6 %, and a difference of 0.01 as one
point.  Numbers of any other unit are shown as they are.  `gain` and `merit` turn the direction, so
that nothing else needs to know it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .errors import CanvasError
from .text import printable

POINTS = "points"
LARGEST = 1e300  # of a metric
NAME_LIMIT = 60  # characters of a name or unit


@dataclass(frozen=True)
class Metric:
    """`name`: what the number is; `unit`: "points" for shares 0..1, else the unit of the number
    or ""; `per_example`: whether it is the mean of a number for each example, 0 or 1.
    """

    name: str = "accuracy"
    unit: str = POINTS
    higher_is_better: bool = True
    per_example: bool = True

    def __post_init__(self) -> None:
        for what in ("name", "unit"):
            value = getattr(self, what)
            if not isinstance(value, str) or len(value) > NAME_LIMIT or printable(value) != value:
                raise CanvasError(
                    f"the {what} of a metric is a text of at most {NAME_LIMIT} characters on one "
                    "line"
                )
        for what in ("higher_is_better", "per_example"):
            if not isinstance(getattr(self, what), bool):
                raise CanvasError(f"{what} of a metric is True or False")

    @property
    def is_share(self) -> bool:
        return self.unit == POINTS

    # ---- comparing ------------------------------------------------------------------------------

    def merit(self, value: float | None) -> float:
        """A number that is larger for better values; the least for None."""
        if value is None:
            return -math.inf
        return value if self.higher_is_better else -value

    def value(self, merit: float) -> float:
        """The value that has this merit."""
        return merit if self.higher_is_better else -merit

    def gain(self, ours: float, theirs: float) -> float:
        """By how much `ours` is better, in the unit: points for shares."""
        return self.amount(self.merit(ours) - self.merit(theirs))

    def amount(self, difference: float) -> float:
        """A difference of two values in the unit: points for shares."""
        return 100 * difference if self.is_share else difference

    def can_be(self, value: float) -> bool:
        """Whether the metric can have this value."""
        return 0 <= value <= 1 if self.is_share else abs(value) <= LARGEST

    # ---- words ----------------------------------------------------------------------------------

    def text(self, value: float | None, spread: float | None = None) -> str:
        """95.6 % or 2.31 K, with a standard deviation if there is one; - for None."""
        if value is None or math.isnan(value):
            return "-"
        if self.is_share:
            return f"{100 * value:.1f} %{'' if spread is None else f' +- {100 * spread:.1f}'}"
        more = "" if spread is None else f" +- {spread:.2g}"
        return f"{value:.4g} {self.unit}".rstrip() + more

    def difference(self, gain: float, signed: bool = False) -> str:
        """A gain in words: 1.3 points, or 0.21 K."""
        form = "+" if signed else ""
        if self.is_share:
            return f"{gain:{form}.1f} points"
        return f"{gain:{form}.3g} {self.unit}".rstrip()

    @property
    def equals(self) -> float:
        """Gains below this are shown as none: half of the last digit of a share."""
        return 0.05 if self.is_share else 0.0

    # ---- as a study keeps it --------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, words: Mapping[str, Any]) -> Metric:
        """Raises CanvasError for what `to_json` cannot have given."""
        try:
            return cls(**words)
        except TypeError:
            raise CanvasError("its metric has other words than a metric") from None
