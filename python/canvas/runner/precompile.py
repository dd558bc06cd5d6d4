"""Make the engines of networks before they are timed, several networks at a time.

torch.compile of the unchanged network takes about as long as the native code of all others.  It
therefore begins during the finals, in place of one training.  The rest follows when no training
runs.  The child that compiled a network keeps it until it is timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from ..devices import resolve
from ..nn.latency import COMPILED
from ..study import Candidate
from ..workers.pool import Executor, Message
from .compiled_engines import UNCHANGED
from .search_run import Run
from .timing_plan import needs_timing, requested_engines


def compile_beside_finals(run: Run, pool: Executor) -> None:
    """Start to compile the unchanged network in place of one of several trainings, if it is to be
    timed under torch.compile and was not timed yet.
    """
    baseline = next(iter(run.study.select("baseline", "done")), None)
    if baseline is None or pool.compilers < 2 or run.compiled.unchanged is not None:
        return
    engines = requested_engines(run)
    if COMPILED in engines[baseline.id] and needs_timing(run, baseline, engines):
        run.display.line("beside the finals the unchanged network is compiled by torch.compile")
        run.compiled.unchanged = baseline.id
        run.compiled.start(pool, UNCHANGED, compile_job(run, pool, baseline, engines))


def precompile(
    run: Run, pool: Executor, rows: Sequence[Candidate], wanted: dict[int, list[str]]
) -> None:
    """Make the engines of several networks at a time, the unchanged network first, and wait for
    the compilations that run already.  No training runs any more.
    """
    made, began = run.compiled, time.monotonic()
    beside = made.seconds_beside(began) / pool.compilers
    queue = [row for row in rows if row.id not in made.since]
    if pool.compilers < 2 or len(rows) < 2 or began > run.deadline - 1:
        queue.clear()
    if queue or pool.busy():
        _make(run, pool, sorted(queue, key=lambda row: row.kind != "baseline"), wanted)
    total = sum(sum(seconds.values()) for seconds in made.seconds.values())
    made.share = (beside + time.monotonic() - began) / total if total else 1.0


def _make(run: Run, pool: Executor, queue: list[Candidate], wanted: dict[int, list[str]]) -> None:
    """Compile until only the time for the rounds of timing is left, at least half of the rest.

    Engines that are missing then are made when they are timed.  torch.compile is stopped at that
    moment; native code gets half of the remaining time more, because stopping its child would
    lose every engine that the child has made.
    """
    made, began, end = run.compiled, time.monotonic(), run.deadline - 1
    count = len(queue) + len(pool.busy())
    until = max(began + (end - began) / 2, end - run.rounds_seconds(count))
    networks = "1 network" if count == 1 else f"{count} networks, {pool.compilers} at a time"
    run.display.phase(f"compiling {networks}", count)
    while queue or pool.busy():
        while queue and pool.has_room():
            row = queue.pop(0)
            made.start(pool, row.id, compile_job(run, pool, row, wanted))
        for job, message in pool.wait(0.5):
            made.record(job, message)
        if time.monotonic() > until:
            queue.clear()
            late = time.monotonic() > (until + end) / 2
            for job in pool.busy():
                engines = wanted[made.candidate(job)]
                if late or COMPILED in engines:
                    made.stop(pool, job, engines[-1])  # torch.compile is the last one


def compile_job(run: Run, pool: Executor, row: Candidate, wanted: dict[int, list[str]]) -> Message:
    """The job that makes the engines of `row`."""
    compilers = max(1, (os.cpu_count() or 1) // pool.compilers)
    return {**timing_job(run, "compile", row), "engines": wanted[row.id], "compilers": compilers}


def timing_job(run: Run, kind: str, candidate: Candidate) -> Message:
    """On a GPU the first of the devices."""
    words = {**run.job(kind, candidate), "batch": run.options["latency_batch"]}
    if run.options["latency"] == "cuda":
        device = resolve(run.options["device"])[0]
        words |= {"device": device.name, "amp": run.options["amp"]}
    return words
