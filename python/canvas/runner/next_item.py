"""The next item of a search: the strategy is asked, kernels are drawn and solved for it.

    strategy --> New --> index, index + 1, ... until one is new and fits --> a candidate
             --> Promote                                                 --> its next rung

What an index gives is a pure function of (seed, index, options, targets, parents); every one is
recorded with what became of it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import _core
from ..errors import CanvasError, NoSolution
from ..nn.controls import group_counts
from ..options import budgets, learned_text
from ..study import WHOLE, Item
from .evolve import Evolve, draws_before
from .search_run import Run
from .strategy import New, Promote, Proposal, Random, StrategyOptions, new_finds, rungs_of, seen

DRY = 2000  # draws in a row without a candidate after which the search gives up ...
REJECTED = 200  # ... and candidates in a row that were rejected before their training


def draw_options(options: dict[str, Any]) -> str:
    """The options of a draw in the core's spelling."""
    names = ("primitives", "require", "groups", "space", "draws")
    unsaid = {"space": "paper"}  # the core's default, which `draws` may change
    words = " ".join(
        f"{name}={options[name]}"
        for name in names
        if options[name] not in (None, unsaid.get(name))
    )
    return words + learned_text(options)


def strategy_options(options: dict[str, Any]) -> StrategyOptions:
    """What of the options a strategy depends on."""
    return StrategyOptions(
        options["seed"],
        options["trials"],
        budgets(options),
        rungs_of(options["prune"], options["epochs"], options["grace"]),
        options["random_share"],
    )


def check_sampler(run: Run) -> None:
    """Reject a study of another sampler that needs new kernels; without them it goes on."""
    why = run.study.other_draws()
    if not why:
        return
    settings = strategy_options(run.options)
    counts = dict.fromkeys(settings.budgets, 0)
    for item in new_finds(run.study.items()):
        counts[item.budget] += item.state != "rejected"
    there = min(counts.values())
    if there < settings.trials:
        go_on = f"give --trials {there} to go on with those that are there, or " if there else ""
        raise CanvasError(f"{why}: {go_on}start over (fresh)")


