"""What the stages of a search share: the open study, the question, the clock, where to tell.

trials.py    draw, solve, train, prune
finals.py    the finalists and the controls once more from other seeds, on the test split
ahead.py     networks compiled before they are timed
timing.py    latency, one network at a time while nothing trains
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..nn.latency import ROUNDS, SAMPLE
from ..nn.network import Plan, Recipe
from ..reporting.progress import Display
from ..study import Candidate, Study
from .ahead import Ahead

Callback = Callable[[Study, Candidate], None]

WRAP_UP = 4.0  # seconds kept for the table, or a new child that imports torch
TIMING_SLACK = 5  # finds may well be slower than the unchanged network
COMPILING = 25.0  # seconds kept for torch.compile of one network, its headers included
NATIVE_COMPILING = 0.15  # ... for the native code of each convolution of its table, and ...
LEAST_COMPILING = 2.0  # ... for that of a small one
TIMED = 1.0  # seconds kept for each network beside its rounds, as for a child that is new
TIMING_SHARE = 0.3  # of a time limit that timing may keep
TIME_IS_UP = "the time limit came before {}; the same command goes on"
TOO_SHORT = "the time limit came before any network was trained: give the same command more time"


def fixed_format(options: dict[str, Any]) -> str:
    """The memory format that was asked for; "" with auto."""
    asked = str(options.get("memory_format", "auto"))
    return "" if asked == "auto" else asked


def new_format(options: dict[str, Any]) -> str:
    """That of a network that has none yet; "": the child is to choose."""
    return fixed_format(options) or ("contiguous" if options.get("deterministic") else "")


@dataclass
class Run:
    """One run of a search on an open study.

    `deadline` is a moment of time.monotonic(), `ended` says why the search ended early; `timed`:
    latency has had its turn; `ahead` is what was compiled for it; `untimed` are names of networks
    by what could not be and why; `lacking` is what a time limit came before.
    """

    study: Study
    options: dict[str, Any]
    recipe: Recipe
    plan: Plan
    begun: float
    display: Display
    callbacks: Sequence[Callback] = ()
    images: Path = Path()  # the folder of the images ...
    seal: str = ""  # ... and by what jobs name them
    ended: str = ""
    timed: bool = False
    ahead: Ahead = field(default_factory=Ahead)
    untimed: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        limit = self.options["time_limit"]
        self.deadline = math.inf if limit is None else self.begun + limit

    def job(self, kind: str, candidate: Candidate, seed: int | None = None) -> dict[str, Any]:
        """The words that every job of a child needs; `seed` instead of the search's own."""
        recipe = self.recipe if seed is None else replace(self.recipe, seed=seed)
        return {
            "kind": kind,
            "recipe": recipe.to_json(),
            "pack": candidate.pack or None,
            "deterministic": self.options["deterministic"],
            "path": sys.path,
        }

    def training(self, candidate: Candidate, epochs: int, **words: Any) -> dict[str, Any]:
        """The job of training `candidate`."""
        return {
            **self.job("accuracy", candidate, words.pop("seed", None)),
            "check": candidate.kind != "baseline",
            "images": {"folder": str(self.images), "seal": self.seal},
            "epochs": epochs,
            "batch_size": self.options["batch_size"],
            "memory_format": self.memory_format(candidate),
            "test": False,
            "score_last": False,
            **words,
        }

    def memory_format(self, candidate: Candidate) -> str:
        """The memory format in which `candidate` is trained; "": the child is to choose."""
        return fixed_format(self.options) or candidate.memory_format or new_format(self.options)

    def tell(self, candidate: Candidate) -> None:
        """A candidate came to an end: for the display and for callbacks."""
        self.display.finished(candidate, time.monotonic() - self.begun, self.plan.macs)
        for callback in self.callbacks:
            callback(self.study, candidate)

    def baseline_seconds(self) -> float | None:
        """Seconds of training the unchanged network; None while unknown."""
        baseline = self.study.select("baseline", "done")
        return baseline[0].seconds if baseline else None

    def baseline_processor(self) -> float | None:
        """Seconds of processor time that training the unchanged network took; None while
        unknown.
        """
        baseline = self.study.select("baseline", "done")
        return self.study.processor_seconds(baseline[0].id) if baseline else None

    # ---- the clock ----------------------------------------------------------------------------

    def timing_moment(self) -> float:
        """When timing must begin so that latency and table are ready in time."""
        return self.deadline - self.timing_seconds()

    def timing_seconds(self) -> float:
        """About how long latency and the table will take, at most, but never more than
        TIMING_SHARE of a time limit: without trainings there is nothing to time.
        """
        if self.timed:
            return WRAP_UP
        rows = sum(row.latency_ms is None for row in self.study.select(status=("done", "running")))
        expected = WRAP_UP + COMPILING * self._to_compile() + self.rounds_seconds(rows)
        if self.options["latency"] == "native":
            native = max(LEAST_COMPILING, NATIVE_COMPILING * len(self.plan.table.splitlines()))
            expected += native * (rows + 1)
        return min(expected, TIMING_SHARE * (self.options["time_limit"] or math.inf))

    def rounds_seconds(self, rows: int) -> float:
        """About how long it takes, at most, to time `rows` networks that are compiled."""
        return (TIMING_SLACK * ROUNDS * max(SAMPLE, self.plan.seconds) + TIMED) * (rows + 1)

    def _to_compile(self) -> int:
        """How many networks are still to be compiled by torch.compile, at most."""
        if self.options["compile"] == "no":
            return 0
        made = int(self.ahead.unchanged in self.ahead.seconds)
        if self.options["compile"] == "unchanged" or not self.options["finalists"]:
            return 1 - made
        rows = self.study.candidates()
        finds = [row for row in rows if row.kind == "find"]
        finals = self.options["finalists"] * len({find.budget for find in finds})
        return len(rows) - len(finds) + min(finals, len(finds)) - made

    def time_is_up(self, before: str) -> None:
        """The limit ended the search before `before`, too: say so, once."""
        if before in self.lacking or (self.ended and not self.lacking):
            return
        self.lacking.append(before)
        self.ended = TIME_IS_UP.format(" and ".join(self.lacking))
        if not self.study.select(status="done"):
            self.ended = TOO_SHORT
