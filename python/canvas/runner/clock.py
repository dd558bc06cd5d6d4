"""What a search may still begin before its time limit.

    trials ... | last rungs | finals | latency, table |
               ^ new finds end       ^ timing_moment  ^ deadline
                            ^ last_moment

A find that could not be trained to the end is not begun: the time is better spent on those that
are there.  Second seeds are trained in what time is left.  Finals compare finds that were trained
to the end, so the first one of a budget may take the time that is kept for them.
"""

from __future__ import annotations

import math
import time
from statistics import median

from ..study import FIRST, SECOND, Candidate
from .finals import expected_seconds
from .search_run import Run
from .strategy import first_epochs


class Clock:
    """Moments of time.monotonic(), by what trainings have taken so far."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.epochs: int = run.options["epochs"]
        self.first: int = first_epochs(self.epochs, run.options["grace"])

    def last_moment(self, candidate: Candidate | None = None) -> float:
        """When training, or that of `candidate`, must have ended so that finals, latency and table
        are ready in time.
        """
        if math.isinf(self.run.deadline):
            return math.inf
        if candidate is not None and self._is_first(candidate):
            return self.run.timing_moment()
        return self.run.timing_moment() - expected_seconds(self.run)

    def _is_first(self, candidate: Candidate) -> bool:
        """Whether it is a find of a budget of which none was trained to the end."""
        done = self.run.study.select("find", "done") if candidate.kind == "find" else []
        return candidate.kind == "find" and all(row.budget != candidate.budget for row in done)

    def in_time(self, candidate: Candidate, rung: int) -> bool:
        """Whether its training to `rung` could end in time; a first one always gets its chance."""
        if math.isinf(self.run.deadline):
            return True
        seconds = self._seconds(rung, candidate.kind == "find")
        return time.monotonic() + seconds < self.last_moment(candidate)

    def time_for_new(self) -> bool:
        """Whether a new find could be trained to the end."""
        if math.isinf(self.run.deadline):
            return True
        return time.monotonic() + self._epoch(True) * self.epochs < self.last_moment()

    def _seconds(self, rung: int, find: bool) -> float:
        """About how long a training to `rung` takes; finds take as long as those so far."""
        one = self._epoch(find)
        if not find or rung == SECOND:
            return one * self.epochs
        return one * (self.first if rung == FIRST else self.epochs - self.first)

    def _epoch(self, find: bool) -> float:
        """Seconds of an epoch; 0 while nothing is known."""
        baseline = (self.run.baseline_seconds() or 0.0) / self.epochs
        paces = self.run.study.paces() if find else []
        return max(baseline, median(paces)) if paces else baseline
