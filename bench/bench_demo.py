"""What a finished demo shows: each chosen find beside the control that decides its verdict.

    ./dev demo && ./dev bench demo [DIR] [--label CASE] [--record]

DIR is the --out folder of a search with finals (runs/demo by default); nothing is trained.
Accuracies are means over the final seeds, on test images that the search has not seen. `needed`
is the smallest difference that could have been shown. `times unchanged` is the speed-up over the
unchanged network, both as native code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness

from canvas.errors import CanvasError
from canvas.reporting.front import accuracy, chosen_finds, title
from canvas.reporting.verdict import (
    Evidence,
    common_seeds,
    compare_finals,
    decisive,
    rivals,
)
from canvas.study import Candidate, Study

Values = dict[str, tuple[Any, str]]


def values(find: Candidate, rows: list[Candidate], evidence: Evidence) -> Values:
    fair = rivals(find, rows)
    if not fair or not all(common_seeds(find, row, evidence) for row in fair):
        return {"find": (100 * accuracy(find), "%"), "verdict": ("no finals", "")}
    shown = decisive([compare_finals(find, row, evidence) for row in fair])
    points, least = 100 * shown.mean, 100 * shown.least
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
    for find in chosen_finds(rows):
        found = values(find, rows, evidence)
        case = f"{given.label} {find.budget}".strip()
        recorder.add("demo", case, found)
        if given.json:
            print(json.dumps({"case": case} | {name: value for name, (value, _) in found.items()}))
        else:
            print(case, *(f"{name} {value}" for name, (value, _) in found.items()), sep="  ")


if __name__ == "__main__":
    harness.run(main)
