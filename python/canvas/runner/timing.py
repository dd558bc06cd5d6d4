"""Latency of what was trained to the end, one network at a time while nothing of ours trains.

First the engines of all networks are made, several networks at a time; the children keep them.

Every network is timed eagerly and as native code of the whole network, the unchanged one and the
finalists under torch.compile, too.  The unchanged network comes first, and its fastest engine is
what every speed-up is against: a candidate that was compared with another one is timed again.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ..nn.latency import COMPILED, EAGER, NATIVE
from ..reporting.front import find_order
from ..study import Candidate, Timing
from ..workers.pool import Message, Pool
from .finals import finalists
from .search_run import Run

WAYS = {EAGER: "eagerly", COMPILED: "under torch.compile", NATIVE: "as native code"}
LATENCY_LIMIT = 900.0  # seconds; torch.compile of a large network takes minutes
TOO_LONG = "torch.compile took longer than the time limit left for it"


@dataclass
class Ahead:
    """What was compiled before anything was timed: the child that has it, and the seconds of each
    engine by the clock and of processors; `stopped` took too long.  A second in which several
    networks were compiled is a part of each: `share` of their seconds went by.
    """

    child: dict[int, Any] = field(default_factory=dict)
    seconds: dict[int, dict[str, float]] = field(default_factory=dict)
    processor: dict[int, dict[str, float]] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)
    share: float = 1.0

    def stop(self, id: int, engine: str, seconds: float, processor: float) -> None:
        """What was spent on the engines of `id` until it was ended, as the cost of `engine`."""
        self.stopped.add(id)
        self.seconds[id], self.processor[id] = {engine: seconds}, {engine: processor}

    def cost(self, id: int, engine: str) -> tuple[float, float]:
        """Seconds by the clock and of processors."""
        seconds = self.seconds.get(id, {}).get(engine, 0.0)
        return self.share * seconds, self.processor.get(id, {}).get(engine, 0.0)


def time_networks(run: Run, pool: Pool) -> None:
    """Time what has no latency yet, or lacks one of its engines; nothing else is under way.

    The baseline and the controls come first, then the finds by falling accuracy.
    """
    wanted = engines_wanted(run)
    lacking = [row for row in run.study.select(status="done") if lacks(run, row, wanted)]
    ahead = compile_ahead(run, pool, lacking, wanted)
    for baseline in run.study.select("baseline", "done"):
        if lacks(run, baseline, wanted) and time.monotonic() <= run.deadline - 1:
            time_unchanged(run, pool, baseline, wanted[baseline.id], ahead)
    rows = [row for row in run.study.select(status="done") if lacks(run, row, wanted)]
    rows.sort(key=lambda row: (row.kind != "baseline", row.kind == "find", find_order(row)))
    if rows:
        run.display.after(0.0)
        run.display.phase(f"timing {len(rows)} networks, one at a time", len(rows))
    for row in rows:
        if time.monotonic() > run.deadline - 1:
            run.time_is_up("all networks were timed")
            break
        time_one(run, pool, row, wanted[row.id], ahead)
    run.timed = True


def compile_ahead(
    run: Run, pool: Pool, rows: list[Candidate], wanted: dict[int, list[str]]
) -> Ahead:
    """Make the engines of several networks at a time, the unchanged one's first: torch.compile
    takes as long for it as native code for all others.  That may take all but what the rounds of
    timing need, and half of what is left in any case; what was not made is made when it is timed.
    Native code that is under way then is awaited: the child would take all that it has with it.
    """
    ahead, began = Ahead(), time.monotonic()
    end, since = run.deadline - 1, dict[int, float]()
    queue = sorted(rows, key=lambda row: row.kind != "baseline")
    if pool.size < 2 or len(queue) < 2 or began > end:
        return ahead
    until = max(began + (end - began) / 2, end - run.rounds_seconds(len(queue)))
    run.display.phase(f"compiling {len(queue)} networks, {pool.size} at a time", len(queue))
    while queue or pool.busy():
        while queue and pool.has_room():
            row = queue.pop(0)
            words = {"engines": wanted[row.id], "compilers": max(1, _cores() // pool.size)}
            job = {**timing_job(run, "compile", row), **words}
            since[row.id] = time.monotonic()
            ahead.child[row.id] = pool.start(row.id, job, LATENCY_LIMIT)
        for id, message in pool.wait(0.5):
            if message["event"] == "done":
                ahead.seconds[id], ahead.processor[id] = message["seconds"], message["processor"]
        if time.monotonic() > until:
            queue.clear()
            late = time.monotonic() > (until + end) / 2
            for id in [id for id in pool.busy() if late or COMPILED in wanted[id]]:
                engine, used = wanted[id][-1], pool.stop(id)  # torch.compile is the last one
                ahead.stop(id, engine, time.monotonic() - since[id], used)
    told = sum(sum(seconds.values()) for seconds in ahead.seconds.values())
    ahead.share = (time.monotonic() - began) / told if told else 1.0
    return ahead


def _cores() -> int:
    return os.cpu_count() or 1


def timing_job(run: Run, kind: str, candidate: Candidate) -> dict[str, Any]:
    return {**run.job(kind, candidate), "batch": run.options["latency_batch"]}


def lacks(run: Run, row: Candidate, engines: dict[int, list[str]]) -> bool:
    """Whether an engine of `row` was not timed, or not against what all are compared with."""
    timings, engine = run.study.timings(row.id), against(run)
    stale = any(timing.against not in ("", engine or timing.against) for timing in timings)
    return stale or not set(engines[row.id]) <= {t.engine for t in timings}


def against(run: Run) -> str:
    """The unchanged network's fastest engine; "" while it has no latency."""
    timings = [t for row in run.study.select("baseline") for t in run.study.timings(row.id)]
    return next((timing.against for timing in timings if timing.against), "")


