"""Measuring: every candidate is compiled, compared with the interpreter and timed in a child with
limits, as those of `canvas tune` are, so that whatever it does costs one candidate.
"""

from __future__ import annotations

import enum
import itertools
import math
import time
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from ..te.place import mistake
from ..te.schedule import Schedule
from ..te.target import Target
from .task import ConfigSpace, Task

FAILED_COST = 1e9  # seconds, of a candidate that failed, as AutoTVM writes it


class MeasureErrorNo(enum.IntEnum):
    """AutoTVM's kinds of failure."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


BATCH = 20  # candidates that are compiled as one file by default

# The verdicts on candidates.
_KINDS = {
    "ok": MeasureErrorNo.NO_ERROR,
    "check": MeasureErrorNo.INSTANTIATION_ERROR,
    "compile": MeasureErrorNo.COMPILE_HOST,
    "load": MeasureErrorNo.COMPILE_HOST,
    "crash": MeasureErrorNo.RUNTIME_DEVICE,
    "timeout": MeasureErrorNo.RUN_TIMEOUT,
    "memory": MeasureErrorNo.RUNTIME_DEVICE,
    "wrong": MeasureErrorNo.WRONG_ANSWER,
    "run": MeasureErrorNo.RUNTIME_DEVICE,
}


class MeasureInput(NamedTuple):
    """A candidate."""

    target: Target
    task: Task
    config: ConfigSpace


class MeasureResult(NamedTuple):
    """`costs`: seconds of one run, the lower quartile, the median and the upper one of its
    samples; of a failure why, as one message.
    """

    costs: tuple[Any, ...]
    error_no: int
    all_cost: float
    timestamp: float


def mean_cost(result: MeasureResult) -> float:
    """Mean seconds of a run; infinite where it failed, or a cost is no finite number above 0."""
    costs = result.costs if isinstance(result.costs, (tuple, list)) else ()
    if result.error_no != 0 or not costs or not all(map(_is_time, costs)):
        return math.inf
    return float(sum(costs)) / len(costs)


def _is_time(cost: Any) -> bool:
    number = isinstance(cost, Real) and not isinstance(cost, bool)
    return number and math.isfinite(cost) and cost > 0


class LocalBuilder:
    """`n_parallel`: candidates of a batch (None: 20), compiled together while others are timed.
    `timeout` is taken and changes nothing: what compiles for too long is given up anyhow.
    """

    def __init__(
        self, timeout: float = 10, n_parallel: int | None = None, build_func: str = "default"
    ) -> None:
        self.timeout = _seconds("LocalBuilder", timeout)
        if n_parallel is not None and not _is_count(n_parallel):
            raise mistake(
                f"LocalBuilder: n_parallel is a whole number from 1, not {shown(n_parallel)}"
            )
        self.n_parallel = n_parallel or BATCH
        if build_func != "default":
            raise mistake("LocalBuilder: build_func is 'default', there is one way to build")


class LocalRunner:
    """`timeout`: seconds that the runs of a candidate may take together; `number` times `repeat`
    runs are timed.  Where `min_repeat_ms` or `cooldown_interval` is given it is taken and changes
    nothing: the number of samples is bounded, and time is the thread's processor time.
    """

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: float = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
    ) -> None:
        self.timeout = _seconds("LocalRunner", timeout)
        for name, value in (("number", number), ("repeat", repeat)):
            if not _is_count(value):
                raise mistake(f"LocalRunner: {name} is a whole number from 1, not {shown(value)}")
        self.number, self.repeat = number, repeat
        self.min_repeat_ms, self.cooldown_interval = min_repeat_ms, cooldown_interval
        self.enable_cpu_cache_flush = bool(enable_cpu_cache_flush)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _seconds(who: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
        raise mistake(f"{who}: timeout is seconds above 0, not {shown(value)}")
    return float(value)


def measure_option(builder: Any, runner: Any) -> dict[str, Any]:
    """How candidates are measured; "local" is LocalBuilder() and LocalRunner()."""
    builder = LocalBuilder() if builder == "local" else builder
    runner = LocalRunner() if runner == "local" else runner
    if not isinstance(builder, LocalBuilder):
        raise mistake(f"a builder is 'local' or a LocalBuilder, not {shown(builder)}")
    if not isinstance(runner, LocalRunner):
        raise mistake(f"a runner is 'local' or a LocalRunner, not {shown(runner)}")
    return {"builder": builder, "runner": runner}


class Measure:
    """Measures batches of candidates of one task, each compared with what the interpreter makes of
    the first one's program.
    """

    def __init__(self, option: Any) -> None:
        if not isinstance(option, dict) or set(option) != {"builder", "runner"}:
            raise mistake(
                f"measure_option is what autotvm.measure_option answers, not {shown(option)}"
            )
        checked = measure_option(**option)
        self.builder: LocalBuilder = checked["builder"]
        self.runner: LocalRunner = checked["runner"]
        self._measurer: object = None
        self._known: dict[tuple[str, str | None], dict[str, Any]] = {}

    def __call__(
        self, inputs: Sequence[MeasureInput]
    ) -> tuple[list[MeasureResult], BaseException | None]:
        """A result for each, or, where something was raised meanwhile, as by Ctrl-C, for the first
        ones, and what was raised.
        """
        start = time.time()
        made = [_candidate(one) for one in inputs]
        raised = self._measure([one.texts for one in made if isinstance(one, _Candidate)])
        done = list(itertools.takewhile(self._is_known, made))
        each = (time.time() - start) / max(1, len(done))
        return [self._result(one, each) for one in done], raised

    def _is_known(self, made: _Candidate | str) -> bool:
        return isinstance(made, str) or made.texts in self._known

    def _measure(self, legal: list[tuple[str, str | None]]) -> BaseException | None:
        """What two configs make alike is measured once.  Answers what was raised meanwhile."""
        new = [one for one in dict.fromkeys(legal) if one not in self._known]
        if not new:
            return None
        if self._measurer is None:
            runner = self.runner
            self._measurer = _core.measurer(
                new[0][0],
                repeats=runner.number * runner.repeat,
                seconds=runner.timeout,
                screen=True,
                cold=runner.enable_cpu_cache_flush,
            )
        raised: BaseException | None = None
        try:
            verdicts: list[Any] = _core.measure(self._measurer, new)
        except BaseException as error:
            if not hasattr(error, "verdicts"):
                raise
            verdicts, raised = error.verdicts, error
        self._known.update((one, found) for one, found in zip(new, verdicts) if found is not None)
        return raised

    def _result(self, made: _Candidate | str, seconds: float) -> MeasureResult:
        if isinstance(made, str):
            return _failed(MeasureErrorNo.INSTANTIATION_ERROR, made, seconds)
        found = self._known[made.texts]
        kind = _KINDS.get(found["failure"], MeasureErrorNo.UNKNOWN_ERROR)
        if found["failure"] == "check":
            return _failed(kind, str(made.schedule.told(CanvasError(found["message"]))), seconds)
        if kind:
            return _failed(kind, f"{found['failure']}: {found['message']}", seconds)
        costs: tuple[float, ...] = (found["lower"], found["median"], found["upper"])
        if self.runner.enable_cpu_cache_flush:
            costs = (found["cold"],)
        return MeasureResult(costs, 0, seconds, time.time())


class _Candidate(NamedTuple):
    schedule: Schedule
    texts: tuple[str, str | None]  # its program and schedule


def _candidate(inp: MeasureInput) -> _Candidate | str:
    """What the template makes of a config, or why there is nothing."""
    try:
        s, _ = inp.task.instantiate(inp.config)
        return _Candidate(s, (s.program, s.schedule or None))
    except CanvasError as error:
        return str(error)


def _failed(kind: MeasureErrorNo, why: str, seconds: float) -> MeasureResult:
    return MeasureResult((why,), int(kind), seconds, time.time())
