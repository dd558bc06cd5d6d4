"""The sampler: its speed, its use of budgets, and the scale of the outputs of drawn kernels.

    ./dev bench sampling [--count 2000] [--budget macs=0.5x,params=0.5x]
    ./dev bench sampling --targets [--count 2000] [--label WORDS]
    ./dev bench sampling --duplicates [--count 5000]
    ./dev bench sampling --probability [--draws 40000] [--tries 20000]
    ./dev bench sampling --scale [--seeds 1000] [--worst 20] [--plain-softmax]

Targets are ResNet-18's at 224x224 (examples/targets/resnet18.txt). The speed is that of the
whole `canvas sample` process (drawing, hashing, printing), in processor seconds of one core,
median and spread of five runs with different seeds. The published code draws 1.4 kernels a
second at 5-25 primitives and 8.7 at 5-12 (four of these shapes), its predecessor with a budget
6.6 at 3-12. Children (mutation, crossover) are made of solvable draws in this process.

--targets: the speed of drawing, and of solving for the budget, for each file of examples/targets
(of MobileNet-V2 a tenth of the kernels); WORDS stand before the names of the cases.

--duplicates: of the first draws of seed 1, the share that simplification changes, that is
isomorphic to an earlier one, and that is not but computes the same as one (`_testing.value_key`);
the time of that key.

--probability: how probable each kernel of examples/kernels is as a draw. The probability of one
try is exact (src/sample/probability.h); that a try succeeds is measured with --tries of them.
Three small kernels are then counted among --draws draws.

--scale: for every seed s = 1, 2, ... the first kernel of `canvas sample --seed s` that fits the
default budget, for ResNet-18's layers with H = W = 8. Its module starts with its own initial
weights and reads 8 images of unit noise in float32. A kernel is in range if every layer's output
has a standard deviation in [0.05, 20]. --plain-softmax removes `scale=` from every softmax.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import math
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import harness
import torch

from canvas import KernelPack, _core, _testing

LEARNED = "space=wide draws=learned"
TARGETS = Path(__file__).resolve().parents[1] / "examples/targets/resnet18.txt"
CANVAS = Path(sys.executable).parent / "canvas"
RANGES = ("3..8", "5..12", "5..25")
RUNS = 5
LEAST, MOST = 0.05, 20.0
BATCH, SIZE = 8, 8
PART = 2  # images at once: the largest tensors have 2^25 elements for each


# ---- speed --------------------------------------------------------------------------------------


def seconds_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(given: str, count: int, targets: Path = TARGETS) -> dict[str, float]:
    """Kernels per processor second of draws with these options; the start of the process is timed
    alone and taken off.
    """
    command = [str(CANVAS), "sample", "--targets", str(targets)]
    for word in given.split():
        name, value = word.split("=")
        command += [f"--{name}", value]
    rates = []
    for seed in range(1, RUNS + 1):
        start = seconds_of([*command, "--seed", str(seed), "--count", "1"])
        rates.append(
            count / (seconds_of([*command, "--seed", str(seed), "--count", str(count)]) - start)
        )
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def solving(given: str, count: int, budget: str, targets: Path) -> float:
    """Median microseconds of the processor to solve a draw for a budget, or to find that it does
    not fit.
    """
    text = targets.read_text()
    drawn = (_core.draw(text, 1, index, given) for index in range(count))
    times = []
    for kernel in drawn:
        if kernel:
            start = time.process_time()
            fits(text, kernel, budget)
            times.append(time.process_time() - start)
    return 1e6 * statistics.median(times)


def usage(given: str, count: int, budget: str) -> dict[str, float]:
    """Of `count` draws: equal ones, those with a free variable, and the budget they use."""
    targets = TARGETS.read_text()
    dense = json.loads(_testing.baseline(targets))
    share = float(budget.split("macs=")[1].split("x")[0])
    hashes, used, everything, free, unsolved = set(), [], [], 0, 0
    for index in range(count):
        drawn = _core.draw(targets, 1, index, given)
        if drawn is None or _core.hash(drawn[0]) in hashes:
            continue
        hashes.add(_core.hash(drawn[0]))
        variable = "x0" in drawn[0]
        free += variable
        try:
            pack = _core.solve(drawn[0], targets, budget, f"G={drawn[1]}")
        except _core.NoSolution:
            unsolved += 1
            continue
        cost = json.loads(_core.cost(pack))
        everything.append(max(cost[k] / (share * dense[k]) for k in ("macs", "params")))
        if variable:
            used.append(everything[-1])
    return {
        "different": len(hashes) / count,
        "with_free_variable": free / len(hashes),
        "no_solution": unsolved / len(hashes),
        "budget_used_p10": statistics.quantiles(used, n=10)[0],
        "budget_used_median": statistics.median(used),
        "all_solved_median": statistics.median(everything),
    }


def fits(targets: str, kernel: tuple[str, int], budget: str) -> bool:
    try:
        _core.solve(kernel[0], targets, budget, f"G={kernel[1]}")
    except _core.NoSolution:
        return False
    return True


def children(options: str, count: int, budget: str, parents: int) -> dict[str, float]:
    """Of about `count` children with one or two parents that fit the budget."""
    targets = TARGETS.read_text()
    drawn = (_core.draw(targets, 1, index, options) for index in range(120))
    old = [kernel for kernel in drawn if kernel and fits(targets, kernel, budget)]
    pairs = list(itertools.pairwise(old))
    made: list[tuple[str, int]] = []
    rates = []
    for seed in range(1, RUNS + 1):
        start = time.process_time()
        for index in range(count // RUNS):
            pair = pairs[index % len(pairs)]
            child = _core.mutate(targets, seed, index, options, list(pair[:parents]))
            if child:
                made.append(child)
        rates.append(count // RUNS / (time.process_time() - start))
    return {
        "made": len(made) / (count // RUNS * RUNS),
        "different": len({_core.hash(kernel) for kernel, _ in made}) / len(made),
        "no_solution": sum(not fits(targets, child, budget) for child in made) / len(made),
        "per_second_least": min(rates),
        "per_second_median": statistics.median(rates),
    }


def duplicates(options: str, count: int) -> dict[str, float]:
    """Shares of `count` draws, and microseconds of the processor per key of what is computed."""
    targets = TARGETS.read_text()
    drawn = (_core.draw(targets, 1, index, options) for index in range(count))
    kernels = [kernel for kernel, _ in filter(None, drawn)]
    different = {_core.hash(kernel): kernel for kernel in kernels}
    changed = sum(_core.hash(_testing.simplify(kernel)) != h for h, kernel in different.items())
    start = time.process_time()
    values = {_testing.value_key(kernel) or h for h, kernel in different.items()}
    key = (time.process_time() - start) / len(different)
    return {
        "not simple": changed / len(different),
        "isomorphic": 1 - len(different) / len(kernels),
        "equal in value": (len(different) - len(values)) / len(kernels),
        "us per key": 1e6 * key,
    }


# ---- probability --------------------------------------------------------------------------------


class Setting(NamedTuple):
    """Options of draws, and how often a try of each kind of draw succeeds."""

    options: str
    successes: list[dict[str, int]]

    @staticmethod
    def measured(options: str, tries: int) -> Setting:
        found = _testing.successes(TARGETS.read_text(), options, 1, tries)
        return Setting(options, json.loads(found))

    def of(self, kernel: str) -> tuple[float, list[str]]:
        """The probability that a draw is this kernel, and why kinds of draws never are."""
        kinds = json.loads(_testing.probability(kernel, TARGETS.read_text(), self.options))
        probability = 0.0
        for kind, found in zip(kinds, self.successes, strict=True):
            if kind["probability"]:
                success = found["successes"] / found["attempts"]
                any_success = 1 - (1 - success) ** found["limit"]
                probability += kind["share"] * kind["probability"] / success * any_success
        return probability, list(dict.fromkeys(kind["why"] for kind in kinds if kind["why"]))


# Kernels of few primitives, options with which about one in a thousand draws is this kernel.
COUNTED = {
    "convolution": (
        "primitives=2 draws=paper",
        "b = unfold a over=H,W k=K;c = fc b to=C;out c",
    ),
    "sine of a convolution": (
        "primitives=3",
        "b = unfold a over=H,W k=K;c = fc b to=C;d = sin c;out d",
    ),
    "spatially separable": (
        "primitives=4",
        "b = unfold a over=H k=K;c = fc b to=x0;d = unfold c over=W k=K;e = fc d to=C;out e",
    ),
}


def examples() -> Iterator[tuple[str, str]]:
    for file in sorted((TARGETS.parents[1] / "kernels").glob("*.kernel")):
        yield file.stem, re.sub(r" *: .*", "", file.read_text())


def show_row(options: argparse.Namespace, recorder: harness.Recorder, table: str, case: str,
             row: dict[str, float | str]) -> None:  # fmt: skip
    recorder.add(table, case, {name: (value, "") for name, value in row.items()})
    shown = (f"{v:10.3g}" if isinstance(v, float) else f"{v!s:>10}" for v in row.values())
    line = json.dumps({"case": case, **row}) if options.json else f"{case:24} {' '.join(shown)}"
    print(line, flush=True)


def show_examples(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    """Of every example kernel: in the paper's space, with windows of K, and in the widest, as it
    is, also where it is not one of the known kernels. That so many tries succeed is taken from the
    draws that know it. Kernels that no draw is are printed with the reason, not recorded.
    """
    rules, paper = (Setting.measured(f"draws={d}", options.tries) for d in ("rules", "paper"))
    wide = "space=wide draws="
    uniform, learned = (Setting.measured(wide + d, options.tries) for d in ("rules", "learned"))
    for name, kernel in examples():
        narrow = re.sub(r"(over=[HW,]+) k=3", r"\1 k=K", kernel)
        apart = Setting(f"{wide}learned without={name}", learned.successes)
        found, why = learned.of(kernel)
        row: dict[str, float | str] = {
            "rules": rules.of(narrow)[0],
            "paper": paper.of(narrow)[0],
            "wide, rules": uniform.of(kernel)[0],
            "wide, learned": found,
            "wide, learned from the others": apart.of(kernel)[0],
            "why not": "" if found else reason(why),
        }
        any_draw = any(isinstance(value, float) and value for value in row.values())
        nowhere = harness.Recorder("sampling", False)
        show_row(options, recorder if any_draw else nowhere, "probability", name, row)


def reason(why: list[str]) -> str:
    """What holds in all kinds of draws, or what their last step fails at."""
    reach = [text for text in why if "mixes" in text or "neighbours" in text]
    return (
        reach or [text for text in why if "drawn" in text and "primitives" not in text] or why
    )[0]


def show_counted(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    targets = TARGETS.read_text()
    known: dict[str, tuple[Setting, collections.Counter[str]]] = {}
    for name, (given, nodes) in COUNTED.items():
        kernel = "canvas 1\nkernel k\na = input\n" + nodes.replace(";", "\n") + "\n"
        if given not in known:
            draws = (_core.draw(targets, 1, index, given) for index in range(options.draws))
            count = collections.Counter(_core.hash(drawn[0]) for drawn in draws if drawn)
            known[given] = Setting.measured(given, options.tries), count
        setting, count = known[given]
        found, expected = count[_core.hash(kernel)], options.draws * setting.of(kernel)[0]
        apart = (found - expected) / math.sqrt(expected)
        row: dict[str, float | str] = {"expected": expected, "found": found, "apart": apart}
        show_row(options, recorder, "counted", f"{name}, {given}", row)


def show_probability(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    show_examples(options, recorder)
    show_counted(options, recorder)


# ---- scale --------------------------------------------------------------------------------------


class Scale(NamedTuple):
    """Standard deviations of one kernel's output over the layers."""

    seed: int
    pack: KernelPack
    layers: tuple[float, ...]  # one per layer of different sizes

    @property
    def worst(self) -> float:
        """The layer that is farthest from 1."""
        return max(self.layers, key=distance)

    @property
    def in_range(self) -> bool:
        return all(LEAST <= deviation <= MOST for deviation in self.layers)

    @property
    def gains(self) -> list[float]:
        """What the initial weights are multiplied by, beside 1/sqrt(fan_in): one per weight."""
        return [float(gain) for gain in re.findall(r"std = ([\d.e+-]+) /", self.pack.torch_code)]

    @property
    def ending(self) -> str:
        """The last three primitives before the output, the last one first."""
        nodes = {
            name.strip(): right.partition(" : ")[0].split()
            for line in self.pack.kernel.splitlines()
            if "=" in line.partition("#")[0]
            for name, _, right in [line.partition("=")]
        }
        at = self.pack.kernel.split()[-1]
        words: list[str] = []
        while len(words) < 3 and at in nodes:
            word, *rest = nodes[at]
            words.append(word)
            inputs = [name for name in rest if name in nodes]
            if not inputs:
                break
            at = inputs[0]
        return " < ".join(words)


def distance(deviation: float) -> float:
    return abs(math.log(deviation)) if 0 < deviation < math.inf else math.inf


def small_targets() -> str:
    """The layers of ResNet-18 on images of 8x8."""
    lines = []
    for line in TARGETS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, cin, cout, _, _, *rest = line.split()
            lines.append(" ".join([name, cin, cout, str(SIZE), str(SIZE), *rest]))
    return "\n".join(lines) + "\n"


def draw(seed: int, plain_softmax: bool = False) -> KernelPack:
    """The first kernel of the seed's stream that has sizes under the default budget."""
    pack = next(harness.solved_draws(small_targets(), seed, "macs=1x"))[2]
    return KernelPack(re.sub(r"(= softmax .*?) scale=\S+", r"\1", pack) if plain_softmax else pack)


@torch.no_grad()
def measure(seed: int, plain_softmax: bool = False) -> Scale:
    pack = draw(seed, plain_softmax)
    generator = torch.Generator().manual_seed(seed)
    found: dict[tuple[object, ...], float] = {}
    for b in pack.module.BINDINGS:
        sizes = tuple(value for key, value in b.items() if key != "name")
        if sizes in found:
            continue
        kernel = pack.module(b["cin"], target=b["name"])
        if pack.params:
            kernel.reset_parameters(generator)
        x = torch.randn(BATCH, b["cin"], b["h"], b["w"], generator=generator)
        y = torch.cat([kernel(part) for part in x.split(PART)])
        found[sizes] = y.double().std().item()
    return Scale(seed, pack, tuple(found.values()))


