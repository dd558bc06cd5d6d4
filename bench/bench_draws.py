"""What each rule of drawing costs: the share of good kernels that it would have left out.

    ./dev bench draws [--trials 60] [--out runs/bench-draws] [--report FILE] [--json]

A search without rules, pruning, pre-tests or finals trains `draws=paper` draws of the demo's task
(resnet8 width 16 on digits-scattered, macs=0.5x, 3 epochs); what is there already is not trained
again. A kernel is good if its accuracy on validation is in the best tenth, or above the 1x1
control's. Every kernel, with the sizes that were solved for it, is then held against each rule.
Processor time: about ten seconds a kernel.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import canvas
from canvas import _core, _testing
from canvas.study import Study

OPTIONS = "draws=rules nonlinear=1"  # every rule on
RULES = ["unbounded_product", "fc_on_fc", "on_input", "nonlinear", "bytes"]
TASK: dict[str, Any] = {"budget": "macs=0.5x", "epochs": 3, "draws": "paper", "strategy": "random"}
PLAIN: dict[str, Any] = {
    "prune": "none",
    "pretests": "no",
    "finalists": 0,
    "compile": "no",
    "workers": 1,
}


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


def table(finds: list[Trained], good: list[Trained], control: float) -> str:
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


def heading(command: str) -> str:
    return (
        f"`{command}`, canvas {_core.version()}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="what each rule of drawing costs")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/bench-draws"))
    parser.add_argument("--report", type=Path, help="write the table there, too")
    parser.add_argument("--table", action="store_true", help="train nothing: what is there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.table:
        canvas.search(
            "resnet8",
            "digits-scattered",
            trials=options.trials,
            seed=options.seed,
            out=options.out,
            **TASK,
            **PLAIN,
        )
    finds, control = trained(options.out)
    good = good_ones(finds, control)
    if options.json:
        print(json.dumps([row.__dict__ for row in prices(finds, good)], indent=1))
        return
    text = table(finds, good, control)
    print(text)
    if options.report is not None:
        command = f"./dev bench draws --trials {options.trials} --seed {options.seed}"
        title = "# What the rules of drawing cost"
        options.report.write_text(f"{title}\n\n{heading(command)}\n\n{text}\n")


if __name__ == "__main__":
    main()
