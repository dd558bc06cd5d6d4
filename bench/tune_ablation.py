"""`quick` of the layers at batch 1 without one of its parts: what each is worth."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
from native_worker import Timer, ratio, turns
from tune_cases import Case, layers

Row = dict[str, Any]

SHORTLIST = 24  # trials that quick begins with
PARTS: dict[str, dict[str, Any]] = {
    "quick": {"method": "quick"},
    "no descent": {"method": "quick", "trials": SHORTLIST},
    "no model": {"method": "random"},  # as many trials as quick took
    "no trials": {"method": "oneshot"},
}


def ablated(bench: Any, case: Case) -> Row:
    row: Row = {"group": "ablation", "name": case.name, "batch": case.batch}
    row["seconds"], row["trials"] = {}, {}
    arrays, program = case.arrays(), case.program()
    tensors = bench.tensors(case, arrays)
    wanted = case.torch(*tensors)
    wanted = np.ascontiguousarray((wanted.movedim(1, -1) if case.image else wanted).numpy())
    tuned: dict[str, Any] = {}
    for name, how in PARTS.items():
        more = {"trials": tuned["quick"].trials} if name == "no model" else {}
        tuned[name], row["seconds"][name] = bench.search(
            program, seed=bench.options.seed, **how, **more
        )
        row["trials"][name] = tuned[name].trials
    timers: dict[str, Timer] = {}
    kept = bench.add_native(program, tuned, case.pack(arrays), wanted, timers)
    times = turns(timers, bench.options.rounds)
    assert kept
    row["parts"] = {name: ratio(times, name, ["quick"]) for name in times}
    quick = tuned["quick"]
    row["parts"]["no finals"] = quick.after / quick.first if quick.first else None
    return row


def table(found: list[Row]) -> str:
    """Speeds as parts of quick's; trials and CPU seconds of the searches, as PARTS has them."""
    names = [*PARTS, "no finals", "default"]
    lines = [
        f"| case | {' | '.join(names)} | trials | CPU s |",
        "|" + "---|" * (len(names) + 3),
    ]
    for row in found:
        if "parts" not in row:
            lines.append(f"| {row['name']} | {row['error']} |" + " |" * (len(names) + 1))
            continue
        cells = [f"{row['parts'].get(n) or math.nan:.2f}" for n in names]
        seconds = ", ".join(f"{s:.1f}" for s in row["seconds"].values())
        trials = ", ".join(str(count) for count in row["trials"].values())
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {trials} | {seconds} |")
    parts = [row["parts"] for row in found if "parts" in row]
    means = [_geometric([p[n] for p in parts if p.get(n)]) for n in names]
    return "\n".join([*lines, f"| mean | {' | '.join(f'{m:.3f}' for m in means)} | | |"])


def rows(bench: Any, known: list[Row]) -> Iterator[Row]:
    done = {row["name"] for row in known if row["group"] == "ablation"}
    for case in layers():
        text = f"{case.name} b{case.batch}"
        if case.batch > 1 or case.name in done:
            continue
        if any(word not in text for word in bench.options.words):
            continue
        try:
            yield ablated(bench, case)
        except Exception as error:
            yield {"group": "ablation", "name": case.name, "batch": 1, "error": str(error)}


def _geometric(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan
