"""Engines that were compiled before the timing, and the children that hold them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ..workers.pool import Executor, Message

LATENCY_LIMIT = 900.0  # seconds; torch.compile of a large network takes minutes
UNCHANGED = -1  # the number of the job that compiles the unchanged network beside trainings


@dataclass
class CompiledEngines:
    """The engines that were compiled before the timing, by the id of the candidate.

    `child`: the process that holds the engines; `seconds`, `processor`: elapsed and processor
    seconds of each engine; `stopped`: candidates whose compilation took too long.  `share`:
    elapsed time of the phase divided by the sum of `seconds`, as several networks compile at once.
    `unchanged`: the id of the unchanged network, once it compiles beside the finals; `since`: when
    each job began, as of time.monotonic().
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

    def start(self, pool: Executor, job: int, words: Message) -> None:
        """Start a child that makes the engines named in `words`."""
        id = self.candidate(job)
        self.since[id] = time.monotonic()
        self.child[id] = pool.start(job, words, LATENCY_LIMIT)

    def record(self, job: int, message: Message) -> None:
        """Record the last message of a child; engines it lacks are made when they are timed."""
        id = self.candidate(job)
        self.seconds[id] = message.get("seconds", {})
        self.processor[id] = message.get("processor", {})

    def stop(self, pool: Executor, job: int, engine: str) -> None:
        """Stop a job; the time spent on it becomes the cost of `engine`."""
        id = self.candidate(job)
        used = pool.stop(job)
        self.stopped.add(id)
        self.seconds[id] = {engine: time.monotonic() - self.since[id]}
        self.processor[id] = {engine: used}

    def cost(self, id: int, engine: str) -> tuple[float, float]:
        """Elapsed and processor seconds."""
        seconds = self.seconds.get(id, {}).get(engine, 0.0)
        return self.share * seconds, self.processor.get(id, {}).get(engine, 0.0)

    def seconds_beside(self, now: float) -> float:
        """Seconds for which the unchanged network was compiled beside trainings, which ended."""
        if self.unchanged is None:
            return 0.0
        if self.unchanged in self.seconds:
            return sum(self.seconds[self.unchanged].values())
        return now - self.since[self.unchanged]
