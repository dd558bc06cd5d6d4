"""The fastest schedule of a program on this machine, found within a budget: docs/tune.md."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..arguments import PATH, SWITCH, TEXT, WHOLE, checked, shown
from ..errors import CanvasError
from .compiled import Compiled


@dataclass(frozen=True)
class Tuned:
    """What a search found: a program, after edits, and its schedule, as texts.

    `median`: seconds of a run, 0 where nothing was measured (``method="oneshot"``, or stopped
    after trials of few images); `predicted`: seconds by the cost model; `before` and `after`:
    seconds of the default schedule and of this one, interleaved, `first`: of the trial that had
    seemed best; `rule`: the kind of schedule; `points`: how many there were to choose from,
    `trials`: how many were compiled, checked and timed, and `failures` of them by kind.
    """

    program: str
    schedule: str
    machine: str
    rule: str
    median: float
    predicted: float
    before: float
    after: float
    first: float
    points: int
    trials: int
    seconds: float
    failures: Mapping[str, int] = field(default_factory=dict)

    def compile(self) -> Compiled:
        """The program as machine code, callable on NumPy arrays and torch CPU tensors."""
        return Compiled(self.program, self.schedule, self.machine)


@checked(
    program=TEXT,
    method=TEXT,
    trials=WHOLE,
    seed=WHOLE,
    threads=WHOLE,
    log=PATH,
    winograd=SWITCH,
    sketch=TEXT,
    machine=TEXT,
)
def tune(
    program: str,
    *,
    method: str = "quick",
    trials: int | None = None,
    seconds: float | None = None,
    seed: int = 1,
    threads: int = 1,
    log: str | os.PathLike[str] | None = None,
    winograd: bool = False,
    sketch: str | None = None,
    machine: str = "here",
) -> Tuned:
    """Search for the fastest schedule of a program's text (docs/program.md) on this machine.

    `method`: that of ``canvas tune``; `trials`: schedules to measure (None: that of the method);
    `seconds`: limit of the search (None: no limit); `log`: a file that stores every trial and from
    which a search continues; `winograd`: allow Winograd, which rounds more; `sketch`: the text of
    a schedule with holes to fill instead of the tuner's own sketches.

    Raises CanvasError for bad input or if no C compiler works, and NoSolution if no schedule was
    correct.  Ctrl-C stops at once: the KeyboardInterrupt has the best trial so far, a Tuned
    without finals (`before` and `after` are 0), as its attribute `found`.
    """
    options: dict[str, Any] = {
        "method": method,
        "trials": _positive("trials", trials),
        "seconds": _time(seconds),
        "seed": _seed(seed),
        "threads": _positive("threads", threads),
        "log": log,
        "winograd": winograd,
        "sketch": sketch,
        "machine": None if machine == "here" else machine,
    }
    try:
        found: dict[str, Any] = _core.tune(program, **options)
    except BaseException as interrupt:
        best = getattr(interrupt, "found", None)
        if best is not None:
            interrupt.found = _tuned(best, machine)  # type: ignore[attr-defined]
        raise
    if found["failure"] != "ok":
        raise CanvasError(f"the fastest schedule failed: {found['failure']}: {found['message']}")
    if not found["trials"] and method != "oneshot":
        warnings.warn("no trial finished in time, the default schedule is used", stacklevel=3)
    return _tuned(found, machine)


def _tuned(found: dict[str, Any], machine: str) -> Tuned:
    names = Tuned.__dataclass_fields__.keys() - {"machine"}
    return Tuned(machine=machine, **{name: found[name] for name in names})


def _positive(name: str, value: int | None) -> int:
    if value is None:
        return 0
    if not 1 <= value <= 10**7:
        raise CanvasError(f"{name} is from 1 to 10000000, not {value}")
    return value


def _seed(value: int) -> int:
    if not 0 <= value < 2**63:
        raise CanvasError(f"seed is from 0 to 2^63-1, not {value}")
    return value


def _time(value: Any) -> float:
    if value is None:
        return 0.0
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise CanvasError(f"seconds is a number above 0, not {shown(value)}")
    return float(value)
