"""Fits of a trained network: what each kind of choice reaches, beside its teacher.

    ./dev bench fit [--data NAME] [--images N] [--model NAME] [--width N] [--budget B ...]
                    [--draws N] [--seeds S,S] [--time T] [--teacher-epochs E] [--teacher FILE]
                    [--out DIR] [--json] [--record]

The teacher's weights are read from FILE; `./dev bench teacher` describes how they are made for E
epochs if FILE is missing. Each seed is a fit of its own, in a folder of DIR if one is given, where
the same command goes on. A row is a budget and a kind of network; accuracy is that of the test
images, `points` is the difference to the teacher, `speed-up` is that of the native code of the
whole network over that of the teacher.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import bench_teacher
import harness
import torch

import canvas
from canvas.data import Data
from canvas.data.batches import drawn
from canvas.fitting.fit import TEACHER, TUNED_TEACHER, Candidate, Fit
from canvas.nn.network import Recipe, build_network


def trained(data: Data, model: str, width: int, epochs: int, file: Path) -> torch.nn.Module:
    """The teacher, from its file if it is there."""
    if not file.exists():
        bench_teacher.trained(data, model, width, epochs, file)
    network = build_network(Recipe(model, width, data.shape, data.classes, "all", 0))
    return canvas.load_weights(network, file)


def fewer(data: Data, count: int) -> Data:
    """The same data with training images drawn by chance alone."""
    images, labels = data.train
    at = drawn(len(labels), count)
    return replace(
        data,
        train=(images[at], labels[at]),
        description=f"{data.description}; {count} training images drawn from them",
        checksum="",
    )


def best_of_kind(found: Fit) -> dict[tuple[str, str], Candidate]:
    """(budget, kind) -> the network that has finals."""
    return {(one.budget, one.kind): one for one in found.candidates if one.tests}


def summary(fits: list[Fit], key: tuple[str, str]) -> dict[str, Any]:
    """Means and standard deviations over the seeds that have this budget and kind; None where a
    time limit ended the fits before.
    """
    pairs = [
        (best_of_kind(found)[key], found.teacher) for found in fits if key in best_of_kind(found)
    ]
    tests = [100 * one.test for one, _ in pairs if one.test is not None]
    points = [
        round(100 * (one.test - teacher.test), 6) for one, teacher in pairs if one.test is not None
    ]
    speeds = [one.speedup for one, _ in pairs if one.speedup is not None]
    return {
        "budget": key[0] or "-",
        "kind": key[1],
        "seeds": len(pairs),
        "test": statistics.mean(tests) if tests else None,
        "spread": statistics.stdev(tests) if len(tests) > 1 else None,
        "points": statistics.mean(points) if points else None,
        "macs": statistics.mean(one.macs / teacher.macs for one, teacher in pairs),
        "speedup": statistics.mean(speeds) if speeds else None,
    }


def line(row: dict[str, Any]) -> str:
    speed = "" if row["speedup"] is None else f"{row['speedup']:.2f}x"
    test = "not tested"
    if row["test"] is not None:
        spread = "" if row["spread"] is None else f" +- {row['spread']:.2f}"
        test = f"{row['test']:6.2f}{spread} % {row['points']:+6.2f} points"
    return (
        f"{row['budget']:14} {row['kind']:15} {test}  {row['macs']:.2f}x MACs  {speed:6} "
        f"({row['seeds']} seeds)"
    )


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--data", default="digits-scattered", metavar="NAME")
    parser.add_argument("--images", type=int, default=None, metavar="N")
    parser.add_argument("--model", default="resnet8", metavar="NAME")
    parser.add_argument("--width", type=int, default=16, metavar="N")
    parser.add_argument("--budget", action="append", metavar="B")
    parser.add_argument("--draws", type=int, default=200, metavar="N")
    parser.add_argument("--seeds", default="1", metavar="S,S")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--longer", type=int, default=6)
    parser.add_argument("--final-seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--time", default=None, metavar="T", help="limit for each fit")
    parser.add_argument("--teacher-epochs", type=int, default=16, metavar="E")
    parser.add_argument("--teacher", default=None, metavar="FILE")
    parser.add_argument("--out", default=None, metavar="DIR", help="keeps studies, and goes on")
    given = parser.parse_args()
    recorder = harness.Recorder("fit", given.record)
    torch.set_num_threads(1)
    data = canvas.load_data(given.data)
    network = (given.model, given.width, given.teacher_epochs)
    file = Path(given.teacher or bench_teacher.place(data, *network))
    teacher = trained(data, *network, file)
    if given.images is not None:
        data = fewer(data, given.images)
    fits: list[Fit] = []
    for seed in map(int, given.seeds.split(",")):
        start = time.monotonic()
        fits.append(
            canvas.fit(
                teacher, data, budget=given.budget or ["latency=0.6x", "macs=0.3x"],
                draws=given.draws, epochs=given.epochs, longer=given.longer,
                time_limit=given.time, seed=seed, final_seeds=given.final_seeds,
                out=None if given.out is None else Path(given.out) / f"seed-{seed}",
                workers=given.workers, say=lambda text: None,
            )
        )  # fmt: skip
        used = time.monotonic() - start
        print(f"seed {seed}: {used:.0f} s\n{fits[-1].report.conclusion}", flush=True)
    task = bench_teacher.short_name(data)
    keys = dict.fromkeys(key for found in fits for key in best_of_kind(found))
    first = [key for key in (("", TEACHER), ("", TUNED_TEACHER)) if key in keys]
    for key in dict.fromkeys([*first, *keys]):
        row = summary(fits, key)
        print(json.dumps(row) if given.json else line(row), flush=True)
        columns = {
            "test": "%",
            "points": "points",
            "macs": "times",
            "speedup": "times",
            "seeds": "",
        }
        values = {name: (row[name], unit) for name, unit in columns.items()}
        case = f"{task} {row['budget']} {row['kind']}, {given.draws} draws"
        spreads = {} if row["spread"] is None else {"test": row["spread"]}
        recorder.add("fit", case, values, spreads)


if __name__ == "__main__":
    harness.run(main)