def engines_wanted(run: Run) -> dict[int, list[str]]:
    """The engines in which each candidate is timed."""
    always = [EAGER, NATIVE] if run.options["latency"] == "native" else [EAGER]
    every = run.options["compile"] == "yes" and run.options["finalists"]
    candidates = run.study.candidates()
    wanted = {row.id: always for row in candidates}
    for row in finalists(candidates, run.options["finalists"]):
        if run.options["compile"] != "no" and (row.kind == "baseline" or every):
            wanted[row.id] = [*always, COMPILED]
    return wanted


def time_unchanged(
    run: Run, pool: Pool, baseline: Candidate, engines: list[str], ahead: Ahead
) -> None:
    """torch.compile may take half of the time that is left; where that is not enough the network
    is timed without it, for without its latency no row has a speed-up.
    """
    left = run.deadline - 1 - time.monotonic()
    until = time.monotonic() + left / 2 if COMPILED in engines else math.inf
    slow = COMPILED in engines and baseline.id in ahead.stopped
    if not slow and time_one(run, pool, baseline, engines, ahead, until=until):
        return
    rest = [engine for engine in engines if engine != COMPILED]
    time_one(run, pool, baseline, rest, ahead, missing={COMPILED: TOO_LONG})


def time_one(
    run: Run,
    pool: Pool,
    candidate: Candidate,
    engines: list[str],
    ahead: Ahead,
    until: float = math.inf,
    missing: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Whether its time did not end at the moment `until`; `missing` are engines, and the reasons
    why they are not among `engines`.
    """
    is_baseline = candidate.kind == "baseline"
    words = {
        **timing_job(run, "latency", candidate),
        "unchanged": engines if is_baseline else unchanged(run),
        "engines": engines,
        "against": "" if is_baseline else against(run),
    }
    run.study.timing_started(candidate.id)
    # Under torch.compile the unchanged network is where it was compiled, which took long.
    beside = [row.id for row in run.study.select("baseline") if COMPILED in words["unchanged"]]
    child = ahead.child.get(beside[0] if beside else candidate.id)
    pool.start(candidate.id, words, LATENCY_LIMIT, child)
    while pool.busy():
        for _, message in pool.wait(0.5):
            record(run, candidate, engines, message, missing, ahead)
        if pool.busy() and time.monotonic() > min(until, run.deadline - 1):
            pool.stop(candidate.id)
            run.study.timing_stopped(candidate.id)
            return time.monotonic() > run.deadline - 1
    return True


def unchanged(run: Run) -> list[str]:
    """The engine of the unchanged network that all are compared with; before that is known, those
    that it can be timed in.
    """
    if fastest := against(run):
        return [fastest]
    wanted = engines_wanted(run)
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
    ahead: Ahead,
) -> None:
    """What the child answered, and what it was not asked for, as rows of the study."""
    batch = run.options["latency_batch"]
    if message["event"] == "done":
        rows = [timing_of(engine, t, batch) for engine, t in message["timed"].items()]
        for engine, reason in {**message["missing"], **missing}.items():
            none = Timing(engine, None, None, None, "", batch, reason, None, 0.0, 0.0)
            rows.append(none)
            run.display.line(f"{candidate.name} could not be timed {WAYS[engine]}: {reason}")
        rows = [with_cost(row, *ahead.cost(candidate.id, row.engine)) for row in rows]
        run.study.latency(candidate.id, rows)
        run.display.timed(run.study.candidate(candidate.id))
        return
    reason = f"{message['kind']}: {message['reason']}"
    rows = [Timing(engine, None, None, None, "", batch, reason) for engine in engines]
    run.study.latency_failed(candidate.id, rows, reason)
    run.display.timed(run.study.candidate(candidate.id))
    run.display.line(f"{candidate.name} could not be timed: {reason}")


def timing_of(engine: str, figures: dict[str, float | str], batch: int) -> Timing:
    """The figures that the child told of one engine."""
    names = ("ms", "spread_ms", "speedup", "speedup_spread", "seconds", "processor")
    ms, spread, speedup, speedup_spread, *cost = (float(figures[name]) for name in names)
    against = str(figures["against"])
    return Timing(engine, ms, spread, speedup, against, batch, "", speedup_spread, *cost)


def with_cost(row: Timing, seconds: float, processor: float) -> Timing:
    """The row with what was spent on it before it was timed."""
    before = (row.seconds or 0.0, row.processor or 0.0)
    return replace(row, seconds=before[0] + seconds, processor=before[1] + processor)
