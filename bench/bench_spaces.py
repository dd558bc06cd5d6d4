"""Which kernels a fit should draw: pairs of a space and a distribution, treated alike.

    ./dev bench spaces [--data NAME] [--model NAME] [--width N] [--budget B ...] [--pairs S:D,..]
                       [--seeds S,S] [--time T] [--draws N] [--workers N] [--teacher-epochs E]
                       [--teacher FILE] [--out DIR] [--json] [--record]

Every pair has one fit per seed, all with the same time limit; seeds take turns, so that a machine
that gets slower is slower for all. Each fit has a folder of DIR, and beside it a file with what
it came to, from where the same command goes on. A row of `spaces` is a pair: how many kernels
were screened, the processor seconds that this took, how many of them were good (an error below
the limit of the menu) in 1,000 of these seconds, and the least error; the same of the kernels
before the first children (drawn), and the share of good ones later. A row of `fits` is a pair
and a budget: test accuracy of the mix of searched and known operators, of known operators alone,
and the difference in the same fit. Means over seeds, with standard deviations.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import bench_teacher
import harness
import torch
from bench_fit import best_of_kind, trained

import canvas
from canvas.fitting.candidates import CONTROLS, MIX
from canvas.fitting.fit import Fit
from canvas.fitting.screen import DRAWN, GENERATION, GOOD
from canvas.study import ScreenedKernel, Study

PAIRS = "paper:paper,paper:rules,published:learned,wide:learned"


def screening(folder: Path) -> dict[str, float]:
    """What the screening of a fit came to."""
    rows = Study.read(folder).screened()
    seconds = sum(row.seconds or 0 for row in rows)
    drawn, later = rows[: DRAWN * GENERATION], rows[DRAWN * GENERATION :]
    return {
        "screened": len(rows),
        "seconds": seconds,
        "good": 1000 * share_of_good(rows) * len(rows) / seconds if seconds else 0.0,
        "least": least(rows),
        "drawn good": 100 * share_of_good(drawn),
        "drawn least": least(drawn),
        "later good": 100 * share_of_good(later),
    }


def share_of_good(rows: list[ScreenedKernel]) -> float:
    return sum(row.error <= GOOD for row in rows) / max(1, len(rows))


def least(rows: list[ScreenedKernel]) -> float:
    return min((row.error for row in rows), default=1.0)


def points(found: Fit, budget: str) -> dict[str, float]:
    """Test accuracies in percent by kind of network, those that the time allowed."""
    kinds = best_of_kind(found)
    by_kind = ((kind, kinds.get((budget, kind))) for kind in (MIX, CONTROLS))
    tests = {kind: 100 * row.test for kind, row in by_kind if row and row.test is not None}
    if MIX in tests and CONTROLS in tests:
        tests["difference"] = tests[MIX] - tests[CONTROLS]
    return tests


def mean(rows: list[dict[str, float]], name: str) -> tuple[float | None, float | None]:
    """Of the rows that have it: mean and standard deviation."""
    values = [row[name] for row in rows if name in row]
    spread = statistics.stdev(values) if len(values) > 1 else None
    return (statistics.mean(values) if values else None), spread


def show(recorder: harness.Recorder, table: str, case: str, rows: list[dict[str, float]],
         units: dict[str, str], as_json: bool) -> None:  # fmt: skip
    found = {name: mean(rows, name) for name in units}
    values: dict[str, tuple[Any, str]] = {
        name: (value, units[name]) for name, (value, _) in found.items()
    }
    spreads = {name: spread for name, (_, spread) in found.items() if spread is not None}
    if rows:  # else no fit had the time for one
        recorder.add(table, case, {**values, "seeds": (len(rows), "")}, spreads)
    if as_json:
        print(json.dumps({"case": case, **{name: value for name, (value, _) in found.items()}}))
        return
    shown = (
        f"{name} {'-' if value is None else f'{value:.4g}'}"
        + ("" if spread is None else f" +- {spread:.2g}")
        for name, (value, spread) in found.items()
    )
    print(f"{case:34} {'  '.join(shown)}  ({len(rows)} seeds)", flush=True)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--data", default="digits-scattered", metavar="NAME")
    parser.add_argument("--model", default="resnet8", metavar="NAME")
    parser.add_argument("--width", type=int, default=16, metavar="N")
    parser.add_argument("--budget", action="append", metavar="B")
    parser.add_argument("--pairs", default=PAIRS, metavar="S:D,..")
    parser.add_argument("--seeds", default="1,2,3", metavar="S,S")
    parser.add_argument("--time", default="10m", metavar="T", help="limit for each fit")
    parser.add_argument("--draws", type=int, default=100_000, metavar="N", help="at most")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--teacher-epochs", type=int, default=16, metavar="E")
    parser.add_argument("--teacher", default=None, metavar="FILE")
    parser.add_argument("--out", default=None, metavar="DIR", help="keeps studies, and goes on")
    given = parser.parse_args()
    recorder = harness.Recorder("spaces", given.record)
    torch.set_num_threads(1)
    data = canvas.load_data(given.data)
    network = (given.model, given.width, given.teacher_epochs)
    file = Path(given.teacher or bench_teacher.place(data, *network))
    teacher = trained(data, *network, file)
    budgets = given.budget or ["latency=0.6x", "macs=0.3x"]
    folder = Path(given.out or harness.ROOT / "build" / "bench-spaces")
    rows: dict[str, list[dict[str, dict[str, float]]]] = {p: [] for p in given.pairs.split(",")}
    for seed in map(int, given.seeds.split(",")):
        for pair, done in rows.items():
            space, distribution = pair.split(":")
            out = folder / f"{space}-{distribution}-{seed}"
            kept = out.with_suffix(".json")
            if not kept.exists():
                found = canvas.fit(
                    teacher, data, budget=budgets, draws=given.draws, space=space,
                    distribution=distribution, time_limit=given.time, seed=seed, out=out,
                    workers=given.workers, say=lambda text: None,
                )  # fmt: skip
                row = {"": screening(out), **{b: points(found, b) for b in budgets}}
                kept.write_text(json.dumps(row))
            done.append(json.loads(kept.read_text()))
            print(f"{pair}, seed {seed}: {done[-1]}", flush=True)
    task = bench_teacher.short_name(data)
    for pair, done in rows.items():
        units = {
            "screened": "", "seconds": "s", "good": "", "least": "", "drawn good": "%",
            "drawn least": "", "later good": "%",
        }  # fmt: skip
        show(recorder, "spaces", f"{task} {pair}", [row[""] for row in done], units, given.json)
    for budget in budgets:
        for pair, done in rows.items():
            units = {MIX: "%", CONTROLS: "%", "difference": "points"}
            tests = [row[budget] for row in done if row[budget]]
            show(recorder, "fits", f"{task} {budget} {pair}", tests, units, given.json)


if __name__ == "__main__":
    harness.run(main)
