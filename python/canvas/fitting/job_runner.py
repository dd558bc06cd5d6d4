"""Where the jobs of a fit (fit_jobs.py) are done: in children of this process, or elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import nn

from ..nn.latency import Latency
from ..nn.layer_time import seconds_of
from .fit_jobs import Chosen, FitJobs, Refitted, Tuned, Tuning
from .forks import run_forked
from .item_table import Outcome, lost
from .menu import Sized

Result = TypeVar("Result")
Done = Iterator[tuple[int, Result]]  # the number of a job and its result, as they come


class JobRunner(Protocol):
    """Each method does its jobs in any order; none begins after `until` (time.monotonic())."""

    def errors(self, jobs: Sequence[Sized], seed: int, until: float) -> Done[tuple[float, float]]:
        """FitJobs.error of each."""

    def items(
        self, jobs: Sequence[Sized], steps: int, seed: int, timed: bool, until: float
    ) -> Done[Outcome]:
        """FitJobs.item of each."""

    def refits(self, jobs: Sequence[Chosen], until: float) -> Done[Refitted | None]:
        """FitJobs.refit of each; None where its process was lost."""

    def divergences(self, jobs: Sequence[Sequence[Chosen]]) -> Done[float]:
        """FitJobs.divergence of each; infinite where its process was lost."""

    def tunings(self, jobs: Sequence[Tuning], until: float) -> Done[Tuned]:
        """FitJobs.tuned of each."""

    def program_seconds(self, program: str) -> float:
        """Native seconds of a program; raises CanvasError where it cannot be timed."""

    def time(self, network: nn.Module | None, items: Sequence[Sized]) -> Latency:
        """FitJobs.time of a network that has these items; None for the teacher."""


@dataclass
class Forked:
    """`workers` forked children; on a device, of which a forked process could not make use,
    networks are tuned here, one at a time.
    """

    fit_jobs: FitJobs
    workers: int

    def errors(self, jobs: Sequence[Sized], seed: int, until: float) -> Done[tuple[float, float]]:
        return run_forked(
            lambda sized: self.fit_jobs.error(sized, seed), jobs, self.workers, until, (1.0, 0.0)
        )

    def items(
        self, jobs: Sequence[Sized], steps: int, seed: int, timed: bool, until: float
    ) -> Done[Outcome]:
        return run_forked(
            lambda sized: self.fit_jobs.item(sized, steps, seed, timed),
            jobs,
            self.workers,
            until,
            lost,
        )

    def refits(self, jobs: Sequence[Chosen], until: float) -> Done[Refitted | None]:
        return run_forked(self.fit_jobs.refit, jobs, self.workers, until)

    def divergences(self, jobs: Sequence[Sequence[Chosen]]) -> Done[float]:
        return run_forked(self.fit_jobs.divergence, jobs, self.workers, lost=math.inf)

    def tunings(self, jobs: Sequence[Tuning], until: float) -> Done[Tuned]:
        if not self.fit_jobs.device.shared:
            yield from run_forked(self.fit_jobs.tuned, jobs, self.workers, until, lost_tuning)
            return
        for at, job in enumerate(jobs):
            if time.monotonic() >= until:
                return
            yield at, self.fit_jobs.tuned(job)

    def program_seconds(self, program: str) -> float:
        return seconds_of(program)

    def time(self, network: nn.Module | None, items: Sequence[Sized]) -> Latency:
        return self.fit_jobs.time(network)


def lost_tuning(why: str) -> Tuned:
    return Tuned(why=f"crashed: {why}")
