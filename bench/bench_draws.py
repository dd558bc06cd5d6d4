"""Draws that are trained: what each rule leaves out, and which sizes and functions do well.

    ./dev bench draws [--trials 60] [--out runs/bench-draws] [--table]
    ./dev bench draws --sizes [--cpu 240] [--ranges 5..12,3..8] [--out runs/bench-sizes] [--table]

The first trains `draws=paper` draws of the demo's task (resnet8 width 16 on digits-scattered,
macs=0.5x, 3 epochs) in a search without rules, pruning, pre-tests or finals. A kernel is good if
its validation accuracy is in the best tenth or above the 1x1 control's. Every kernel, with its
solved sizes, is then checked against each rule. About ten processor seconds a kernel.

The second trains, for each range of sizes, the first draws that fit macs=0.3x for four epochs from
one seed with norms, until --cpu processor seconds are used. A draw whose first epoch takes more
than six times the unchanged network's is stopped and counts as too slow.

What is in --out already is not trained again; --table trains nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import torch

import canvas
from canvas import _core, _testing
from canvas.study import Study

OPTIONS = "draws=rules nonlinear=1 free_size=1"  # every rule on
RULES = ["unbounded_product", "fc_on_fc", "on_input", "nonlinear", "fixed_size", "bytes"]
TASK: dict[str, Any] = {"budget": "macs=0.5x", "epochs": 3, "draws": "paper", "strategy": "random"}
PLAIN: dict[str, Any] = {
    "prune": "none",
    "pretests": "no",
    "finalists": 0,
    "compile": "no",
    "workers": 1,
}
BUDGET, EPOCHS, SEED = "macs=0.3x", 4, 1
SLOWEST = 6  # times the unchanged network's first epoch
GOOD, FAIR = 0.90, 0.85
ACTIVATIONS = {"relu", "gelu", "sigmoid", "tanh"}
OTHERS = {"abs", "neg", "exp", "sin", "sqrt", "sqr"}
Row = dict[str, Any]


# ---- the price of each rule ---------------------------------------------------------------------


@dataclass(frozen=True)
class Trained:
    """A kernel: accuracy on validation in 0..1 (0 if its training failed or took too long), the
    rules it breaks.
    """

    name: str
    accuracy: float
    broken: frozenset[str]


@dataclass(frozen=True)
class Price:
    """Of one rule: kernels that break it, good ones among them."""

    rule: str
    broken: int
    good: int


def trained(folder: Path) -> tuple[list[Trained], float]:
    """The finds of a study, and the accuracy of its 1x1 control."""
    with Study.read(folder) as study:
        rows = [row for row in study.candidates() if row.status in ("done", "failed")]
    finds = [
        Trained(
            row.name,
            float(row.val_accuracy or 0),
            frozenset(_testing.broken_rules(row.pack, OPTIONS).split()),
        )
        for row in rows
        if row.kind == "find" and row.pack
    ]
    return finds, next(float(row.val_accuracy or 0) for row in rows if row.name == "1x1")


def good_ones(finds: list[Trained], control: float) -> list[Trained]:
    """Those above the control, and the best tenth."""
    ranked = sorted(finds, key=lambda find: -find.accuracy)
    tenth = ranked[: math.ceil(len(ranked) / 10)]
    return tenth + [find for find in ranked[len(tenth) :] if find.accuracy > control]


def prices(finds: list[Trained], good: list[Trained]) -> list[Price]:
    """One for each rule, then one for any of them."""
    rows = [
        Price(
            rule,
            sum(rule in find.broken for find in finds),
            sum(rule in find.broken for find in good),
        )
        for rule in RULES
    ]
    anything = Price(
        "any of them", sum(bool(f.broken) for f in finds), sum(bool(f.broken) for f in good)
    )
    return [*rows, anything]


def table_of_rules(finds: list[Trained], good: list[Trained], control: float) -> str:
    lines = [
        f"{len(finds)} draws of the published distribution were trained; {len(good)} are good: in "
        f"the best tenth, or above the 1x1 control ({100 * control:.1f} %).",
        "",
        "| rule | draws that break it | good ones among those | share of the good ones lost "
        "| of the others lost |",
        "|---|---|---|---|---|",
    ]
    poor = max(len(finds) - len(good), 1)
    for row in prices(finds, good):
        lines.append(
            f"| {row.rule} | {row.broken} ({row.broken / max(len(finds), 1):.0%}) | {row.good} | "
            f"{row.good / max(len(good), 1):.0%} | {(row.broken - row.good) / poor:.0%} |"
        )
    lines += ["", "The good ones:", ""]
    for find in good:
        lines.append(
            f"- draw {find.name}: {100 * find.accuracy:.1f} %, breaks "
            + (", ".join(sorted(find.broken)) or "nothing")
        )
    return "\n".join(lines)


def file_of(out: Path, sizes: str) -> Path:
    return out / f"{sizes}.jsonl"


def rows_of(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


# ---- sizes: training ----------------------------------------------------------------------------


def train_range(sizes: str, file: Path, cpu: float) -> None:
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
    known = set()
    found = harness.solved_draws(
        targets, SEED, BUDGET, options=f"primitives={sizes}", more="norm=batch"
    )
    for index, kernel, pack in found:
        if _core.hash(kernel) not in known:
            known.add(_core.hash(kernel))
            yield index, kernel, pack


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


# ---- sizes: tables ------------------------------------------------------------------------------


def whole(rows: list[Row]) -> list[Row]:
    return [row for row in rows if len(row["accuracies"]) == EPOCHS]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def table_of_sizes(rows: dict[str, list[Row]]) -> str:
    ends = {sizes: [row["accuracies"][-1] for row in whole(of)] for sizes, of in rows.items()}
    seconds = {sizes: [row["cpu"] for row in whole(of)] for sizes, of in rows.items()}
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


# ---- the command --------------------------------------------------------------------------------


def show_sizes(words: argparse.Namespace, recorder: harness.Recorder) -> None:
    ranges, out = words.ranges.split(","), words.out or Path("runs/bench-sizes")
    out.mkdir(parents=True, exist_ok=True)
    for sizes in ranges if not words.table else []:
        train_range(sizes, file_of(out, sizes), words.cpu)
    rows = {sizes: rows_of(file_of(out, sizes)) for sizes in ranges}
    every = [row for of in rows.values() for row in whole(of)]
    if words.json:
        for row in every:
            print(json.dumps(row))
    else:
        print(f"{table_of_sizes(rows)}\n\n{table_of_functions(every)}")
    for sizes, of in rows.items():
        ends = [row["accuracies"][-1] for row in whole(of)]
        if not ends:
            continue
        values = {"trained": (len(ends), ""), "median accuracy": (100 * median(ends), "%"),
                  "processor seconds of a training": (mean([r["cpu"] for r in whole(of)]), "s"),
                  "best": (100 * max(ends, default=0.0), "%"),
                  "at least 90 %": (sum(x >= GOOD for x in ends), "")}  # fmt: skip
        recorder.add("sizes", f"{sizes} primitives", values, seed=SEED)


def show_rules(words: argparse.Namespace, recorder: harness.Recorder) -> None:
    out = words.out or Path("runs/bench-draws")
    if not words.table:
        canvas.search("resnet8", "digits-scattered", trials=words.trials, seed=words.seed, out=out,
                      **TASK, **PLAIN)  # fmt: skip
    finds, control = trained(out)
    good = good_ones(finds, control)
    if words.json:
        for price in prices(finds, good):
            print(json.dumps(price.__dict__))
    else:
        print(table_of_rules(finds, good, control))
    poor = max(len(finds) - len(good), 1)
    for row in prices(finds, good):
        share = f"{row.broken} ({row.broken / max(len(finds), 1):.0%})"
        values = {"draws that break it": (share, ""), "good ones among those": (row.good, ""),
                  "of the good ones lost": (100 * row.good / max(len(good), 1), "%"),
                  "of the others lost": (100 * (row.broken - row.good) / poor, "%")}  # fmt: skip
        recorder.add("rules", row.rule, values, seed=words.seed)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", action="store_true", help="sizes and functions")
    parser.add_argument("--cpu", type=float, default=240.0, help="processor seconds of a range")
    parser.add_argument("--ranges", default="5..12,3..8")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", action="store_true", help="train nothing: what is there")
    words = parser.parse_args()
    recorder = harness.Recorder("draws", words.record)
    (show_sizes if words.sizes else show_rules)(words, recorder)


if __name__ == "__main__":
    harness.run(main)