def measure_all(seeds: int, plain_softmax: bool = False) -> Iterator[Scale]:
    return (measure(seed, plain_softmax) for seed in range(1, seeds + 1))


def share(scales: list[Scale]) -> float:
    return sum(scale.in_range for scale in scales) / len(scales)


def report_of(scales: list[Scale]) -> dict[str, object]:
    layers = [deviation for scale in scales for deviation in scale.layers]
    gains = [gain for scale in scales for gain in scale.gains]
    outside = collections.Counter(s.ending.split(" < ")[0] for s in scales if not s.in_range)
    return {
        "version": _core.version(),
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "kernels": len(scales),
        "in_range": share(scales),
        "below_0.05": sum(min(s.layers) < LEAST for s in scales) / len(scales),
        "above_20": sum(not max(s.layers) <= MOST for s in scales) / len(scales),
        "below_0.001": sum(min(s.layers) < 1e-3 for s in scales) / len(scales),
        "quantiles of all layers (1, 5, 50, 95, 99 %)": [
            round(statistics.quantiles(layers, n=100)[q - 1], 4) for q in (1, 5, 50, 95, 99)
        ],
        "largest gain of a weight": max(gains),
        "outside, by the last primitive": dict(outside.most_common()),
    }


# ---- the command --------------------------------------------------------------------------------


