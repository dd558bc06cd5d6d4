"""What each part of a search is worth: the search without it, at equal processor time.

    ./dev bench search [--seeds 5] [--cpu 150] [--arms all,norms,...] [--out runs/bench-search]
                       [--epochs 4] [--verify 2] [--table]

`all` is the search with its defaults; each other arm removes one part (norms, rules of drawing,
pre-tests, rungs, evolution), `none` all of them. A run is one search of the demo's task (resnet8
width 16 on digits-scattered, macs=0.3x) with its own seed, in a process of its own. A callback
ends it once that process and its children have used --cpu seconds of processor time after the
unchanged network and the controls, which all arms train; a training that runs then is finished.
The result of a run is the find that it chooses by validation, trained again from --verify fresh
seeds: the mean of those validation accuracies. Beside it: the processor seconds until a find
reached 95 % on validation twice, the trainings that tried it counted. The test split is not
used.

Each finished run is a line of OUT/runs.jsonl; what is there is not run again.
"""

from __future__ import annotations

import argparse
import glob
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import harness
import torch

import canvas
from canvas.data import load_data
from canvas.nn.network import Recipe, build_network
from canvas.reporting.front import chosen_finds
from canvas.study import Study
from canvas.training.train import train

ARMS: dict[str, dict[str, Any]] = {
    "all": {},
    "norms": {"norm": "none"},
    "rules": {"draws": "paper"},
    "pre-tests": {"pretests": "no"},
    "rungs": {"prune": "none"},
    "evolution": {"strategy": "random"},
}
ARMS["none"] = {name: value for arm in ARMS.values() for name, value in arm.items()}
MODEL, DATA, BUDGET, WIDTH = "resnet8", "digits-scattered", "macs=0.3x", 16
GOAL = 0.95
FRESH = 1_000_000  # seeds of verification begin there
PLENTY = 100_000  # trials: the processor's time ends a run


@dataclass(frozen=True)
class Ended:
    """A candidate, and the processor time from the end of the controls at which it ended."""

    cpu: float
    name: str
    accuracy: float


@dataclass(frozen=True)
class Result:
    """A run: `best` in 0..1, verified; `goal_cpu` None where no find reached the goal twice."""

    arm: str
    seed: int
    cpu: float
    finds: int
    best: float
    best_val: float
    goal_cpu: float | None


def processor_seconds() -> float:
    """Of this process, of its children that have ended, and of all that run beneath it (Linux)."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ended = sum(usage.ru_utime + usage.ru_stime for usage in used)
    return ended + sum(seconds_of(child) for child in beneath(os.getpid()))


def beneath(pid: int) -> Iterator[str]:
    """The /proc folders of the processes that it started, and of those that they did."""
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            children = Path(task).read_text().split()
        except OSError:  # it has just ended
            continue
        for child in children:
            yield f"/proc/{child}"
            yield from beneath(int(child))


def seconds_of(process: str) -> float:
    """With those of its own children that have ended."""
    try:
        fields = Path(process, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


# ---- one run ------------------------------------------------------------------------------------


def search_for(arm: str, seed: int, options: argparse.Namespace, folder: Path) -> list[Ended]:
    """Search until the processor time is used; scored finds, in order."""
    ended: list[Ended] = []
    start = 0.0  # when the last control was done

    def count(study: Study, candidate: Any) -> None:
        nonlocal start
        now = processor_seconds()
        if candidate.kind != "find":
            start = now
            return
        if candidate.val_accuracy is not None:
            ended.append(Ended(now - start, candidate.name, candidate.val_accuracy))
        if now - start > options.cpu:
            study.stop()

    canvas.search(
        MODEL,
        DATA,
        budget=BUDGET,
        width=WIDTH,
        trials=PLENTY,
        epochs=options.epochs,
        seed=seed,
        out=folder,
        fresh=True,
        callbacks=[count],
        finalists=0,
        compile="no",
        workers=1,
        progress="off",
        images=options.images,
        **ARMS[arm],
    )
    return ended


class Verifier:
    """Trains a find again from fresh seeds, as the search does; accuracies on validation."""

    def __init__(self, folder: Path, options: argparse.Namespace, seed: int) -> None:
        with Study.read(folder) as study:
            self.packs = {row.name: row.pack for row in study.candidates()}
        self.data = load_data(DATA, images=options.images)
        self.options = options
        self.first = FRESH + 1000 * seed
        self.known: dict[tuple[str, int], float] = {}
        channels, height, width = self.data.shape
        self.recipe = Recipe(
            MODEL, WIDTH, (channels, height, width), self.data.classes, "paper", self.first
        )

    def accuracy(self, name: str, number: int) -> float:
        """From fresh seed `number` after as many epochs as the search trains."""
        if (name, number) not in self.known:
            recipe = replace(self.recipe, seed=self.first + number)
            network = build_network(recipe, self.packs[name])
            curve = train(network, self.data, self.options.epochs, recipe.seed)
            self.known[name, number] = curve[-1].accuracy
        return self.known[name, number]


def goal_seconds(ended: list[Ended], verifier: Verifier) -> float | None:
    """Processor seconds until a find has reached the goal with two seeds, from the end of the
    controls; each trial of a second seed is added.
    """
    spent = 0.0
    for find in ended:
        if find.accuracy < GOAL:
            continue
        start = processor_seconds()
        reached = verifier.accuracy(find.name, 0) >= GOAL
        spent += processor_seconds() - start
        if reached:
            return find.cpu + spent
    return None


def run(arm: str, seed: int, options: argparse.Namespace) -> Result:
    folder = options.out / f"{arm}-{seed}"
    torch.set_num_threads(1)
    ended = search_for(arm, seed, options, folder)
    used = processor_seconds()
    verifier = Verifier(folder, options, seed)
    goal = goal_seconds(ended, verifier)
    if not ended:
        return Result(arm, seed, used, 0, 0.0, 0.0, None)
    with Study.read(folder) as study:
        chosen = chosen_finds(study.candidates())
    if chosen:
        name, accuracy = chosen[0].name, chosen[0].val_accuracy or 0.0
    else:  # none was trained to the end
        best = max(ended, key=lambda find: find.accuracy)
        name, accuracy = best.name, best.accuracy
    again = [verifier.accuracy(name, number) for number in range(options.verify)]
    return Result(arm, seed, used, len(ended), statistics.fmean(again), accuracy, goal)


# ---- all of them --------------------------------------------------------------------------------


def finished(path: Path, question: dict[str, Any]) -> list[Result]:
    """The stored runs of these settings."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return [Result(**line["result"]) for line in lines if line["question"] == question]


