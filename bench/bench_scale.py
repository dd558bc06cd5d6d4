"""Whether the numbers of drawn kernels keep their size: the standard deviation of what comes out
where unit noise goes in.

    ./dev bench scale [--json] [--seeds 1000] [--worst 20] [--plain-softmax]

For every seed s = 1, 2, ...: the first kernel of `canvas sample --seed s` that has sizes under the
default budget, for the layers of ResNet-18 (examples/targets/resnet18.txt) with H = W = 8 in each.
Its PyTorch module starts with its own initial weights and reads a batch of 8 images of unit noise
in float32. A kernel is counted as in range where every layer's output has a standard deviation in
[0.05, 20]. Of the published code's kernels 45 % stay below 0.001 (68 of 150, another network). The
worst kernels are listed by the primitives that end them. --plain-softmax takes `scale=` off every
softmax, which makes it the published one.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import platform
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from canvas import KernelPack, _core

TARGETS = Path(__file__).resolve().parents[1] / "examples/targets/resnet18.txt"
LEAST, MOST = 0.05, 20.0
BATCH, SIZE = 8, 8
PART = 2  # images at once: the largest tensors have 2^25 elements for each


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
    targets = small_targets()
    for index in range(1000):
        drawn = _core.draw(targets, seed, index, "")
        if drawn is None:
            continue
        try:
            pack = KernelPack(_core.solve(drawn[0], targets, "macs=1x", f"G={drawn[1]}"))
        except _core.NoSolution:
            continue
        if plain_softmax:
            return KernelPack(re.sub(r"(= softmax .*?) scale=\S+", r"\1", pack.text))
        return pack
    raise RuntimeError(f"no kernel in 1000 draws of seed {seed}")


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


def main() -> None:
    parser = argparse.ArgumentParser(description="measure the scale of drawn kernels' outputs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--worst", type=int, default=20)
    parser.add_argument("--plain-softmax", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    scales = list(measure_all(options.seeds, options.plain_softmax))
    report = report_of(scales)
    if options.json:
        print(json.dumps(report, indent=1))
        return
    for name, value in report.items():
        print(f"{name:24} {value}")
    print("\nseed  worst layer  output < what makes it < what makes that (its left input)")
    outside = [scale for scale in scales if not scale.in_range]
    for scale in sorted(outside, key=lambda s: -distance(s.worst))[: options.worst]:
        print(f"{scale.seed:4}  {scale.worst:11.3g}  {scale.ending}")


if __name__ == "__main__":
    main()
