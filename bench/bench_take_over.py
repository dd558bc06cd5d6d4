"""Fits of operators that start from a layer's weights, beside fits from random weights.

    ./dev bench take_over [--data NAME] [--shares S,S] [--draws N] [--steps N,N] [--seeds S,S]
                          [--rate R] [--only NAME,NAME] [--teacher-epochs E] [--teacher FILE]
                          [--json] [--record]

The teacher is that of `./dev bench fit`. Every known operator at every share of MACs, and the N
best of 4 N drawn kernels at half of the MACs, is fitted to every layer, from both starts. A row is
an operator and a number of steps: the mean over layers, sizes and seeds of the error (1 - r^2 on
images that the fit did not see), how many fits end nearer to the layer than from random weights,
and the processor time of a fit. `--rate` is the peak rate of fits that take over.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import harness
import torch
from bench_fit import trained

import canvas
from canvas.fitting.item_table import fit_operator
from canvas.fitting.menu import CONTROLS, SHARES, Operator, Sized, sizes_of
from canvas.fitting.screen import SHARE, screen, screening_layer, survivors
from canvas.fitting.teacher import Teacher
from canvas.training import layer_fit
from canvas.training.layer_data import MEMORY, LayerData

WIDTH = 16  # of the teacher
DRAWN = "drawn"  # the row of all drawn kernels
SAME = 1.02  # ratio of two errors up to which neither is smaller


def drawn(teacher: Teacher, recorded: dict[str, LayerData], count: int) -> list[Operator]:
    """The best of four times as many draws, by the short fit of a screening."""
    if not count:
        return []
    data = recorded[screening_layer(teacher.targets).name]
    return survivors(screen(teacher.targets, data, 1, 4 * count), count)


def menu(teacher: Teacher, shares: Sequence[float], draws: list[Operator]) -> list[Sized]:
    """Items with weights: the identity has nothing to start from."""
    pairs = [(operator, shares) for operator in CONTROLS]
    pairs += [(operator, (SHARE,)) for operator in draws]
    items = [
        item
        for operator, wanted in pairs
        for target in teacher.targets
        for item in sizes_of(operator, target, wanted)
    ]
    return [item for item in items if int(item.pack.cost["params"])]


def row_name(item: Sized) -> str:
    """The operator's, or that of all drawn kernels."""
    return item.operator.name if item.operator.control else DRAWN


def fitted(
    item: Sized, data: LayerData, steps: int, seed: int, taken: bool
) -> tuple[float, float]:
    """The error of a fit, and its seconds of processor time."""
    start = time.process_time()
    error = fit_operator(data, item, steps, seed, take_over=taken)[1]
    return error, time.process_time() - start


def summary(name: str, steps: int, pairs: list[tuple[tuple[float, float], ...]]) -> dict[str, Any]:
    """Of pairs (from random weights, taken over), each error and seconds."""
    errors = [(random[0], taken[0]) for random, taken in pairs]
    return {
        "operator": name,
        "steps": steps,
        "fits": len(pairs),
        "random": statistics.mean(random for random, _ in errors),
        "taken": statistics.mean(taken for _, taken in errors),
        "nearer": sum(random > SAME * taken for random, taken in errors),
        "farther": sum(taken > SAME * random for random, taken in errors),
        "random_s": statistics.mean(random[1] for random, _ in pairs),
        "taken_s": statistics.mean(taken[1] for _, taken in pairs),
    }


def line(row: dict[str, Any]) -> str:
    return (
        f"{row['operator']:20} {row['steps']:4} steps: error {row['random']:.4f} from random "
        f"weights, {row['taken']:.4f} taken over (nearer in {row['nearer']}, farther in "
        f"{row['farther']} of {row['fits']}); {row['random_s']:.3f} and {row['taken_s']:.3f} s"
    )


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--data", default="digits-scattered", metavar="NAME")
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), metavar="S,S")
    parser.add_argument("--draws", type=int, default=10, metavar="N")
    parser.add_argument("--steps", default="0,40,100", metavar="N,N")
    parser.add_argument("--seeds", default="1,2", metavar="S,S")
    parser.add_argument("--rate", type=float, default=None, metavar="R")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="operators (default: all)")
    parser.add_argument("--teacher-epochs", type=int, default=16, metavar="E")
    parser.add_argument("--teacher", default=None, metavar="FILE")
    given = parser.parse_args()
    recorder = harness.Recorder("take_over", given.record)
    torch.set_num_threads(1)
    data = canvas.load_data(given.data)
    default = (
        harness.ROOT / "build" / "bench-fit" / f"{given.data}-{given.teacher_epochs}.safetensors"
    )
    file = Path(given.teacher or default)
    network = trained(data, "resnet8", WIDTH, given.teacher_epochs, file)
    teacher = Teacher(network, "all", data.train[0], data.validation[0][:1024])
    recorded, _ = teacher.layer_data(MEMORY, 3000)
    items = menu(
        teacher, [float(s) for s in given.shares.split(",")], drawn(teacher, recorded, given.draws)
    )
    if given.only:
        items = [item for item in items if row_name(item) in given.only.split(",")]
    usual = layer_fit.RATE
    for steps in map(int, given.steps.split(",")):
        found: dict[str, list[Any]] = {}
        for item in items:
            for seed in map(int, given.seeds.split(",")):
                random = fitted(item, recorded[item.layer], steps, seed, False)
                layer_fit.RATE = given.rate or usual
                taken = fitted(item, recorded[item.layer], steps, seed, True)
                layer_fit.RATE = usual
                found.setdefault(row_name(item), []).append((random, taken))
        for name, pairs in found.items():
            row = summary(name, steps, pairs)
            print(json.dumps(row) if given.json else line(row), flush=True)
            columns = {
                "random": ("random", ""), "taken": ("taken", ""), "nearer": ("nearer", ""),
                "farther": ("farther", ""), "fits": ("fits", ""), "random_s": ("random_s", "s"),
                "taken_s": ("taken_s", "s"),
            }  # fmt: skip
            rate = "" if given.rate is None else f", rate {given.rate}"
            case = f"{given.data} {name}, {steps} steps, seeds {given.seeds}{rate}"
            recorder.add("take_over", case, harness.pick(row, columns))


if __name__ == "__main__":
    harness.run(main)