class NextItem:
    """The items of a search: `next` asks for one, `over` is true when there is nothing more."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.study = run.study
        self.options = run.options
        self.settings = strategy_options(run.options)
        self.strategy = self._strategy()
        self.exhausted = False
        # Whether what is asked for depends on results; a rejection makes room for another find.
        self.depends_on_results = (
            self.strategy.depends_on_results or run.options["pretests"] == "yes"
        )

    def _strategy(self) -> Random:
        if self.options["strategy"] == "random":
            return Random(self.settings)
        count = len(self.settings.budgets)
        draws = draws_before(self.options["start"], self.settings.trials, count)
        return Evolve(self.settings, (), draws)

    def _known(self) -> list[Item]:
        """The controls as items before the first; they have ended when the first item is asked."""
        rows = self.study.select("control", "done")
        first = next((item.candidate for item in self.study.items()), sys.maxsize)
        return [
            Item(
                -1,
                row.id,
                row.name,
                WHOLE,
                row.budget,
                "",
                row.kernel,
                "done",
                row.metric.merit(accuracy),
            )
            for row in rows
            if (accuracy := self.study.rungs(row.id).get(WHOLE)) is not None
            and row.id < first
            and row.kernel.count("=") > 1  # the identity has nothing to change
        ]

    def next(self, new: bool, late: Callable[[], bool]) -> int | None:
        """The candidate of the next item; None: nothing can be asked for before something ends,
        or at all.  Not `new`: no time is left for new finds; `late` says when to give up drawing.
        """
        self.exhausted = False
        items = self.study.items()
        if isinstance(self.strategy, Evolve) and self.options["start"] == "known":
            self.strategy.known = self._known()
        first = len(items) - self.options["lag"] if self.depends_on_results else -1
        for last in range(max(first, -1), max(len(items), 1)):
            if any(item.state == "open" for item in items[: last + 1]):
                return None
            ask = partial(self.strategy.ask, items=seen(items, last), new=new)
            proposal = ask(self.study.next_draw())
            if isinstance(proposal, Promote):
                self.study.promote(proposal.candidate, proposal.rung)
                return proposal.candidate
            if proposal is not None:
                return None if self._ends(items) else self._draw(ask, late)
        self.exhausted = True
        return None

    def _ends(self, items: Sequence[Item]) -> bool:
        """Whether there is no new kernel to come: nothing but rejected finds has come for long, or
        the sampler is another one.
        """
        if why := self.study.other_draws():
            self.run.ended = f"{why}: no more are drawn"
            return True
        lately = [item.state for item in new_finds(items) if item.state != "open"][-REJECTED:]
        if len(lately) < REJECTED or set(lately) != {"rejected"}:
            return False
        self.run.ended = f"{REJECTED} kernels in a row were rejected before their training"
        return True

    def _draw(self, ask: Callable[[int], Proposal | None], late: Callable[[], bool]) -> int | None:
        """Try indices until one gives a new kernel that fits the budget, and record every index
        on the way.
        """
        counts: dict[str, int] = {}
        first = self.study.next_draw()
        for index in range(first, first + DRY):
            proposal = ask(index)
            assert isinstance(proposal, New)
            id, outcome, reason = self._try(index, proposal)
            if id is not None:
                return id
            self.study.record_draw(index, outcome, reason)
            counts[outcome] = counts.get(outcome, 0) + 1
            if late():
                return None
        found = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        self.run.ended = f"{DRY} draws in a row gave no new kernel within the budget ({found})"
        return None

    def _try(self, index: int, proposal: New) -> tuple[int | None, str, str]:
        """Draw and solve one index: the id of a new candidate, or what it is instead and why."""
        targets, budget = self.run.plan.targets, proposal.budget
        drawn = self._kernel(index, proposal)
        if drawn is None:
            what = "no child of its parents" if proposal.parents else "no kernel"
            return None, "skipped", f"{what} keeps the rules of drawing"
        kernel, groups = drawn
        hash = _core.hash(kernel)
        twin = self.study.named_by_hash(hash, budget)
        if twin is not None:
            return None, "duplicate", f"the same kernel as {twin}"
        try:
            options = f"G={groups} norm={self.options['norm']}"
            pack = _core.solve(kernel, targets, budget, options)
        except NoSolution as error:
            return None, "unsolved", str(error)
        if proposal.origin == "transfer" and pack == self._pack(proposal.parents[0]):
            return None, "duplicate", f"the same sizes as {proposal.parents[0].name}"
        id = self.study.add(
            str(index),
            "find",
            kernel,
            pack,
            hash,
            layer_macs(pack),
            budget,
            proposal.origin,
            " ".join(parent.name for parent in proposal.parents),
            (self.settings.rungs or [WHOLE])[0],
        )
        return id, "trial", ""

    def _kernel(self, index: int, proposal: New) -> tuple[str, int] | None:
        """The kernel of an index and its value of G; None: this index gives none."""
        targets, seed = self.run.plan.targets, self.options["seed"]
        options = draw_options(self.options)
        if not proposal.parents:
            return _core.draw(targets, seed, index, options)
        parents = [(item.kernel, self._groups(item, index)) for item in proposal.parents]
        if proposal.origin == "transfer":
            return parents[0]
        return _core.mutate(targets, seed, index, options, parents)

    def _pack(self, item: Item) -> str:
        return self.study.candidate(item.candidate).pack

    def _groups(self, item: Item, index: int) -> int:
        """The value of G that a parent has; where it has none, one of those that there are."""
        if sizes := re.search(r"^bind .*\bG=([0-9]+)", self._pack(item), re.MULTILINE):
            return int(sizes[1])
        counts = group_counts(self.run.plan.targets) or [1]
        return int(self.options["groups"] or counts[index % len(counts)])


def layer_macs(pack: str) -> int:
    """MACs of the layers replaced: what the budget counts."""
    return int(json.loads(_core.cost(pack))["macs"])
