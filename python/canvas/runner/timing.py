"""Measure the latency of fully trained networks, one at a time while no training runs.

First the engines of all networks are made (precompile.py).

Every network is timed eagerly and as native code, the unchanged network and the finalists also
under torch.compile.  The unchanged network comes first.  Its fastest engine is the reference of
every speed-up; a candidate that was timed against another engine is timed again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..nn.latency import COMPILED, EAGER, GPU, GPU_COMPILED, GPU_GRAPH, NATIVE
from ..reporting.front import find_order
from ..study import Candidate, Timing
from ..workers.pool import Executor, Message
from .compiled_engines import LATENCY_LIMIT
from .precompile import precompile, timing_job
from .search_run import Run
from .timing_plan import failed_engines, needs_timing, reference_engine, requested_engines

WAYS = {
    EAGER: "eagerly",
    COMPILED: "under torch.compile",
    NATIVE: "as native code",
    GPU: "eagerly on the GPU",
    GPU_COMPILED: "under torch.compile on the GPU",
    GPU_GRAPH: "as a CUDA graph",
}
TOO_LONG = "torch.compile took longer than the time limit left for it"


def time_networks(run: Run, pool: Executor) -> None:
    """Time every network that lacks the latency of an engine; no other job runs.

    The baseline and the controls come first, then the finds by falling accuracy.
    """
    wanted = requested_engines(run)
    queue = [row for row in run.study.select(status="done") if needs_timing(run, row, wanted)]
    again = sum(bool(failed_engines(run, row) & {*wanted[row.id]}) for row in queue)
    if again:
        networks = "1 network" if again == 1 else f"{again} networks"
        run.display.line(f"trying again what could not be timed in an earlier run: {networks}")
    precompile(run, pool, queue, wanted)
    for baseline in run.study.select("baseline", "done"):
        if needs_timing(run, baseline, wanted) and time.monotonic() <= run.deadline - 1:
            run.display.phase("timing the unchanged network", 1)
            time_unchanged(run, pool, baseline, wanted[baseline.id])
    rows = [row for row in run.study.select(status="done") if needs_timing(run, row, wanted)]
    rows.sort(key=lambda row: (row.kind != "baseline", row.kind == "find", find_order(row)))
    if rows:
        run.display.after(0.0)
        run.display.phase(f"timing {len(rows)} networks, one at a time", len(rows))
    for row in rows:
        if time.monotonic() > run.deadline - 1:
            run.time_is_up("all networks were timed")
            break
        time_one(run, pool, row, wanted[row.id])
    for (what, reason), names in run.timing_failures.items():
        if len(names) > 1:
            run.display.line(f"in all {len(names)} networks {what}: {reason}")
    run.timed = True


def time_unchanged(run: Run, pool: Executor, baseline: Candidate, engines: list[str]) -> None:
    """Time the unchanged network.  torch.compile gets half of the remaining time; if that is not
    enough, the network is timed without it, as every speed-up needs its latency.
    """
    left = run.deadline - 1 - time.monotonic()
    until = time.monotonic() + left / 2 if COMPILED in engines else math.inf
    slow = COMPILED in engines and baseline.id in run.compiled.stopped
    if not slow and time_one(run, pool, baseline, engines, until=until):
        return
    rest = [engine for engine in engines if engine != COMPILED]
    time_one(run, pool, baseline, rest, missing={COMPILED: TOO_LONG})


def time_one(
    run: Run,
    pool: Executor,
    candidate: Candidate,
    engines: list[str],
    until: float = math.inf,
    missing: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Time a network; False if its own limit `until` (as of time.monotonic()) stopped it.
    `missing`: {engine: reason} of engines that are not in `engines`.
    """
    is_baseline = candidate.kind == "baseline"
    words = {
        **timing_job(run, "latency", candidate),
        "unchanged": engines if is_baseline else unchanged(run),
        "engines": engines,
        "against": "" if is_baseline else reference_engine(run),
    }
    run.study.timing_started(candidate.id)
    # Use the child in which torch.compile has compiled the unchanged network, which took long.
    beside = [row.id for row in run.study.select("baseline") if COMPILED in words["unchanged"]]
    child = run.compiled.child.get(beside[0] if beside else candidate.id)
    pool.start(candidate.id, words, LATENCY_LIMIT, child)
    while pool.busy():
        for _, message in pool.wait(0.5):
            record(run, candidate, engines, message, missing)
        if pool.busy() and time.monotonic() > min(until, run.deadline - 1):
            pool.stop(candidate.id)
            run.study.timing_stopped(candidate.id)
            return time.monotonic() > run.deadline - 1
    return True


def unchanged(run: Run) -> list[str]:
    """The engine of the unchanged network that all others are compared with; before it is known,
    the engines in which the unchanged network can be timed.
    """
    if fastest := reference_engine(run):
        return [fastest]
    wanted = requested_engines(run)
    for row in run.study.select("baseline"):
        failed = {t.engine for t in run.study.timings(row.id) if t.latency_ms is None}
        if len(failed) < len(wanted[row.id]):
            return [engine for engine in wanted[row.id] if engine not in failed]
        return wanted[row.id]
    return [EAGER]


def record(
    run: Run,
    candidate: Candidate,
    engines: list[str],
    message: Message,
    missing: Mapping[str, str],
) -> None:
    """Store the results of the child, and the reasons of missing engines, in the study."""
    batch = run.options["latency_batch"]
    if message["event"] == "done":
        rows = [timing_of(engine, t, batch) for engine, t in message["timed"].items()]
        for engine, reason in {**message["missing"], **missing}.items():
            none = Timing(engine, None, None, None, "", batch, reason, None, 0.0, 0.0)
            rows.append(none)
            report_timing_failure(run, candidate, f"could not be timed {WAYS[engine]}", reason)
        rows = [with_cost(row, *run.compiled.cost(candidate.id, row.engine)) for row in rows]
        run.study.latency(candidate.id, rows)
        run.display.timed(run.study.candidate(candidate.id))
        return
    reason = f"{message['kind']}: {message['reason']}"
    rows = [Timing(engine, None, None, None, "", batch, reason) for engine in engines]
    run.study.latency_failed(candidate.id, rows, reason)
    run.display.timed(run.study.candidate(candidate.id))
    report_timing_failure(run, candidate, "could not be timed", reason)


def report_timing_failure(run: Run, candidate: Candidate, what: str, reason: str) -> None:
    """Show a reason with the first network that it affects; the end shows how many there are."""
    names = run.timing_failures.setdefault((what, reason), set())
    if not names:
        run.display.line(f"{candidate.name} {what}: {reason}")
    names.add(candidate.name)


def timing_of(engine: str, figures: dict[str, float | str], batch: int) -> Timing:
    """The timing of one engine from the numbers that the child sent."""
    names = ("ms", "spread_ms", "speedup", "speedup_spread", "seconds", "processor")
    ms, spread, speedup, ratio_spread, clock, processor = (float(figures[name]) for name in names)
    against = str(figures["against"])
    return Timing(engine, ms, spread, speedup, against, batch, "", ratio_spread, clock, processor)


def with_cost(row: Timing, seconds: float, processor: float) -> Timing:
    """The row with the seconds of its compilation before the timing added."""
    before = (row.seconds or 0.0, row.processor or 0.0)
    return replace(row, seconds=before[0] + seconds, processor=before[1] + processor)
