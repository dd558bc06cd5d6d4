#!/usr/bin/env python3
"""What networks tell before training, beside what they reach: docs/reports/pretests.md.

    python bench/bench_pretests.py measure FILE [--draws 40] [--epochs 3] [--seed 1] [--solve TEXT]
    python bench/bench_pretests.py table FILE

`measure` trains the controls and the first draws that fit macs=0.5x (resnet8 of width 16 on
digits-scattered) and appends one line of JSON for each to FILE, so that it goes on where it was
stopped.  `table` prints, for each signal, its rank correlation with the accuracy at the end, and
what limits learnt from the controls and twelve draws (canvas.runner.pretests) reject of the other
draws, on average over 2,000 random choices of the twelve.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from canvas import _core
from canvas.errors import NoSolution
from canvas.runner.pretests import Limits, Trained, calibrate, judge

BUDGET = "macs=0.5x"
FIRST = 12  # finds that teach the limits of a search and are not judged
CHOICES = 2000
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draw", default="primitives=5..12 require=reach", help="draw options")
    parser.add_argument("--solve", default="", help="options of the solver, such as norm=batch")
    words = parser.parse_args()
    if words.what == "measure":
        measure_all(words)
    else:
        table([json.loads(line) for line in words.file.read_text().splitlines()])


# ---- measuring ----------------------------------------------------------------------------------


def measure_all(words: argparse.Namespace) -> None:
    import torch

    from canvas.data.readers import load_data
    from canvas.nn.network import Recipe, plan_network

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    data = load_data("digits-scattered")
    recipe = Recipe("resnet8", 16, data.shape, data.classes, "paper", words.seed)
    targets = plan_network(recipe).targets
    there = {json.loads(line)["name"] for line in lines_of(words.file)}
    for name, pack in packs(targets, words):
        if name not in there:
            row = measure_one(name, pack, recipe, data, words.epochs)
            with words.file.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def packs(targets: str, words: argparse.Namespace) -> Iterator[tuple[str, str | None]]:
    """The unchanged network, the controls, and draws until enough of them fit."""
    from canvas.nn.controls import grouped, solve_controls

    yield "baseline", None
    norm = "batch" if "norm=batch" in words.solve else "none"
    for control in [*solve_controls(targets, norm), grouped(targets, BUDGET)]:
        if control.pack:
            yield control.name, control.pack
    found = index = 0
    while found < words.draws:
        drawn = _core.draw(targets, words.seed, index, words.draw)
        try:
            if drawn is not None:
                options = f"G={drawn[1]} {words.solve}".strip()
                yield str(index), _core.solve(drawn[0], targets, BUDGET, options)
                found += 1
        except NoSolution:
            pass
        index += 1


def measure_one(name: str, pack: str | None, recipe: Any, data: Any, epochs: int) -> Row:
    from canvas.nn.network import build_network
    from canvas.training.train import NotFinite, train
    from canvas.workers.worker import initial_signals

    signals = initial_signals(recipe, pack, data)
    begun = time.process_time()
    accuracies: list[float] = []
    try:
        network = build_network(recipe, pack)
        go_on = lambda epoch: accuracies.append(epoch.accuracy) is None  # noqa: E731
        train(network, data, epochs, recipe.seed, 64, go_on)
        failed = ""
    except NotFinite as error:
        failed = str(error)
    seconds = time.process_time() - begun
    return {"name": name, "accuracies": accuracies, "failed": failed, "train": seconds, **signals}


# ---- the table ----------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> None:
    finds = [row for row in rows if row["name"].isdigit()]
    controls = [row for row in rows if not row["name"].isdigit()]
    print(f"{len(finds)} draws, {len(controls)} controls")
    for name in ("spread", "naswot"):
        pairs = [(row[name], final(row)) for row in finds if row[name] is not None]
        print(f"{name}: rho {rho(pairs):+.2f} over {len(pairs)} draws")
    rung = [(row["accuracies"][0] if row["accuracies"] else 0.0, final(row)) for row in finds]
    print(f"accuracy after the first epoch: rho {rho(rung):+.2f}")
    print(f"broken: {sum(row['broken'] != '' for row in finds)}")
    parts = [sum(row["seconds"].values()) for row in rows]
    trainings = [row["train"] for row in rows]
    print(f"CPU seconds: {statistics.median(parts):.2f} before, "
          f"{statistics.median(trainings):.1f} of training")  # fmt: skip
    for name, teach in (("limits", calibrate), ("limits without their margin", without_margin)):
        print(f"{name}:", *shares(finds, controls, teach), sep="\n  ")
    print(f"with the first {FIRST} draws:", *in_order(finds, controls), sep="\n  ")


def final(row: Row) -> float:
    return float(row["accuracies"][-1]) if row["accuracies"] and not row["failed"] else 0.0


def rho(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's rank correlation."""
    first, second = ranks([a for a, _ in pairs]), ranks([b for _, b in pairs])
    return statistics.correlation(first, second)


def ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + sum(other == value for other in values) / 2
        for value in values
    ]


def without_margin(trained: Sequence[Trained]) -> Limits:
    """The worst of the better half alone."""
    middle = statistics.median(one.accuracy for one in trained)
    good = [one for one in trained if one.accuracy >= middle]
    return Limits(
        max(one.spread for one in good if one.spread is not None),
        min(one.naswot for one in good if one.naswot is not None),
    )


def shares(
    finds: Sequence[Row],
    controls: Sequence[Row],
    teach: Callable[[Sequence[Trained]], Limits],
) -> Iterator[str]:
    """What the limits reject of the draws that did not teach them, on average over the choices."""
    order = sorted(finds, key=final)
    groups = {
        "all": finds,
        "the best fifth": order[-max(1, len(finds) // 5) :],
        "the better half": order[len(finds) // 2 :],
        "those below 50 %": [row for row in finds if final(row) < 0.5],
    }
    source = random.Random(1)
    counts = {name: [0, 0] for name in groups}
    for _ in range(CHOICES):
        first = source.sample(range(len(finds)), FIRST)
        limits = teach([trained(row) for row in [*controls, *(finds[i] for i in first)]])
        for row in (row for i, row in enumerate(finds) if i not in first):
            words = (row["spread"], row["naswot"], None, row["broken"], limits, {})
            rejected = not judge(*words)[0]
            for name, group in groups.items():
                if row in group:
                    counts[name][0] += rejected
                    counts[name][1] += 1
    for name, (rejected, total) in counts.items():
        yield f"rejected of {name}: {100 * rejected / max(1, total):.0f} %"


def in_order(finds: Sequence[Row], controls: Sequence[Row]) -> Iterator[str]:
    """The limits that the first draws teach, and what they say of each of the others."""
    limits = calibrate([trained(row) for row in [*controls, *finds[:FIRST]]])
    yield f"{limits}"
    for row in finds[FIRST:]:
        passes, reason = judge(row["spread"], row["naswot"], None, row["broken"], limits, {})
        yield f"{row['name']}: {100 * final(row):.1f} %, {'passes' if passes else reason}"


def trained(row: Row) -> Trained:
    return Trained(row["spread"], row["naswot"], final(row))


if __name__ == "__main__":
    main()
