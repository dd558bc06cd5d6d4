"""Engines that are made before networks are timed, several networks at a time.

torch.compile of the unchanged network takes about as long as the native code of all others, so it
begins beside the finals, in the place of one training; the rest follows when nothing is trained.
Children keep what they made until it is timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..nn.latency import COMPILED
from ..study import Candidate
from ..workers.pool import Message, Pool
from .wanted import engines_wanted, lacks

if TYPE_CHECKING:
    from .search_run import Run

LATENCY_LIMIT = 900.0  # seconds; torch.compile of a large network takes minutes
UNCHANGED = -1  # the number of the job that compiles the unchanged network beside trainings


@dataclass
class Ahead:
    """What was compiled before anything was timed: the child that has it, and the seconds of each
    engine by the clock and of processors; `stopped` took too long.  A second in which several
    networks were compiled, or trained, is a part of each: `share` of their seconds went by.

    `unchanged` is the unchanged network once its job beside trainings has begun; `since` is when
    each job began, a moment of time.monotonic().
    """

    child: dict[int, Any] = field(default_factory=dict)
    seconds: dict[int, dict[str, float]] = field(default_factory=dict)
    processor: dict[int, dict[str, float]] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)
    share: float = 1.0
    unchanged: int | None = None
    since: dict[int, float] = field(default_factory=dict)

    def candidate(self, job: int) -> int:
        """The candidate that a job compiles."""
        return self.unchanged if job == UNCHANGED and self.unchanged is not None else job

    def start(self, pool: Pool, job: int, words: Message) -> None:
        """Begin to make the engines that `words` name."""
        id = self.candidate(job)
        self.since[id] = time.monotonic()
        self.child[id] = pool.start(job, words, LATENCY_LIMIT)

    def hear(self, job: int, message: Message) -> None:
        """The last word of a child; what it could not make is made when it is timed."""
        id = self.candidate(job)
        self.seconds[id] = message.get("seconds", {})
        self.processor[id] = message.get("processor", {})

    def stop(self, pool: Pool, job: int, engine: str) -> None:
        """End a job; what was spent on it is the cost of `engine`."""
        id = self.candidate(job)
        used = pool.stop(job)
        self.stopped.add(id)
        self.seconds[id] = {engine: time.monotonic() - self.since[id]}
        self.processor[id] = {engine: used}

    def cost(self, id: int, engine: str) -> tuple[float, float]:
        """Seconds by the clock and of processors."""
        seconds = self.seconds.get(id, {}).get(engine, 0.0)
        return self.share * seconds, self.processor.get(id, {}).get(engine, 0.0)

    def seconds_beside(self, now: float) -> float:
        """How long the unchanged network was compiled beside trainings, which have just ended."""
        if self.unchanged is None:
            return 0.0
        if self.unchanged in self.seconds:
            return sum(self.seconds[self.unchanged].values())
        return now - self.since[self.unchanged]


def compile_beside(run: Run, pool: Pool) -> None:
    """Begin to compile the unchanged network in the place of one of several trainings, where it
    will be timed under torch.compile and was not yet.
    """
    baseline = next(iter(run.study.select("baseline", "done")), None)
    if baseline is None or pool.size < 2 or run.ahead.unchanged is not None:
        return
    engines = engines_wanted(run)
    if COMPILED in engines[baseline.id] and lacks(run, baseline, engines):
        run.display.line("beside the finals the unchanged network is compiled by torch.compile")
        run.ahead.unchanged = baseline.id
        run.ahead.start(pool, UNCHANGED, compile_job(run, pool, baseline, engines))


def compile_ahead(
    run: Run, pool: Pool, rows: Sequence[Candidate], wanted: dict[int, list[str]]
) -> None:
    """Make the engines of several networks at a time, the unchanged one's first, and await what is
    under way; nothing is trained any more.
    """
    ahead, began = run.ahead, time.monotonic()
    beside = ahead.seconds_beside(began) / pool.size
    queue = [row for row in rows if row.id not in ahead.since]
    if pool.size < 2 or len(rows) < 2 or began > run.deadline - 1:
        queue.clear()
    if queue or pool.busy():
        _make(run, pool, sorted(queue, key=lambda row: row.kind != "baseline"), wanted)
    told = sum(sum(seconds.values()) for seconds in ahead.seconds.values())
    ahead.share = (beside + time.monotonic() - began) / told if told else 1.0


def _make(run: Run, pool: Pool, queue: list[Candidate], wanted: dict[int, list[str]]) -> None:
    """torch.compile takes as long for the unchanged network as native code for all others.  All of
    it may take all but what the rounds of timing need, and half of what is left in any case; what
    was not made is made when it is timed.  Native code that is under way then is awaited: the
    child would take all that it has with it.
    """
    ahead, began, end = run.ahead, time.monotonic(), run.deadline - 1
    count = len(queue) + len(pool.busy())
    until = max(began + (end - began) / 2, end - run.rounds_seconds(count))
    networks = "1 network" if count == 1 else f"{count} networks, {pool.size} at a time"
    run.display.phase(f"compiling {networks}", count)
    while queue or pool.busy():
        while queue and pool.has_room():
            row = queue.pop(0)
            ahead.start(pool, row.id, compile_job(run, pool, row, wanted))
        for job, message in pool.wait(0.5):
            ahead.hear(job, message)
        if time.monotonic() > until:
            queue.clear()
            late = time.monotonic() > (until + end) / 2
            for job in pool.busy():
                engines = wanted[ahead.candidate(job)]
                if late or COMPILED in engines:
                    ahead.stop(pool, job, engines[-1])  # torch.compile is the last one


def compile_job(run: Run, pool: Pool, row: Candidate, wanted: dict[int, list[str]]) -> Message:
    """The job of making the engines of `row`."""
    compilers = max(1, (os.cpu_count() or 1) // pool.size)
    return {**timing_job(run, "compile", row), "engines": wanted[row.id], "compilers": compilers}


def timing_job(run: Run, kind: str, candidate: Candidate) -> Message:
    return {**run.job(kind, candidate), "batch": run.options["latency_batch"]}
