"""The gemm of AutoScheduler's README and the notebook's four shapes, each tuned by the methods of
both documents and by ours, with the same seconds, beside oneDNN and what the documents say."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
from native_worker import Timer, turns
from tune_cases import Case, layers

Row = dict[str, Any]

METHODS = ("searching", "q", "random", "ga", "quick")
PRINTED = {  # milliseconds on one thread of a Xeon Gold 6248, and of what
    "notebook 3x3 64@256": "240 (its best)",
}


def flops(case: Case) -> float:
    from canvas import _core

    image, weights = (row[2] for row in _core.signature(case.program())[0][:2])
    if case.name.startswith("gemm"):
        return 2.0 * image[0] * image[1] * weights[1]
    return 2.0 * math.prod(image[:3]) * math.prod(weights)


def compared(bench: Any, case: Case) -> Row:
    row: Row = {"group": "methods", "name": case.name, "batch": case.batch}
    row["gflop"] = 1e-9 * flops(case)
    arrays, program = case.arrays(), case.program()
    tensors = bench.tensors(case, arrays)
    wanted = case.torch(*tensors)
    wanted = np.ascontiguousarray((wanted.movedim(1, -1) if case.image else wanted).numpy())
    found: dict[str, Any] = {}
    row["seconds"], row["trials"] = {}, {}
    for method in METHODS:
        found[method], row["seconds"][method] = bench.search(
            program, method, seed=bench.options.seed, seconds=bench.options.seconds
        )
        row["trials"][method] = found[method].trials
    timers: dict[str, Timer] = {}
    kept = bench.add_native(program, found, case.pack(arrays), wanted, timers)
    bench.add_onednn(case, arrays, wanted, timers, row)
    times = turns(timers, bench.options.rounds)
    assert kept
    row["us"] = {name: 1e6 * statistics.median(t) for name, t in times.items()}
    return row


def table(found: list[Row]) -> str:
    """Milliseconds (GFLOP/s; trials) of each."""
    names = [*METHODS, "default", "onednn"]
    lines = [f"| case | {' | '.join(names)} | the document, ms |", "|" + "---|" * (len(names) + 2)]
    for row in found:
        if "us" not in row:
            lines.append(f"| {row['name']} | {row['error']} |" + " |" * len(names))
            continue
        cells = []
        for name in names:
            taken = row["us"].get(name)
            trials = f"; {row['trials'][name]}" if name in row["trials"] else ""
            speed = 1e6 * row["gflop"] / taken if taken else math.nan
            cells.append(f"{taken / 1e3:.1f} ({speed:.0f}{trials})" if taken else "")
        printed = PRINTED.get(row["name"], "")
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {printed} |")
    return "\n".join(lines)


def rows(bench: Any, known: list[Row]) -> Iterator[Row]:
    done = {row["name"] for row in known if row["group"] == "methods"}
    for case in layers():
        if not case.name.startswith(("gemm 1024", "notebook")) or case.name in done:
            continue
        if any(word not in case.name for word in bench.options.words):
            continue
        try:
            yield compared(bench, case)
        except Exception as error:
            yield {"group": "methods", "name": case.name, "batch": case.batch,
                   "error": f"{type(error).__name__}: {error}"}  # fmt: skip
