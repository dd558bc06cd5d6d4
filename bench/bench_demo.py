"""What a finished demo shows: the network of each budget, or each find beside its control.

    ./dev demo && ./dev bench demo [DIR] [--label CASE] [--record]

DIR is the --out folder of a fit, or of a search, with finals (runs/demo by default); nothing is
trained. Accuracies are means over the final seeds, on test images by which nothing was chosen. The
control of a find is the one that decides its verdict. `needed` is the smallest difference that
could have been shown. `times unchanged` is the speed-up over the unchanged network, both as native
code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness

from canvas.errors import CanvasError
from canvas.reporting import fit_text
from canvas.reporting.front import accuracy, chosen_finds, title
from canvas.reporting.verdict import (
    Evidence,
    common_seeds,
    compare_finals,
    decisive,
    rivals,
)
from canvas.stored_options import FIT, command_of
from canvas.study import Candidate, Study

Values = dict[str, tuple[Any, str]]


def values(find: Candidate, rows: list[Candidate], evidence: Evidence) -> Values:
    fair = rivals(find, rows)
    if not fair or not all(common_seeds(find, row, evidence) for row in fair):
        return {"find": (100 * accuracy(find), "%"), "verdict": ("no finals", "")}
    shown = decisive([compare_finals(find, row, evidence) for row in fair])
    points, least = shown.mean, shown.least
    verdict = "wins" if points > least else "loses" if points < -least else "no difference shown"
    return {
        "find": (100 * accuracy(find), "%"),
        "best control": (f"{100 * accuracy(shown.control):.1f} {title(shown.control)}", ""),
        "difference": (points, "points"),
        "needed": (least, "points"),
        "verdict": (verdict, ""),
        "seeds": (shown.seeds, ""),
        "times unchanged": (find.speedup, "times"),
    }


def values_of_fit(budget: str, rows: list[Candidate], evidence: Evidence) -> Values:
    """The network of a budget beside its teacher, and what the parts of the method add."""
    best, teacher = fit_text.best_of(rows, budget), fit_text.best_of(rows, "", fit_text.TEACHER)
    if best is None or teacher is None or not best.tests:
        return {"verdict": ("no finals", "")}
    found: Values = {
        "network": (title(best).removesuffix(f" at {budget}"), ""),
        "test": (100 * accuracy(best), "%"),
        "teacher": (100 * accuracy(teacher), "%"),
        "times unchanged": (best.speedup, "times"),
        "macs": ((best.macs or 0) / (teacher.macs or 1), "times"),
        "seeds": (len(best.tests), ""),
    }
    for part, (ours, theirs) in fit_text.pairs_of(rows, budget).items():
        if common_seeds(ours, theirs, evidence):
            compared = compare_finals(ours, theirs, evidence)
            verdict, points = fit_text.verdict_of(compared), compared.mean
            found[part] = (f"{points:+.2f} ({compared.least:.2f} needed): {verdict}", "")
    return found


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("folder", nargs="?", default="runs/demo", metavar="DIR")
    parser.add_argument("--label", default="", help="words before the budget in a case's name")
    given = parser.parse_args()
    recorder = harness.Recorder("demo", given.record)
    try:
        study = Study.read(Path(given.folder))
        rows, evidence = study.candidates(), Evidence.of(study)
    except CanvasError as error:
        raise harness.BadResults(str(error)) from error
    table, cases = (
        "demo",
        [(find.budget, values(find, rows, evidence)) for find in chosen_finds(rows)],
    )
    if command_of(study.options()) == FIT:
        table = "demo of a fit"
        cases = [(b, values_of_fit(b, rows, evidence)) for b in study.options()["budget"]]
    for budget, found in cases:
        case = f"{given.label} {budget}".strip()
        recorder.add(table, case, found)
        if given.json:
            print(json.dumps({"case": case} | {name: value for name, (value, _) in found.items()}))
        else:
            print(case, *(f"{name} {value}" for name, (value, _) in found.items()), sep="  ")


if __name__ == "__main__":
    harness.run(main)
