"""Short trainings: norms inside kernels, and signals before training beside the final accuracy.

    ./dev bench trainings norms [--epochs 3] [--seeds 1]
    ./dev bench trainings measure FILE [--draws 40] [--epochs 3] [--seed 1] [--solve TEXT]
    ./dev bench trainings table FILE

The network is resnet8 (width 16) on digits-scattered under macs=0.5x, the recipe that of a search;
accuracies are on the validation split. `norms` trains kernels with and without norms inside.
`measure` trains the controls and the first draws that fit and appends one line of JSON for each to
FILE, so that it continues where it stopped. `table` prints, for each signal, its rank correlation
with the final accuracy, and what limits learnt from the controls and twelve draws
(canvas.runner.pretests) reject of the other draws, on average over 2,000 random choices.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import harness
import torch

from canvas import _core
from canvas.data import load_data
from canvas.errors import NoSolution
from canvas.nn.controls import DEPTHWISE_SEPARABLE, grouped, solve_controls
from canvas.nn.network import Recipe, build_network, plan_network
from canvas.runner.pretests import Limits, Trained, calibrate, judge
from canvas.training.train import NotFinite, train
from canvas.workers.worker import initial_signals

BUDGET = "macs=0.5x"
FIRST = 12  # finds that teach the limits of a search and are not judged
CHOICES = 2000
Row = dict[str, Any]


def task(seed: int) -> tuple[Any, Recipe]:
    """Images and recipe, with the settings of a search."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    images = load_data("digits-scattered")
    return images, Recipe("resnet8", 16, images.shape, images.classes, "paper", seed)


# ---- norms --------------------------------------------------------------------------------------

# name: the nodes after `a = input`
KERNELS = {
    "spatially separable": "b = unfold a over=H k=K; c = fc b to=x0; d = unfold c over=W k=K;"
    " e = fc d to=C; out e",
    "depth-wise separable": DEPTHWISE_SEPARABLE,
    "linear chain with to=1": "b = unfold a over=H k=K; c = fc b to=x0; d = fc c to=1;"
    " e = unfold d over=W k=K; f = fc e to=C; out f",
    "product with one channel": "b = unfold a over=H,W k=K; c = fc b to=x0; d = fc c to=1;"
    " e = unfold a over=H k=K; f = fc e to=x0; g = mul d f; h = fc g to=C; out h",
    "linear chain of three": "b = unfold a over=H k=K; c = fc b to=x0; d = fc c to=x1;"
    " e = unfold d over=W k=K; f = fc e to=C; out f",
    "max of two fc": "b = unfold a over=H,W k=K; c = fc b to=x0; d = fc a to=x0; e = max c d;"
    " f = fc e to=C; out f",
    "mul of two fc": "b = unfold a over=H k=K; c = fc b to=x0; d = unfold a over=W k=K;"
    " e = fc d to=x0; f = mul c e; g = fc f to=C; out g",
}


def text(nodes: str) -> str:
    if nodes.startswith("canvas"):
        return nodes
    lines = [line.strip() for line in nodes.split(";")]
    return "\n".join(["canvas 1", "kernel k", "a = input", *lines, ""])


def norm_packs(targets: str) -> dict[tuple[str, str], str | None]:
    """(name, norm) -> pack; None for the unchanged network."""
    found: dict[tuple[str, str], str | None] = {("dense", "none"): None}
    for name, nodes in KERNELS.items():
        for norm in ("none", "batch"):
            try:
                pack = _core.solve(text(nodes), targets, f"{BUDGET},params=none", f"norm={norm}")
            except NoSolution:
                pack = _core.solve(text(nodes), targets, "macs=none,params=none", f"norm={norm}")
            found[name, norm] = pack
    return found


def show_norms(words: argparse.Namespace, recorder: harness.Recorder) -> None:
    images, recipe = task(1)
    for (name, norm), pack in norm_packs(plan_network(recipe).targets).items():
        accuracies, seconds = [], []
        for seed in range(1, 1 + words.seeds):
            network = build_network(task(seed)[1], pack)
            start = time.process_time()
            try:
                accuracies.append(train(network, images, words.epochs, seed)[-1].accuracy)
            except ArithmeticError:
                accuracies.append(0.0)
            seconds.append(time.process_time() - start)
        row = {"kernel": name, "norm": norm, "accuracies": accuracies, "seconds": seconds}
        shown = ", ".join(f"{100 * accuracy:.1f}" for accuracy in accuracies)
        text = f"{name:28}{norm:7}{shown}  {statistics.fmean(seconds):.1f} s"
        print(json.dumps(row) if words.json else text, flush=True)
        column = "norms" if norm == "batch" else "plain"
        for seed, accuracy in enumerate(accuracies, 1):
            values = {f"{column}, seed {seed}": (100 * accuracy, "%")}
            recorder.add("norms", name, values, seed=seed)
        recorder.add("norms", name, {column: (statistics.fmean(seconds), "s")})


