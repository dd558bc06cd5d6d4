"""Choose the finalists, and the engines in which each candidate is timed."""

from __future__ import annotations

from collections.abc import Sequence

from ..nn.latency import COMPILED, EAGER, GPU, GPU_COMPILED, GPU_GRAPH, NATIVE
from ..reporting.front import find_order
from ..study import Candidate
from .search_run import Run


def finalists(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """Baseline, controls and the `count` most accurate finds of each budget, of those trained to
    the end; of the controls also those that wait for their training.
    """
    chosen = [row for row in candidates if row.kind != "find" and row.status in ("done", "new")]
    taken: dict[str, int] = {}
    for row in sorted(candidates, key=find_order):
        if row.kind == "find" and row.status == "done":
            taken[row.budget] = taken.get(row.budget, 0) + 1
            if taken[row.budget] <= count:
                chosen.append(row)
    return chosen


def requested_engines(run: Run) -> dict[int, list[str]]:
    """The engines in which each candidate is timed; none with --latency none."""
    if run.options["latency"] == "none":
        return {row.id: [] for row in run.study.candidates()}
    if run.options["latency"] == "cuda":
        always, compiled = [GPU, GPU_GRAPH], GPU_COMPILED
    else:
        always = [EAGER, NATIVE] if run.options["latency"] == "native" else [EAGER]
        compiled = COMPILED
    every = run.options["compile"] == "yes" and run.options["finalists"]
    candidates = run.study.candidates()
    wanted = {row.id: always for row in candidates}
    for row in finalists(candidates, run.options["finalists"]):
        if run.options["compile"] != "no" and (row.kind == "baseline" or every):
            wanted[row.id] = [*always, compiled]
    return wanted


def needs_timing(run: Run, row: Candidate, engines: dict[int, list[str]]) -> bool:
    """Whether an engine of `row` has no timing, or one against another reference engine.  An
    engine that failed in an earlier run is tried again.
    """
    timings, engine = run.study.timings(row.id), reference_engine(run)
    stale = any(timing.against not in ("", engine or timing.against) for timing in timings)
    there = {timing.engine for timing in timings} - failed_engines(run, row)
    return stale or not set(engines[row.id]) <= there


def failed_engines(run: Run, row: Candidate) -> set[str]:
    """The engines in which `row` could not be timed by an earlier run."""
    return {
        timing.engine
        for timing in run.study.timings(row.id)
        if timing.latency_ms is None and timing.session != run.study.session
    }


def reference_engine(run: Run) -> str:
    """The unchanged network's fastest engine; "" while it has no latency."""
    timings = [t for row in run.study.select("baseline") for t in run.study.timings(row.id)]
    return next((timing.against for timing in timings if timing.against), "")
