"""Budgets of a fit: `latency=0.6x`, `macs=0.3x`, `params=0.5x`, or several with commas.

In a fit latency is a share of the whole network's native time, as that is what a user has; macs
and params are shares of the layers replaced, as in a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..arguments import shown
from ..errors import CanvasError, NoSolution
from ..fit_options import read_budget
from ..nn.layer_target import Target
from .item_table import Row


@dataclass(frozen=True)
class Budget:
    """Limits as shares, 0 to 1, by quantity; `text` as the user wrote it."""

    text: str
    limits: Mapping[str, float]

    def of_layers(
        self, targets: Sequence[Target], rows: Sequence[Row], network_seconds: float
    ) -> dict[str, float]:
        """The limits of sums over the layers: multiply-accumulates, weights and seconds.

        Raises NoSolution if the layers that are not replaced alone take longer than the budget.
        """
        kept = sum(row.seconds for row in rows if row.sized is None)
        found: dict[str, float] = {}
        for name, share in self.limits.items():
            if name == "latency":
                found[name] = kept - (1 - share) * network_seconds
                if found[name] <= 0:
                    least = max(0.0, 1 - kept / network_seconds)
                    raise NoSolution(
                        f"the budget {self.text} cannot be: the layers that are not replaced take "
                        f"{least:.2f}x of the network's time alone"
                    )
            else:
                found[name] = share * sum(getattr(target, name) for target in targets)
        return found


def parse_budget(text: str) -> Budget:
    """Raises CanvasError for a text that is no budget."""
    try:
        return Budget(text.strip() if isinstance(text, str) else "", read_budget(text))
    except ValueError as error:
        raise CanvasError(f"{shown(text)} is no budget of a fit: give {error}") from None
