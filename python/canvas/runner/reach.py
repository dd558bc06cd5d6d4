"""Whether any kernel fits a budget, asked before anything is trained.

The draws are those that the search begins with, and after as many of them without one that fits
it would give up; the first that fits ends the question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .. import _core
from ..errors import CanvasError, NoSolution
from ..nn.controls import DEPTHWISE_SEPARABLE, EXEMPT, POINTWISE
from .next_item import DRY, draw_options

# What the core says of a kernel that does not fit, with the words of a share where one was asked.
OF = r"[0-9]+(?: \(.* of ([0-9]+)\))?"
NEEDS, REACHES = "the smallest needs", "the largest reaches"
WAYS = (
    (re.compile(rf"(\w+) ([0-9]+) of the smallest sizes are over the budget of {OF}"), min, NEEDS),
    (re.compile(rf"(\w+) ([0-9]+) of the .* are under the least of {OF}"), max, REACHES),
)


def check_budget(targets: str, budget: str, options: Mapping[str, Any], draws: int = DRY) -> None:
    """Raise CanvasError where none of the first draws and no known kernel fits the budget."""
    reasons = []
    for index in range(-2, draws):
        kernel, words = _kernel(targets, index, options)
        try:
            if kernel:
                _core.solve(kernel, targets, budget, words)
                return
        except NoSolution as error:
            reasons.append(str(error))
    raise CanvasError(
        f"--budget '{budget}': none of {draws} draws and no known kernel fits{_nearest(reasons)}"
    )


def _kernel(targets: str, index: int, options: Mapping[str, Any]) -> tuple[str, str]:
    """A known kernel for a negative index, else a draw, and what it is solved with; ("", "") where
    nothing is drawn.
    """
    norm = f"norm={options['norm']}"
    if index < 0:
        return (DEPTHWISE_SEPARABLE, POINTWISE)[index], f"{EXEMPT} {norm}"
    drawn = _core.draw(targets, options["seed"], index, draw_options(dict(options)))
    return ("", "") if drawn is None else (drawn[0], f"G={drawn[1]} {norm}")


def _nearest(reasons: list[str]) -> str:
    """How near the budget any of them comes, by the limit that most of them miss."""
    for pattern, choose, verb in WAYS:
        found = [match for reason in reasons if (match := pattern.search(reason))]
        if not found or 2 * len(found) < len(reasons):
            continue
        kind = Counter(match[1] for match in found).most_common(1)[0][0]
        value, whole = choose((int(m[2]), int(m[3] or 0)) for m in found if m[1] == kind)
        word = "MACs" if kind == "macs" else kind
        return f"; {verb} {value} {word}{_share(value, whole, verb == NEEDS)}"
    return f"; most often: {Counter(reasons).most_common(1)[0][0]}" if reasons else ""


def _share(value: int, whole: int, up: bool) -> str:
    """` (0.031x)`, to two digits, so that a budget of that much fits."""
    if not whole:
        return ""
    unit = 10.0 ** (math.floor(math.log10(value / whole)) - 1) if value else 1.0
    steps = value / whole / unit
    return f" ({(math.ceil(steps) if up else math.floor(steps)) * unit:.2g}x)"
