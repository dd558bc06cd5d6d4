"""What a search tries next: ask and tell.

    items before i with what came of them --> ask --> item i: a new find, or the next rung of one

An item is one training: a new find to its first rung, or one that is there to its next.  `ask` is
a pure function of the items before and of the index that the next draw has.  Item i sees what came
of items up to i - L alone (L is `--lag`), the others are to it as if they were still under way, so
that any number of workers, and any kill in between, gives the same items in the same order.
Where that leaves nothing to ask for, further results are looked at in the order of the items.

    rung 1: a part of the epochs   -- best third -->   2: all of them   -- best third -->
    3: all of them from a second seed

Promotions come before new finds, high rungs first.  How many of n results "the best third" are is
rounded down while new finds are to come, as in asynchronous successive halving (ASHA), and up
when none are, so that the last ones have their chance.  Finds are compared within their budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..study import FIRST, SECOND, WHOLE, Candidate, Item

SHARE = 3  # one in so many of a rung advances


@dataclass(frozen=True)
class New:
    """A new find for `budget`: drawn, made from the kernels of `parents`, or (transfer) the kernel
    of one as it is.
    """

    budget: str
    origin: str = "draw"
    parents: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Promote:
    """The find of id `candidate` to its next rung."""

    candidate: int
    rung: int


Proposal = New | Promote


@dataclass(frozen=True)
class StrategyOptions:
    """What of a search its strategy depends on; `rungs` is empty where trainings are not cut."""

    seed: int
    trials: int  # for each budget
    budgets: Sequence[str]
    rungs: Sequence[int] = ()
    share: float = 0.2


class Random:
    """New finds are draws; the budgets take turns."""

    def __init__(self, settings: StrategyOptions) -> None:
        self.settings = settings

    @property
    def depends_on_results(self) -> bool:
        """Whether what is asked depends on results at all."""
        return bool(self.settings.rungs)

    def ask(self, index: int, items: Sequence[Item], new: bool = True) -> Proposal | None:
        """The next item; None: nothing, as long as no more results are there.  `index` is that of
        the next draw; not `new`: no time is left for new finds.
        """
        budget = self.next_budget(items) if new else None
        if promotion := next(promotions(items, self.settings, budget is None), None):
            return promotion
        return None if budget is None else self.new(index, items, budget)

    def new(self, index: int, items: Sequence[Item], budget: str) -> New:
        return New(budget)

    def next_budget(self, items: Sequence[Item]) -> str | None:
        """The budget with the fewest finds, the first of several; None when each has all.  What
        was rejected before its training is none.
        """
        counts = dict.fromkeys(self.settings.budgets, 0)
        for item in new_finds(items):
            counts[item.budget] += item.state != "rejected"
        budget = min(self.settings.budgets, key=lambda name: counts[name])
        return budget if counts[budget] < self.settings.trials else None


def new_finds(items: Sequence[Item]) -> list[Item]:
    """The items that were new finds: the first of each candidate."""
    first: dict[int, Item] = {}
    for item in items:
        first.setdefault(item.candidate, item)
    return list(first.values())


def promotions(items: Sequence[Item], settings: StrategyOptions, up: bool) -> Iterator[Promote]:
    """What may advance, in the order in which it should; `up`: shares are rounded up."""
    asked = {(item.candidate, item.rung) for item in items}
    for rung in reversed(settings.rungs[:-1]):
        turns: list[tuple[int, int, Promote]] = []
        for place, budget in enumerate(settings.budgets):
            best = leaders(items, budget, rung, up)
            if up and rung == WHOLE:
                best += hopeful(items, budget, best)
            told = sum((item.candidate, rung + 1) in asked for item in best)
            for item in best:
                if (item.candidate, rung + 1) not in asked:
                    turns.append((told, place, Promote(item.candidate, rung + 1)))
                    told += 1
        yield from (promotion for _, _, promotion in sorted(turns, key=lambda turn: turn[:2]))


def leaders(
    items: Sequence[Item], budget: str, rung: int, up: bool = False, everyone: bool = False
) -> list[Item]:
    """The best third of those that ended `rung` under `budget`, or all, best first; what failed
    there ended it as well.
    """
    ended = [
        item
        for item in items
        if item.rung == rung and item.budget == budget and item.state in ("done", "failed")
    ]
    count = len(ended) if everyone else (len(ended) + (SHARE - 1) * up) // SHARE
    done = [item for item in ended if item.accuracy is not None]
    return sorted(done, key=lambda item: (-(item.accuracy or 0.0), item.number))[:count]


def hopeful(items: Sequence[Item], budget: str, best: Sequence[Item]) -> list[Item]:
    """The next of those behind `best` with all epochs, if its one seed is above the mean of every
    find that has two: the find that is chosen in the end shall be above all that were left.
    """
    whole = leaders(items, budget, WHOLE, everyone=True)
    first = {item.candidate: item.accuracy or 0.0 for item in whole}
    second = leaders(items, budget, SECOND, everyone=True)
    means = [(first[item.candidate] + (item.accuracy or 0.0)) / 2 for item in second]
    ours = [item for item in items if item.budget == budget and item.rung == SECOND]
    under_way = any(item.state == "open" for item in ours)
    tried = {item.candidate for item in [*best, *ours]}
    rest = [item for item in whole if item.candidate not in tried][:1]
    if under_way or not means:
        return []
    return [item for item in rest if (item.accuracy or 0.0) > max(means)]


def why_pruned(items: Sequence[Item], row: Candidate) -> str:
    """Why a find stays at the first rung when no more items come; "" if it should advance."""
    best = leaders(items, row.budget, FIRST, up=True)
    if any(item.candidate == row.id for item in best):
        return ""
    metric = row.metric
    wanted = metric.text(metric.value(best[-1].accuracy or 0.0))
    return f"rung 1: {metric.text(row.val_accuracy)}, {wanted} wanted"


def seen(items: Sequence[Item], last: int) -> list[Item]:
    """The items, as long as nothing has come of those after number `last`."""
    return [
        item if item.number <= last else replace(item, state="open", accuracy=None)
        for item in items
    ]


# ---- the rungs ----------------------------------------------------------------------------------


def rungs_of(rule: str, epochs: int, grace: int) -> list[int]:
    """The rungs of a search that prunes by `rule`; none without rungs."""
    if rule != "rungs":
        return []
    return [WHOLE, SECOND] if first_epochs(epochs, grace) == epochs else [FIRST, WHOLE, SECOND]


def first_epochs(epochs: int, grace: int) -> int:
    """How long the first rung is: a third of the epochs, at least those that are not judged."""
    return min(epochs, max(-(-epochs // SHARE), grace, 1))
