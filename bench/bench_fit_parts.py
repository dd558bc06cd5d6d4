"""What each part of a fit is worth: the whole procedure, and the procedure without one part.

    ./dev bench fit_parts [--data NAME] [--model NAME] [--width N] [--budget B] [--draws N]
                          [--drawn N] [--shares S,S] [--steps N] [--epochs E] [--seeds S,S]
                          [--workers N] [--teacher-epochs E] [--teacher FILE] [--out FILE]
                          [--json] [--record]

The teacher is that of `./dev bench fit`. The menu has the known operators and N (--drawn) of
--draws drawn kernels. A row is the network that a variant chooses for the budget, its operators
fitted for N steps (--steps), then tuned by E epochs of distillation: divergence from the teacher
before tuning, and accuracy on test images after it, means over seeds. What a seed gave is kept in
FILE (--out), where the same command goes on. The variants:

    whole          as canvas.fit does it
    no screening   the first drawn kernels instead of the best ones
    no taking over fits that start from random weights
    by error       a choice by the errors of single layers instead of divergences
    by accuracy    a choice by the accuracy that single operators cost
    no ranking     the first solution of the integer program, not the nearest of eight networks
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bench_teacher
import harness
import torch
from bench_fit import trained

import canvas
from canvas.data import Data
from canvas.fitting.budget import parse_budget
from canvas.fitting.candidates import SINGLE, Proposal, propose
from canvas.fitting.divergence import imitation
from canvas.fitting.fit_jobs import IMAGES, RATE, VALIDATION
from canvas.fitting.fit_run import REFIT
from canvas.fitting.forks import run_forked
from canvas.fitting.item_table import Row, Way, fill, fit_operator, kept_rows
from canvas.fitting.menu import CONTROLS, SHARES, Operator, sizes_of
from canvas.fitting.screen import Screened, screen, survivors
from canvas.fitting.teacher import Fitted, Teacher
from canvas.fitting.weight_files import fitted_from, from_bytes
from canvas.nn.layer_target import screening_layer
from canvas.tasks.check_task import some_inputs
from canvas.tasks.classification import CLASSIFICATION, accuracy
from canvas.training.layer_data import MEMORY, LayerData
from canvas.training.train import Training

WHOLE = "whole"
FREE = ("seeds", "workers", "out", "json", "record")  # options that change no result


class Parts:
    """One seed: the teacher, what its layers see, and the tables of fits."""

    def __init__(self, teacher: Teacher, data: Data, seed: int, given: Any) -> None:
        self.teacher, self.data, self.seed, self.given = teacher, data, seed, given
        self.recorded: dict[str, LayerData] = teacher.layer_data(MEMORY, IMAGES)[0]
        self.budget = parse_budget(given.budget)
        self.shares = [float(share) for share in given.shares.split(",")]
        layer = screening_layer(teacher.targets)
        self.screened: list[Screened] = screen(
            teacher.targets, self.recorded[layer.name], seed, given.draws, given.workers
        )

    def table(self, drawn: Sequence[Operator], take_over: bool = True) -> list[Row]:
        """Every row with its operator; kept layers first."""
        menu = [
            sized
            for operator in (*CONTROLS, *drawn)
            for target in self.teacher.targets
            for sized in sizes_of(operator, target, self.shares)
        ]

        def tell(row: Row, outcome: Any) -> Row:
            assert row.sized is not None
            fitted = fitted_from(
                from_bytes(outcome.weights) if outcome.weights else None, row.sized
            )
            return replace(row, fitted=fitted)

        rows = fill(
            self.teacher, self.recorded, menu, Way(self.seed, False, take_over),
            self.given.workers, tell=tell,
        )  # fmt: skip
        return [*kept_rows(self.teacher, False), *rows]

    def by_accuracy(self, rows: Sequence[Row]) -> list[Row]:
        """Rows whose loss is the accuracy on validation that the operator costs alone."""
        teacher = self.teacher
        right = accuracy(teacher.network, self.data.scoring("validation"))

        def job(row: Row) -> float:
            if row.sized is None:
                return 0.0
            if row.fitted is None:
                return row.loss
            with teacher.swapped(row.layer, row.fitted) as network:
                return right - accuracy(network, self.data.scoring("validation"))

        losses = dict(run_forked(job, rows, self.given.workers))
        return [replace(row, loss=losses[at]) for at, row in enumerate(rows)]

    def chosen(self, rows: Sequence[Row], ranked: bool = True) -> Proposal:
        """The network of the budget that is nearest to the teacher, or the first one proposed."""
        limits = self.budget.of_layers(self.teacher.targets, rows, 0.0)
        found = [p for p in propose(rows, limits, drawn=True) if p.kind != SINGLE]
        if not ranked:
            return min(found, key=lambda proposal: proposal.loss)
        losses = dict(
            run_forked(
                lambda proposal: self.teacher.divergence(self.assembled(proposal)),
                found,
                self.given.workers,
            )
        )
        return found[min(losses, key=lambda at: (losses[at], at))]

    def assembled(self, proposal: Proposal) -> torch.nn.Module:
        return self.teacher.assemble(
            {row.layer: row.fitted for row in proposal.rows if row.fitted is not None}
        )

    def tuned(self, proposal: Proposal, take_over: bool = True) -> dict[str, float]:
        """The network after longer fits and distillation."""
        fitted: dict[str, Fitted] = {
            row.layer: fit_operator(
                self.recorded[row.layer], row.sized, self.given.steps, self.seed, take_over
            )[0]
            for row in proposal.rows
            if row.sized is not None
        }
        network = self.teacher.assemble(fitted)
        before = self.teacher.divergence(network)
        objective = imitation(CLASSIFICATION, self.teacher.network)
        epochs = self.given.epochs
        training = Training(
            network, self.data, epochs, self.seed, peak_rate=RATE, objective=objective
        )
        for epoch in range(epochs):
            training.epoch(scored=epoch == epochs - 1)
        return {"divergence": before, "test": 100 * accuracy(network, self.data.scoring("test"))}

    def variants(self) -> dict[str, dict[str, float]]:
        """By name, what each variant reaches."""
        count = self.given.drawn
        best = survivors(self.screened, count)
        first = [item.operator for item in self.screened[:count]]
        rows = self.table(best)
        random = self.table(best, take_over=False)
        by_error = [replace(row, loss=row.error) for row in rows]
        plans: dict[str, Callable[[], tuple[Proposal, bool]]] = {
            WHOLE: lambda: (self.chosen(rows), True),
            "no screening": lambda: (self.chosen(self.table(first)), True),
            "no taking over": lambda: (self.chosen(random), False),
            "by error": lambda: (self.chosen(by_error), True),
            "by accuracy": lambda: (self.chosen(self.by_accuracy(rows)), True),
            "no ranking": lambda: (self.chosen(rows, ranked=False), True),
        }
        made = {name: make() for name, make in plans.items()}
        jobs = list(made.values())
        found = dict(run_forked(lambda job: self.tuned(*job), jobs, self.given.workers))
        return {name: found[at] for at, name in enumerate(made)}


def seeds_of(given: Any, parts: Callable[[int], Parts]) -> list[dict[str, dict[str, float]]]:
    """What each seed gave: from the file where it is there, else measured and added to it."""
    asked = {name: value for name, value in vars(given).items() if name not in FREE}
    lines = given.out.read_text().splitlines() if given.out and given.out.exists() else []
    known = {row["seed"]: row["found"] for row in map(json.loads, lines) if row["asked"] == asked}
    for seed in map(int, given.seeds.split(",")):
        if seed not in known:
            known[seed] = parts(seed).variants()
            if given.out:
                with given.out.open("a") as file:
                    print(
                        json.dumps({"seed": seed, "asked": asked, "found": known[seed]}), file=file
                    )
        print(f"seed {seed} done", flush=True)
    return [known[seed] for seed in map(int, given.seeds.split(","))]


def summary(name: str, seeds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Means and standard deviations over seeds; `points`: test accuracy beside the whole."""
    tests = [seed[name]["test"] for seed in seeds]
    points = [seed[name]["test"] - seed[WHOLE]["test"] for seed in seeds]
    return {
        "variant": name,
        "seeds": len(seeds),
        "divergence": statistics.mean(seed[name]["divergence"] for seed in seeds),
        "test": statistics.mean(tests),
        "points": statistics.mean(points),
        "spread": statistics.stdev(points) if len(points) > 1 else 0.0,
    }


