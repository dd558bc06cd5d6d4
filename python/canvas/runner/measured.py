"""Decides whether a find is trained, from what is measured before training (event `signals`).

    rejected: what cannot be trained, computes what another does, or cannot imitate a layer of the
    trained unchanged network (pretests.py)

The verdict on item i depends on items up to i - L and on the controls alone.
"""

from __future__ import annotations

from typing import Any

from ..study import Candidate
from .pretests import judge, limit_after
from .search_run import Run


def verdict(run: Run, candidate: Candidate, told: dict[str, Any]) -> tuple[bool, str]:
    """(whether a candidate that told this shall be trained, why not)."""
    if candidate.kind != "find":
        return True, ""
    items = {item.candidate: item for item in reversed(run.study.items())}  # its first each
    last = items[candidate.id].number - run.options["lag"]
    first = min(items)  # controls that finals have added later do not count
    known: dict[str, str] = {}
    errors: list[float] = []  # of earlier finds of this budget
    for row in run.study.measurements():
        item = items.get(row["candidate"])
        earlier = row["candidate"] < first if item is None else item.number <= last
        if earlier and row["fingerprint"] is not None:
            known.setdefault(row["fingerprint"], row["name"])
        if item is not None and earlier and row["budget"] == candidate.budget:
            errors += [row["error"]] if row["error"] is not None else []
    limit = limit_after(errors)
    return judge(told["error"], told["fingerprint"], told["broken"], limit, known)
