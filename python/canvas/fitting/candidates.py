"""From the table of a fit to networks: which items go into which layers.

    mix        one item per layer, from the whole menu
    controls   the same from the menu of known operators alone: what a mix has to beat
    single     one known operator in all layers

Sums over layers only propose.  Whole networks are compared by their divergence from the teacher
before any tuning, then by validation accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import NoSolution
from ..nn.layer_target import Target
from ..nn.pack import KernelPack
from .choice import several
from .item_table import Row
from .menu import KEEP

MIX, CONTROLS, SINGLE = "mix", "controls", "single"
SOLUTIONS = 8  # of each menu


@dataclass(frozen=True)
class Proposal:
    """A row of the table for every layer; `kind` is MIX, CONTROLS or SINGLE."""

    kind: str
    rows: tuple[Row, ...]

    @property
    def loss(self) -> float:
        """The sum of the losses of its items, each measured alone."""
        return sum(row.loss for row in self.rows)

    @property
    def names(self) -> dict[str, str]:
        return {row.layer: row.name for row in self.rows}

    @property
    def is_unchanged(self) -> bool:
        return all(row.sized is None for row in self.rows)

    def pack(self, targets: Sequence[Target]) -> KernelPack:
        """Its kernels with their layers; the others are kept."""
        packs = [row.sized.pack for row in self.rows if row.sized is not None]
        kept = {row.layer for row in self.rows if row.sized is None}
        return KernelPack.join(packs, [target for target in targets if target.name in kept])


def propose(rows: Sequence[Row], budgets: Mapping[str, float], drawn: bool) -> list[Proposal]:
    """Proposals of every kind within the budgets, each choice once; a choice of known operators
    alone is of the kind CONTROLS, also if the whole menu led to it.

    `budgets`: limits of the sums over the layers of macs, params or latency; `drawn`: whether the
    menu has drawn kernels.  Raises NoSolution if nothing is within the budgets.
    """
    known = [row for row in rows if row.sized is None or row.sized.operator.control]
    found = [Proposal(CONTROLS, choice) for choice in _choices(known, budgets, SOLUTIONS)]
    if drawn:
        seen = {proposal.rows for proposal in found}
        mixes = _choices(rows, budgets, SOLUTIONS)
        found += [Proposal(_kind(choice), choice) for choice in mixes if choice not in seen]
    for name in dict.fromkeys(_operator(row) for row in known):
        own = [row for row in known if _operator(row) == name]
        layers = {row.layer for row in own}
        rest = [row for row in known if row.sized is None and row.layer not in layers]
        if name != KEEP:
            try:
                choices = _choices([*own, *rest], budgets, 1)
            except NoSolution:
                continue
            found += [Proposal(SINGLE, choice) for choice in choices]
    return [proposal for proposal in found if not proposal.is_unchanged]


def _kind(choice: Sequence[Row]) -> str:
    drawn = any(row.sized is not None and not row.sized.operator.control for row in choice)
    return MIX if drawn else CONTROLS


def _operator(row: Row) -> str:
    return KEEP if row.sized is None else row.sized.operator.name


def _choices(
    rows: Sequence[Row], budgets: Mapping[str, float], count: int
) -> list[tuple[Row, ...]]:
    items = [row.item() for row in rows]
    return [tuple(rows[i] for i in choice) for choice in several(items, budgets, count)]