# ---- signals: measuring -------------------------------------------------------------------------


def measure_all(words: argparse.Namespace) -> None:
    data, recipe = task(words.seed)
    there = {json.loads(line)["name"] for line in lines_of(words.file)}
    for name, pack in packs(plan_network(recipe).targets, words):
        if name not in there:
            row = measure_one(name, pack, recipe, data, words.epochs)
            with words.file.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def packs(targets: str, words: argparse.Namespace) -> Iterator[tuple[str, str | None]]:
    """The unchanged network, the controls, and draws until enough of them fit."""
    yield "baseline", None
    norm = "batch" if "norm=batch" in words.solve else "none"
    for control in [*solve_controls(targets, norm), grouped(targets, BUDGET)]:
        if control.pack:
            yield control.name, control.pack
    found = harness.solved_draws(targets, words.seed, BUDGET, options=words.draw, more=words.solve)
    for index, _, pack in itertools.islice(found, words.draws):
        yield str(index), pack


def measure_one(name: str, pack: str | None, recipe: Any, data: Any, epochs: int) -> Row:
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


# ---- signals: the table -------------------------------------------------------------------------


def table(rows: Sequence[Row], recorder: harness.Recorder) -> None:
    finds = [row for row in rows if row["name"].isdigit()]
    controls = [row for row in rows if not row["name"].isdigit()]
    print(f"{len(finds)} draws, {len(controls)} controls")
    rung = [(row["accuracies"][0] if row["accuracies"] else 0.0, final(row)) for row in finds]
    signals = {"accuracy after one epoch": rung}
    for name, key in (("gradient spread", "spread"), ("NASWOT", "naswot")):
        signals[name] = [(row[key], final(row)) for row in finds if row[key] is not None]
    for name, pairs in signals.items():
        print(f"{name}: rho {rho(pairs):+.2f} over {len(pairs)} draws")
        recorder.add("rank correlation", name, {"rho": (rho(pairs), "")})
    print(f"broken: {sum(row['broken'] != '' for row in finds)}")
    parts = [sum(row["seconds"].values()) for row in rows]
    trainings = [row["train"] for row in rows]
    print(f"CPU seconds: {statistics.median(parts):.2f} before, "
          f"{statistics.median(trainings):.1f} of training")  # fmt: skip
    for name, teach in (("limits", calibrate), ("without the margin", without_margin)):
        found = shares(finds, controls, teach)
        print(f"{name}:", *(f"rejected of {of}: {share:.0f} %" for of, share in found.items()),
              sep="\n  ")  # fmt: skip
        values = {f"of {of}": (share, "%") for of, share in found.items()}
        recorder.add("rejected", name, values)
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
) -> dict[str, float]:
    """Percent rejected of the draws that did not teach the limits, on average over the choices."""
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
    return {name: 100 * rejected / max(1, total) for name, (rejected, total) in counts.items()}


def in_order(finds: Sequence[Row], controls: Sequence[Row]) -> Iterator[str]:
    """The limits that the first draws teach, and their verdict on each of the others."""
    limits = calibrate([trained(row) for row in [*controls, *finds[:FIRST]]])
    yield f"{limits}"
    for row in finds[FIRST:]:
        passes, reason = judge(row["spread"], row["naswot"], None, row["broken"], limits, {})
        yield f"{row['name']}: {100 * final(row):.1f} %, {'passes' if passes else reason}"


def trained(row: Row) -> Trained:
    return Trained(row["spread"], row["naswot"], final(row))


# ---- the command --------------------------------------------------------------------------------


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("what", choices=["norms", "measure", "table"])
    parser.add_argument("file", type=Path, nargs="?", help="of measure and table")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1, help="of norms")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draw", default="primitives=5..12 require=reach", help="draw options")
    parser.add_argument("--solve", default="", help="options of the solver, such as norm=batch")
    words = parser.parse_args()
    recorder = harness.Recorder("trainings", words.record)
    if words.what == "norms":
        show_norms(words, recorder)
    elif words.file is None:
        parser.error(f"{words.what} needs a FILE")
    elif words.what == "measure":
        measure_all(words)
    else:
        table([json.loads(line) for line in words.file.read_text().splitlines()], recorder)


if __name__ == "__main__":
    harness.run(main)
