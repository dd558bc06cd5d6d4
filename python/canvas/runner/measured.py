"""Decides whether a find is trained, from signals measured before training (event `signals`).

    rejected: what cannot be trained, computes what another does, or lies beyond the limits that
    the controls and the first finds have taught (pretests.py)

The first FREE finds teach; later ones were chosen by results and would teach narrower limits.  The
verdict on item i depends on what came of items up to i - L and of the controls alone.
"""

from __future__ import annotations

from typing import Any

from ..study import Candidate
from .pretests import Trained, calibrate, judge
from .search_run import Run
from .strategy import first_epochs

FREE = 12  # finds that limits are learnt from


def verdict(run: Run, candidate: Candidate, told: dict[str, Any]) -> tuple[bool, str]:
    """(whether a candidate that told this shall be trained, why not)."""
    if candidate.kind != "find":
        return True, ""
    items = {item.candidate: item for item in reversed(run.study.items())}  # its first each
    last = items[candidate.id].number - run.options["lag"]
    first = min(items)  # controls that finals have added later do not count
    known: dict[str, str] = {}
    trained: list[Trained] = []
    for row in run.study.measurements():
        item = items.get(row["candidate"])
        if item is None:
            if row["candidate"] > first:
                continue
            accuracy = control_accuracy(run, row["candidate"])
        elif item.number <= last:
            accuracy = item.accuracy if row["number"] < FREE else None
        else:
            continue
        if row["fingerprint"] is not None:
            known.setdefault(row["fingerprint"], row["name"])
        if accuracy is not None:
            trained.append(Trained(row["spread"], row["naswot"], accuracy))
    return judge(
        told["spread"],
        told["naswot"],
        told["fingerprint"],
        told["broken"],
        calibrate(trained),
        known,
    )


def control_accuracy(run: Run, id: int) -> float | None:
    """That of the baseline or a control after as many epochs as a find's first rung has."""
    options = run.options
    rungs = options["prune"] == "rungs"
    epochs = first_epochs(options["epochs"], options["grace"]) if rungs else options["epochs"]
    curve = run.study.curve(id)
    return curve[epochs - 1] if len(curve) >= epochs else None
