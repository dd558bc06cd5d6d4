"""New finds from old ones: `--strategy evolve`.

    the first START of a budget    draws (--start known: none, the controls are the first parents)
    then, of each budget           --random-share of them draws, the others children, or with
                                   several budgets kernels that are good under another one

A child is a kernel with a few edits, or a part of one kernel grafted onto another; its parents are
winners of tournaments among the BEST of its budget.  What was trained with all epochs stands
before what was not, and is compared by its mean over the seeds.  A find that is older than AGE
items is no parent any more, unless it has come to the last rung.  Who the parents are is a
function of (seed, index, what has come of the items).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ..study import SECOND, WHOLE, Item
from .strategy import New, Random, StrategyOptions, new_finds

START = 8  # finds, or a quarter of the trials where that is more; fewer for each of many budgets
BEST = 8
TOURNAMENT = 3
CROSSOVER = 20  # percent of the children
TRANSFER = 40  # percent of what would be children, while other budgets have kernels to offer
AGE = 40  # items, for each budget


class Evolve(Random):
    """Children of the best finds, and a share of draws to compare them with.

    `known` are controls that are parents from the start, as items before the first.
    """

    def __init__(
        self, settings: StrategyOptions, known: Sequence[Item] = (), draws: int = START
    ) -> None:
        super().__init__(settings)
        self.known = known
        self.draws = draws

    @property
    def depends_on_results(self) -> bool:
        return True

    def new(self, index: int, items: Sequence[Item], budget: str) -> New:
        finds = [item for item in new_finds(items) if item.budget == budget]
        count = sum(item.state != "rejected" for item in finds) - self.draws
        parents = population([*self.known, *items], budget, AGE * len(self.settings.budgets))
        share = self.settings.share
        if count < 0 or int((count + 1) * share) > int(count * share) or not parents:
            return New(budget)
        offers = self.offers(items, budget)
        if offers and self._chance(index, "transfer", 100) < TRANSFER:
            return New(budget, "transfer", (offers[self._chance(index, "offer", len(offers))],))
        first = self._winner(parents, index, "first")
        others = [item for item in parents if item is not first]
        if others and self._chance(index, "crossover", 100) < CROSSOVER:
            return New(budget, "crossover", (first, self._winner(others, index, "second")))
        return New(budget, "mutation", (first,))

    def offers(self, items: Sequence[Item], budget: str) -> list[Item]:
        """The best third of each other budget's population, without what was tried under this one:
        what is good with more MACs or with fewer may be so with these.
        """
        tried = {item.kernel for item in items if item.budget == budget}
        found: list[Item] = []
        for other in self.settings.budgets:
            if other != budget:
                best = population(items, other, AGE * len(self.settings.budgets))
                found += best[: -(-len(best) // 3)]
        return [item for item in found if item.kernel not in tried]

    def _winner(self, parents: Sequence[Item], index: int, what: str) -> Item:
        """The best of TOURNAMENT chosen by lot; `parents` are best first."""
        lots = (self._chance(index, f"{what} {i}", len(parents)) for i in range(TOURNAMENT))
        return parents[min(lots)]

    def _chance(self, index: int, what: str, below: int) -> int:
        """A number in 0..below-1, drawn anew for each use."""
        words = f"canvas evolve {self.settings.seed} {index} {what}"
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") % below


def population(items: Sequence[Item], budget: str, age: int) -> list[Item]:
    """The BEST of a budget, best first; an item without a budget counts for all."""
    ours = [item for item in items if item.budget in (budget, "")]
    first = {item.candidate: item for item in reversed(ours)}
    failed = {item.candidate for item in ours if item.state in ("failed", "rejected")}
    scores: dict[int, tuple[bool, float]] = {}
    for item in ours:  # later rungs come later
        if item.accuracy is not None and item.candidate not in failed:
            accuracy = item.accuracy
            if item.rung == SECOND:
                accuracy = (accuracy + scores[item.candidate][1]) / 2
            scores[item.candidate] = (item.rung >= WHOLE, accuracy)
    verified = {item.candidate for item in ours if item.rung == SECOND}
    now = items[-1].number if items else 0
    young = [id for id in scores if id in verified or now - first[id].number <= age]
    return [first[id] for id in sorted(young, key=lambda id: scores[id], reverse=True)[:BEST]]


def draws_before(start: str, trials: int, budgets: int = 1) -> int:
    """How many finds of each budget are drawn before the first child: with n budgets (n + 1) / 2
    times as many in all, as kernels go from one to another.
    """
    alone = max(START, trials // 4)
    return 0 if start == "known" else -(-alone * (budgets + 1) // (2 * budgets))
