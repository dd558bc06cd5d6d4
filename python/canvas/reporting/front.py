"""Which rows of a search stand out: the front, the chosen find of each budget, the row to take.

The front is over everything that was trained to the end, controls and the unchanged network
included, on the validation split: a find that a control dominates is not on it.  The chosen find
of a budget is what a claim is about; it is the best by the search's own validation trainings, and
nothing here that chooses it reads a final.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ..study import Candidate

OBJECTIVES = "latency,macs"


def find_order(row: Candidate) -> tuple[float, float, int, int]:
    """The most accurate find first, those that were trained from two seeds before the others; of
    equals the one with fewer MACs, then the older.
    """
    return (-row.val_seeds, -row.merit, row.macs or 0, row.id)


def chosen_finds(rows: Iterable[Candidate]) -> list[Candidate]:
    """The find of each budget that the validation trainings put first, the largest first."""
    done = [row for row in rows if row.kind == "find" and row.status == "done"]
    best: dict[str, Candidate] = {}
    for row in sorted(done, key=find_order):
        best.setdefault(row.budget, row)
    return sorted(best.values(), key=lambda row: -(row.macs or 0))


def front(rows: Sequence[Candidate], objectives: str = OBJECTIVES) -> list[Candidate]:
    """The finished rows that no other dominates in accuracy and `objectives` (latency, macs,
    params).
    """
    done = [row for row in rows if row.status == "done" and row.merit > -math.inf]
    return [row for row in done if not any(dominates(other, row, objectives) for other in done)]


def dominates(a: Candidate, b: Candidate, objectives: str = OBJECTIVES) -> bool:
    """Whether `a` is nowhere worse than `b` and somewhere better; a latency not taken counts as
    endless.
    """
    ours, theirs = costs(a, objectives), costs(b, objectives)
    return ours != theirs and all(x <= y for x, y in zip(ours, theirs))


def costs(row: Candidate, objectives: str) -> list[float]:
    """What is minimised.  Latency is compared as ratio to the unchanged network timed beside
    it.
    """
    by_name = {
        "latency": math.inf if not row.speedup else 1 / row.speedup,
        "macs": float(row.macs or 0),
        "params": float(row.params or 0),
    }
    return [-row.merit, *(by_name[name] for name in objectives.split(","))]


# ---- the row to take --------------------------------------------------------------------------


def accuracy(row: Candidate) -> float:
    """What a row is judged by: its mean on the test split if it was a finalist, else validation;
    for an accuracy 0..1.
    """
    return row.test_mean if row.test_mean is not None else row.val_accuracy or 0.0


def merit(row: Candidate) -> float:
    """The same as a number that is larger for better rows."""
    return row.metric.merit(accuracy(row))


def gain(row: Candidate, other: Candidate) -> float:
    """By how much a row is better than another one, in the unit of the metric."""
    return row.metric.gain(accuracy(row), accuracy(other))


def judged(rows: Iterable[Candidate]) -> list[Candidate]:
    """The finished rows that can be compared with each other: the finalists and controls where
    there are finals, else all.
    """
    done = [row for row in rows if row.status == "done" and row.val_accuracy is not None]
    return [row for row in done if row.tests] or done


def pick(rows: Sequence[Candidate], rule: str) -> Candidate | None:
    """The row to take by `rule`, such as `fastest within 1.0`: of all rows, controls and the
    unchanged network included, whose accuracy is at most so many points below the unchanged
    network's, in the unit and direction of another metric.  None while the unchanged network is
    not trained, or of a task without metric.
    """
    word, _, points = rule.partition(" within ")
    fair = judged(rows)
    baseline = next((row for row in fair if row.kind == "baseline"), None)
    if baseline is None:
        return None
    enough = [row for row in fair if not points or gain(row, baseline) >= -float(points) - 1e-7]
    timed = any_timed(rows)
    cheap: dict[str, Callable[[Candidate], float]] = {
        "fastest": lambda row: -(row.speedup or 0.0) if timed else row.macs or 0,
        "fewest-macs": lambda row: row.macs or 0,
        "fewest-params": lambda row: row.params or 0,
        "most-accurate": lambda row: -merit(row),
    }
    return min(enough, key=lambda row: (cheap[word](row), -merit(row), row.id))


def pick_line(rule: str, rows: Sequence[Candidate], picked: Candidate | None) -> str:
    """The rule, and the row that it chose, with its speed-up as the table has it."""
    word, _, points = rule.partition(" within ")
    split = "test" if any(row.tests for row in rows) else "validation"
    unit = next((row.metric.unit for row in rows), "points")
    limit = f" within {f'{points} {unit}'.rstrip()} of the unchanged network on the {split} split"
    limit = limit if points else ""
    if picked is None and any(row.status == "done" and row.val_accuracy is None for row in rows):
        return f"* {word}{limit}: no row, this task has no metric."
    if picked is None:
        return f"* {word}{limit}: no row, the unchanged network was not trained."
    if word == "fastest" and not any_timed(rows):
        by = "" if picked.kind == "baseline" else ", so by MACs"
        return f"* {word}{limit}: {title(picked)} (no other row was timed{by})."
    if picked.kind == "baseline":
        return f"* {word}{limit}: {picked.name} (nothing beats it)."
    return f"* {word}{limit}: {title(picked)}{engines(picked, rows)}."


def any_timed(rows: Iterable[Candidate]) -> bool:
    """Whether a row but the unchanged network's has a speed-up."""
    return any(row.speedup is not None for row in rows if row.kind != "baseline")


def engines(row: Candidate, rows: Iterable[Candidate]) -> str:
    """The speed-up of a row and both of its engines, in brackets; "" where it was not timed."""
    baseline = next((other.engine for other in rows if other.kind == "baseline"), "")
    if row.speedup is None:
        return ""
    return f" ({speed(row)}, {row.engine} against the unchanged network {baseline})"


def speed(row: Candidate) -> str:
    """A speed-up with its interquartile range."""
    if row.speedup is None:
        return "-"
    spread = "" if row.speedup_spread is None else f" +- {row.speedup_spread:.2f}"
    return f"{row.speedup:.2f}x" + ("" if row.kind == "baseline" else spread)


def title(row: Candidate) -> str:
    """What a sentence calls a row."""
    return f"find {row.name}" if row.kind == "find" else row.name
