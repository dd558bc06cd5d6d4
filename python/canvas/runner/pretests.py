"""Which finds are worth a training, judged by what is measured before it.

    broken        it cannot be trained
    known         the same function as a candidate that is there
    error         of its fit to one layer of the trained unchanged network (workers/layer_test.py)

A pure function of what it is given: the caller decides which candidates count for which find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

# The largest error that passes.  Of 24 draws on digits-scattered, macs=0.5x, it rejects three
# quarters of the worse half and none of the best quarter (docs/reports/pretests.md).
LIMIT = 0.6
MINIMUM = 8  # finds with an error, before which LIMIT alone counts


def judge(
    error: float | None,
    fingerprint: str | None,
    broken: str,
    limit: float,
    known: Mapping[str, str],
) -> tuple[bool, str]:
    """(whether a find shall be trained, why not in a few words).

    `error`: None where it was not measured; `known`: the names of candidates by fingerprints.
    """
    if broken:
        return False, broken
    if fingerprint is not None and fingerprint in known:
        return False, f"the same function as {known[fingerprint]}"
    if error is not None and error > limit:
        return False, f"error {error:.2f} at a layer of the unchanged network, over {limit:.2f}"
    return True, ""


def limit_after(errors: Sequence[float]) -> float:
    """The largest error that passes after finds with these: LIMIT, or their median where that is
    larger, as under a small budget.
    """
    return max(LIMIT, median(errors)) if len(errors) >= MINIMUM else LIMIT