def question_of(options: argparse.Namespace) -> dict[str, Any]:
    names = ("cpu", "epochs", "verify", "images")
    return {name: getattr(options, name) for name in names}


def run_missing(options: argparse.Namespace) -> None:
    """Seed by seed, so that arms can be compared whenever it is stopped."""
    path = options.out / "runs.jsonl"
    there = {(result.arm, result.seed) for result in finished(path, question_of(options))}
    for seed in range(1, options.seeds + 1):
        for arm in options.arms:
            if (arm, seed) in there:
                continue
            began = time.monotonic()
            subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--one", f"{arm}:{seed}"],
                check=True,
            )
            print(f"{arm}, seed {seed}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def run_one(options: argparse.Namespace) -> None:
    arm, _, seed = options.one.partition(":")
    result = run(arm, int(seed), options)
    with open(options.out / "runs.jsonl", "a", encoding="utf-8") as out:
        line = {"question": question_of(options), "result": asdict(result)}
        out.write(json.dumps(line) + "\n")


def mean_and_error(values: list[float]) -> str:
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.1f}"
    return f"{mean:.1f} +- {statistics.stdev(values) / math.sqrt(len(values)):.1f}"


def table(results: list[Result], arms: list[str]) -> str:
    """Markdown: means over the seeds with their standard errors."""
    lines = [
        "| without | runs | best find, verified (%) | paired difference to all (points) "
        "| finds scored | CPU s until 95 % twice (reached) |",
        "|---|---|---|---|---|---|",
    ]
    whole = {result.seed: result.best for result in results if result.arm == "all"}
    for arm in arms:
        rows = [result for result in results if result.arm == arm]
        if not rows:
            continue
        paired = [100 * (row.best - whole[row.seed]) for row in rows if row.seed in whole]
        reached = [row.goal_cpu for row in rows if row.goal_cpu is not None]
        lines.append(
            f"| {'nothing' if arm == 'all' else 'all of these' if arm == 'none' else arm} "
            f"| {len(rows)} | {mean_and_error([100 * row.best for row in rows])} "
            f"| {mean_and_error(paired) if paired and arm != 'all' else '-'} "
            f"| {mean_and_error([float(row.finds) for row in rows])} "
            f"| {mean_and_error(reached) if reached else '-'} ({len(reached)}/{len(rows)}) |"
        )
    return "\n".join(lines)


def record(recorder: harness.Recorder, results: list[Result], arms: list[str]) -> None:
    """Means over the seeds with their standard errors."""
    whole = {result.seed: result.best for result in results if result.arm == "all"}
    for arm in arms:
        rows = [result for result in results if result.arm == arm]
        if not rows:
            continue
        seeds = " ".join(f"{100 * row.best:.1f}" for row in rows)
        lists = {"best find, verified": ([100 * row.best for row in rows], "%"),
                 "finds scored": ([float(row.finds) for row in rows], ""),
                 "difference to all": ([100 * (row.best - whole[row.seed]) for row in rows
                                        if row.seed in whole and arm != "all"], "points")
                 }  # fmt: skip
        values: dict[str, tuple[Any, str]] = {f"seeds 1 to {len(rows)}": (seeds, "")}
        spreads = {}
        for column, (found, unit) in lists.items():
            if found:
                values[column] = (statistics.fmean(found), unit)
            if len(found) > 1:
                spreads[column] = statistics.stdev(found) / math.sqrt(len(found))
        recorder.add("parts", "nothing" if arm == "all" else arm, values, spreads)


def _arms(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= set(ARMS):
        raise argparse.ArgumentTypeError(f"some of {','.join(ARMS)}")
    return names


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cpu", type=float, default=150.0, help="processor seconds of a search")
    parser.add_argument("--arms", type=_arms, default=list(ARMS))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--images", type=int, default=None, help="at most so many images")
    parser.add_argument("--verify", type=int, default=2, help="fresh seeds for the best find")
    parser.add_argument("--out", type=Path, default=Path("runs/bench-search"))
    parser.add_argument("--table", action="store_true", help="run nothing: what is there")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # ARM:SEED, in the child
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.one:
        run_one(options)
        return
    recorder = harness.Recorder("search", options.record)
    if not options.table:
        run_missing(options)
    results = finished(options.out / "runs.jsonl", question_of(options))
    if options.json:
        for result in results:
            print(json.dumps(asdict(result)))
    else:
        print(table(results, options.arms))
    record(recorder, results, options.arms)


if __name__ == "__main__":
    harness.run(main)
