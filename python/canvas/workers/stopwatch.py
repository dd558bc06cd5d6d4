"""How long a job may take: so many seconds of processor time, whatever else the machine does.

A candidate must not fail because others train beside it, so its own processor time counts (its
threads and what it started and waited for, too; /proc tells).  What hangs uses none: therefore a
job also ends after HANGING times its limit by the clock.  Where there is no /proc the limit counts
by the clock.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

HANGING = 10.0  # times its limit that a job may last by the clock


def processor_seconds(process: int) -> float | None:
    """User and system time of a process and of those that it waited for; None where unknown."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """The time of one job of `process`, which may take `limit` seconds and `extra` to start; it
    runs from the beginning.
    """

    def __init__(self, process: int, limit: float, extra: float = 0.0) -> None:
        self.process = process
        self.limit = limit
        self.extra = extra
        self.used = self.passed = 0.0  # processor time and time by the clock while it ran before
        self.since: tuple[float, float] | None = self._now()  # None while it stands still

    def stop(self) -> None:
        """Stand still: what the job waits for is not its own time."""
        self.used, self.passed = self._taken()
        self.since = None

    def go_on(self) -> None:
        self.since = self._now()

    def overdue(self) -> str:
        """Why the job's time is up, "" while it is not."""
        if self.since is None:
            return ""
        used, passed = self._taken()
        if used > self.limit + self.extra:
            known = processor_seconds(self.process) is not None
            return f"it took longer than its limit of {self.limit:g} s" + known * " processor time"
        if passed > self._longest():
            return (
                f"it hung: {passed:.0f} s went by while it used {used:.1f} of its "
                f"{self.limit:g} s processor time"
            )
        return ""

    def processor(self) -> float:
        """Seconds of processors so far; by the clock where the system does not tell them."""
        return self.used if self.since is None else self._taken()[0]

    def left(self) -> float:
        """Seconds for which nobody need look at it; infinite while it stands still."""
        if self.since is None:
            return float("inf")
        used, passed = self._taken()
        return max(0.01, min(self.limit + self.extra - used, self._longest() - passed) + 0.01)

    def _longest(self) -> float:
        return HANGING * self.limit + self.extra

    def _taken(self) -> tuple[float, float]:
        if self.since is None:
            return self.used, self.passed
        used, passed = (now - then for now, then in zip(self._now(), self.since))
        return self.used + used, self.passed + passed

    def _now(self) -> tuple[float, float]:
        clock = time.monotonic()
        used = processor_seconds(self.process)
        return clock if used is None else used, clock
