"""Rows of a study as objects; the schema says what their columns mean."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

ENDED = ("done", "pruned", "failed")  # what becomes of a candidate


@dataclass
class Candidate:
    """A row of the table `candidate`; the schema says what the columns mean.

    `tests` are its accuracies on the test split as a finalist, 0..1, one per seed.
    """

    id: int
    name: str
    kind: str
    number: int | None
    kernel: str
    pack: str
    hash: str | None
    layer_macs: int | None
    status: str
    reason: str
    log: str
    macs: int | None
    params: int | None
    val_accuracy: float | None
    latency_ms: float | None
    latency_spread_ms: float | None
    speedup: float | None
    seconds: float | None
    speedup_spread: float | None = None
    engine: str = ""
    budget: str = ""
    session: int | None = None
    tests: tuple[float, ...] = ()

    @property
    def test_mean(self) -> float | None:
        """Mean accuracy on the test split over the seeds, 0..1; None if it was no finalist."""
        return statistics.fmean(self.tests) if self.tests else None

    @property
    def test_spread(self) -> float | None:
        """Sample standard deviation over the seeds; None with fewer than two."""
        return statistics.stdev(self.tests) if len(self.tests) > 1 else None


@dataclass(frozen=True)
class Timing:
    """A row of the table `timing`: one engine of one candidate."""

    engine: str
    latency_ms: float | None
    spread_ms: float | None
    speedup: float | None
    against: str
    batch: int
    reason: str
    speedup_spread: float | None = None


@dataclass(frozen=True)
class Final:
    """A row of the table `final`: `hits` has a bit per test image, the first in the highest."""

    seed: int
    hits: bytes
