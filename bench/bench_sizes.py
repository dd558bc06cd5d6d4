#!/usr/bin/env python3
"""How large kernels should be drawn, and of which functions: docs/reports/draws.md.

    ./dev bench sizes [--cpu 240] [--ranges 5..12,3..8] [--out runs/bench-sizes] [--table]

For each range of sizes the first draws that fit macs=0.3x are trained for four epochs from one
seed (resnet8 of width 16 on digits-scattered, norms inside), one after another, until --cpu
processor seconds are used up. A draw whose first epoch takes more than six times the unchanged
network's is stopped there and counts as too slow. Accuracies are on the validation split.

Each training is a line of OUT/RANGE.jsonl; what is there is not trained again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from canvas import _core
from canvas.errors import NoSolution

BUDGET, EPOCHS, SEED = "macs=0.3x", 4, 1
SLOWEST = 6  # times the unchanged network's first epoch
GOOD, FAIR = 0.90, 0.85
ACTIVATIONS = {"relu", "gelu", "sigmoid", "tanh"}
OTHERS = {"abs", "neg", "exp", "sin", "sqrt", "sqr"}
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", type=float, default=240.0, help="processor seconds of a range")
    parser.add_argument("--ranges", default="5..12,3..8")
    parser.add_argument("--out", type=Path, default=Path("runs/bench-sizes"))
    parser.add_argument("--table", action="store_true", help="train nothing: what is there")
    words = parser.parse_args()
    ranges = words.ranges.split(",")
    words.out.mkdir(parents=True, exist_ok=True)
    for sizes in ranges if not words.table else []:
        train_range(sizes, file_of(words.out, sizes), words.cpu)
    rows = {sizes: rows_of(file_of(words.out, sizes)) for sizes in ranges}
    print(table_of_sizes(rows))
    print()
    print(table_of_functions([row for of in rows.values() for row in trained(of)]))


def file_of(out: Path, sizes: str) -> Path:
    return out / f"{sizes}.jsonl"


def rows_of(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


# ---- training -----------------------------------------------------------------------------------


def train_range(sizes: str, file: Path, cpu: float) -> None:
    import torch

    from canvas.data.readers import load_data
    from canvas.nn.network import Recipe, plan_network

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    data = load_data("digits-scattered")
    recipe = Recipe("resnet8", 16, data.shape, data.classes, "paper", SEED)
    there = {row["index"]: row for row in rows_of(file)}
    used = sum(row["cpu"] for row in there.values())
    dense = train_one(None, recipe, data, 1, None)["cpu"]
    for index, kernel, pack in draws(plan_network(recipe).targets, sizes):
        if used > cpu:
            return
        if index in there:
            continue
        row = {"index": index, "kernel": kernel, **train_one(pack, recipe, data, EPOCHS, dense)}
        used += row["cpu"]
        with file.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(sizes, index, row["accuracies"], f"{row['cpu']:.1f} s", flush=True)


def draws(targets: str, sizes: str) -> Iterator[tuple[int, str, str]]:
    """Those that fit, none twice."""
    known, index = set(), -1
    while True:
        index += 1
        drawn = _core.draw(targets, SEED, index, f"primitives={sizes}")
        if drawn is None or _core.hash(drawn[0]) in known:
            continue
        try:
            pack = _core.solve(drawn[0], targets, BUDGET, f"G={drawn[1]} norm=batch")
        except NoSolution:
            continue
        known.add(_core.hash(drawn[0]))
        yield index, drawn[0], pack


def train_one(
    pack: str | None, recipe: Any, data: Any, epochs: int, dense: float | None
) -> dict[str, Any]:
    """Accuracies after each epoch, and processor seconds; one that is too slow has one epoch."""
    from canvas.nn.network import build_network
    from canvas.training.train import NotFinite, train

    begun = time.process_time()
    accuracies: list[float] = []

    def go_on(epoch: Any) -> bool:
        accuracies.append(epoch.accuracy)
        return dense is None or time.process_time() - begun < SLOWEST * dense * len(accuracies)

    try:
        train(build_network(recipe, pack), data, epochs, recipe.seed, go_on=go_on)
    except NotFinite:
        accuracies += [0.0] * (epochs - len(accuracies))
    return {"accuracies": accuracies, "cpu": time.process_time() - begun}


# ---- tables -------------------------------------------------------------------------------------


def trained(rows: list[Row]) -> list[Row]:
    return [row for row in rows if len(row["accuracies"]) == EPOCHS]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def table_of_sizes(rows: dict[str, list[Row]]) -> str:
    ends = {sizes: [row["accuracies"][-1] for row in trained(of)] for sizes, of in rows.items()}
    seconds = {sizes: [row["cpu"] for row in trained(of)] for sizes, of in rows.items()}
    good = {sizes: sum(x >= GOOD for x in of) for sizes, of in ends.items()}
    lines: list[tuple[str, list[str]]] = [
        ("", [f"{sizes} primitives" for sizes in rows]),
        ("---", ["---"] * len(rows)),
        ("trained", [str(len(of)) for of in ends.values()]),
        ("too slow", [str(len(rows[sizes]) - len(ends[sizes])) for sizes in rows]),
        ("processor seconds of a training", [f"{mean(of):.1f}" for of in seconds.values()]),
        ("median accuracy", [percent(median(of)) for of in ends.values()]),
        ("best", [percent(max(of, default=0.0)) for of in ends.values()]),
        ("at least 90 %", [str(count) for count in good.values()]),
        (
            "processor seconds for each of these",
            [f"{sum(seconds[s]) / good[s]:.0f}" if good[s] else "-" for s in rows],
        ),
    ]
    return "\n".join("| " + " | ".join([name, *cells]) + " |" for name, cells in lines)


def table_of_functions(rows: list[Row]) -> str:
    def having(wanted: set[str], without: set[str]) -> list[float]:
        return [
            row["accuracies"][-1]
            for row in rows
            if (not wanted or words_of(row) & wanted) and not words_of(row) & without
        ]

    groups = [
        ("activations alone", having(ACTIVATIONS, OTHERS)),
        ("another function", having(OTHERS, set())),
        ("no function", having(set(), ACTIVATIONS | OTHERS)),
        ("a softmax", having({"softmax"}, set())),
    ]
    lines = ["| | draws | median accuracy | at least 85 % | best |", "|---|---|---|---|---|"]
    for name, of in groups:
        fair = sum(x >= FAIR for x in of)
        cells = [str(len(of)), percent(median(of)), str(fair), percent(max(of, default=0.0))]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def words_of(row: Row) -> set[str]:
    """The primitives of its kernel."""
    lines = [line.split() for line in row["kernel"].splitlines()]
    return {words[2] for words in lines if len(words) > 2 and words[1] == "="}


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def median(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0


if __name__ == "__main__":
    main()
