"""``function.time_evaluator(name, dev, number=10)(*args).mean``: seconds of one run."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..arguments import shown
from ..errors import CanvasError


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds of one run, of each repetition the mean of its runs."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.results)


def time_evaluator(
    function: Callable[..., Any],
    parallel: bool,
    number: Any = 10,
    repeat: Any = 1,
    min_repeat_ms: Any = 0,
) -> Callable[..., BenchmarkResult]:
    """Times `repeat` times `number` runs, after one that warms up; the thread's processor time,
    of `parallel` code on several threads wall-clock.
    """
    for name, value, least in (("number", number, 1), ("repeat", repeat, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise CanvasError(
                f"time_evaluator: {name} is a whole number from {least}, not {shown(value)}"
            )
    known = isinstance(min_repeat_ms, (int, float)) and not isinstance(min_repeat_ms, bool)
    if not known or not 0 <= min_repeat_ms <= 1e6:
        raise CanvasError(
            f"time_evaluator: min_repeat_ms is from 0 to 1000000, not {shown(min_repeat_ms)}"
        )
    several = parallel and os.environ.get("OMP_NUM_THREADS") != "1"
    clock = time.perf_counter if several else time.thread_time

    def timed(runs: int, args: tuple[Any, ...]) -> float:
        start = clock()
        for _ in range(runs):
            function(*args)
        return clock() - start

    def evaluate(*args: Any) -> BenchmarkResult:
        function(*args)
        runs, found = number, []
        for _ in range(repeat):
            seconds = timed(runs, args)
            while seconds * 1000 < min_repeat_ms:
                runs *= 2
                seconds = timed(runs, args)
            found.append(seconds / runs)
        return BenchmarkResult(tuple(found))

    return evaluate
