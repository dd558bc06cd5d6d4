"""Several studies of one question, from several seeds or machines, as one table.

A line is a kind of network: the unchanged one, each control, the chosen find of a budget; of a fit
the networks of each budget and role.  Figures are means over the studies +- standard deviation;
differences to the unchanged network are taken within each study before they are averaged, and so
are speed-ups, so that machines need not be alike.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CanvasError
from ..metric import Metric
from ..stored_options import FIT, command_of, other_question
from ..study import Candidate, Study
from ..text import csv_cell, printable
from .fit_text import ORDER, best_of
from .front import chosen_finds, gain, speed
from .report import COLUMNS, make_report, pareto_rows
from .table import align, ratio_of, terminal_width

CHOSEN = "chosen find"


@dataclass(frozen=True)
class Member:
    """One of the studies: `name` is its folder, `lines` are its networks by what they are."""

    name: str
    seed: int
    processor: str
    baseline: Candidate
    lines: dict[tuple[str, str], Candidate]  # (network, budget) -> its row
    rows: list[dict[str, Any]]  # of its own table


@dataclass(frozen=True)
class Merged:
    metric: Metric
    members: Sequence[Member]


def merge(studies: Sequence[Study]) -> Merged:
    """Raises CanvasError where studies ask different questions, or are one study twice."""
    first = studies[0]
    created: dict[Any, Study] = {}
    for study in studies:
        _check_same(first, study)
        known = created.setdefault(study.fact("created"), study)
        if known is not study:
            raise CanvasError(
                f"'{known.folder}' and '{study.folder}' are copies of one study: give it once"
            )
    return Merged(first.metric, [_member(study) for study in studies])


def _check_same(first: Study, other: Study) -> None:
    ours, theirs = first.options(), other.options()
    difference = other_question(ours, {**theirs, "seed": ours["seed"], "data": ours["data"]})
    for name, words in (("data_checksum", "other images"), ("targets", "other layers")):
        if not difference and first.fact(name) != other.fact(name):
            difference = words
    if difference:
        raise CanvasError(
            f"'{other.folder}' asks another question than '{first.folder}': {difference}"
        )


def _member(study: Study) -> Member:
    candidates = [row for row in study.candidates() if row.status == "done"]
    baseline = next((row for row in candidates if row.kind == "baseline"), None)
    if baseline is None:
        raise CanvasError(f"the unchanged network of '{study.folder}' is not trained yet")
    options = study.options()
    lines = _of_fit(candidates) if command_of(options) == FIT else _of_search(candidates)
    return Member(
        str(study.folder),
        int(options["seed"]),
        str(study.machine().get("processor", "unknown processor")),
        baseline,
        lines,
        pareto_rows(make_report(study)),
    )


def _of_search(rows: Sequence[Candidate]) -> dict[tuple[str, str], Candidate]:
    """The unchanged network, the controls, the chosen find of each budget."""
    known = {(row.name, row.budget): row for row in rows if row.kind != "find"}
    return known | {(CHOSEN, row.budget): row for row in chosen_finds(rows)}


def _of_fit(rows: Sequence[Candidate]) -> dict[tuple[str, str], Candidate]:
    """The teachers, and the best network of each budget and role."""
    found = {}
    for budget in dict.fromkeys(row.budget for row in rows):
        for role in ORDER:
            row = best_of(rows, budget, role)
            if row is not None:
                found[role, budget] = row
    return found


# ---- as text ------------------------------------------------------------------------------------


def merged_text(merged: Merged) -> str:
    metric, members = merged.metric, merged.members
    tested = any(row.tests for one in members for row in one.lines.values())
    head = ["  network", "budget", "studies", metric.name, "test", "difference", "better",
            "speed-up", "MACs"]  # fmt: skip
    keys = dict.fromkeys(key for one in members for key in one.lines)
    body = [_cells(merged, *key) for key in keys]
    lines = [head, *body]
    if not tested:
        lines = [line[:4] + line[5:] for line in lines]
    drawn = align(lines, right=set(range(2, len(lines[0]))), width=terminal_width())
    seeds = ", ".join(f"{one.seed} ({one.name}, {one.processor})" for one in members)
    split = "the test split" if tested else "the validation split"
    below = (
        f"Means over the studies +- standard deviation. Difference: to the unchanged network of "
        f"each study, on {split}; better: in how many studies it is above that."
    )
    return "\n".join([printable(f"{len(members)} studies, seeds {seeds}."), "", drawn, "", below])


def _cells(merged: Merged, network: str, budget: str) -> list[str]:
    found = [(one, one.lines[network, budget]) for one in merged.members
             if (network, budget) in one.lines]  # fmt: skip
    metric, rows = merged.metric, [row for _, row in found]
    gains = [gain(row, one.baseline) for one, row in found if row.val_accuracy is not None]
    others = [value for (one, row), value in zip(found, gains) if row is not one.baseline]
    mean, spread = _moments([row.speedup for row in rows])
    times = (
        "-" if mean is None else f"{mean:.2f}x" + ("" if spread is None else f" +- {spread:.2f}")
    )
    macs, _ = _moments([
        row.macs / one.baseline.macs if row.macs and one.baseline.macs else None
        for one, row in found
    ])  # fmt: skip
    return [
        "  " + network,
        budget,
        str(len(found)),
        metric.text(*_moments([row.val_accuracy for row in rows])),
        metric.text(*_moments([row.test_mean for row in rows])),
        _difference(metric, others),
        f"{sum(value > 0 for value in others)} of {len(others)}" if others else "",
        times if len(found) > 1 or not rows else speed(rows[0]),
        "-" if macs is None else ratio_of(round(1000 * macs), 1000),
    ]


def _difference(metric: Metric, gains: Sequence[float]) -> str:
    mean, spread = _moments(gains)
    if mean is None:
        return ""
    form = ".2f" if metric.is_share else ".2g"
    return metric.difference(mean, signed=True) + (
        "" if spread is None else f" +- {spread:{form}}"
    )


def _moments(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and standard deviation of what is there."""
    known = [value for value in values if value is not None]
    mean = statistics.fmean(known) if known else None
    return mean, statistics.stdev(known) if len(known) > 1 else None


# ---- as rows ------------------------------------------------------------------------------------

FIRST = ("study", "seed", "processor")


def merged_rows(merged: Merged) -> list[dict[str, Any]]:
    """The rows of all tables, each with its study, seed and processor."""
    return [
        {"study": one.name, "seed": one.seed, "processor": one.processor, **row}
        for one in merged.members
        for row in one.rows
    ]


def merged_csv(merged: Merged) -> str:
    """The same as CSV; what was not taken is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, (*FIRST, *COLUMNS), lineterminator="\n")
    writer.writeheader()
    for row in merged_rows(merged):
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


CELL: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: "*" if value else "",
    float: lambda value: f"{value:.6g}",
}


def _cell(value: Any) -> Any:
    return CELL.get(type(value), csv_cell)(value)
