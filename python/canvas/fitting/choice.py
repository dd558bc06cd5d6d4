"""One item per layer: the integer program that picks them, and several different picks.

    minimise   sum of the losses of the chosen items
    subject to one item per layer, the sum of each cost within its budget

scipy.optimize.milp (HiGHS) solves it.  The items' losses are noisy and their sum is a model, so a
caller compares several solutions: each shares at most OVERLAP of its layers with each earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import CanvasError, NoSolution

OVERLAP = 0.7
SECONDS = 20.0  # for one solution


@dataclass(frozen=True)
class Item:
    """One choice for a layer: an operator at a size, or what stands there."""

    layer: str
    name: str
    loss: float  # divergence of the network with this item alone
    costs: Mapping[str, float]  # such as macs, params, seconds


def choose(
    items: Sequence[Item],
    budgets: Mapping[str, float],
    earlier: Sequence[Sequence[int]] = (),
) -> list[int]:
    """Indices of the items chosen, in the order of `items`.

    `budgets`: the limit of the sum of each cost; `earlier`: solutions to differ from.  Raises
    NoSolution if no choice is within the budgets, with the least that is possible.
    """
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ModuleNotFoundError:
        raise CanvasError("the choice per layer needs scipy: pip install scipy") from None
    layers = list(dict.fromkeys(item.layer for item in items))
    usable = np.array([np.isfinite(item.loss) for item in items])
    one_each = np.array([[item.layer == layer for item in items] for layer in layers], float)
    rows = [LinearConstraint(one_each, 1, 1)]
    for name, limit in budgets.items():
        least = least_cost(items, name)
        if least > limit:
            raise NoSolution(
                f"no choice has {name} of at most {limit:.4g}: the smallest has {least:.4g}"
            )
        scale = max(limit, 1e-30)
        cost = np.array([[item.costs[name] / scale for item in items]])
        rows.append(LinearConstraint(cost, -np.inf, limit / scale))
    most = int(OVERLAP * len(layers))
    for solution in earlier:
        taken = np.zeros((1, len(items)))
        taken[0, list(solution)] = 1
        rows.append(LinearConstraint(taken, -np.inf, most))
    loss = np.array([item.loss if ok else 0.0 for item, ok in zip(items, usable, strict=True)])
    found = milp(
        loss,
        constraints=rows,
        integrality=np.ones(len(items)),
        bounds=Bounds(0, usable.astype(float)),
        options={"time_limit": SECONDS},
    )
    if found.x is None:
        raise NoSolution(
            "no other choice is within the budgets" if earlier else str(found.message)
        )
    return [i for i, value in enumerate(found.x) if value > 0.5]


def least_cost(items: Sequence[Item], name: str) -> float:
    """The smallest sum of a cost over the layers."""
    layers: dict[str, float] = {}
    for item in items:
        if np.isfinite(item.loss):
            layers[item.layer] = min(layers.get(item.layer, np.inf), item.costs[name])
    return float(sum(layers.values()))


def several(items: Sequence[Item], budgets: Mapping[str, float], count: int) -> list[list[int]]:
    """At most `count` different choices, the best first; each as `choose` gives it."""
    found: list[list[int]] = []
    while len(found) < count:
        try:
            found.append(choose(items, budgets, found))
        except NoSolution:
            if not found:
                raise
            break
    return found
