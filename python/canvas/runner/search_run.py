"""State shared by the stages of a search: the open study, the options, the clock, the display.

trials.py      draw, solve, train, prune
finals.py      train finalists and controls again from other seeds, score them on the test split
precompile.py  compile networks before they are timed
timing.py      measure latency, one network at a time while no training runs
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any

from ..data import Remarks
from ..nn.latency import ROUNDS, SAMPLE
from ..nn.network import Plan, Recipe
from ..reporting.callbacks import Callbacks, EpochEvent
from ..reporting.progress import Display
from ..study import LOOPS, Candidate, Study
from .compiled_engines import CompiledEngines

WRAP_UP = 4.0  # seconds kept for the table, or for a new child that imports torch
TIMING_SLACK = 5  # times the seconds of the unchanged network: finds may be slower
COMPILING = 25.0  # seconds kept for torch.compile of one network, its headers included
NATIVE_COMPILING = 0.15  # seconds kept for the native code of each replaced convolution
LEAST_COMPILING = 2.0  # seconds kept for the native code of a network, at least
TIMED = 1.0  # seconds kept for each network beside its rounds, such as the start of a child
TIMING_SHARE = 0.3  # of a time limit that timing may keep
TIME_IS_UP = "the time limit ended the search before {}; the same command continues"
TOO_SHORT = "no network was trained before the time limit: give the same command more time"


def fixed_format(options: dict[str, Any]) -> str:
    """The requested memory format; "" with auto."""
    requested = str(options.get("memory_format", "auto"))
    return "" if requested == "auto" else requested


def new_format(options: dict[str, Any]) -> str:
    """The memory format of a network that has none yet; "": the child chooses."""
    return fixed_format(options) or ("contiguous" if options.get("deterministic") else "")


@dataclass
class Run:
    """One run of a search on an open study.

    `begun`, `deadline`: as of time.monotonic(); `ended`: why the search ended early, "" if it did
    not; `timed`: the stage of latency is over; `compiled`: engines compiled before it;
    `timing_failures`: {(what failed, reason): names of networks}; `skipped_stages`: stages that
    the time limit prevented; `data`: where jobs find their
    examples, the folder of stored images or the name of loaders, and a seal; `task`: its
    name in this process; `loop`: the names of a loop of the user's and of its score; `source`: the
    examples themselves.
    """

    study: Study
    options: dict[str, Any]
    recipe: Recipe
    plan: Plan
    begun: float
    display: Display
    callbacks: Callbacks = field(default_factory=Callbacks)
    data: dict[str, Any] = field(default_factory=dict)
    task: str = ""
    loop: dict[str, str] = field(default_factory=dict)
    ended: str = ""
    timed: bool = False
    compiled: CompiledEngines = field(default_factory=CompiledEngines)
    timing_failures: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    skipped_stages: list[str] = field(default_factory=list)
    source: Any = None
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self.remarks = Remarks(self.source, self.display.line)
        limit = self.options["time_limit"]
        self.deadline = math.inf if limit is None else self.begun + limit

    def job(self, kind: str, candidate: Candidate, seed: int | None = None) -> dict[str, Any]:
        """The fields that every job of a child has; `seed` replaces that of the search."""
        recipe = self.recipe if seed is None else replace(self.recipe, seed=seed)
        return {
            "kind": kind,
            "recipe": recipe.to_json(),
            "pack": candidate.pack or None,
            "task": self.task or self.options["task"],
            "deterministic": self.options["deterministic"],
            "path": sys.path,
        }

    def training(self, candidate: Candidate, epochs: int, **words: Any) -> dict[str, Any]:
        """The job of training `candidate`."""
        own = {"own": self._loop(candidate, words.get("seed"))} if self.loop else {}
        return {
            **self.job("accuracy", candidate, words.pop("seed", None)),
            **own,
            "check": candidate.kind != "baseline",
            "images": self.data,
            "epochs": epochs,
            "batch_size": self.options["batch_size"],
            "memory_format": self.memory_format(candidate),
            "test": False,
            "score_last": False,
            **words,
        }

    def _loop(self, candidate: Candidate, seed: int | None) -> dict[str, Any]:
        """The user's loop, with a folder of this training."""
        name = f"{candidate.name}-{self.options['seed'] if seed is None else seed}"
        return {**self.loop, "folder": str(self.study.folder.resolve() / LOOPS / name)}

    def memory_format(self, candidate: Candidate) -> str:
        """The memory format in which `candidate` is trained; "": the child chooses."""
        return fixed_format(self.options) or candidate.memory_format or new_format(self.options)

    def report_end(self, candidate: Candidate) -> None:
        """Report a candidate whose training ended to the display and the callbacks."""
        self.display.finished(candidate, time.monotonic() - self.begun, self.plan.macs)
        self.callbacks.candidate(self.study, candidate)

    def report_epoch(
        self,
        training: tuple[str, Candidate, int, int],
        number: int,
        loss: float,
        value: float | None,
        seconds: float,
    ) -> None:
        """Report an epoch of a training (kind, candidate, seed, epochs) to the callbacks; its
        `number` is from 0, `seconds` are its own.
        """
        kind, candidate, seed, epochs = training
        self.callbacks.epochs(
            EpochEvent(
                self.study.folder, kind, candidate.name, seed, number + 1, epochs, loss, value,
                self.study.metric.name, seconds,
            )
        )  # fmt: skip

    def baseline_seconds(self) -> float | None:
        """Seconds that training the unchanged network took; None while unknown."""
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
        """When timing must begin so that latencies and table are ready before the deadline."""
        return self.deadline - self.timing_seconds()

    def timing_seconds(self) -> float:
        """Upper estimate of the seconds for latency and table, at most TIMING_SHARE of the time
        limit: without trainings there is nothing to time.
        """
        if self.timed or self.options["latency"] == "none":
            return WRAP_UP
        rows = sum(row.latency_ms is None for row in self.study.select(status=("done", "running")))
        expected = WRAP_UP + COMPILING * self._to_compile() + self.rounds_seconds(rows)
        if self.options["latency"] == "native":
            native = max(LEAST_COMPILING, NATIVE_COMPILING * len(self.plan.table.splitlines()))
            expected += native * (rows + 1)
        return min(expected, TIMING_SHARE * (self.options["time_limit"] or math.inf))

    def rounds_seconds(self, rows: int) -> float:
        """Upper estimate of the seconds for timing `rows` compiled networks."""
        return (TIMING_SLACK * ROUNDS * max(SAMPLE, self.plan.seconds) + TIMED) * (rows + 1)

    def _to_compile(self) -> int:
        """Upper bound on the networks that torch.compile has still to compile."""
        if self.options["compile"] == "no":
            return 0
        made = int(self.compiled.unchanged in self.compiled.seconds)
        if self.options["compile"] == "unchanged" or not self.options["finalists"]:
            return 1 - made
        rows = self.study.candidates()
        finds = [row for row in rows if row.kind == "find"]
        finals = self.options["finalists"] * len({find.budget for find in finds})
        return len(rows) - len(finds) + min(finals, len(finds)) - made

    def time_is_up(self, before: str) -> None:
        """Record, once, that the time limit ended the search before the stage `before`."""
        if before in self.skipped_stages or (self.ended and not self.skipped_stages):
            return
        self.skipped_stages.append(before)
        self.ended = TIME_IS_UP.format(" and ".join(self.skipped_stages))
        if not self.study.select(status="done"):
            self.ended = TOO_SHORT
