"""Which candidates are worth a training, judged by what networks tell before it.

Limits are learnt in each search from candidates that were measured *and* trained: its controls and
its first finds.  None is a number from another task.

    good    the better half of them, by accuracy
    limit   the worst signal of the good, and as far again as that lies from their median

A limit so rejects none of the better half of what was trained.  What it does to others needs no
distribution: of n good candidates and one more that is drawn like them, each is the worst with
the same chance, so that a good one lies beyond the worst of the n in 1 of n + 1 cases; the margin
makes that rarer (by half or more for normal, exponential and uniform signals: the tests measure
it).  With fewer than MINIMUM good ones there is no limit, and everything passes.

Pure functions of what they are given: the caller decides which results count for which candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

MINIMUM = 5  # good candidates with a signal, below which it is not judged: at most 1 in 6 is lost


@dataclass(frozen=True)
class Trained:
    """What a candidate told before its training (None: nothing) and what it reached."""

    spread: float | None
    naswot: float | None
    accuracy: float


@dataclass(frozen=True)
class Limits:
    """The largest spread and the smallest NASWOT that pass; None: any."""

    spread: float | None = None
    naswot: float | None = None


def calibrate(trained: Sequence[Trained]) -> Limits:
    """The limits that these candidates teach, whatever their order."""
    if not trained:
        return Limits()
    middle = median(one.accuracy for one in trained)
    good = [one for one in trained if one.accuracy >= middle]
    spread = _limit([one.spread for one in good if one.spread is not None])
    naswot = _limit([-one.naswot for one in good if one.naswot is not None])
    return Limits(spread, None if naswot is None else -naswot)


def _limit(good: Sequence[float]) -> float | None:
    """The largest value that passes, by those of good candidates."""
    if len(good) < MINIMUM:
        return None
    worst = max(good)
    return worst + (worst - median(good))


def judge(
    spread: float | None,
    naswot: float | None,
    fingerprint: str | None,
    broken: str,
    limits: Limits,
    known: Mapping[str, str],
) -> tuple[bool, str]:
    """(whether a candidate shall be trained, why not in a few words).

    `known`: the names of candidates by their fingerprints.
    """
    if broken:
        return False, broken
    if fingerprint is not None and fingerprint in known:
        return False, f"the same function as {known[fingerprint]}"
    if spread is not None and limits.spread is not None and spread > limits.spread:
        return False, f"gradient spread {spread:.2f} over {limits.spread:.2f}"
    if naswot is not None and limits.naswot is not None and naswot < limits.naswot:
        return False, f"NASWOT {naswot:.1f} below {limits.naswot:.1f}"
    return True, ""