def show_scale(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    torch.set_num_threads(1)
    scales = list(measure_all(options.seeds, options.plain_softmax))
    report = report_of(scales)
    case = "drawn kernels, plain softmax" if options.plain_softmax else "drawn kernels"
    names = {"kernels": "kernels", "in range": "in_range", "below 0.05": "below_0.05",
             "above 20": "above_20", "below 0.001": "below_0.001"}  # fmt: skip
    recorder.add("scale", case, {name: (report[key], "") for name, key in names.items()})
    if options.json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        print(f"{name:24} {value}")
    print("\nseed  worst layer  output < what makes it < what makes that (its left input)")
    outside = [scale for scale in scales if not scale.in_range]
    for scale in sorted(outside, key=lambda s: -distance(s.worst))[: options.worst]:
        print(f"{scale.seed:4}  {scale.worst:11.3g}  {scale.ending}")


def named(given: str) -> str:
    """Options of draws, as tables name them."""
    return (
        "wide, learned" if given == LEARNED else f"{given.removeprefix('primitives=')} primitives"
    )


def show_speed(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    few = min(options.count, 1000)
    print(f"canvas {_core.version()} on {platform.machine()}, {os.cpu_count()} cores, "
          f"budget {options.budget}", file=sys.stderr)  # fmt: skip
    for given in (*(f"primitives={primitives}" for primitives in RANGES), LEARNED):
        rate = speed(given, options.count)
        row = usage(given, few, options.budget)
        values = {name.replace("_", " "): (value, "") for name, value in row.items()}
        values["kernels"] = (rate["median"], "per s")
        recorder.add("speed", named(given), values)
        for parents in (1, 2):
            found = children(given, few, options.budget, parents)
            row |= {f"children_of_{parents}_{name}": value for name, value in found.items()}
        if options.json:
            print(json.dumps({"options": given, "kernels_per_second": rate, **row}))
            continue
        spread = f"{rate['min']:,.0f} to {rate['max']:,.0f}"
        print(f"{given}: {rate['median']:,.0f} kernels/s ({spread})")
        for name, value in row.items():
            print(f"  {name.replace('_', ' '):32} {value:,.3f}")


def show_targets(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    for targets in sorted(TARGETS.parent.glob("*.txt")):
        count = options.count // 10 if "mobilenet" in targets.stem else options.count
        for given in ("primitives=3..12", "primitives=5..25", LEARNED):
            rate = speed(given, count // 10 if "wide" in given else count, targets)
            solved = solving(given, min(count, 200), options.budget, targets)
            case = f"{options.label} {targets.stem}, {named(given)}".strip()
            values = {"kernels": (rate["median"], "per s"), "solving": (solved, "us")}
            recorder.add("targets", case, values, {"kernels": (rate["max"] - rate["min"]) / 2})
            row = {"case": case, "kernels_per_second": rate, "solving_us": solved}
            print(json.dumps(row) if options.json else row, flush=True)


def show_duplicates(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    for draws in ("draws=rules", "draws=paper"):
        row = duplicates(draws, options.count)
        recorder.add("duplicates", draws, {name: (value, "") for name, value in row.items()})
        print(json.dumps({"draws": draws, **row}) if options.json else {"draws": draws, **row})


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--targets", action="store_true", help="each file of targets")
    parser.add_argument("--duplicates", action="store_true", help="draws that are equal")
    parser.add_argument("--label", default="", metavar="WORDS")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--budget", default="macs=0.5x,params=0.5x")
    parser.add_argument("--probability", action="store_true", help="of the example kernels")
    parser.add_argument("--draws", type=int, default=40000)
    parser.add_argument("--tries", type=int, default=20000)
    parser.add_argument("--scale", action="store_true", help="the scale of outputs")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--worst", type=int, default=20)
    parser.add_argument("--plain-softmax", action="store_true")
    options = parser.parse_args()
    recorder = harness.Recorder("sampling", options.record)
    shows = {
        "scale": show_scale,
        "targets": show_targets,
        "duplicates": show_duplicates,
        "probability": show_probability,
    }
    show = next((shows[name] for name in shows if getattr(options, name)), show_speed)
    show(options, recorder)


if __name__ == "__main__":
    harness.run(main)
