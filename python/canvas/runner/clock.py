"""What a search may still begin before its time limit.

    trials ... | last rungs | finals | latency, table |
               ^ new finds end       ^ timing_moment  ^ deadline
                            ^ last_moment

A find that could not be trained to the end is not begun: the time is better spent on those that
are there.  Second seeds are trained in what time is left.
"""

from __future__ import annotations

import time
from statistics import median

from ..study import FIRST, SECOND
from .finals import expected_seconds
from .search_run import Run
from .strategy import first_epochs


class Clock:
    """Moments of time.monotonic(), by what trainings have taken so far."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.epochs: int = run.options["epochs"]
        self.first: int = first_epochs(self.epochs, run.options["grace"])

    def last_moment(self) -> float:
        """When training must have ended so that finals, latency and table are ready in time."""
        return self.run.timing_moment() - expected_seconds(self.run)

    def in_time(self, rung: int, find: bool) -> bool:
        """Whether a training to `rung` could end in time; the first one always gets its chance."""
        return time.monotonic() + self._seconds(rung, find) < self.last_moment()

    def time_for_new(self) -> bool:
        """Whether a new find could be trained to the end."""
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
