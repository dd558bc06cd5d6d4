"""Short trainings: norms inside kernels, and signals before training beside the final accuracy.

    ./dev bench trainings norms [--epochs 3] [--seeds 1]
    ./dev bench trainings measure FILE [--draws 24] [--of 96] [--epochs 4] [--seed 1] [--twice 12]
    ./dev bench trainings table FILE [--record]

The network is resnet8 (width 16) on digits-scattered under macs=0.5x, the recipe that of a search;
accuracies are on the validation split. `norms` trains kernels with and without norms inside.
`measure` fits the first draws of a search to one layer of the trained unchanged network
(canvas.workers.layer_test), chooses some of them at even distances in the order of that error,
trains these and the controls and appends one line of JSON for each to FILE, so that it continues
where it stopped; --twice of the draws are trained from a second seed, too. `table` prints, for
each signal, its rank correlation with the final accuracy, and what it rejects of poor draws where
the limit is the worst of the best quarter; then what a search rejects (canvas.runner.pretests).
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import harness
import torch

from canvas import _core
from canvas.data import load_data
from canvas.errors import NoSolution
from canvas.nn.controls import DEPTHWISE_SEPARABLE, budget_controls, solve_controls
from canvas.nn.network import Recipe, build_network, plan_network
from canvas.options import read_options
from canvas.runner.next_item import draw_options
from canvas.runner.pretests import LIMIT, judge
from canvas.training.train import (
    STATISTICS_BATCHES,
    NotFinite,
    recompute_statistics,
    train,
)
from canvas.workers.layer_test import RecordedLayer
from canvas.workers.worker import initial_signals

BUDGET = "macs=0.5x"
CHOICES = 2000
LAYERS = ("trained", "untrained")  # of the unchanged network: what kernels are fitted to
SECOND_SEED = 501  # as the last rung of a search from seed 1
Row = dict[str, Any]
Draw = tuple[float, int, str]  # error, index, pack

# name; 1 where small is good, -1 where large is; what a row of a draw says, None where nothing
SIGNALS: list[tuple[str, int, Callable[[Row], float | None]]] = [
    ("error at a trained layer", 1, lambda row: row["error, trained"]),
    ("error at an untrained layer", 1, lambda row: row["error, untrained"]),
    ("accuracy after one epoch", -1, lambda row: (row["accuracies"] or [0.0])[0]),
    ("accuracy after two epochs", -1, lambda row: (row["accuracies"] or [0.0])[:2][-1]),
]
PARTS = {
    "first step": ("gradients",),
    "fingerprint": ("fingerprint",),
    "error at a layer": ("trained",),
}


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
    there = {row["name"] for row in rows_of(words.file)}

    def add(row: Row) -> None:
        with words.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    layers = {
        name: RecordedLayer(words.file.with_suffix(f".{name}.safetensors"), {}) for name in LAYERS
    }
    if "baseline" not in there or not all(layer.path.exists() for layer in layers.values()):
        start = build_network(recipe)
        statistics = data.train[0][: STATISTICS_BATCHES * 64]
        recompute_statistics(start, statistics.split(64))
        layers["untrained"].record(start, recipe.policy, data)
        network = build_network(recipe)
        row = measure_one("baseline", None, recipe, data, words.epochs, {}, network)
        layers["trained"].record(network, recipe.policy, data)
        if "baseline" not in there:
            add(row)
    targets = plan_network(recipe).targets
    for control in [*solve_controls(targets, "batch"), *budget_controls(targets, BUDGET, "batch")]:
        if control.pack and control.name not in there:
            add(measure_one(control.name, control.pack, recipe, data, words.epochs, layers))
    screened = f"{words.seed} screened"
    if screened not in there:
        add({"name": screened, "draws": screen(targets, words, layers["trained"])})
    found = next(row for row in rows_of(words.file) if row["name"] == screened)
    draws = chosen([(e, i, pack) for e, i, pack in found["draws"]], words.draws)
    again = [draw for i, draw in enumerate(draws) if spread_out(i, words.twice, len(draws))]
    for _, index, pack in mixed(draws):
        if str(index) not in there:
            add(measure_one(str(index), pack, recipe, data, words.epochs, layers))
    twice = {row["name"] for row in rows_of(words.file) if "second" in row}
    for _, index, pack in mixed(again):
        if str(index) not in twice:
            second = train_one(task(SECOND_SEED)[1], pack, data, words.epochs)[0]
            add({"name": str(index), "second": second})


def spread_out(i: int, some: int, of: int) -> bool:
    """Whether number i is one of `some` at even distances among `of`."""
    return i * some // of != (i + 1) * some // of


def mixed(draws: Sequence[Draw]) -> list[Draw]:
    """In steps of a third, so that what is there when it is stopped is spread over the order."""
    return [draw for start in range(3) for draw in draws[start::3]]


def rows_of(file: Path) -> list[Row]:
    """The rows by name; later lines add to earlier ones."""
    rows: dict[str, Row] = {}
    for line in lines_of(file):
        row = json.loads(line)
        rows[row["name"]] = rows.get(row["name"], {}) | row
    return list(rows.values())


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def screen(targets: str, words: argparse.Namespace, layer: RecordedLayer) -> list[Draw]:
    """(error, index, pack) of the first draws of a search."""
    options = draw_options(read_options({"model": "resnet8", "data": "digits-scattered"}))
    drawn = harness.solved_draws(targets, words.seed, BUDGET, options=options, more="norm=batch")
    return [
        (error if (error := layer.error(pack, 1)) is not None else 1.0, index, pack)
        for index, _, pack in itertools.islice(drawn, words.of)
    ]


def chosen(screened: Sequence[Draw], count: int) -> list[Draw]:
    """At even distances in the order of the error."""
    order = sorted(screened)
    return [order[(2 * i + 1) * len(order) // (2 * count)] for i in range(count)]


def measure_one(
    name: str,
    pack: str | None,
    recipe: Recipe,
    data: Any,
    epochs: int,
    layers: dict[str, RecordedLayer],
    network: Any = None,
) -> Row:
    signals = initial_signals(recipe, pack, data)
    for which, layer in layers.items():
        begun = time.process_time()
        signals[f"error, {which}"] = layer.error(pack or "", recipe.seed)
        signals["seconds"][which] = time.process_time() - begun
    accuracies, failed, seconds = train_one(recipe, pack, data, epochs, network)
    return {"name": name, "accuracies": accuracies, "failed": failed, "train": seconds, **signals}


def train_one(
    recipe: Recipe, pack: str | None, data: Any, epochs: int, network: Any = None
) -> tuple[list[float], str, float]:
    """Accuracy after each epoch, why it failed, processor seconds."""
    begun = time.process_time()
    accuracies: list[float] = []
    failed = ""
    try:
        go_on = lambda epoch: accuracies.append(epoch.accuracy) is None  # noqa: E731
        train(network or build_network(recipe, pack), data, epochs, recipe.seed, 64, go_on)
    except NotFinite as error:
        failed = str(error)
    return accuracies, failed, time.process_time() - begun


# ---- signals: the table -------------------------------------------------------------------------


def table(rows: Sequence[Row], recorder: harness.Recorder) -> None:
    finds = [row for row in rows if row["name"].isdigit()]
    controls = [row for row in rows if "draws" not in row and not row["name"].isdigit()]
    print(f"{len(finds)} draws, {len(controls)} controls")
    for name, sign, key in SIGNALS:
        told = [(sign * value, row) for row in finds if (value := key(row)) is not None]
        values, spreads = compared(told, weak(controls))
        print(f"{name}: rho {values['rho'][0]:+.2f} +- {spreads['rho']:.2f} over {len(told)}",
              *(f"{of} {value:.0f} {unit}" for of, (value, unit) in list(values.items())[1:]),
              sep="\n  ")  # fmt: skip
        recorder.add("signals", name, values, spreads)
    print(f"broken: {sum(row['broken'] != '' for row in finds)}")
    for name, keys in PARTS.items():
        taken = statistics.median(sum(row["seconds"].get(key, 0) for key in keys) for row in finds)
        print(f"CPU seconds of a kernel, {name}: {taken:.2f}")
        recorder.add("seconds", name, {"median": (taken, "CPU s")})
    taken = statistics.median(row["train"] for row in finds)
    print(f"CPU seconds of a training: {taken:.1f}")
    recorder.add("seconds", "training", {"median": (taken, "CPU s")})
    order = sorted(finds, key=final)
    groups = {
        "all": finds,
        "the best quarter": order[-max(1, len(finds) // 4) :],
        "the better half": order[len(finds) // 2 :],
        "the worse half": order[: len(finds) // 2],
        "those below a 1x1": [row for row in finds if final(row) < weak(controls)],
    }
    for name, group in groups.items():
        if group:
            share = 100 * statistics.fmean(map(rejected, group))
            print(f"a search rejects of {name}: {share:.0f} %")
            recorder.add("rejected", name, {"error at a layer": (share, "%")})


def rejected(row: Row) -> bool:
    return not judge(row["error, trained"], None, row["broken"], LIMIT, {})[0]


def compared(
    told: Sequence[tuple[float, Row]], weak: float
) -> tuple[dict[str, tuple[Any, str]], dict[str, float]]:
    """Of a signal that is small for good draws: its rank correlation with the accuracy, with the
    standard deviation over resamples; and where the limit is the worst signal of the best quarter,
    how many it rejects of those below `weak` and of the worse half.
    """
    pairs = [(signal, final(row)) for signal, row in told]
    source = random.Random(1)
    again = [rho(source.choices(pairs, k=len(pairs))) for _ in range(CHOICES)]
    order = sorted(pairs, key=lambda pair: -pair[1])
    limit = max(signal for signal, _ in order[: max(1, len(order) // 4)])
    groups = {
        "rejected below a 1x1": [signal for signal, accuracy in pairs if accuracy < weak],
        "rejected of the worse half": [signal for signal, _ in order[len(order) // 2 :]],
    }
    values: dict[str, tuple[Any, str]] = {"rho": (rho(pairs), "")}
    for name, signals in groups.items():
        if signals:
            share = 100 * statistics.fmean(signal > limit for signal in signals)
            values[name] = (share, "%")
    return values, {"rho": statistics.stdev(again)}


def weak(controls: Sequence[Row]) -> float:
    """The accuracy of a 1x1: what is below is not worth its training."""
    return next((final(row) for row in controls if row["name"] == "1x1"), 0.5)


def final(row: Row) -> float:
    """After the last epoch, the mean over the seeds."""
    ends = [curve[-1] for curve in (row["accuracies"], row.get("second")) if curve]
    return statistics.fmean(ends) if ends and not row["failed"] else 0.0


def rho(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's rank correlation; 0 where one side is constant."""
    first, second = ranks([a for a, _ in pairs]), ranks([b for _, b in pairs])
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return statistics.correlation(first, second)


def ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + sum(other == value for other in values) / 2
        for value in values
    ]


# ---- the command --------------------------------------------------------------------------------


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("what", choices=["norms", "measure", "table"])
    parser.add_argument("file", type=Path, nargs="?", help="of measure and table")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1, help="of norms")
    parser.add_argument("--draws", type=int, default=24, help="that are trained")
    parser.add_argument("--of", type=int, default=96, help="draws that they are chosen from")
    parser.add_argument("--twice", type=int, default=12, help="draws with a second seed")
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    recorder = harness.Recorder("trainings", words.record)
    if words.what == "norms":
        show_norms(words, recorder)
    elif words.file is None:
        parser.error(f"{words.what} needs a FILE")
    elif words.what == "measure":
        measure_all(words)
    else:
        table(rows_of(words.file), recorder)


if __name__ == "__main__":
    harness.run(main)
