"""What evolution is worth: children beside the draws of the same search."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from ..metric import Metric
from .rows import SECOND, WHOLE, Item

SAMPLES = 1000  # of the bootstrap, from a fixed generator
BRED, DRAWN = ("mutation", "crossover"), ("draw",)  # origins; a transfer is neither


def gain(items: Sequence[Item]) -> tuple[float, float, int, int] | None:
    """(difference of mean accuracies at the first rung, its bootstrap standard error, number of
    children, number of draws), each budget weighted by its children; None with fewer than two of
    either in every budget.
    """
    arms = [_arms(items, budget) for budget in sorted({item.budget for item in items})]
    arms = [(bred, drawn) for bred, drawn in arms if len(bred) > 1 and len(drawn) > 1]
    if not arms:
        return None
    lots = random.Random(0)
    samples = [
        _difference([(lots.choices(a, k=len(a)), lots.choices(b, k=len(b))) for a, b in arms])
        for _ in range(SAMPLES)
    ]
    bred, drawn = (sum(len(arm[i]) for arm in arms) for i in (0, 1))
    return _difference(arms), stdev(samples), bred, drawn


def gain_line(items: Sequence[Item], metric: Metric = Metric()) -> str:  # noqa: B008
    """One sentence about it; "" where there is nothing to compare."""
    found = gain(items)
    if found is None:
        return ""
    points, error, bred, drawn = found
    line = (
        f"Evolution: the {bred} children reach {_told(points, metric)} at the first rung "
        f"against the {drawn} draws (standard error {_bare(error, metric)})"
    )
    if (best := best_gain(items)) is not None:
        line += (
            f"; the best child with two seeds reaches {_told(best[0], metric)} against the "
            f"best such draw (standard error of their seeds {_bare(best[1], metric)})"
        )
    return line + "."


def _told(gain: float, metric: Metric) -> str:
    return metric.difference(metric.amount(gain), signed=True)


def _bare(error: float, metric: Metric) -> str:
    return f"{metric.amount(error):.1f}" if metric.is_share else f"{error:.3g}"


def best_gain(items: Sequence[Item]) -> tuple[float, float] | None:
    """(difference between the best child and the best draw of those with two seeds, by the mean of
    these, its standard error), the mean over the budgets that have both; None where none has.  The
    error is that of seeds alone, from the two of every such find.
    """
    pairs = verified(items)
    differences = []
    for budget in sorted({item.budget for item, _ in pairs}):
        bred, drawn = (
            [fmean(pair) for item, pair in pairs if (item.budget, item.origin) in arm]
            for arm in ([(budget, origin) for origin in origins] for origins in (BRED, DRAWN))
        )
        if bred and drawn:
            differences.append(max(bred) - max(drawn))
    if not differences:
        return None
    # Of one training the variance is half the mean square between two, of a mean of two half that.
    variance = fmean((a - b) ** 2 for _, (a, b) in pairs) / 2
    return fmean(differences), sqrt(variance / len(differences))


def verified(items: Sequence[Item]) -> list[tuple[Item, tuple[float, float]]]:
    """The finds that were trained with all epochs from both seeds, with both accuracies."""
    whole = {item.candidate: item.accuracy for item in items if item.rung == WHOLE}
    return [
        (item, (first, item.accuracy))
        for item in items
        if item.rung == SECOND
        and item.accuracy is not None
        and (first := whole.get(item.candidate)) is not None
    ]


def _arms(items: Sequence[Item], budget: str) -> tuple[list[float], list[float]]:
    """Accuracies at their first rung of the children and of the draws of a budget."""
    first: dict[int, Item] = {}
    for item in items:
        first.setdefault(item.candidate, item)
    ours = [item for item in first.values() if item.budget == budget and item.accuracy is not None]
    bred, drawn = (
        [item.accuracy or 0.0 for item in ours if item.origin in origins]
        for origins in (BRED, DRAWN)
    )
    return bred, drawn


def _difference(arms: Sequence[tuple[list[float], list[float]]]) -> float:
    weights = sum(len(bred) for bred, _ in arms)
    return sum(len(bred) * (fmean(bred) - fmean(drawn)) for bred, drawn in arms) / weights
