"""What norms inside kernels change: accuracy and seconds of short trainings with and without.

    ./dev bench recipe [--epochs N] [--seeds N] [--json]

The network is resnet8 (width 16) on digits-scattered under macs=0.5x, the recipe that of a search;
accuracies are on the validation split. Seconds are of the processor, of one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch

from canvas import _core
from canvas.data import load_data
from canvas.environment import machine, versions
from canvas.errors import NoSolution
from canvas.nn.controls import DEPTHWISE_SEPARABLE
from canvas.nn.network import Recipe, build_network, plan_network
from canvas.training.train import train

BUDGET = "macs=0.5x,params=none"
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


def packs(targets: str) -> dict[tuple[str, str], str | None]:
    """(name, norm) -> pack; None for the unchanged network."""
    found: dict[tuple[str, str], str | None] = {("dense", "none"): None}
    for name, nodes in KERNELS.items():
        for norm in ("none", "batch"):
            try:
                pack = _core.solve(text(nodes), targets, BUDGET, f"norm={norm}")
            except NoSolution:
                pack = _core.solve(text(nodes), targets, "macs=none,params=none", f"norm={norm}")
            found[name, norm] = pack
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="trainings with and without norms inside kernels")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object per training and line")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    images = load_data("digits-scattered")
    recipe = Recipe("resnet8", 16, images.shape, images.classes, "paper", 1)
    print(f"{versions()} {machine()}, {options.epochs} epochs, seeds 1 to {options.seeds}")
    for (name, norm), pack in packs(plan_network(recipe).targets).items():
        accuracies, seconds = [], []
        for seed in range(1, 1 + options.seeds):
            network = build_network(
                Recipe("resnet8", 16, images.shape, images.classes, "paper", seed), pack
            )
            start = time.process_time()
            try:
                accuracies.append(train(network, images, options.epochs, seed)[-1].accuracy)
            except ArithmeticError:
                accuracies.append(0.0)
            seconds.append(time.process_time() - start)
        row = {"kernel": name, "norm": norm, "accuracies": accuracies, "seconds": seconds}
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            shown = ", ".join(f"{100 * a:.1f}" for a in accuracies)
            mean = statistics.fmean(seconds)
            print(f"{name:28}{norm:7}{shown}  {mean:.1f} s", flush=True)


if __name__ == "__main__":
    main()
