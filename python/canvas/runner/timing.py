"""Latency of what was trained to the end, one network at a time while nothing of ours trains.

The unchanged network and the finalists are timed eagerly and under torch.compile, the others
eagerly; every speed-up is against the unchanged network's faster engine.
"""

from __future__ import annotations

import time

from ..nn.latency import COMPILED, EAGER
from ..reporting.report import find_order
from ..study import Candidate, Timing
from ..workers.pool import Message, Pool
from .finals import finalists
from .search_run import Run

LATENCY_LIMIT = 900.0  # seconds; torch.compile of a large network takes minutes


def time_networks(run: Run, pool: Pool) -> None:
    """Time what has no latency yet, or lacks one of its engines; the pool has one child.

    Baseline and controls come first, then the finds by falling accuracy.
    """
    twice = engines_wanted(run)
    rows = [
        row
        for row in run.study.select(status="done")
        if not set(twice.get(row.id, [EAGER])) <= {t.engine for t in run.study.timings(row.id)}
    ]
    rows.sort(key=lambda row: (row.kind == "find", find_order(row)))
    if rows:
        run.display.phase(f"timing {len(rows)} networks, one at a time", len(rows))
    for row in rows:
        if time.monotonic() > run.deadline - 1:
            run.time_is_up("all networks were timed")
            break
        time_one(run, pool, row, twice.get(row.id, [EAGER]))


def engines_wanted(run: Run) -> dict[int, list[str]]:
    """The candidates that are timed compiled, too."""
    if run.options["compile"] == "no":
        return {}
    rows = finalists(run.study.candidates(), run.options["finalists"])
    return {
        row.id: [EAGER, COMPILED]
        for row in rows
        if row.kind == "baseline" or run.options["finalists"]
    }


def time_one(run: Run, pool: Pool, candidate: Candidate, engines: list[str]) -> None:
    words = {
        **run.job("latency", candidate),
        "batch": run.options["latency_batch"],
        "compile": run.options["compile"] == "yes",
        "engines": engines,
    }
    run.study.timing_started(candidate.id)
    pool.start(candidate.id, words, LATENCY_LIMIT)
    while pool.busy():
        for _, message in pool.wait(0.5):
            record(run, candidate, engines, message)
        if pool.busy() and time.monotonic() > run.deadline - 1:
            pool.stop(candidate.id)
            run.study.timing_stopped(candidate.id)


def record(run: Run, candidate: Candidate, engines: list[str], message: Message) -> None:
    """What the child answered, as rows of the study."""
    batch = run.options["latency_batch"]
    if message["event"] == "done":
        rows = [
            Timing(engine, t["ms"], t["spread_ms"], t["speedup"], t["against"], batch, "")
            for engine, t in message["timed"].items()
        ]
        for engine, reason in message["missing"].items():
            rows.append(Timing(engine, None, None, None, "", batch, reason))
            run.display.line(f"{candidate.name} could not be timed {engine}: {reason}")
        run.study.latency(candidate.id, rows)
        run.display.timed(run.study.candidate(candidate.id))
        return
    reason = f"{message['kind']}: {message['reason']}"
    missing = [Timing(engine, None, None, None, "", batch, reason) for engine in engines]
    run.study.latency_failed(candidate.id, missing, reason)
    run.display.timed(run.study.candidate(candidate.id))
    run.display.line(f"{candidate.name} could not be timed: {reason}")
