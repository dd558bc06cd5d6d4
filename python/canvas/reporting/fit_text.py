"""The words and the table of a fit's report: what the start from a trained network, the choice per
layer and the searched operators each add.

The networks of a budget are a mix (drawn kernels in the menu), a choice of known operators alone,
and one known operator everywhere; each was made from the same seeds by the same procedure.  A
difference is shown or not by the statistics of claims.py, on test images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..metric import Metric
from ..study import Candidate, Study
from ..text import several
from .front import accuracy, speed, title
from .table import align, ratio_of, test_cell
from .verdict import SEEDS, Comparison, Evidence, common_seeds, compare_finals, grounds

TEACHER, TUNED, MIX, CONTROLS, SINGLE = "teacher", "tuned", "mix", "controls", "single"
ORDER = (TEACHER, TUNED, MIX, CONTROLS, SINGLE)
FIGURES = frozenset(range(2, 8))  # columns of the table with numbers


def fit_rows(rows: Sequence[Candidate]) -> list[Candidate]:
    """Teachers first; for each budget the networks with finals, then the others."""
    budgets = list(dict.fromkeys(row.budget for row in rows))

    def order(row: Candidate) -> tuple[int, bool, int, int]:
        return budgets.index(row.budget), not row.tests, ORDER.index(row.role), row.id

    return sorted((row for row in rows if row.role in ORDER), key=order)


def best_of(rows: Sequence[Candidate], budget: str, role: str = "") -> Candidate | None:
    """The network of a budget that validation puts first, of those with finals if there are
    any.
    """
    own = [row for row in rows if row.budget == budget and role in ("", row.role)]
    done = [row for row in own if row.status == "done"]
    fair = [row for row in done if row.tests] or done
    return min(fair, key=lambda row: (-row.merit, row.id), default=None)


# ---- the table ----------------------------------------------------------------------------------


def fit_table(
    rows: Sequence[Candidate],
    choices: Mapping[int, Mapping[str, str]],
    picked: Candidate | None,
    width: int | None,
) -> str:
    """The rows as text, the one to take with a star."""
    return align(fit_cells(rows, choices, picked), right=FIGURES, width=width)


def fit_cells(
    rows: Sequence[Candidate],
    choices: Mapping[int, Mapping[str, str]],
    picked: Candidate | None,
) -> list[list[str]]:
    """The head and the rows of the table as cells; FIGURES are the columns of numbers."""
    teacher = next((row for row in rows if row.role == TEACHER), None)
    metric = rows[0].metric if rows else Metric()
    head = [
        "  network", "budget", metric.name, "test", distance_of(metric), "speed-up", "MACs",
        "params", "operators",
    ]  # fmt: skip
    return [head, *(_cells(row, teacher, choices.get(row.id, {}), picked) for row in rows)]


def _cells(
    row: Candidate,
    teacher: Candidate | None,
    choice: Mapping[str, str],
    picked: Candidate | None,
) -> list[str]:
    name = ("* " if row is picked else "  ") + _short_name(row)
    if row.status != "done":
        return [name, row.budget, row.status, *[""] * 5, row.reason or summary(row, choice)]
    return [
        name,
        row.budget,
        row.metric.text(row.val_accuracy),
        test_cell(row),
        distance_cell(row),
        speed(row),
        ratio_of(row.macs, teacher.macs if teacher else None),
        ratio_of(row.params, teacher.params if teacher else None),
        summary(row, choice),
    ]


def distance_of(metric: Metric) -> str:
    """What the divergence is called: KL where the metric is an accuracy."""
    return "KL" if metric == Metric() else "divergence"


def distance_cell(row: Candidate) -> str:
    """The divergence before tuning, and after it where there is no metric."""
    if row.divergence is None:
        return "-"
    after = row.val_accuracy is None and row.tuned_divergence is not None and row.role != TEACHER
    return f"{row.divergence:.3f}" + (f" -> {row.tuned_divergence:.3f}" if after else "")


def _short_name(row: Candidate) -> str:
    """Without the budget, which has a column."""
    return title(row).removesuffix(f" at {row.budget}")


def summary(row: Candidate, choice: Mapping[str, str]) -> str:
    """What stands in the layers: `3 keep, 2 grouped@0.5, 1 k0012@0.3`."""
    if row.role == TEACHER:
        return "your network"
    if row.role == TUNED:
        return "your network, trained on for as long as the others"
    counts: dict[str, int] = {}
    for name in choice.values():
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items(), key=lambda i: -i[1]))


# ---- the words ----------------------------------------------------------------------------------


def fit_head_lines(
    study: Study, options: Mapping[str, Any], rows: Sequence[Candidate]
) -> list[str]:
    """What the figures of the table are, and where they were taken."""
    data = options["data"]
    if str(study.fact("data")).startswith("synthetic"):
        data = "synthetic images"
    metric = study.metric
    what = f"{metric.name} on {study.validation_images()} validation {_things(metric)}"
    if all(row.val_accuracy is None for row in rows):
        what = f"no accuracy, as the task '{study.task()}' has no metric"
    distance = "KL from the teacher before tuning, in nats"
    if metric != Metric():
        distance = "divergence from the teacher before tuning"
    if all(row.val_accuracy is None for row in rows):
        distance += " -> after it"
    lines = [
        f"{options['model']} on {data}, of the whole network: {what}; {distance}; speed-up of "
        f"native code for one {_things(metric)[:-1]} over that of the teacher (float32, one "
        "thread, CPU time, median +- interquartile range, "
        f"{study.machine().get('processor', 'unknown processor')}); MACs and params over those "
        "of the teacher."
    ]
    if seeds := sorted({len(row.tests) for row in rows if row.tests}):
        several_seeds = f"{seeds[0]} to {seeds[-1]} seeds"
        count = several(seeds[0], "seed") if len(seeds) == 1 else several_seeds
        lines.append(
            f"Test: the mean over {count} +- standard deviation, on "
            f"{study.fact('test_images')} {_things(metric)} by which no network was tuned or "
            "chosen; the star is set by them."
        )
    return lines


def _things(metric: Metric) -> str:
    return "images" if metric == Metric() else "examples"


def fit_counts_line(study: Study) -> str:
    screened, items = study.screened(), study.fitted_items()
    failed = sum(bool(item.reason) for item in items)
    seconds = sum(row.seconds or 0.0 for row in screened)
    fitted = sum(item.seconds or 0.0 for item in items)
    words = f"{len(screened)} kernels screened in {seconds:.0f} core-seconds, " if screened else ""
    words += f"{len(items)} fits of operators to layers in {fitted:.0f} core-seconds"
    return f"{words}{f', {failed} of them failed' if failed else ''}."


def fit_headline(rows: Sequence[Candidate]) -> str:
    """The result of each budget in one sentence."""
    teacher = next((row for row in rows if row.role == TEACHER), None)
    budgets = list(dict.fromkeys(row.budget for row in rows if row.budget))
    if teacher is None or not budgets:
        return "No result: no network was tuned."
    return "; ".join(_result(rows, b, teacher).removesuffix(".") for b in budgets) + "."


def fit_conclusion(rows: Sequence[Candidate], evidence: Evidence) -> str:
    """Sentences for each budget of a fit: the result, then what each part of the method adds."""
    teacher = next((row for row in rows if row.role == TEACHER), None)
    budgets = list(dict.fromkeys(row.budget for row in rows if row.budget))
    if teacher is None or not budgets:
        return "No result: no network was tuned."
    results = [_result(rows, budget, teacher) for budget in budgets]
    return " ".join([*results, *fit_details(rows, evidence)])


def fit_details(rows: Sequence[Candidate], evidence: Evidence) -> list[str]:
    """What each part of the method adds, a sentence each."""
    budgets = list(dict.fromkeys(row.budget for row in rows if row.budget))
    told = []
    tuned = next((row for row in rows if row.role == TUNED and row.status == "done"), None)
    if tuned is not None and tuned.val_accuracy is not None:
        told.append(
            f"The teacher itself, tuned for as long, reaches {tuned.metric.text(accuracy(tuned))}."
        )
    for budget in budgets:
        told += _parts(rows, budget, evidence)
    return told


def _result(rows: Sequence[Candidate], budget: str, teacher: Candidate) -> str:
    """What a user gets for a budget."""
    best = best_of(rows, budget)
    if best is None:
        return f"{budget}: no network was tuned."
    if best.val_accuracy is None:
        return _without_metric(best, budget)
    split = "test" if best.tests and teacher.tests else "validation"
    ours, theirs = (
        (accuracy(best), accuracy(teacher))
        if split == "test"
        else (best.val_accuracy or 0.0, teacher.val_accuracy or 0.0)
    )
    metric = best.metric
    gain = metric.gain(ours, theirs)
    where = "as accurate as the teacher" if metric == Metric() else "as good as the teacher"
    if abs(gain) > metric.equals:
        side = "above" if gain > 0 else "below"
        if metric != Metric():
            side = "better than" if gain > 0 else "worse than"
        where = f"{metric.difference(abs(gain))} {side} the teacher"
    faster = "" if best.speedup is None else f" and {best.speedup:.2f} times as fast"
    return (
        f"{budget}: {_short_name(best)} has {_called(metric, ours)} on the {split} "
        f"{_things(metric)}, {where}{faster}."
    )


def _called(metric: Metric, value: float) -> str:
    return metric.text(value) if metric == Metric() else f"{metric.name} {metric.text(value)}"


def _without_metric(best: Candidate, budget: str) -> str:
    """The network of a budget, of a task that judges by nothing but the divergence."""
    faster = "" if best.speedup is None else f", {best.speedup:.2f} times as fast as the teacher"
    after = "" if best.tuned_divergence is None else f"{best.tuned_divergence:.3g}"
    return (
        f"{budget}: {_short_name(best)} has a divergence of {after} from the teacher after "
        f"tuning{faster}; the task has no metric, so that nothing is said of its accuracy."
    )


def pairs_of(rows: Sequence[Candidate], budget: str) -> dict[str, tuple[Candidate, Candidate]]:
    """What is compared for a budget: the network with a part of the method, and that without."""
    mix, controls, single = (best_of(rows, budget, role) for role in (MIX, CONTROLS, SINGLE))
    found = {}
    if controls is not None and single is not None:
        found["a choice per layer"] = controls, single
    if mix is not None and controls is not None:
        found["searched operators"] = mix, controls
    return found


def _parts(rows: Sequence[Candidate], budget: str, evidence: Evidence) -> list[str]:
    """The choice per layer, and the searched operators, each against the procedure without."""
    told: list[str] = []
    if any(row.status == "done" and row.val_accuracy is None for row in rows):
        return told
    for part, (ours, theirs) in pairs_of(rows, budget).items():
        what = "known operators alone"
        if theirs.role == SINGLE:
            what = f"one operator everywhere ({_short_name(theirs)})"
        told.append(f"{budget}, {part}: {_difference(ours, theirs, what, evidence)}")
    return told


def _difference(ours: Candidate, theirs: Candidate, what: str, evidence: Evidence) -> str:
    seeds = len(common_seeds(ours, theirs, evidence))
    if seeds < SEEDS:
        known = "no finals" if not seeds else f"finals with {seeds} of at least {SEEDS} seeds"
        return f"no claim, {known}."
    try:
        compared = compare_finals(ours, theirs, evidence)
    except ImportError:
        return "no claim: finals are compared with numpy and scipy, not here."
    return _shown(compared, what, evidence)


def _shown(compared: Comparison, what: str, evidence: Evidence) -> str:
    metric, least = compared.control.metric, compared.least
    verdict = verdict_of(compared)
    of = grounds(compared, evidence)
    where = f"{metric.difference(compared.mean, signed=True)} against {what}"
    if verdict == NOT_SHOWN:
        endless = not math.isfinite(least) or (metric.is_share and least >= 100)
        enough = "nothing could have been shown" if endless else f"{least:.2g} needed"
    else:
        enough = f"{least:.2g} would have been enough"
    return f"{verdict}, {where}; {enough} ({of})."


NOT_SHOWN = "no difference shown"


def verdict_of(compared: Comparison) -> str:
    """better, worse, or no difference shown."""
    if compared.mean > compared.least:
        return "better"
    return "worse" if compared.mean < -compared.least else NOT_SHOWN
