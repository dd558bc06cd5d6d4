"""What evolution is worth: children beside the draws of the same search."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean, stdev

from .rows import Item

SAMPLES = 1000  # of the bootstrap, from a fixed generator


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


def gain_line(items: Sequence[Item]) -> str:
    """One sentence about it; "" where there is nothing to compare."""
    found = gain(items)
    if found is None:
        return ""
    points, error, bred, drawn = found
    return (
        f"Evolution: the {bred} children reach {100 * points:+.1f} points at the first rung "
        f"against the {drawn} draws (standard error {100 * error:.1f})."
    )


def _arms(items: Sequence[Item], budget: str) -> tuple[list[float], list[float]]:
    """Accuracies at their first rung of the children and of the draws of a budget."""
    first: dict[int, Item] = {}
    for item in items:
        first.setdefault(item.candidate, item)
    ours = [item for item in first.values() if item.budget == budget and item.accuracy is not None]
    bred = [item.accuracy or 0.0 for item in ours if item.origin != "draw"]
    return bred, [item.accuracy or 0.0 for item in ours if item.origin == "draw"]


def _difference(arms: Sequence[tuple[list[float], list[float]]]) -> float:
    weights = sum(len(bred) for bred, _ in arms)
    return sum(len(bred) * (fmean(bred) - fmean(drawn)) for bred, drawn in arms) / weights