def line(row: dict[str, Any]) -> str:
    return (
        f"{row['variant']:16} divergence {row['divergence']:.4f}  test {row['test']:6.2f} % "
        f"{row['points']:+.2f} +- {row['spread']:.2f} points ({row['seeds']} seeds)"
    )


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--data", default="digits-scattered", metavar="NAME")
    parser.add_argument("--model", default="resnet8", metavar="NAME")
    parser.add_argument("--width", type=int, default=16, metavar="N")
    parser.add_argument("--budget", default="macs=0.2x", metavar="B")
    parser.add_argument("--draws", type=int, default=200, metavar="N")
    parser.add_argument("--drawn", type=int, default=6, metavar="N")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), metavar="S,S")
    parser.add_argument("--steps", type=int, default=REFIT, metavar="N")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", default="1,2,3", metavar="S,S")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--teacher-epochs", type=int, default=16, metavar="E")
    parser.add_argument("--teacher", default=None, metavar="FILE")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE")
    given = parser.parse_args()
    recorder = harness.Recorder("fit_parts", given.record)
    torch.set_num_threads(1)
    data = canvas.load_data(given.data)
    network = (given.model, given.width, given.teacher_epochs)
    file = Path(given.teacher or bench_teacher.place(data, *network))
    some = [
        some_inputs(data, CLASSIFICATION, split, count, MEMORY)
        for split, count in (("train", IMAGES), ("validation", VALIDATION))
    ]
    teacher = Teacher(trained(data, *network, file), "all", *some)
    seeds = seeds_of(given, lambda seed: Parts(teacher, data, seed, given))
    for name in seeds[0]:
        row = summary(name, seeds)
        print(json.dumps(row) if given.json else line(row), flush=True)
        columns = {
            "divergence": ("divergence", "nats"), "test": ("test", "%"),
            "points": ("points", "points"), "seeds": ("seeds", ""),
        }  # fmt: skip
        case = f"{bench_teacher.short_name(data)} {given.budget} {name}"
        recorder.add("fit_parts", case, harness.pick(row, columns), {"points": row["spread"]})


if __name__ == "__main__":
    harness.run(main)
