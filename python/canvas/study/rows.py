"""Rows of a study as objects; the schema says what their columns mean."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from ..metric import Metric

ENDED = ("done", "pruned", "rejected", "failed")  # what becomes of a candidate
TRIED = ("done", "pruned", "failed", "waiting")  # a trial: trained, at least to its first rung

FIRST, WHOLE, SECOND = 1, 2, 3  # rungs: a part of the epochs, all, all from a second seed


@dataclass
class Candidate:
    """A row of the table `candidate`; the schema says what the columns mean.

    `status` is new, running, waiting (at its first rung), or one of ENDED; a find that is done
    may have its second seed still to come.  `rung` is the highest that it has reached, 0 before
    the first.  `val_accuracy`, what the task's metric gives (an accuracy is 0..1), is what a find
    is chosen by: after its last epoch, and from rung SECOND on the mean over the `val_seeds`
    seeds.  `metric` says its unit and direction.  `origin` of a find is draw, mutation, crossover
    or transfer, `parents` the names of what it was made from, with blanks between.
    `tests` are those on the test split as a finalist, one per seed.
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
    origin: str = ""
    parents: str = ""
    rung: int = 0
    memory_format: str = ""
    role: str = ""
    divergence: float | None = None
    tuned_divergence: float | None = None
    weights: str = ""
    tests: tuple[float, ...] = ()
    metric: Metric = field(default=Metric(), repr=False)

    @property
    def merit(self) -> float:
        """Larger for a row that validation puts before another; of a task without metric, by the
        divergence from the teacher.
        """
        if self.val_accuracy is None and self.tuned_divergence is not None:
            return -self.tuned_divergence
        return self.metric.merit(self.val_accuracy)

    @property
    def val_seeds(self) -> int:
        """How many seeds `val_accuracy` is the mean of."""
        return 0 if self.val_accuracy is None else 2 if self.rung >= SECOND else 1

    @property
    def test_mean(self) -> float | None:
        """Mean on the test split over the seeds; None if it was no finalist."""
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
    seconds: float | None = None  # of compiling and timing it, by the clock
    processor: float | None = None  # ... of processors
    session: int | None = field(default=None, compare=False)  # the run that recorded it


@dataclass(frozen=True)
class Final:
    """A row of the table `final`: `hits` has a bit per test image, the first in the highest, and
    is empty where the metric, `test`, is no share of images.
    """

    seed: int
    hits: bytes
    test: float | None = None


@dataclass(frozen=True)
class ScreenedKernel:
    """A row of the table `screened`."""

    number: int
    kernel: str
    groups: int | None
    hash: str
    error: float
    seconds: float | None = None


@dataclass(frozen=True)
class FittedItem:
    """A row of the table `fit`."""

    layer: str
    operator: str
    steps: int
    seed: int
    pack: str
    error: float | None
    divergence: float | None
    native_seconds: float | None
    macs: int
    params: int
    weights: str = ""
    reason: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Item:
    """What a strategy asked for, and what came of it: `candidate` trained to `rung`.

    `state` is open while nothing has come of it, then done, failed or rejected; `accuracy` is that
    of this rung alone, of another metric its merit (metric.py), None unless it is done.
    """

    number: int
    candidate: int
    name: str
    rung: int
    budget: str
    origin: str
    kernel: str
    state: str = "open"
    accuracy: float | None = None


@dataclass(frozen=True)
class Audited:
    """A row of the table `audit`: accuracy on validation, 0..1, or why there is none."""

    accuracy: float | None
    seconds: float | None
    reason: str = ""
